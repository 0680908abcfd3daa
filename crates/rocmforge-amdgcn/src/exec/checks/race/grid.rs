//! Order by what is not in memory: the counters at which waves of all workgroups meet.

use super::Race;
use super::sync::{Level, see};

/// In the address of what orders waves and is not in memory: its number is in the other bits.
const NO_MEMORY: u64 = 1 << 62;

impl Race {
    /// A wave releases what it has done at a place that is not in memory.
    pub(crate) fn release_at(&mut self, wave: u32, number: u64) {
        let var = self.sync.var(NO_MEMORY | number);
        self.release(wave, var, self.waves[wave as usize].segment, false);
    }

    /// What has been released there up to now.
    pub(crate) fn released_at(&mut self, number: u64) -> (u32, u32) {
        let var = self.sync.var(NO_MEMORY | number);
        self.sync.now(var)
    }

    /// A wave sees what was released there; nothing of it can be in a cache still, since the wave has waited.
    pub(crate) fn acquire_at(&mut self, wave: u32, number: u64, part: (u32, u32)) {
        let var = self.sync.var(NO_MEMORY | number);
        see(&mut self.waves[wave as usize].seen, var, Level::Device, part);
    }
}
