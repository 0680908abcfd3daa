//! Correction of the budget, from requests that the driver refused.

use std::time::Duration;

use crate::policy::DRIVER_SLACK;

/// The driver refused memory that the budget had granted: the figures were wrong, by an amount that nobody knows.
///
/// The budget falls by what was missing and 64 MiB each time. Ten minutes ([`Policy::peak_window`](crate::Policy::peak_window))
/// after the last time all of it is lifted, and the budget grows back as slowly as it always does.
#[derive(Debug, Default)]
pub(super) struct Correction {
    bytes: u64,
    last: Duration,
    /// How often it happened.
    pub(super) times: u64,
}

impl Correction {
    /// The driver refused `requested` bytes while it called `free` bytes free.
    pub(super) fn refused(&mut self, requested: u64, free: Option<u64>, now: Duration) {
        let missing = requested.saturating_sub(free.unwrap_or(0));
        self.bytes = self.bytes.saturating_add(missing).saturating_add(DRIVER_SLACK.0);
        self.last = now;
        self.times += 1;
    }

    /// Lifts it when it has stood for that long.
    pub(super) fn lift(&mut self, now: Duration, stands: Duration) {
        if now.saturating_sub(self.last) >= stands {
            self.bytes = 0;
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}
