//! Errors of a paged KV cache.

use super::sequence_id::SequenceId;

/// Why a call on the paged cache was refused. The cache is then as it was before the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PagedKvError {
    /// A size that must be at least 1 is 0.
    #[error("{0} is 0; it must be at least 1")]
    Zero(&'static str),
    /// The pool has more slots than a `u32` can number, `u32::MAX` itself left out.
    #[error("{blocks} blocks of {block_size} tokens: more slots than the {limit} that can be numbered")]
    TooManySlots {
        /// Blocks of the pool.
        blocks: usize,
        /// Tokens of a block.
        block_size: usize,
        /// The most slots there may be.
        limit: usize,
    },
    /// This length does not fit in 64 bits.
    #[error("{0} is more than 64 bits can count")]
    Overflow(&'static str),
    /// A pool cannot hold the new tokens.
    #[error("{needed} more blocks are needed, {free} are free")]
    OutOfBlocks {
        /// Blocks the call needs.
        needed: usize,
        /// Blocks that no sequence holds.
        free: usize,
    },
    /// There is no such sequence: it was removed, or it belongs to another cache.
    #[error("there is no sequence {}", .0.number())]
    UnknownSequence(SequenceId),
    /// A sequence cannot be truncated to more tokens than it has.
    #[error("a sequence of {len} tokens cannot be truncated to {tokens}")]
    TruncateBeyondEnd {
        /// Tokens of the sequence.
        len: usize,
        /// Tokens that were to be left.
        tokens: usize,
    },
    /// The pool cannot become so small.
    #[error("a pool of {blocks} blocks: blocks below {needed} are in use")]
    BlocksInUse {
        /// Blocks asked for.
        blocks: usize,
        /// Blocks that are needed with their numbers of now.
        needed: usize,
    },
    /// The block is free, or the pool has no such block.
    #[error("block {0} is not in use")]
    BlockNotInUse(u32),
}
