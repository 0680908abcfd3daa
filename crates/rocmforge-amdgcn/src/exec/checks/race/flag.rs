//! Flags: stores that are plain ones in machine code, and releases to a wave that finds them.

use super::slot::{Slot, flags};
use super::sync::{Clock, Seen, see};
use super::{Race, Span, WaveClock};
use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::Request;

/// What was done before a store that begins a segment.
pub(super) struct Before {
    /// Last segment of the wave whose stores were done.
    done: u32,
    epoch: u32,
    stores: u32,
    /// What the wave had seen, if anything.
    seen: Option<Box<Seen>>,
}

impl Race {
    /// A wave of the running workgroup releases at a location what it has done up to the end of one of its segments. `store`: by a store,
    /// which cuts off what was released there before.
    pub(super) fn release(&mut self, wave: u32, var: u32, segment: u32, store: bool) {
        self.release_of(wave, var, segment, store, None);
    }

    /// The same; `begins`: the segment of the plain store of machine code that it is.
    fn release_of(&mut self, wave: u32, var: u32, segment: u32, store: bool, begins: Option<u32>) {
        let giver = &mut self.waves[wave as usize];
        // What it does from now on is not covered.
        giver.released = true;
        let clock = Clock {
            group: self.group_number,
            wave,
            upto: segment,
            done: if giver.stores { giver.done } else { segment },
            store: begins,
            epoch: self.epoch,
            stores: self.stores,
            seen: &giver.seen,
            shared: &self.shared,
        };
        self.sync.release(var, &clock, store);
    }

    /// A wave looks at a flag in LDS: a store that it sees there, a plain one in machine code, is a release.
    pub(super) fn handed_over(&mut self, wave: u32, address: u64, span: &Span) {
        for segment in self.lds.stores(span.offset, span.bytes, self.epoch) {
            let by = self.whose(segment);
            if by.wave != wave && by.group == self.group_number {
                let var = self.sync.var(address);
                self.release_of(by.wave, var, segment, false, Some(segment));
            }
        }
    }

    /// Notes what was done before the store that begins the wave's segment.
    pub(super) fn note_before(&mut self, wave: u32) {
        let WaveClock {
            segment,
            done,
            seen: own,
            ..
        } = &self.waves[wave as usize];
        let seen = (!own.is_empty() || !self.shared.is_empty()).then(|| {
            let mut all = own.clone();
            for (&(var, level), &part) in &self.shared {
                see(&mut all, var, level, part);
            }
            Box::new(all)
        });
        let before = Before {
            done: *done,
            epoch: self.epoch,
            stores: self.stores,
            seen,
        };
        self.befores.push((*segment, before));
    }

    /// Whether a store is to where a wave has looked for a flag, or has released something.
    pub(super) fn is_flag(&self, c: &Ctx<'_>, r: &Request<'_>) -> bool {
        if self.sync.is_empty() && !self.global.coherent {
            return false;
        }
        let first = r.at[r.exec.trailing_zeros() as usize & 31];
        let polled = || {
            let offset = c.memory.offset(first, r.size as usize)?;
            let loads =
                [Slot::Load, Slot::Beside, Slot::Before].map(|slot| self.global.get(slot, offset / 4, self.floor));
            Some((loads.into_iter().flatten()).any(|(_, info)| info.flags() == flags::ATOMIC))
        };
        self.sync.find(first.wrapping_sub(c.memory.base())).is_some() || polled() == Some(true)
    }

    /// A wave loads a flag in global memory atomically. If a plain store in machine code wrote it that begins a segment, that store is a
    /// release: compilers leave its wait out where an earlier fence has waited, or where they take no store to be under way.
    pub(super) fn stored_before(&mut self, wave: u32, address: u64, span: &Span) {
        for segment in self.global.stores(span.offset, span.bytes, self.floor) {
            let by = self.whose(segment);
            let at = self.befores.binary_search_by_key(&segment, |before| before.0);
            let Some((_, before)) = at.ok().map(|at| &self.befores[at]) else {
                continue;
            };
            if (by.group, by.wave) == (self.group_number, wave) {
                continue;
            }
            let none = Seen::new();
            let clock = Clock {
                group: by.group,
                wave: by.wave,
                // What follows the store in its segment is not covered.
                upto: segment - 1,
                done: before.done,
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
}
