//! Tests of the chain of steps that give memory back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Driver, GIB, MIB, World, desktop};
use rocmforge_memory::{
    Allocation, Bytes, Card, Class, DeviceKey, Limit, OutOfBudget, Policy, Pressure, Registration, Relief, Shortage,
    Site, Step, Warning,
};

/// Buffers that a step can give back, and what it was asked for.
#[derive(Clone)]
struct Store {
    driver: Driver,
    held: Arc<Mutex<Vec<Allocation>>>,
    asked: Arc<Mutex<Vec<Shortage>>>,
}

impl Store {
    fn new(driver: &Driver) -> Self {
        Self {
            driver: driver.clone(),
            held: Arc::default(),
            asked: Arc::default(),
        }
    }

    fn fill(&self, card: &Arc<Card>, bytes: u64) {
        let reservation = card.try_reserve(Bytes(bytes), Class::Growth, "store").unwrap();
        self.driver.with(|w| w.own += bytes);
        self.held.lock().unwrap().push(reservation.commit());
    }

    /// Gives back the oldest until there is enough.
    fn register(&self, card: &Card, step: Step) -> Registration {
        let store = self.clone();
        card.on_pressure(step, move |shortage| {
            store.asked.lock().unwrap().push(shortage.clone());
            let mut freed = 0;
            let mut held = store.held.lock().unwrap();
            while freed < shortage.needed.0 && !held.is_empty() {
                let bytes = held.remove(0).bytes().0;
                store.driver.with(|w| w.own -= bytes);
                freed += bytes;
            }
            Bytes(freed)
        })
    }

    fn asked(&self) -> Vec<(Step, Bytes)> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|shortage| (shortage.step, shortage.needed)).collect()
    }
}

#[test]
fn steps_are_taken_in_order_once_each_and_only_as_far_as_needed() {
    let (driver, card) = desktop();
    let stores = Step::ALL.map(|step| (Store::new(&driver), step));
    // Registered in another order than they are taken in.
    let _registrations: Vec<_> = stores
        .iter()
        .rev()
        .map(|(store, step)| store.register(&card, *step))
        .collect();
    for (store, _) in &stores {
        store.fill(&card, 2 * GIB);
        store.fill(&card, 2 * GIB);
    }
    let budget = card.budget().budget.0;
    assert!(
        card.try_reserve(Bytes(2 * GIB), Class::Required, "x").is_err(),
        "12 GiB are held"
    );
    let held = card.reserve(Bytes(GIB), Class::Required, "first").unwrap();
    let missing = Bytes(13 * GIB - budget);
    assert_eq!(stores[0].0.asked(), [(Step::TrimPool, missing)]);
    let asked = stores[0].0.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.request, Some((Class::Required, "first".to_owned())));
    assert!(stores[1].0.asked().is_empty() && stores[2].0.asked().is_empty());

    // 4 GiB of the pool are not enough: the caches follow, and nothing is spilled.
    let more = card.reserve(Bytes(5 * GIB), Class::Growth, "second").unwrap();
    assert_eq!(stores[0].0.asked().len(), 2);
    assert_eq!(stores[1].0.asked().len(), 1);
    assert!(stores[2].0.asked().is_empty());
    let taken = card.statistics().steps;
    assert_eq!(taken[0], (Step::TrimPool, 2, Bytes(4 * GIB)));
    assert_eq!((taken[1].1, taken[2].1), (1, 0));
    drop((held, more));
}

#[test]
fn a_refusal_says_what_was_tried() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    let _registration = store.register(&card, Step::DropCaches);
    store.fill(&card, GIB);
    let _weights = card.try_reserve(Bytes(11 * GIB), Class::Required, "weights").unwrap();
    let refused = card.reserve(Bytes(2 * GIB), Class::Required, "more").unwrap_err();
    assert_eq!(refused.relief.0, [(Step::DropCaches, Bytes(GIB))]);
    assert_eq!(refused.own, Bytes::ZERO, "the figures are those after it");
    let text = refused.to_string();
    assert!(text.contains("Before that, dropping caches freed 1.0 GiB"), "{text}");
    let pure = card.try_reserve(Bytes(2 * GIB), Class::Required, "more").unwrap_err();
    assert!(pure.relief.0.is_empty());
    let both = Relief(vec![(Step::TrimPool, Bytes(1)), (Step::Spill, Bytes(2))]);
    assert_eq!(both.freed(), Bytes(3));
    assert_eq!(both.to_string(), "trimming the pool freed 1 B, spilling freed 2 B");
}

#[test]
fn nothing_is_given_back_in_vain() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    let _registrations = Step::ALL.map(|step| store.register(&card, step));
    store.fill(&card, 10 * GIB);
    // More than the whole budget; and a cache that would push out what is there.
    let budget = card.budget().budget;
    assert!(card.reserve(Bytes(budget.0 + 1), Class::Required, "huge").is_err());
    assert!(card.reserve(Bytes(4 * GIB), Class::Cache, "cache").is_err());
    assert_eq!(store.asked(), []);
    // All of it is just what fits.
    assert!(card.reserve(budget, Class::Required, "all").is_ok());
}

#[test]
fn memory_still_in_use_is_waited_for_between_the_steps() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    // A step that lets go of memory which is still in use: it is there after `free_deferred`.
    let waiting: Arc<Mutex<Vec<Allocation>>> = Arc::default();
    let _registration = card.on_pressure(Step::Spill, {
        let (store, waiting) = (store.clone(), waiting.clone());
        move |_| {
            let held: Vec<_> = store.held.lock().unwrap().drain(..).collect();
            let freed = held.iter().map(Allocation::bytes).sum();
            waiting.lock().unwrap().extend(held);
            freed
        }
    });
    let waits = AtomicU64::new(0);
    let free_deferred = || {
        waits.fetch_add(1, Ordering::Relaxed);
        let gone: Vec<_> = waiting.lock().unwrap().drain(..).collect();
        driver.with(|w| w.own -= gone.iter().map(|a| a.bytes().0).sum::<u64>());
        Ok::<_, OutOfBudget>(!gone.is_empty())
    };
    let reserve = || {
        card.reserve_with(
            Bytes(8 * GIB),
            Class::Required,
            "weights",
            Site::caller(),
            free_deferred,
        )
    };
    let weights = reserve().unwrap();
    assert_eq!(
        waits.load(Ordering::Relaxed),
        2,
        "before the steps, and after the one there is"
    );
    // One that fails ends the request with its own error.
    let failing = || Err::<bool, _>(std::fmt::Error);
    #[derive(Debug, PartialEq)]
    enum Error {
        Wait,
        Budget,
    }
    impl From<OutOfBudget> for Error {
        fn from(_: OutOfBudget) -> Self {
            Self::Budget
        }
    }
    let error = card.reserve_with(Bytes(8 * GIB), Class::Required, "x", Site::caller(), || {
        failing().map_err(|_| Error::Wait)
    });
    assert_eq!(error.unwrap_err(), Error::Wait);
    drop(weights);
}

#[test]
fn a_handler_that_reserves_does_not_start_the_chain_again() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    let (calls, inner) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let _registration = card.on_pressure(Step::DropCaches, {
        let (card, store, calls, inner) = (Arc::downgrade(&card), store.clone(), calls.clone(), inner.clone());
        move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let card = card.upgrade().unwrap();
            // Refused at once: there is no room, and nobody is asked again.
            let refused = card
                .reserve(Bytes(8 * GIB), Class::Required, "in the handler")
                .unwrap_err();
            inner.fetch_add(u64::from(refused.relief.0.is_empty()), Ordering::Relaxed);
            assert_eq!(card.relieve().freed(), Bytes::ZERO);
            let _ = (card.budget(), card.look(), card.ledger().live(), card.statistics());
            let _other = card.on_pressure(Step::DropCaches, |_| Bytes(1));
            let gone = store.held.lock().unwrap().pop().unwrap();
            store.driver.with(|w| w.own -= gone.bytes().0);
            gone.bytes()
        }
    });
    let weights = card.reserve(Bytes(8 * GIB), Class::Required, "weights");
    assert!(weights.is_ok());
    assert_eq!((calls.load(Ordering::Relaxed), inner.load(Ordering::Relaxed)), (1, 1));
    // The thread is as before: the next request may take steps again.
    drop(weights);
    store.fill(&card, 12 * GIB);
    assert!(card.reserve(Bytes(8 * GIB), Class::Required, "weights").is_ok());
    assert_eq!(calls.load(Ordering::Relaxed), 2);
}

/// Each refusal within the handler must leave the mark of the thread standing: the second request is the one that would enter again.
#[test]
fn a_handler_that_reserves_again_and_again_does_not_start_the_chain_again() {
    const DEEP: u64 = 50;
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    let calls = Arc::new(AtomicU64::new(0));
    let _registrations = Step::ALL.map(|step| {
        let (card, store, calls) = (Arc::downgrade(&card), store.clone(), calls.clone());
        card.upgrade().unwrap().on_pressure(step, move |_| {
            let call = calls.fetch_add(1, Ordering::Relaxed) + 1;
            assert!(call <= DEEP, "the chain runs inside of itself");
            let card = card.upgrade().unwrap();
            for class in [Class::Required, Class::Cache, Class::Growth, Class::Required] {
                let refused = card.reserve(Bytes(8 * GIB), class, "in the handler").unwrap_err();
                assert!(refused.relief.0.is_empty(), "{refused}");
                assert_eq!(card.relieve().freed(), Bytes::ZERO);
            }
            // The last step gives back what was held; the ones before it have nothing.
            if step < Step::Spill {
                return Bytes::ZERO;
            }
            let gone = store.held.lock().unwrap().pop().unwrap();
            store.driver.with(|w| w.own -= gone.bytes().0);
            gone.bytes()
        })
    });
    let weights = card.reserve(Bytes(8 * GIB), Class::Required, "weights");
    assert!(weights.is_ok());
    assert_eq!(calls.load(Ordering::Relaxed), 3, "each step once");
    // The same while others take, and afterwards the thread is as before.
    drop(weights);
    store.fill(&card, 12 * GIB);
    driver.with(|w| (w.now, w.others) = (w.now + Duration::from_secs(1), 9 * GIB));
    assert!(!card.relieve().0.is_empty());
    assert_eq!(calls.load(Ordering::Relaxed), 6, "each step once");
}

#[test]
fn a_handler_that_panics_leaves_the_chain_usable() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    let panics = card.on_pressure(Step::TrimPool, |_| panic!("planted"));
    let reserve = || card.reserve(Bytes(8 * GIB), Class::Required, "x").map(drop);
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(reserve)).is_err());
    driver.with(|w| w.others = 9 * GIB);
    let _ = card.budget();
    let relieve = std::panic::AssertUnwindSafe(|| card.relieve());
    assert!(std::panic::catch_unwind(relieve).is_err());
    drop(panics);
    driver.with(|w| w.others = 2 * GIB);
    let _registration = store.register(&card, Step::Spill);
    assert!(!card.relieve().0.is_empty());
}

#[test]
fn a_registration_ends_with_its_token() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    let registration = store.register(&card, Step::TrimPool);
    assert!(
        format!("{registration:?}").contains("Registration { id: "),
        "{registration:?}"
    );
    drop(registration);
    assert!(card.reserve(Bytes(8 * GIB), Class::Required, "x").is_err());
    assert_eq!(store.asked(), []);
    // One that outlives its card does nothing.
    let late = store.register(&card, Step::TrimPool);
    store.held.lock().unwrap().clear();
    drop(card);
    drop(late);
}

#[test]
fn others_that_grow_are_given_way_to() {
    let (driver, card) = desktop();
    let stores = Step::ALL.map(|step| (Store::new(&driver), step));
    let _registrations: Vec<_> = stores
        .iter()
        .map(|(store, step)| store.register(&card, *step))
        .collect();
    for ((store, _), count) in stores.iter().zip([4, 2, 6]) {
        (0..count).for_each(|_| store.fill(&card, GIB));
    }
    assert_eq!(card.relieve().0, [], "in yellow nobody has to");
    driver.with(|w| (w.now, w.others) = (Duration::from_secs(1), 8 * GIB));
    assert!(card.look() >= Pressure::Red);
    let excess = 12 * GIB - Bytes::gib(12).percent(70).0;
    let relief = card.relieve();
    assert_eq!(relief.0, [(Step::TrimPool, Bytes(4 * GIB))]);
    assert_eq!(stores[0].0.asked(), [(Step::TrimPool, Bytes(excess))]);
    assert_eq!(stores[0].0.asked.lock().unwrap()[0].request, None);
    assert!(card.pressure() < Pressure::Red);
    // A subscriber may do it, and then nobody has to look.
    let weak = Arc::downgrade(&card);
    let _subscription = card.subscribe(move |change| {
        if change.to >= Pressure::Red {
            weak.upgrade().unwrap().relieve();
        }
    });
    driver.with(|w| (w.now, w.others) = (Duration::from_secs(2), 12 * GIB));
    card.look();
    assert!(card.pressure() < Pressure::Red);
    let now = card.budget();
    assert!(now.own <= now.budget, "{now:?}");
    assert_eq!(stores[2].0.asked().len(), 1, "all had to help");
    let text = card.statistics().to_string();
    for part in [
        "yellow",
        "spilling 1 times",
        "entered 2 times",
        "peak 12.0 GiB",
        "granted 12",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn one_thread_at_a_time_gives_way() {
    let (driver, card) = desktop();
    let store = Store::new(&driver);
    store.fill(&card, 12 * GIB);
    let _registration = card.on_pressure(Step::TrimPool, {
        let card = Arc::downgrade(&card);
        move |_| {
            let card = card.upgrade().unwrap();
            let other = std::thread::spawn(move || card.relieve().0);
            assert_eq!(other.join().unwrap(), [], "another thread is at it");
            Bytes::ZERO
        }
    });
    driver.with(|w| w.others = 9 * GIB);
    let _ = card.budget();
    assert_eq!(card.relieve().0, [(Step::TrimPool, Bytes::ZERO)]);
}

#[test]
fn what_the_driver_refuses_lowers_the_budget_for_ten_minutes() {
    let world = World {
        shows_own: true,
        shows_free: true,
        ..World::new(20 * GIB, 2 * GIB)
    };
    let driver = Driver::new(world);
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
    let slack = card.policy().slack;
    let before = card.budget();
    assert_eq!((before.correction, before.driver_refusals), (Bytes::ZERO, 0));
    // It calls 20 GiB free and gives none: nothing was missing by its figures.
    card.try_reserve(Bytes(GIB), Class::Required, "x")
        .unwrap()
        .refused_by_driver();
    let after = card.budget();
    assert_eq!(after.budget.0, before.budget.0 - slack.0);
    assert_eq!(
        (after.correction, after.driver_refusals, after.limit),
        (slack, 1, Limit::DriverRefused)
    );
    assert!(after.warnings.contains(&Warning::ModelWrong));
    assert_eq!((after.reserved, after.committed), (Bytes::ZERO, Bytes::ZERO));
    // Without a figure all of the request was missing.
    driver.with(|w| (w.shows_free, w.now) = (false, Duration::from_secs(60)));
    card.try_reserve(Bytes(GIB), Class::Required, "x")
        .unwrap()
        .refused_by_driver();
    let after = card.budget();
    assert_eq!(after.correction.0, 2 * slack.0 + GIB);
    assert_eq!(after.budget.0, before.budget.0 - after.correction.0);
    let refusal = card.try_reserve(before.budget, Class::Required, "x").unwrap_err();
    assert_eq!(refusal.limit, Limit::DriverRefused);
    assert_eq!(card.statistics().refused, [(Limit::DriverRefused, 1)]);

    driver.with(|w| w.now += Policy::desktop().peak_window - Duration::from_millis(1));
    assert_eq!(card.budget().correction, after.correction);
    driver.with(|w| w.now += Duration::from_millis(1));
    let lifted = card.budget();
    assert_eq!((lifted.correction, lifted.driver_refusals), (Bytes::ZERO, 2));
    assert_eq!((lifted.budget, lifted.limit), (after.budget, Limit::Growth));
    driver.with(|w| w.now += Duration::from_secs(60));
    assert_eq!(card.budget().budget, before.budget);
    assert!(card.budget().warnings.is_empty());
}

#[test]
fn a_driver_that_refuses_everything_ends_with_a_budget_of_nothing() {
    let (driver, card) = desktop();
    let mut times = 0;
    while let Ok(reservation) = card.try_reserve(Bytes(64 * MIB), Class::Required, "x") {
        reservation.refused_by_driver();
        times += 1;
        assert!(times < 1000);
    }
    assert!(times > 10);
    assert_eq!((card.budget().own, driver.with(|w| w.own)), (Bytes::ZERO, 0));
}
