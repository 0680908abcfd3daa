//! Pressure levels of a card: their changes, the calls to subscribers, and the refusals.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use crate::common::{Driver, GIB, World, desktop};
use rocmforge_memory::{
    Allocation, Bytes, Card, Class, DISPLAY_HEADROOM, DeviceKey, HEADLESS_HEADROOM, Headroom, OnDisplay, Policy,
    Pressure, PressureChange, Warning,
};

fn hold(card: &Arc<Card>, driver: &Driver, bytes: u64) -> Allocation {
    let reservation = card.try_reserve(Bytes(bytes), Class::Required, "held").unwrap();
    driver.with(|w| w.own += bytes);
    reservation.commit()
}

/// The memory is gone from the driver, and from its figures.
fn give_back(driver: &Driver, allocation: Allocation) {
    driver.with(|w| w.own -= allocation.bytes().0);
    drop(allocation);
}

type Changes = Arc<Mutex<Vec<PressureChange>>>;

fn recorder() -> (Changes, impl Fn(&PressureChange) + Send + Sync + 'static) {
    let changes = Changes::default();
    (Arc::clone(&changes), move |change: &PressureChange| {
        changes.lock().unwrap().push(change.clone());
    })
}

fn levels(changes: &Changes) -> Vec<(Pressure, Pressure)> {
    changes
        .lock()
        .unwrap()
        .iter()
        .map(|change| (change.from, change.to))
        .collect()
}

#[test]
fn the_levels_by_their_definition() {
    use Pressure::{Black, Green, Red, Yellow};
    let (driver, card) = desktop();
    let budget = card.budget().budget.0;
    let edge = budget * 85 / 100;
    let most = hold(&card, &driver, edge);
    assert_eq!(card.look(), Green, "85 % exactly");
    let one = card.try_reserve(Bytes(1), Class::Required, "one more").unwrap();
    assert_eq!(card.pressure(), Yellow, "without a look");
    assert!(card.try_reserve(Bytes(1), Class::Cache, "cache").is_err());
    drop(one);
    assert_eq!(card.pressure(), Green);
    let rest = hold(&card, &driver, budget - edge);
    assert_eq!(card.pressure(), Yellow, "all of it is not too much");

    // A rise that costs the budget one byte.
    driver.with(|w| w.others = 2 * GIB + 2);
    assert_eq!(card.budget().budget.0, budget - 1, "70 % of it, rounded down");
    assert_eq!(card.pressure(), Red);
    for class in [Class::Required, Class::Growth, Class::Cache] {
        assert!(card.try_reserve(Bytes(1), class, "more").is_err(), "{class:?}");
    }
    assert!(card.check_launch().is_ok());

    // Half of the headroom of 2 GiB is gone at 19 GiB.
    let held = driver.with(|w| w.own);
    driver.with(|w| w.others = 19 * GIB - held);
    assert_eq!(card.budget().pressure, Red);
    driver.with(|w| w.others += 1);
    assert_eq!(card.budget().pressure, Black);
    let stopped = card.check_launch().unwrap_err();
    assert_eq!((stopped.own, stopped.others.0), (Bytes(held), 19 * GIB - held + 1));
    assert!(stopped.budget < stopped.own && !stopped.evicting);
    assert!(stopped.to_string().contains("Free buffers"), "{stopped}");

    // Who holds nothing has nothing to give back.
    give_back(&driver, most);
    give_back(&driver, rest);
    assert_eq!(card.pressure(), Green);
    driver.with(|w| w.others = 20 * GIB);
    assert_eq!(card.budget().pressure, Green);
    assert!(card.check_launch().is_ok());
}

#[test]
fn launches_look_for_themselves() {
    let (driver, card) = desktop();
    let held = hold(&card, &driver, 12 * GIB);
    let reads = driver.with(|w| w.reads);
    for _ in 0..1000 {
        card.check_launch().unwrap();
    }
    assert_eq!(driver.with(|w| w.reads), reads, "on figures that are young enough");
    driver.with(|w| (w.now, w.others) = (w.now + Policy::desktop().reread_every, 9 * GIB));
    assert!(card.check_launch().is_err(), "nobody had looked");
    give_back(&driver, held);
    assert!(card.check_launch().is_ok());
}

#[test]
fn eviction_stops_launches_until_we_have_given_way() {
    let grace = Policy::desktop().late_free_grace;
    for ours in [false, true] {
        let (driver, card) = desktop();
        let held = hold(&card, &driver, 8 * GIB);
        assert_eq!(card.budget().pressure, Pressure::Green);
        let evict = |w: &mut World| {
            if ours {
                w.stopped += Duration::from_millis(1);
            } else {
                w.evicted += GIB;
            }
        };
        driver.with(evict);
        assert_eq!(card.budget().pressure, Pressure::Black);
        assert!(card.check_launch().unwrap_err().evicting);
        // It stands for a moment, and again from each rise.
        driver.with(|w| w.now += grace / 2);
        driver.with(evict);
        assert_eq!(card.budget().pressure, Pressure::Black);
        driver.with(|w| w.now += grace - Duration::from_millis(1));
        assert_eq!(card.budget().pressure, Pressure::Black);
        driver.with(|w| w.now += Duration::from_millis(1));
        assert_eq!(card.budget().pressure, Pressure::Green, "we held no more than we may");

        // Who holds nothing has nothing to give back.
        let (alone, empty) = desktop();
        alone.with(evict);
        assert_eq!(empty.budget().pressure, Pressure::Green);
        let _ours = hold(&empty, &alone, GIB);
        assert_eq!(empty.pressure(), Pressure::Black);

        // With more than we may hold, it stands until that is given back.
        driver.with(evict);
        driver.with(|w| w.others = 9 * GIB);
        assert_eq!(card.budget().pressure, Pressure::Black);
        driver.with(|w| w.now += Duration::from_secs(60));
        assert_eq!(card.budget().pressure, Pressure::Black);
        give_back(&driver, held);
        assert_eq!(card.budget().pressure, Pressure::Green);
    }
}

#[test]
fn what_the_driver_moved_away_counts_as_wanted_back() {
    let (driver, card) = desktop();
    driver.with(|w| (w.others, w.evicted) = (9 * GIB, 5 * GIB));
    assert_eq!(
        card.budget().others,
        Some(Bytes::gib(4)),
        "`used` may not have fallen yet"
    );
    driver.with(|w| w.now += Policy::desktop().late_free_grace);
    let snapshot = card.budget();
    assert_eq!(
        (snapshot.others, snapshot.evicted),
        (Some(Bytes::gib(9)), Some(Bytes::gib(5)))
    );
    // A figure that nobody can believe.
    driver.with(|w| (w.others, w.evicted) = (9 * GIB, u64::MAX));
    driver.with(|w| w.now += Duration::from_secs(1));
    assert!(card.budget().others.unwrap() <= Bytes::gib(20));
}

#[test]
fn every_change_is_notified_once_in_order_with_its_figures() {
    let (driver, card) = desktop();
    let (changes, handler) = recorder();
    let subscription = card.subscribe(handler);
    let held = hold(&card, &driver, 12 * GIB);
    driver.with(|w| (w.now, w.others) = (Duration::from_secs(1), 8 * GIB));
    let _ = card.look();
    let _ = card.look();
    give_back(&driver, held);
    let _ = card.budget();
    {
        use Pressure::{Black, Green, Yellow};
        assert_eq!(levels(&changes), [(Green, Yellow), (Yellow, Black), (Black, Green)]);
        let changes = changes.lock().unwrap();
        let black = &changes[1];
        assert_eq!((black.device.as_str(), black.at), ("test", Duration::from_secs(1)));
        assert_eq!(
            (black.own, black.others, black.headroom),
            (Bytes::gib(12), Bytes::gib(8), Bytes::gib(2))
        );
        assert_eq!(
            (black.budget, black.excess()),
            (Bytes::gib(12).percent(70), Bytes(12 * GIB - 12 * GIB * 7 / 10))
        );
        assert!(black.to_string().contains("from yellow to black"), "{black}");
        assert_eq!(changes[2].excess(), Bytes::ZERO);
    }
    drop(subscription);
    let _held = hold(&card, &driver, 8 * GIB);
    assert_eq!(card.pressure(), Pressure::Yellow);
    assert_eq!(levels(&changes).len(), 3, "no subscriber is left");
}

#[test]
fn a_destructor_tells_nobody_the_next_occasion_does() {
    let (driver, card) = desktop();
    let held = hold(&card, &driver, 12 * GIB);
    let (changes, handler) = recorder();
    let _subscription = card.subscribe(handler);
    give_back(&driver, held);
    assert_eq!((card.pressure(), levels(&changes).len()), (Pressure::Green, 0));
    let _ = card.budget();
    assert_eq!(levels(&changes), [(Pressure::Yellow, Pressure::Green)]);
}

#[test]
fn a_handler_may_do_whatever_a_program_does() {
    let (driver, card) = desktop();
    let held: Arc<Mutex<Vec<Allocation>>> = Arc::default();
    let depth = Arc::new(AtomicU64::new(0));
    let (changes, other) = recorder();
    let own = Arc::new(Mutex::new(None));
    let subscription = card.subscribe({
        let (card, driver, held, depth, own): (Weak<Card>, _, _, _, _) = (
            Arc::downgrade(&card),
            driver.clone(),
            held.clone(),
            depth.clone(),
            own.clone(),
        );
        move |change| {
            assert_eq!(depth.fetch_add(1, Ordering::Relaxed), 0, "never inside of itself");
            let card = card.upgrade().unwrap();
            let _ = (card.budget(), card.look(), card.pressure(), card.ledger().live());
            drop(card.try_reserve(Bytes(1), Class::Required, "in the handler"));
            let _new = card.subscribe(|_| ());
            if change.to >= Pressure::Red {
                for allocation in held.lock().unwrap().drain(..) {
                    give_back(&driver, allocation);
                }
                // Ends its own subscription and goes on.
                drop(own.lock().unwrap().take());
            }
            depth.fetch_sub(1, Ordering::Relaxed);
        }
    });
    *own.lock().unwrap() = Some(subscription);
    let _other = card.subscribe(other);
    held.lock().unwrap().push(hold(&card, &driver, 12 * GIB));
    driver.with(|w| w.others = 9 * GIB);
    let _ = card.budget();
    assert_eq!(card.budget().pressure, Pressure::Green);
    use Pressure::{Black, Green, Yellow};
    assert_eq!(levels(&changes), [(Green, Yellow), (Yellow, Black), (Black, Green)]);
}

#[test]
fn a_handler_that_panics_does_not_silence_the_others() {
    let (driver, card) = desktop();
    let panics = card.subscribe(|_| panic!("planted"));
    let (changes, handler) = recorder();
    let _subscription = card.subscribe(handler);
    let reserve = std::panic::AssertUnwindSafe(|| card.try_reserve(Bytes::gib(12), Class::Required, "x").map(drop));
    assert!(std::panic::catch_unwind(reserve).is_err());
    drop(panics);
    let _held = hold(&card, &driver, 12 * GIB);
    assert!(!levels(&changes).is_empty());
}

#[test]
fn threads_hear_of_changes_in_their_order() {
    let (_driver, card) = desktop();
    let (changes, handler) = recorder();
    let _subscription = card.subscribe(handler);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let card = &card;
            scope.spawn(move || {
                for _ in 0..200 {
                    drop(card.try_reserve(Bytes::mib(11 * 1024 + thread), Class::Required, "x"));
                }
            });
        }
    });
    let _ = card.budget();
    let changes = levels(&changes);
    assert_eq!(changes.last().map(|change| change.1), Some(Pressure::Green));
    for pair in changes.windows(2) {
        assert_eq!(pair[0].1, pair[1].0, "one begins where the one before ended");
    }
}

#[test]
fn nothing_kept_free_is_refused_on_a_card_with_a_display() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let key = || DeviceKey::new("0000:03:00.0");
    let refused = Card::open(key(), Policy::unlimited(), driver.boxed()).unwrap_err();
    assert_eq!((refused.displays, refused.headroom), (1, Bytes::ZERO));
    let text = refused.to_string();
    assert!(
        text.contains("0000:03:00.0") && text.contains("Policy::on_display"),
        "{text}"
    );
    for policy in [
        Policy::desktop(),
        Policy::headless(),
        Policy::tests(),
        Policy::fixed(Bytes(1)),
    ] {
        assert!(Card::open(key(), policy, driver.boxed()).is_ok());
    }
    // Opened all the same, it keeps what a desktop needs.
    let snapshot = Card::new(key(), Policy::unlimited(), driver.boxed()).budget();
    assert_eq!((snapshot.headroom, snapshot.budget), (Bytes::gib(2), Bytes::gib(16)));
    assert!(snapshot.warnings.contains(&Warning::DisplayConnected));
    let sure = Policy {
        on_display: OnDisplay::Disregard,
        ..Policy::unlimited()
    };
    let snapshot = Card::open(key(), sure, driver.boxed()).unwrap().budget();
    assert_eq!((snapshot.budget, snapshot.warnings), (Bytes::gib(18), vec![]));

    // Without a display it may have everything, until one is connected.
    driver.with(|w| w.displays = 0);
    let card = Card::open(key(), Policy::unlimited(), driver.boxed()).unwrap();
    assert_eq!(card.budget().budget, Bytes::gib(18));
    driver.with(|w| w.displays = 1);
    assert_eq!(card.budget().budget, Bytes::gib(16));
    let bare = |bytes| Policy {
        headroom: Headroom::Fixed(bytes),
        ..Policy::desktop()
    };
    assert!(Card::open(key(), bare(HEADLESS_HEADROOM), driver.boxed()).is_ok());
    let refused = Card::open(key(), bare(Bytes(HEADLESS_HEADROOM.0 - 1)), driver.boxed());
    assert!(refused.is_err() && HEADLESS_HEADROOM < DISPLAY_HEADROOM);
}
