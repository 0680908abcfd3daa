//! The card's memory as sysfs and the kernel driver show it.

use crate::SimHost;
use crate::machine::host::{Card, Host};
use rocmforge_hip_sys::HipClock;
use rocmforge_memory::{Bytes, DeviceKey, HostReading, HostReadings, Reading, Readings, SharedMemory};
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
        if config.unified_memory {
            return Some(self.true_shared_reading(card, Bytes(hip_free.saturating_sub(self.config.hidden_free.0))));
        }
        Some(Reading {
            total: Some(config.vram),
            used: Some(Bytes(card.used().min(config.vram.0))),
            own: Some(Bytes(card.own())),
            hip_free: Some(Bytes(hip_free.saturating_sub(self.config.hidden_free.0))),
            evicted: card.desktop.as_ref().map(|desktop| Bytes(desktop.moved_away())),
            stopped: card.desktop.as_ref().map(|desktop| desktop.stopped_for()),
            displays: config.displays,
            unified_memory: false,
            shared: None,
        })
    }

    /// As sysfs shows a GPU without memory of its own: what compute holds for a process is not told.
    fn true_shared_reading(&self, card: &Card, hip_free: Bytes) -> Reading {
        let config = &card.config;
        let (carve_out_used, _) = card.in_both_kinds();
        let mapped = if config.is_mapped() {
            card.taken().saturating_add(card.own()).min(config.gtt.0)
        } else {
            0
        };
        let shared = SharedMemory {
            carve_out: Some(config.vram),
            carve_out_used: Some(Bytes(carve_out_used)),
            gtt: Some(config.gtt),
            gtt_used: Some(Bytes(mapped)),
            system: self.system_memory(),
        };
        Reading {
            total: shared.gtt,
            used: shared.gtt_used,
            own: None,
            hip_free: Some(hip_free),
            evicted: None,
            stopped: None,
            displays: config.displays,
            unified_memory: true,
            shared: Some(shared),
        }
    }

    /// What the machine has, and what of it is available.
    fn system_memory(&self) -> HostReading {
        let sharing = self.cards.iter().filter(|card| card.config.unified_memory);
        let used: u64 = sharing.map(|card| card.in_both_kinds().1).sum();
        let total = self.config.host_memory;
        HostReading {
            total: Some(total),
            available: Some(Bytes(total.0.saturating_sub(self.pinned.bytes()).saturating_sub(used))),
        }
    }
}

impl Card {
    /// Bytes in use of the carve-out and of the system's memory, everybody's.
    fn in_both_kinds(&self) -> (u64, u64) {
        let screen = match &self.desktop {
            Some(desktop) => desktop.screen(),
            None => self.config.desktop_used.0,
        };
        let ours = if self.config.is_mapped() { 0 } else { self.own() };
        let carve_out = screen.saturating_add(ours).min(self.config.vram.0);
        (carve_out, self.used().saturating_sub(carve_out))
    }
}
