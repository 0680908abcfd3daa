//! A card as its driver would show it: a desktop that moves, our memory, and a `used` figure that falls late.

pub(crate) mod device;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rocmforge_memory::{Bytes, Card, DeviceKey, HostReading, Policy, Reading, Readings, SharedMemory};

pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const GIB: u64 = 1 << 30;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) total: u64,
    pub(crate) others: u64,
    /// What the driver holds for us.
    pub(crate) own: u64,
    /// What we have freed and `used` still counts.
    pub(crate) late: u64,
    /// What the driver has moved off the card, in everybody's part.
    pub(crate) evicted: u64,
    /// How long our queues have stood still.
    pub(crate) stopped: Duration,
    pub(crate) displays: u32,
    pub(crate) unified: bool,
    /// Both kinds of memory of a GPU that shares the system's, without what others and we hold: all of that is the system's.
    pub(crate) shared: Option<SharedMemory>,
    pub(crate) shows_own: bool,
    pub(crate) shows_used: bool,
    pub(crate) shows_free: bool,
    pub(crate) now: Duration,
    pub(crate) reads: u64,
}

impl World {
    pub(crate) fn new(total: u64, others: u64) -> Self {
        Self {
            total,
            others,
            own: 0,
            late: 0,
            evicted: 0,
            stopped: Duration::ZERO,
            displays: 1,
            unified: false,
            shared: None,
            shows_own: false,
            shows_used: true,
            shows_free: false,
            now: Duration::ZERO,
            reads: 0,
        }
    }
}

#[derive(Clone)]
pub(crate) struct Driver(Arc<Mutex<World>>);

impl Driver {
    pub(crate) fn new(world: World) -> Self {
        Self(Arc::new(Mutex::new(world)))
    }

    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        change(&mut self.0.lock().unwrap())
    }

    pub(crate) fn boxed(&self) -> Box<dyn Readings> {
        Box::new(self.clone())
    }
}

impl Readings for Driver {
    fn read(&self) -> Reading {
        self.with(|w| {
            w.reads += 1;
            Reading {
                total: Some(Bytes(w.total)),
                used: w
                    .shows_used
                    .then_some(Bytes((w.others + w.own + w.late).saturating_sub(w.evicted))),
                own: w.shows_own.then_some(Bytes(w.own)),
                // HIP does not see the desktop.
                hip_free: w.shows_free.then_some(Bytes(w.total.saturating_sub(w.own))),
                evicted: Some(Bytes(w.evicted)),
                stopped: Some(w.stopped),
                displays: w.displays,
                unified_memory: w.unified,
                shared: w.shared.map(|shared| SharedMemory {
                    gtt_used: shared.gtt_used.map(|used| Bytes(used.0 + w.own + w.late)),
                    system: HostReading {
                        available: shared
                            .system
                            .available
                            .map(|left| Bytes(left.0.saturating_sub(w.others + w.own + w.late))),
                        ..shared.system
                    },
                    ..shared
                }),
            }
        })
    }

    fn now(&self) -> Duration {
        self.with(|w| w.now)
    }
}

/// An APU that drives a display, in a machine with so much memory: 512 MiB of it carved out, half of the rest to be mapped.
pub(crate) fn apu(memory: u64) -> World {
    let system = memory - GIB / 2;
    World {
        unified: true,
        shared: Some(SharedMemory {
            carve_out: Some(Bytes(GIB / 2)),
            carve_out_used: Some(Bytes(GIB / 4)),
            gtt: Some(Bytes(system / 2)),
            gtt_used: Some(Bytes::ZERO),
            system: HostReading {
                total: Some(Bytes(system)),
                available: Some(Bytes(system)),
            },
        }),
        ..World::new(system / 2, 0)
    }
}

/// A card of 20 GiB that drives a display, of which the desktop holds two; the driver tells our part.
pub(crate) fn desktop() -> (Driver, Arc<Card>) {
    let driver = Driver::new(World {
        shows_own: true,
        ..World::new(20 * GIB, 2 * GIB)
    });
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
    (driver, card)
}
