//! Runs of bytes that many workgroups load, like the vector of a matrix-vector product.
//!
//! Two workgroups that have loaded such a run are in the log, and no more: a store of any workgroup races with one of them.

use super::records::Bytes;
use super::slot::Now;

/// Runs that are known at a time.
const KNOWN: usize = 1 << 10;

/// A run of bytes, and the first segments of two workgroups that have loaded it; 0: none yet.
#[derive(Clone, Copy, Default)]
struct Reread {
    start: usize,
    end: usize,
    groups: [u32; 2],
}

/// The runs that were loaded last, by hash of their first byte.
pub(super) struct Rereads(Vec<Reread>);

impl Rereads {
    /// None yet.
    pub(super) fn new() -> Self {
        Self(vec![Reread::default(); KNOWN])
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.0.fill(Reread::default());
    }

    /// Whether two workgroups have loaded just these bytes before; else notes that this one does.
    #[inline(always)]
    pub(super) fn known(&mut self, now: &Now, bytes: &Bytes<'_>) -> bool {
        let entry = &mut self.0[(bytes.start >> 4 ^ bytes.start >> 14) % KNOWN];
        if (entry.start, entry.end) != (bytes.start, bytes.end) {
            *entry = Reread {
                start: bytes.start,
                end: bytes.end,
                groups: [now.group, 0],
            };
            return false;
        }
        let [first, second] = entry.groups;
        if second == 0 && first != now.group {
            entry.groups[1] = now.group;
        }
        second != 0
    }
}
