//! The card's memory as sysfs and the kernel driver show it.

use crate::SimHost;
use crate::host::Host;
use rocmforge_hip_sys::HipClock;
use rocmforge_memory::{Bytes, DeviceKey, HostReading, HostReadings, Reading, Readings};
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

/// The simulated machine's own memory: all of it may be pinned, and nobody else uses any.
#[derive(Debug, Clone)]
pub struct SimHostReadings(Arc<SimHost>);

impl HostReadings for SimHostReadings {
    fn read(&self) -> HostReading {
        self.0.with_host(|host| {
            let total = host.config.host_memory;
            HostReading {
                total: Some(total),
                available: Some(Bytes(total.0.saturating_sub(host.pinned.bytes()))),
            }
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

    /// The name under which a card is known to a ledger: its PCI address.
    pub fn device_key(&self, card: usize) -> Option<DeviceKey> {
        self.with_host(|host| host.cards.get(card).map(|card| DeviceKey::new(card.config.pci.clone())))
    }

    fn reading(&self, card: usize) -> Reading {
        self.with_host_mut(|host| {
            host.play_desktops();
            let Some(truth) = host.true_reading(card) else {
                return Reading::default();
            };
            let (free, total) = (truth.hip_free.unwrap_or_default(), truth.total.unwrap_or_default());
            let told = host.told_by_hip(card, free.0, total.0);
            Reading {
                hip_free: told.map(|(free, _)| Bytes(free)),
                ..host.told_by_sysfs(card, truth)
            }
        })
    }
}

impl Host {
    fn true_reading(&self, card: usize) -> Option<Reading> {
        let card = self.cards.get(card)?;
        let config = &card.config;
        let hip_free = card.vram.reported_available(card.taken());
        Some(Reading {
            total: Some(config.vram),
            used: Some(Bytes(card.used().min(config.vram.0))),
            own: Some(Bytes(card.own())),
            hip_free: Some(Bytes(hip_free.saturating_sub(self.config.hidden_free.0))),
            evicted: card.desktop.as_ref().map(|desktop| Bytes(desktop.moved_away())),
            stopped: card.desktop.as_ref().map(|desktop| desktop.stopped_for()),
            displays: config.displays,
            unified_memory: config.unified_memory,
        })
    }
}
