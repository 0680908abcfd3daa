//! The clock that deadlines are measured on.

use std::time::{Duration, Instant};

/// A provider's clock. A real device has the wall clock; a simulated one has its own time, which advances when
/// somebody waits, so that a wait with a deadline is reproducible.
pub trait HipClock: Send + Sync {
    /// Time since an arbitrary fixed start. Never goes back.
    fn now(&self) -> Duration;
    /// Waits for about `pause` before the next poll. A simulated clock advances instead of sleeping.
    fn pause(&self, pause: Duration);
}

/// How much later than asked for a sleep may end: `timerslack_ns` of prctl(2), unless it was changed.
const TIMER_SLACK: Duration = Duration::from_micros(50);

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// A clock that starts now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl HipClock for SystemClock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    /// A pause shorter than the system's timers keep (Linux adds 50 us to a sleep) only lets other threads run.
    fn pause(&self, pause: Duration) {
        if pause < TIMER_SLACK {
            std::thread::yield_now();
        } else {
            std::thread::sleep(pause);
        }
    }
}
