//! Block tables: the blocks of each sequence, as kernels read them.

use std::ops::Range;

/// Blocks that hold `tokens` tokens, the last one perhaps in part. A `block_size` of 0 counts as 1.
pub const fn blocks_for(tokens: usize, block_size: usize) -> usize {
    if block_size == 0 {
        tokens
    } else {
        tokens.div_ceil(block_size)
    }
}

/// The block table of one sequence in one pool: its blocks in the order of its tokens, and its length in tokens.
///
/// It has exactly the blocks that its tokens need, from the first that later tokens see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockTable {
    /// Blocks before those that it has.
    pub(super) first: usize,
    pub(super) blocks: Vec<u32>,
    pub(super) tokens: usize,
    pub(super) block_size: usize,
}

impl BlockTable {
    /// Blocks of the sequence's first tokens that it has no more: no later token sees them.
    pub fn released(&self) -> usize {
        self.first
    }

    /// The blocks after those, in the order of the tokens.
    pub fn blocks(&self) -> &[u32] {
        &self.blocks
    }

    /// Length in tokens.
    pub fn len(&self) -> usize {
        self.tokens
    }

    /// Whether it has no tokens.
    pub fn is_empty(&self) -> bool {
        self.tokens == 0
    }

    /// Slot of the token at `position`: `block * block_size + offset`. None at or beyond the end, and in a released block.
    pub fn slot(&self, position: usize) -> Option<u32> {
        if position >= self.tokens {
            return None;
        }
        let block = *self.blocks.get((position / self.block_size).checked_sub(self.first)?)?;
        // `PagedKv::new` has checked that every slot of the pool fits in 32 bits.
        Some(block * self.block_size as u32 + (position % self.block_size) as u32)
    }

    /// Slots of the tokens at `positions`; those that have none are left out.
    pub fn slots(&self, positions: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        (positions.start..positions.end.min(self.tokens)).filter_map(|position| self.slot(position))
    }

    /// Whether the last block has room for a token.
    pub(super) fn last_is_partial(&self) -> bool {
        !self.tokens.is_multiple_of(self.block_size)
    }
}
