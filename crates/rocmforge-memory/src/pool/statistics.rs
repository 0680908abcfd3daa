//! Statistics of a pool.

use crate::Bytes;

/// What a pool has done and holds, all of one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatistics {
    /// Requests served by an idle block that the request's stream may use at once.
    pub hits: u64,
    /// Requests served by an idle block that another stream's work still uses: its first use waits for that.
    pub steals: u64,
    /// Requests that went to the driver.
    pub misses: u64,
    /// Blocks that are in use.
    pub in_use_blocks: u64,
    /// Bytes of them, as asked for.
    pub in_use: Bytes,
    /// Bytes by which their blocks are larger.
    pub rounding: Bytes,
    /// Blocks that lie idle.
    pub idle_blocks: u64,
    /// Bytes of them.
    pub idle: Bytes,
    /// The largest of them: one request can be served by at most this much of `idle`.
    pub largest_idle: Bytes,
    /// The most bytes that were ever held, in use and idle.
    pub peak: Bytes,
    /// The most bytes that were ever in use at once, with their rounding.
    pub peak_in_use: Bytes,
    /// Bytes that went back to the driver.
    pub trimmed: Bytes,
}

impl PoolStatistics {
    /// Counts a block that is handed out for `bytes`.
    pub(super) fn hand_out(&mut self, bytes: Bytes, capacity: Bytes) {
        self.in_use_blocks += 1;
        self.in_use = self.in_use.saturating_add(bytes);
        self.rounding = self.rounding.saturating_add(capacity.saturating_sub(bytes));
        self.peak_in_use = self.peak_in_use.max(self.in_use.saturating_add(self.rounding));
    }

    /// What the driver has handed out to the pool.
    pub fn held(&self) -> Bytes {
        self.in_use.saturating_add(self.rounding).saturating_add(self.idle)
    }

    /// Requests that did not go to the driver, of all: 0 to 1. 1 if there was none.
    pub fn hit_rate(&self) -> f64 {
        let served = self.hits + self.steals;
        share(served, served + self.misses, 1.0)
    }

    /// Held bytes that nobody asked for, idle or rounding, of all that is held: 0 to 1. 0 if nothing is held.
    pub fn fragmentation(&self) -> f64 {
        let held = self.held();
        share(held.saturating_sub(self.in_use).0, held.0, 0.0)
    }
}

fn share(part: u64, whole: u64, of_none: f64) -> f64 {
    if whole == 0 {
        of_none
    } else {
        part as f64 / whole as f64
    }
}
