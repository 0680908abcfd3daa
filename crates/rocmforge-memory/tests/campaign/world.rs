//! What is true of the card, and what its driver shows of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocmforge_memory::{Bytes, Reading, Readings};

use super::Random;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
/// The driver's figure of used memory falls at most so late.
const LATE: Duration = Duration::from_millis(200);
/// A walk covers 6 GiB in 10 s.
const SPEED: u64 = 6 * GIB / 10_000;

/// The truth.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) total: u64,
    /// The desktop, and where it is going.
    desktop: u64,
    goal: u64,
    /// Another ROCm process.
    process: u64,
    /// What the driver holds for us.
    pub(crate) own: u64,
    /// Freed, and still in the figure until then.
    late: VecDeque<(Duration, u64)>,
    pub(crate) shows_own: bool,
    pub(crate) shows_free: bool,
    /// What has been read and not yet been given to the reference.
    pub(crate) read: Vec<Reading>,
}

impl World {
    pub(crate) fn new(random: &mut Random) -> Self {
        let total = (8 + random.below(17)) * GIB + random.below(256) * 2 * MIB;
        let desktop = GIB / 2 + random.below(total - 3 * GIB);
        Self {
            now: Duration::ZERO,
            total,
            desktop,
            goal: desktop,
            process: 0,
            own: 0,
            late: VecDeque::new(),
            shows_own: random.one_in(2),
            shows_free: random.one_in(2),
            read: Vec::new(),
        }
    }

    pub(crate) fn others(&self) -> u64 {
        self.desktop + self.process
    }

    /// Everybody else moves on for a while.
    pub(crate) fn pass(&mut self, time: Duration, random: &mut Random) {
        self.now += time;
        let reach = SPEED * time.as_millis() as u64;
        if self.desktop.abs_diff(self.goal) <= reach {
            self.desktop = self.goal;
            if random.one_in(20) {
                let (low, high) = (
                    self.desktop.saturating_sub(6 * GIB).max(GIB / 4),
                    self.desktop + 6 * GIB,
                );
                let goal = if random.one_in(2) { low } else { high };
                self.goal = goal.min(self.total - GIB / 2);
            }
        } else if self.desktop < self.goal {
            self.desktop += reach;
        } else {
            self.desktop -= reach;
        }
        if random.one_in(20_000) {
            self.process = random.below(2) * random.below(self.total / 8);
        }
        // A program that starts takes its memory at once.
        if random.one_in(1_000) {
            let (less, more) = (random.below(3 * GIB), random.below(3 * GIB));
            self.desktop = (self.desktop.max(less + GIB / 4) - less + more).min(self.total - GIB / 2);
        }
        while self.late.front().is_some_and(|(until, _)| *until <= self.now) {
            self.late.pop_front();
        }
    }

    /// We give memory back; the figure falls later.
    pub(crate) fn free(&mut self, bytes: u64, random: &mut Random) {
        self.own -= bytes;
        let until = self.now + LATE.mul_f64(random.below(1001) as f64 / 1000.0);
        // One after the other, so that the queue stays sorted.
        let until = self.late.back().map_or(until, |(last, _)| until.max(*last));
        self.late.push_back((until, bytes));
    }

    fn reading(&self) -> Reading {
        let late: u64 = self.late.iter().map(|(_, bytes)| bytes).sum();
        Reading {
            total: Some(Bytes(self.total)),
            used: Some(Bytes((self.others() + self.own + late).min(self.total))),
            own: self.shows_own.then_some(Bytes(self.own)),
            // HIP sees other ROCm processes and not the desktop.
            hip_free: self
                .shows_free
                .then_some(Bytes(self.total.saturating_sub(self.own + self.process))),
            displays: 1,
            ..Reading::default()
        }
    }
}

/// The card's view of it.
#[derive(Clone)]
pub(crate) struct Driver(pub(crate) Arc<Mutex<World>>);

impl Driver {
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }
}

impl Readings for Driver {
    fn read(&self) -> Reading {
        self.with(|world| {
            let reading = world.reading();
            world.read.push(reading);
            reading
        })
    }

    fn now(&self) -> Duration {
        self.with(|world| world.now)
    }
}
