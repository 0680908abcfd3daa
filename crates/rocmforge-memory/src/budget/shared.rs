//! Memory of a GPU that shares the system's: carve-out and system memory as one.
//!
//! ```text
//! T    = carve-out + GTT limit
//! Free = min(GTT limit - GTT used, MemAvailable) + what is free of the carve-out, if the driver takes from it
//! used = T - Free
//! ```
//!
//! The rest of the budget is that of any card: what is used is compared with what we hold, and the headroom is kept free. Since Free
//! falls by what we allocate, whichever kind of memory it is, our own allocations do not move the budget.

use crate::{Bytes, HOST_HEADROOM, Reading};

/// The figures of both kinds as those of one card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AsOne {
    pub(super) total: Bytes,
    pub(super) used: Bytes,
    /// What stays available to the rest of the system.
    pub(super) headroom: u64,
}

impl AsOne {
    /// `None` if a figure is missing without which nobody knows what the system can spare.
    pub(super) fn of(reading: &Reading) -> Option<Self> {
        let shared = reading.shared?;
        let (Bytes(gtt), Bytes(gtt_used)) = (shared.gtt?, shared.gtt_used?);
        let (Bytes(memory), Bytes(available)) = (shared.system.total?, shared.system.available?);
        if gtt == 0 || memory == 0 {
            return None;
        }
        // A carve-out about which nothing is known is none.
        let carve_out = shared.carve_out.zip(shared.carve_out_used);
        let (Bytes(carve_out), Bytes(carve_out_used)) = carve_out.unwrap_or_default();
        let total = carve_out.saturating_add(gtt);
        let system = gtt.saturating_sub(gtt_used).min(available.min(memory));
        let own_memory = if carve_out >= gtt {
            carve_out.saturating_sub(carve_out_used)
        } else {
            // The driver leaves it to graphics: all that we ask for is the system's (amdgpu from Linux 6.10 on).
            0
        };
        Some(Self {
            total: Bytes(total),
            used: Bytes(total - system.saturating_add(own_memory).min(total)),
            headroom: HOST_HEADROOM.0.max(memory / 16),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostReading, SharedMemory};

    const GIB: u64 = 1 << 30;

    fn of(carve_out: [u64; 2], gtt: [u64; 2], system: [u64; 2]) -> Option<[u64; 3]> {
        let bytes = |gib: u64| Some(Bytes(gib * GIB));
        let shared = SharedMemory {
            carve_out: bytes(carve_out[0]),
            carve_out_used: bytes(carve_out[1]),
            gtt: bytes(gtt[0]),
            gtt_used: bytes(gtt[1]),
            system: HostReading {
                total: bytes(system[0]),
                available: bytes(system[1]),
            },
        };
        let reading = Reading {
            shared: Some(shared),
            ..Reading::default()
        };
        AsOne::of(&reading).map(|one| [one.total.0 / GIB, one.used.0 / GIB, one.headroom / GIB])
    }

    #[test]
    fn the_scarcer_of_limit_and_available_memory_is_what_is_free() {
        // The limit, then the system's memory.
        assert_eq!(of([1, 1], [62, 2], [124, 110]), Some([63, 3, 7]));
        assert_eq!(of([1, 1], [62, 2], [124, 40]), Some([63, 23, 7]));
        assert_eq!(of([1, 1], [62, 2], [124, 0]), Some([63, 63, 7]));
        // What is free of a small carve-out is not ours: the driver does not take from it.
        assert_eq!(of([4, 0], [62, 2], [124, 110]), Some([66, 6, 7]));
        // Of a large one it is.
        assert_eq!(of([96, 6], [16, 0], [32, 20]), Some([112, 6, 2]));
        assert_eq!(of([96, 6], [16, 0], [32, 5]), Some([112, 17, 2]));
        // A small machine keeps 2 GiB.
        assert_eq!(of([0, 0], [7, 0], [15, 11]), Some([7, 0, 2]));
    }

    #[test]
    fn figures_that_cannot_be_true_are_clamped() {
        assert_eq!(of([1, 2], [8, 9], [16, 99]), Some([9, 9, 2]));
        assert_eq!(of([16, 99], [8, 0], [16, 99]), Some([24, 16, 2]));
        assert_eq!(of([0, 0], [0, 0], [16, 9]), None);
        assert_eq!(of([0, 0], [8, 0], [0, 0]), None);
    }
}
