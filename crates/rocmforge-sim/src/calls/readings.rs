//! The card's memory as sysfs and the kernel driver show it.

use crate::calls::sim::SimHost;
use rocmforge_hip_sys::HipClock;
use rocmforge_memory::{Bytes, HostReading, HostReadings, Reading, Readings};
use std::sync::Arc;
use std::time::Duration;

/// Readings of one simulated card. Unlike `hipMemGetInfo`, they see the desktop.
#[derive(Debug, Clone)]
pub struct SimReadings {
    host: Arc<SimHost>,
    card: usize,
}

impl Readings for SimReadings {
    fn read(&self) -> Reading {
        self.host.reading(self.card)
    }

    fn now(&self) -> Duration {
        HipClock::now(&*self.host)
    }
}

/// The simulated machine's own memory: all of it may be pinned, and nobody else uses any but a GPU that shares it and the programs of
/// that GPU's desktop.
#[derive(Debug, Clone)]
pub struct SimHostReadings(Arc<SimHost>);

impl HostReadings for SimHostReadings {
    fn read(&self) -> HostReading {
        self.0.with_host_mut(|host| {
            host.play_desktops();
            host.system_memory()
        })
    }
}

impl SimHost {
    /// What the machine says about its own memory ([`SimConfig::host_memory`](crate::SimConfig::host_memory)).
    pub fn host_readings(self: &Arc<Self>) -> SimHostReadings {
        SimHostReadings(self.clone())
    }

    /// What sysfs and the kernel driver say about a card. Empty readings for a card that does not exist.
    pub fn readings(self: &Arc<Self>, card: usize) -> SimReadings {
        SimReadings {
            host: self.clone(),
            card,
        }
    }

    fn reading(&self, card: usize) -> Reading {
        self.with_host_mut(|host| {
            host.play_desktops();
            let Some(truth) = host.true_reading(card) else {
                return Reading::default();
            };
            let (free, total) = (truth.hip_free.unwrap_or_default(), truth.total.unwrap_or_default());
            let reported = host.reported_by_hip(card, free.0, total.0);
            Reading {
                hip_free: reported.map(|(free, _)| Bytes(free)),
                ..host.reported_by_sysfs(card, truth)
            }
        })
    }
}
