//! Numbers of the sequences of a paged KV cache.

/// Names one sequence of one [`PagedKv`](super::PagedKv). Never used again after the sequence is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SequenceId(pub(super) u64);

impl SequenceId {
    /// Its number: 0 for the first sequence of the cache, then counting up.
    pub fn number(self) -> u64 {
        self.0
    }
}
