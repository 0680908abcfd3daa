//! Cards: the memory and the state of each, and its figures.

use crate::config::CardConfig;
use crate::desktop::model::Desktop;
use crate::hostcall::Hostcall;
use crate::machine::settings::Settings;
use crate::machine::vram::Vram;
use crate::queues::point::StreamId;
use rocmforge_hip_sys::hipError_t;

/// One card.
pub(crate) struct Card {
    pub(crate) config: CardConfig,
    pub(crate) vram: Vram,
    pub(crate) null: StreamId,
    /// Set by a kernel fault: every later call on this card answers it.
    pub(crate) fault: Option<hipError_t>,
    pub(crate) desktop: Option<Desktop>,
    /// What the driver holds for this process beside its allocations.
    pub(crate) overhead: u64,
    /// Where the arguments of the running kernel lie.
    pub(crate) kernarg: u64,
    /// The buffers of calls to the host, once a kernel has asked for one.
    pub(crate) hostcall: Option<Hostcall>,
    /// What the workgroups of a cooperative launch meet at; 0 before the first.
    pub(crate) grid_sync: u64,
    /// The pool that `hipMallocAsync` takes from, and the card's own one.
    pub(crate) pool: u64,
    pub(crate) own_pool: u64,
    /// The most bytes that graphs have used and reserved at a time.
    pub(crate) graph_high: [u64; 2],
    pub(crate) settings: Settings,
}

impl Card {
    /// Bytes this process holds as the driver counts them.
    pub(crate) fn own(&self) -> u64 {
        self.vram.stats().charged_bytes + self.overhead
    }

    /// Bytes that the driver for compute counts, our allocations apart: other processes, what is pinned, our overhead.
    pub(crate) fn taken(&self) -> u64 {
        let others = match &self.desktop {
            Some(desktop) => desktop.seen_by_compute(),
            None => self.config.other_rocm_used.0,
        };
        others.saturating_add(self.overhead)
    }

    /// Bytes used by everybody, as the graphics driver counts them.
    pub(crate) fn used(&self) -> u64 {
        match &self.desktop {
            Some(desktop) => desktop.used(),
            None => {
                let others = self.config.desktop_used.0.saturating_add(self.config.other_rocm_used.0);
                others.saturating_add(self.own())
            }
        }
    }

    /// Bytes in use of the carve-out and of the system's memory, everybody's.
    pub(crate) fn in_both_kinds(&self) -> (u64, u64) {
        let screen = match &self.desktop {
            Some(desktop) => desktop.screen(),
            None => self.config.desktop_used.0,
        };
        let ours = if self.config.is_mapped() { 0 } else { self.own() };
        let carve_out = screen.saturating_add(ours).min(self.config.vram.0);
        (carve_out, self.used().saturating_sub(carve_out))
    }
}
