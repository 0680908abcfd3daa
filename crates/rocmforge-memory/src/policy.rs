//! Policy of the budget: how much of a card we may ever take, with all its constants in one place.
//!
//! All of them are defaults chosen by reasoning, not tuned on hardware.

use std::time::Duration;

use crate::Bytes;

/// Share of what the desktop leaves that one program may hold in all, in percent.
const DEFAULT_SHARE: u8 = 70;
/// Least headroom kept free on a card with a display: a second 4K buffer set and a browser's growth.
pub const DISPLAY_HEADROOM: Bytes = Bytes::gib(1);
/// Headroom kept free on a card without a display: the driver's own page tables and firmware buffers.
pub const HEADLESS_HEADROOM: Bytes = Bytes::mib(256);
/// Least that stays available to the system (`MemAvailable`) where the GPU shares its memory: a desktop with a browser, and room for
/// the kernel to work in.
pub const HOST_HEADROOM: Bytes = Bytes::gib(2);
/// Taken off HIP's free figure, which is rounded to 2 MiB and does not know of fragmentation.
pub(crate) const DRIVER_SLACK: Bytes = Bytes::mib(64);
/// Part of the budget, in percent, that requests of [`Class::Cache`] may fill.
const CACHE_SHARE: u8 = 85;
/// What the budget may grow by in a second, in percent of the card.
const GROWTH: u8 = 5;
/// Granule in which the driver hands out VRAM.
pub(crate) const GRANULE: u64 = 2 << 20;

/// What a request is for; decides how much of the budget it may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Weights, activations, the least that the program needs: the whole budget.
    Required,
    /// Things that grow, such as a key-value cache: the whole budget.
    Growth,
    /// Pools and prefetched data, which can be done without: 85 percent of what the driver's overhead leaves of the
    /// budget.
    Cache,
}

impl Class {
    /// The part of a budget that requests of this class may fill.
    pub(crate) fn room(self, budget: u64) -> u64 {
        match self {
            Class::Required | Class::Growth => budget,
            Class::Cache => Bytes(budget).percent(CACHE_SHARE).0,
        }
    }
}

/// The most that we may hold, our present holdings included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// This percentage of what others leave of the card: `percent x (T - Others)`. What the driver holds for us beside our
    /// buffers (its overhead) is a part of it.
    Share(u8),
    /// A fixed number of bytes, for what the program asks for: the driver's overhead comes on top, and is limited by the card.
    Fixed(Bytes),
    /// The smaller of a fixed number of bytes and a quarter of the card, likewise.
    Quarter(Bytes),
}

/// What stays free for the desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headroom {
    /// With a display connected `max(1 GiB, T/10, highest Others of the last ten minutes - Others)`, else 256 MiB.
    Auto,
    /// A fixed number of bytes, display or not. Less than [`HEADLESS_HEADROOM`] is refused on a card with a display, unless
    /// [`Policy::on_display`] says otherwise.
    Fixed(Bytes),
}

/// What a policy that leaves the desktop nothing may do on a card with a display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDisplay {
    /// Not be used: [`Card::open`](crate::Card::open) refuses it, and if a display is connected later, what a desktop needs
    /// is kept free all the same.
    Refuse,
    /// Be used. What is on the screen may stutter, freeze or be lost.
    Disregard,
}

/// What to do about a GPU that shares the system's memory. What it takes is taken from every program on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnifiedMemory {
    /// One budget over the carve-out and the system's memory, by what the system can spare: at least [`HOST_HEADROOM`] and a
    /// sixteenth of its memory stay available. 0 where the system does not say what it has.
    Available,
    /// The conservative budget, `min(Cap, T/4, (Own + K)/2)`, with T what the driver may map, whatever else is in memory.
    Quarter,
    /// Budget 0.
    Refuse,
}

/// The rules from which a card's budget is computed.
///
/// ```
/// use rocmforge_memory::{Bytes, Cap, Policy};
/// let policy = Policy { cap: Cap::Fixed(Bytes::gib(4)), ..Policy::desktop() };
/// assert_eq!(policy, Policy::fixed(Bytes::gib(4)));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// The most that we may hold.
    pub cap: Cap,
    /// What stays free for the desktop.
    pub headroom: Headroom,
    /// What to do if the headroom is nothing and a display is connected.
    pub on_display: OnDisplay,
    /// Taken off what HIP calls free.
    pub slack: Bytes,
    /// What to do about a GPU that shares the system's memory.
    pub unified_memory: UnifiedMemory,
    /// Others is frozen for at most this many requests.
    pub reread_after: u32,
    /// Others is frozen for at most this long.
    pub reread_every: Duration,
    /// How long the driver's `used` may go on counting memory that we have freed. What is longer late than this counts as
    /// the desktop's until it is gone; what the desktop takes meanwhile may go unseen for this long.
    pub late_free_grace: Duration,
    /// How long a past peak of Others is kept free.
    pub peak_window: Duration,
    /// For how long the figures must have allowed more before the budget grows. It falls at once.
    pub grow_after: Duration,
    /// The most that the budget grows by in a second, in percent of the card.
    pub grow_percent: u8,
}

impl Policy {
    /// For a machine somebody is working at: 70 % of what others leave, headroom by what is connected.
    pub const fn desktop() -> Self {
        Self {
            cap: Cap::Share(DEFAULT_SHARE),
            headroom: Headroom::Auto,
            on_display: OnDisplay::Refuse,
            slack: DRIVER_SLACK,
            unified_memory: UnifiedMemory::Available,
            reread_after: 30,
            reread_every: Duration::from_millis(100),
            late_free_grace: Duration::from_millis(200),
            peak_window: Duration::from_secs(600),
            grow_after: Duration::from_secs(10),
            grow_percent: GROWTH,
        }
    }

    /// For a compute server: everything but the headless headroom.
    pub const fn headless() -> Self {
        Self {
            cap: Cap::Share(100),
            headroom: Headroom::Fixed(HEADLESS_HEADROOM),
            ..Self::desktop()
        }
    }

    /// For tests on a real card: `min(2 GiB, T/4)`.
    pub const fn tests() -> Self {
        Self {
            cap: Cap::Quarter(Bytes::gib(2)),
            ..Self::desktop()
        }
    }

    /// Everything that others do not hold, with nothing kept free. Refused on a card with a display connected, unless
    /// [`Policy::on_display`] says [`OnDisplay::Disregard`].
    pub const fn unlimited() -> Self {
        Self {
            cap: Cap::Share(100),
            headroom: Headroom::Fixed(Bytes::ZERO),
            ..Self::desktop()
        }
    }

    /// At most `cap`, and never what the desktop needs.
    pub const fn fixed(cap: Bytes) -> Self {
        Self {
            cap: Cap::Fixed(cap),
            ..Self::desktop()
        }
    }

    /// Whether it may not be used on a card with so many displays.
    pub(crate) fn is_refused(&self, displays: u32) -> bool {
        let nothing = matches!(self.headroom, Headroom::Fixed(bytes) if bytes < HEADLESS_HEADROOM);
        displays > 0 && nothing && self.on_display == OnDisplay::Refuse
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::desktop()
    }
}
