//! Configuration of a desktop.

use crate::desktop::client::Client;
use rocmforge_memory::Bytes;
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
    /// What should always be free while we hold anything: [`DesktopStatus::floor_violations`](crate::DesktopStatus::floor_violations) counts when it is not.
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
