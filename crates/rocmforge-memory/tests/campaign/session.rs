//! One program on one card.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocmforge_memory::{Allocation, Bytes, Card, Class, DeviceKey, Policy, Pressure, Registration, Reservation, Step};

use super::reference::Reference;
use super::world::{Driver, GIB, MIB, Machine, World};
use rocmforge_test_support::Random;

/// How long the headroom may be missing.
const CURE: Duration = Duration::from_millis(250);
/// How often the program looks at least.
const LOOK: Duration = Duration::from_millis(15);

/// What was counted.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// Times the program gave memory back because others had taken from the budget.
    pub(crate) given_way: u64,
    /// Times the desktop's headroom was not there while we held something, and the longest of them.
    pub(crate) violations: u64,
    pub(crate) longest: Duration,
    pub(crate) not_cured: u64,
    pub(crate) over_budget: u64,
    pub(crate) refused_though_it_fitted: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.granted += other.granted;
        self.refused += other.refused;
        self.given_way += other.given_way;
        self.violations += other.violations;
        self.longest = self.longest.max(other.longest);
        self.not_cured += other.not_cured;
        self.over_budget += other.over_budget;
        self.refused_though_it_fitted += other.refused_though_it_fitted;
    }
}

/// What the program holds, as a step of the chain reaches it.
#[derive(Default)]
struct Held {
    buffers: Vec<Allocation>,
    /// Bytes that the step has given back, for the books.
    gone: Vec<u64>,
}

pub(crate) struct Session {
    seed: u64,
    random: Random,
    driver: Driver,
    card: Arc<Card>,
    held: Arc<Mutex<Held>>,
    /// Reserved, and whether the driver has given the memory already.
    underway: Vec<(Reservation, bool)>,
    reference: Reference,
    tally: Tally,
    looked: Duration,
    below_since: Option<Duration>,
    pace: u64,
    _registration: Registration,
}

impl Session {
    pub(crate) fn new(machine: Machine, seed: u64) -> Self {
        let mut random = Random(seed);
        let driver = Driver(Arc::new(Mutex::new(World::new(machine, &mut random))));
        let card = Card::new(DeviceKey::new("campaign"), Policy::desktop(), Box::new(driver.clone()));
        let held: Arc<Mutex<Held>> = Arc::default();
        let step = Arc::clone(&held);
        let registration = card.on_pressure(Step::DropCaches, move |shortage| {
            let (mut held, mut freed) = (step.lock().unwrap(), 0);
            while freed < shortage.needed.0
                && let Some(buffer) = held.buffers.pop()
            {
                freed += buffer.bytes().0;
                held.gone.push(buffer.bytes().0);
            }
            Bytes(freed)
        });
        // One session in eight is slower, so that it is long enough for some peaks to be forgotten.
        let pace = if random.one_in(8) { 8_000 } else { 2_000 };
        let mut session = Self {
            seed,
            random,
            driver,
            card,
            held,
            underway: Vec::new(),
            reference: Reference::new(),
            tally: Tally::default(),
            looked: Duration::ZERO,
            below_since: None,
            pace,
            _registration: registration,
        };
        session.take_in();
        session
    }

    pub(crate) fn run(mut self, steps: u64) -> Tally {
        for step in 0..steps {
            self.step(step);
        }
        self.tally
    }

    /// Gives the reference what the card has read since.
    fn take_in(&mut self) {
        let Self { driver, reference, .. } = self;
        driver.with(|world| {
            for reading in world.read.drain(..) {
                reference.read(&reading, world.now);
            }
        });
    }

    fn step(&mut self, step: u64) {
        let time = Duration::from_micros(self.random.below(self.pace));
        let random = &mut self.random;
        let now = self.driver.with(|world| {
            world.pass(time, random);
            world.now
        });
        self.watch();
        if now - self.looked >= LOOK {
            self.looked = now;
            self.look(step);
        }
        match self.random.below(8) {
            0..=2 => self.ask(step),
            3 | 4 => self.finish(),
            5 | 6 => self.give_back(),
            _ => {}
        }
        self.watch();
    }

    /// Whether the headroom that the policy keeps at least is there, in truth.
    fn watch(&mut self) {
        let (now, below) = self
            .driver
            .with(|world| (world.now, world.own > 0 && world.is_below_headroom()));
        match (below, self.below_since) {
            (true, None) => {
                self.below_since = Some(now);
                self.tally.violations += 1;
            }
            (true, Some(since)) if now - since > CURE => {
                self.tally.longest = self.tally.longest.max(now - since);
                self.tally.not_cured += 1;
            }
            (false, Some(since)) => {
                self.tally.longest = self.tally.longest.max(now - since);
                self.below_since = None;
            }
            _ => {}
        }
    }

    /// Looks at the card as a program does, and gives way.
    fn look(&mut self, step: u64) {
        let snapshot = self.card.budget();
        self.take_in();
        let reference = &self.reference;
        let found = (snapshot.budget.0, snapshot.others.unwrap().0, snapshot.pressure);
        assert_eq!(
            found,
            (reference.budget, reference.others, reference.pressure()),
            "{:?}, seed {}, step {step}: budget, others and pressure: {snapshot:?}",
            self.driver.with(|world| world.machine),
            self.seed
        );
        if snapshot.pressure < Pressure::Red {
            return;
        }
        self.tally.given_way += 1;
        // What is on its way is given up first.
        while self.reference.usage() > self.reference.budget && !self.underway.is_empty() {
            self.cancel(0);
        }
        self.card.relieve();
        let gone: Vec<u64> = self.held.lock().unwrap().gone.drain(..).collect();
        for bytes in gone {
            self.freed(bytes);
        }
        self.take_in();
        assert!(
            self.card.pressure() < Pressure::Red,
            "seed {}, step {step}: all that was needed could be given back",
            self.seed
        );
    }

    fn size(&mut self) -> u64 {
        let bytes = match self.random.below(8) {
            // All that is left, or a byte more.
            6 | 7 => {
                let left = self.reference.budget.saturating_sub(self.reference.usage());
                return left + self.random.below(2);
            }
            0 => self.random.below(64 << 10),
            1 | 2 => self.random.below(64 * MIB),
            3 | 4 => self.random.below(GIB),
            _ => self.random.below(self.driver.with(|world| world.total)),
        };
        bytes / 4096 * 4096
    }

    fn ask(&mut self, step: u64) {
        let bytes = self.size();
        let class = [Class::Required, Class::Growth, Class::Cache][self.random.below(3) as usize];
        let result = self.card.try_reserve(Bytes(bytes), class, "campaign");
        self.take_in();
        let fits = self.reference.fits(bytes, class);
        match result {
            Ok(reservation) => {
                self.tally.granted += 1;
                self.tally.over_budget += u64::from(!fits);
                self.reference.reserved += bytes;
                self.underway.push((reservation, false));
            }
            Err(refused) => {
                self.tally.refused += 1;
                self.tally.refused_though_it_fitted += u64::from(fits);
                assert_eq!(
                    refused.budget.0, self.reference.budget,
                    "seed {}, step {step}",
                    self.seed
                );
            }
        }
    }

    /// The driver answers one request after the other; in between it may have given the memory, and the program not know.
    fn finish(&mut self) {
        let Some((reservation, given)) = self.underway.first_mut() else {
            return;
        };
        let bytes = reservation.bytes().0;
        if !*given {
            if self.random.one_in(8) {
                self.cancel(0);
                return;
            }
            *given = true;
            self.driver.with(|world| world.own += bytes);
            if self.random.one_in(4) {
                return;
            }
        }
        let (reservation, _) = self.underway.remove(0);
        let buffer = reservation.commit();
        self.reference.reserved -= bytes;
        self.reference.live += bytes;
        self.held.lock().unwrap().buffers.push(buffer);
    }

    /// Memory that a request had got meanwhile goes back before its reservation does.
    fn cancel(&mut self, index: usize) {
        let (reservation, given) = self.underway.remove(index);
        let bytes = reservation.bytes().0;
        self.reference.reserved -= bytes;
        if given {
            self.reference.live += bytes;
            let buffer = reservation.commit();
            drop(buffer);
            self.freed(bytes);
        }
    }

    fn give_back(&mut self) {
        let buffer = {
            let mut held = self.held.lock().unwrap();
            let index = self.random.below(held.buffers.len() as u64) as usize;
            if held.buffers.is_empty() {
                return;
            }
            held.buffers.swap_remove(index)
        };
        let bytes = buffer.bytes().0;
        drop(buffer);
        self.freed(bytes);
    }

    /// Books what has just been given back.
    fn freed(&mut self, bytes: u64) {
        self.reference.live -= bytes;
        let random = &mut self.random;
        let now = self.driver.with(|world| {
            world.free(bytes, random);
            world.now
        });
        self.reference.free(bytes, now);
    }
}
