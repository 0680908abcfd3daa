//! Readings of a card's memory: the driver's figures, and the trait of what reads them.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use crate::{Bytes, HostReading};

/// One look at a card's figures. A figure that could not be read is `None`; nothing here is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reading {
    /// Total VRAM (`mem_info_vram_total`), or system memory the GPU may use where memory is unified (`mem_info_gtt_total`).
    pub total: Option<Bytes>,
    /// VRAM used by everybody, graphics included (`mem_info_vram_used`). Falls late after frees.
    pub used: Option<Bytes>,
    /// VRAM of our own process as KFD counts it. `None`: the ledger stands in for it.
    pub own: Option<Bytes>,
    /// What HIP calls free (`hipMemGetInfo`). It does not see the desktop and serves only as a further limit.
    pub hip_free: Option<Bytes>,
    /// What the driver has moved from VRAM to system memory for want of room, everybody's that we may see
    /// (`amd-evicted-vram`). Wanted back, so it counts as used.
    pub evicted: Option<Bytes>,
    /// How long KFD has kept our queues stopped to make room, in all (`evicted_ms`).
    pub stopped: Option<Duration>,
    /// Connectors of this card with a display connected.
    pub displays: u32,
    /// Whether the GPU shares system memory (an APU).
    pub unified_memory: bool,
    /// Both kinds of memory of a GPU that does.
    pub shared: Option<SharedMemory>,
}

/// One look at the memory of a GPU that shares the system's. A figure that could not be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SharedMemory {
    /// What the firmware has taken from the system's memory for the GPU alone (`mem_info_vram_total`).
    pub carve_out: Option<Bytes>,
    /// What of it is in use (`mem_info_vram_used`).
    pub carve_out_used: Option<Bytes>,
    /// What of the system's memory the driver may map for the GPU at most (`mem_info_gtt_total`).
    pub gtt: Option<Bytes>,
    /// What of it is mapped (`mem_info_gtt_used`).
    pub gtt_used: Option<Bytes>,
    /// The system's memory, without the carve-out.
    pub system: HostReading,
}

/// A source of readings for one card.
///
/// Both methods may be called with the card's mutex held and must not call back into the [`Card`](crate::Card).
pub trait Readings: Send + Sync {
    /// Reads every figure now.
    fn read(&self) -> Reading;

    /// The time against which readings age. The default is the machine's monotonic clock; a simulated card gives
    /// simulated time, so that runs replay.
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        START.elapsed()
    }
}

impl<R: Readings + ?Sized> Readings for Box<R> {
    fn read(&self) -> Reading {
        (**self).read()
    }

    fn now(&self) -> Duration {
        (**self).now()
    }
}

impl<R: Readings + ?Sized> Readings for std::sync::Arc<R> {
    fn read(&self) -> Reading {
        (**self).read()
    }

    fn now(&self) -> Duration {
        (**self).now()
    }
}

/// The same figures at every read: for tests, and for a card about which nothing can be found out.
///
/// ```
/// use rocmforge_memory::{Bytes, FixedReadings, Reading, Readings};
/// let card = FixedReadings(Reading { total: Some(Bytes::gib(20)), ..Reading::default() });
/// assert_eq!(card.read().total, Some(Bytes::gib(20)));
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct FixedReadings(pub Reading);

impl Readings for FixedReadings {
    fn read(&self) -> Reading {
        self.0
    }
}
