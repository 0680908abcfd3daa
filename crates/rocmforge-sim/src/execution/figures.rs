//! Figures of memory as the graphics driver and the operating system keep them.

use crate::machine::card::Card;
use crate::machine::host::Host;
use rocmforge_memory::{Bytes, HostReading, Reading, SharedMemory};

impl Host {
    /// What the drivers know of a card. None for a card that does not exist.
    pub(crate) fn true_reading(&self, card: usize) -> Option<Reading> {
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

    /// As sysfs shows a GPU without memory of its own: the driver does not say what compute holds for a process.
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
    pub(crate) fn system_memory(&self) -> HostReading {
        let sharing = self.cards.iter().filter(|card| card.config.unified_memory);
        let used: u64 = sharing.map(|card| card.in_both_kinds().1).sum();
        let total = self.config.host_memory;
        HostReading {
            total: Some(total),
            available: Some(Bytes(total.0.saturating_sub(self.pinned.bytes()).saturating_sub(used))),
        }
    }
}
