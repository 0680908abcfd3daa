//! Heartbeat of a lease: samples of what it holds and may hold, written to a pipe while the test runs.
//!
//! It shows that the test's process lives, and becomes the timeline of the report. Without a supervisor there is none.

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

/// Names the descriptor that a test process's leases beat on: the writing end of a pipe.
pub const HEARTBEAT_FD_VARIABLE: &str = "ROCMFORGE_HEARTBEAT_FD";

/// One beat: a line of JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// Milliseconds on the clock that all processes of a machine share (`CLOCK_MONOTONIC`).
    pub at: u64,
    /// Bytes of live allocations in the lease's ledger.
    pub held: u64,
    /// What the lease may hold in all, in bytes, as last decided.
    pub budget: u64,
    /// Whether the lease ends with this beat: none follows.
    pub ended: bool,
}

/// Now, in milliseconds of [`Sample::at`].
pub fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let (seconds, nanoseconds) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    seconds * 1000 + nanoseconds / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_the_machines_in_milliseconds() {
        let machine = || {
            let now = clock_gettime(ClockId::Monotonic);
            now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
        };
        let before = machine();
        // A millisecond is cut off.
        let (now, after) = (now() as f64, machine());
        assert!(before - 1.0 <= now && now <= after, "{before} {now} {after}");
    }
}
