//! The desktop on a simulated card: what it holds, what happens to it when the card is over-committed, whether it lives.
//!
//! The driver for compute does not know what graphics holds, so an allocation succeeds where it does harm: graphics is
//! moved to system memory, frames are late. When graphics then needs its memory back, our queues are stopped and our
//! memory is moved away. If the hardware does not answer the request to stop, the driver resets it, and with the video
//! memory goes the session. All of this is pieced together from the Linux kernel's source and from bug reports; no card
//! has confirmed it, and its constants are guesses.

mod client;
mod model;

pub use client::Client;
pub(crate) use model::Desktop;

use crate::SimHost;
use crate::machine::host::{Card, Host};
use crate::queues::queue::StreamId;
use rocmforge_hip_sys::hipErrorUnknown;
use rocmforge_memory::Bytes;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// What runs on a card's display, and how the driver treats it.
///
/// On a GPU that shares the system's memory ([`CardConfig::apu`](crate::CardConfig::apu)) it is the whole machine that runs here: clients
/// are programs with what they hold of its memory, nothing can be moved anywhere (`gtt` and `migration` are not used), and what does
/// not fit costs the largest program its life.
#[derive(Clone, Debug, PartialEq)]
pub struct DesktopConfig {
    /// Seeds walks and failures of preemption.
    pub seed: u64,
    /// What is shown now: pinned, never evicted, and counted by the driver for compute.
    pub scan_out: Bytes,
    /// The compositor's other memory: evictable, and needed for every frame.
    pub compositor: Bytes,
    /// Programs beside it.
    pub clients: Vec<Client>,
    /// Time from frame to frame; at least a millisecond.
    pub frame: Duration,
    /// Time the compositor needs the card for in each frame.
    pub frame_work: Duration,
    /// Bytes a second between video memory and system memory.
    pub migration: Bytes,
    /// System memory that evicted buffers may take.
    pub gtt: Bytes,
    /// How late the graphics driver's figure of used memory falls.
    pub late_frees: Duration,
    /// What should always be free while we hold anything: [`DesktopStatus::floor_violations`] counts when it is not.
    pub floor: Bytes,
    /// How long our queues stand still after our memory was moved away.
    pub restore_after: Duration,
    /// Probability that the hardware does not answer when our queues are to be stopped, and is reset.
    pub preemption_failure: f64,
    /// Time without one frame on time after which the session counts as dead.
    pub patience: Duration,
}

impl Default for DesktopConfig {
    /// A compositor on a 4K screen at 60 Hz, and nothing beside it.
    fn default() -> Self {
        Self {
            seed: 0,
            scan_out: Bytes(64 << 20),
            compositor: Bytes(512 << 20),
            clients: Vec::new(),
            frame: Duration::from_micros(16_667),
            frame_work: Duration::from_millis(4),
            migration: Bytes(16 << 30),
            gtt: Bytes(24 << 30),
            late_frees: Duration::from_millis(200),
            floor: Bytes(512 << 20),
            restore_after: Duration::from_millis(100),
            preemption_failure: 0.02,
            patience: Duration::from_secs(10),
        }
    }
}

impl DesktopConfig {
    /// The default desktop with these programs.
    pub fn with(clients: impl IntoIterator<Item = Client>) -> Self {
        Self {
            clients: clients.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesktopDeath {
    /// The card was reset, and its memory is lost. So is the device for every process that used it.
    Reset,
    /// No frame was on time for as long as anybody waits.
    Frozen,
    /// The compositor's memory fits neither on the card nor beside it.
    OutOfMemory,
}

impl fmt::Display for DesktopDeath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "the card was reset",
            Self::Frozen => "no frame was on time",
            Self::OutOfMemory => "no memory for the compositor",
        })
    }
}

/// How a desktop fares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesktopStatus {
    /// How the session ended, if it did.
    pub death: Option<DesktopDeath>,
    /// When.
    pub died_at: Option<Duration>,
    /// Frames that were due.
    pub frames: u64,
    /// Those of them that were late.
    pub frames_missed: u64,
    /// The longest time without a frame on time.
    pub longest_freeze: Duration,
    /// What graphics wants to hold now.
    pub wanted: Bytes,
    /// What of it lies in system memory now.
    pub evicted: Bytes,
    /// The most that ever did at once.
    pub evicted_peak: Bytes,
    /// Bytes evicted so far that would have stayed if we had held nothing.
    pub evicted_by_us: Bytes,
    /// How often our queues were stopped to make room for graphics.
    pub queue_stops: u64,
    /// Whether they stand still now.
    pub queues_stopped: bool,
    /// How often the card was reset.
    pub resets: u64,
    /// Programs that were ended because their memory fitted nowhere.
    pub killed: Vec<&'static str>,
    /// What would be free with everybody's memory on the card; 0 if it does not fit.
    pub free: Bytes,
    /// How often less than the floor was free while we held something.
    pub floor_violations: u64,
    /// The longest of these times.
    pub longest_below_floor: Duration,
}

impl DesktopStatus {
    /// Whether the session goes on.
    pub fn alive(&self) -> bool {
        self.death.is_none()
    }
}

impl SimHost {
    /// How a card's desktop fares now. `None` for a card without [`CardConfig::desktop`](crate::CardConfig::desktop).
    pub fn desktop(&self, card: usize) -> Option<DesktopStatus> {
        self.with_host_mut(|host| {
            host.play_desktops();
            Some(host.cards.get(card)?.desktop.as_ref()?.status())
        })
    }
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
}

impl Host {
    /// Plays every desktop up to now.
    pub(crate) fn play_desktops(&mut self) {
        let now = self.now();
        for index in 0..self.cards.len() {
            let card = &mut self.cards[index];
            let own = card.own();
            let Some(desktop) = &mut card.desktop else { continue };
            let before = (desktop.was_reset(), desktop.restore_at().is_some());
            desktop.play(now, own);
            let after = (desktop.was_reset(), desktop.restore_at().is_some());
            self.queues.stand_still(index, after.1);
            if before != after {
                self.trace.bytes(b"desktop");
                self.trace.number(u64::from(after.0) << 1 | u64::from(after.1));
            }
            if after.0 && !before.0 {
                // AMD documents no status for this; every one is an error.
                self.lose_device(hipErrorUnknown);
            }
        }
    }

    /// If a stream of `past` stands still, waits until it goes on. Whether any did.
    pub(crate) fn await_restore(&mut self, past: &BTreeMap<StreamId, u64>) -> bool {
        let card_of = |id: &StreamId| self.queues.get(*id).map(|queue| queue.card);
        let stopped = |card: usize| self.cards[card].desktop.as_ref()?.restore_at();
        let Some(until) = past.keys().filter_map(card_of).filter_map(stopped).min() else {
            return false;
        };
        self.advance(until.saturating_sub(self.now()));
        self.play_desktops();
        true
    }

    /// A launch on a card has run from `from` until now, or never ends. One with fewer workgroups than the card has places leaves
    /// room for graphics.
    pub(crate) fn occupy(&mut self, card: usize, grid: [u32; 3], from: Duration, ends: bool) {
        let until = if ends { self.now() } else { Duration::MAX };
        let card = &mut self.cards[card];
        card.overhead = card.config.overhead.0;
        let workgroups: u64 = grid.iter().map(|n| u64::from(*n)).product();
        if let Some(desktop) = &mut card.desktop
            && workgroups >= u64::from(card.config.multiprocessors)
        {
            desktop.occupied(from, until);
        }
    }
}
