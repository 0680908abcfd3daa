//! Status of a desktop: how its session fares, or has ended.

use rocmforge_memory::Bytes;
use std::fmt;
use std::time::Duration;

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
