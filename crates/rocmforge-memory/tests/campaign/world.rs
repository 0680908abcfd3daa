//! Simulated card of the campaign: its true state, and what its driver shows of it.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocmforge_memory::{Bytes, HostReading, Reading, Readings, SharedMemory};

use rocmforge_test_support::Random;

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;
/// The driver's figure of used memory falls at most so late.
const LATE: Duration = Duration::from_millis(200);
/// A walk covers 6 GiB in 10 s.
const SPEED: u64 = 6 * GIB / 10_000;

/// What the card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Machine {
    /// A card of any size with memory of its own.
    Card,
    /// A GPU that shares the memory of a machine with so many GiB in all: 512 MiB of it are carved out.
    Apu { gib: u64 },
}

/// The part of an APU's memory that the firmware keeps for graphics, and what graphics has of it.
const CARVE_OUT: [u64; 2] = [512 * MIB, 300 * MIB];

/// The truth.
pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) machine: Machine,
    /// The card's memory, or an APU's system memory without the carve-out.
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
    pub(crate) fn new(machine: Machine, random: &mut Random) -> Self {
        let total = match machine {
            Machine::Card => (8 + random.below(17)) * GIB + random.below(256) * 2 * MIB,
            Machine::Apu { gib } => gib * GIB - CARVE_OUT[0],
        };
        let desktop = GIB / 2 + random.below(total - 3 * GIB);
        // KFD's figure of a process does not count what is mapped of the system's memory.
        let shows_own = random.one_in(2) && machine == Machine::Card;
        Self {
            now: Duration::ZERO,
            machine,
            total,
            desktop,
            goal: desktop,
            process: 0,
            own: 0,
            late: VecDeque::new(),
            shows_own,
            shows_free: random.one_in(2),
            read: Vec::new(),
        }
    }

    fn others(&self) -> u64 {
        self.desktop + self.process
    }

    /// What is kept free at least: of the card for its desktop, of the system's memory for everybody.
    pub(crate) fn headroom(&self) -> u64 {
        match self.machine {
            Machine::Card => GIB.max(self.total / 10),
            Machine::Apu { .. } => (2 * GIB).max(self.total / 16),
        }
    }

    /// Whether less than that is free.
    pub(crate) fn is_below_headroom(&self) -> bool {
        self.others() + self.own > self.total - self.headroom()
    }

    /// Half of the system's memory is what the driver may map for a GPU that shares it.
    fn gtt(&self) -> u64 {
        self.total / 2
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
            // More of it on a larger machine, or its headroom would never be touched.
            let most = (3 * GIB).max(self.total / 8);
            let (less, more) = (random.below(most), random.below(most));
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
        if self.machine != Machine::Card {
            return self.shared(late);
        }
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

    fn shared(&self, late: u64) -> Reading {
        let used = self.others() + self.own + late;
        let shared = SharedMemory {
            carve_out: Some(Bytes(CARVE_OUT[0])),
            carve_out_used: Some(Bytes(CARVE_OUT[1])),
            gtt: Some(Bytes(self.gtt())),
            gtt_used: Some(Bytes(self.own + self.process + late)),
            system: HostReading {
                total: Some(Bytes(self.total)),
                available: Some(Bytes(self.total.saturating_sub(used))),
            },
        };
        Reading {
            total: shared.gtt,
            used: shared.gtt_used,
            hip_free: self
                .shows_free
                .then_some(Bytes(self.gtt().saturating_sub(self.own + self.process))),
            displays: 1,
            unified_memory: true,
            shared: Some(shared),
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
