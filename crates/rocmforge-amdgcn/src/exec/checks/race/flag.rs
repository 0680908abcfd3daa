//! Flags: stores that are plain ones in machine code, and releases to a wave that finds them.

use super::Race;
use super::slot::Slot;
use super::sync::{Clock, Seen, see};

/// What was done before a store when no other store was under way.
pub(super) struct Before {
    epoch: u32,
    stores: u32,
    /// What the wave had seen, if anything.
    seen: Option<Box<Seen>>,
}

impl Race {
    /// A wave looks at a flag in LDS: the store that it sees there, a plain one in machine code, is a release.
    pub(super) fn handed_over(&mut self, wave: u32, address: u64, dword: usize) {
        let Some((segment, _)) = self.lds.get(Slot::Store, dword, self.epoch) else {
            return;
        };
        let by = self.whose(segment);
        let Some(other) = by.wave.filter(|&other| other != wave && by.group == self.group_number) else {
            return;
        };
        let var = self.sync.var(address);
        self.release(other, var, segment, false);
    }

    /// Notes what was done before the store that begins the wave's segment.
    pub(super) fn note_before(&mut self, wave: u32) {
        let own = &self.waves[wave as usize].seen;
        let seen = (!own.is_empty() || !self.shared.is_empty()).then(|| {
            let mut all = own.clone();
            for (&(var, level), &part) in &self.shared {
                see(&mut all, var, level, part);
            }
            Box::new(all)
        });
        let before = Before {
            epoch: self.epoch,
            stores: self.stores,
            seen,
        };
        if let Some(block) = self.blocks.last_mut() {
            block.before = Some(before);
        }
    }

    /// A wave loads a flag in global memory atomically. If a plain store in machine code wrote it when no other store was under way, that store is a
    /// release: compilers leave its wait out where an earlier fence has waited.
    pub(super) fn stored_before(&mut self, wave: u32, address: u64, dword: usize) {
        let Some((segment, _)) = self.global.get(Slot::Store, dword, self.floor) else {
            return;
        };
        let at = self.blocks.partition_point(|block| block.first <= segment);
        let block = &self.blocks[at.saturating_sub(1)];
        let (Some(other), Some(before)) = (block.wave, &block.before) else {
            return;
        };
        if (block.group, other) == (self.group_number, wave) {
            return;
        }
        let none = Seen::new();
        let clock = Clock {
            group: block.group,
            wave: other,
            // What follows the store in its segment is not covered.
            lds: segment - 1,
            global: segment - 1,
            store: Some(segment),
            epoch: before.epoch,
            stores: before.stores,
            seen: before.seen.as_deref().unwrap_or(&none),
            shared: &none,
        };
        let var = self.sync.var(address);
        self.sync.release(var, &clock, false);
    }
}
