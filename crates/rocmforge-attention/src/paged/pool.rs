//! Pools of blocks: one for all layers that keep the same tokens.

use super::{BlockAllocator, PagedKvError, blocks_for};

/// Which tokens of a sequence a pool has blocks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All.
    All,
    /// Those that later tokens see: a token sees `keys` tokens, itself among them.
    Window {
        /// Tokens that are seen, at least 1.
        keys: usize,
        /// Most tokens that a caller appends at a time.
        ahead: usize,
    },
    /// Those that later tokens see: a token sees the tokens from the last multiple of `keys` on, itself among them.
    Chunk {
        /// Tokens of a chunk, at least 1.
        keys: usize,
        /// Most tokens that a caller appends at a time.
        ahead: usize,
    },
}

impl Keep {
    /// Most tokens that a caller appends at a time, where this bounds the blocks of a sequence.
    pub(super) const fn ahead(self) -> Option<usize> {
        match self {
            Self::All => None,
            Self::Window { ahead, .. } | Self::Chunk { ahead, .. } => Some(ahead),
        }
    }

    /// The first block that a token at `position` sees something of.
    pub(super) const fn first_block(self, position: usize, block_size: usize) -> usize {
        match self {
            Self::All => 0,
            Self::Window { keys, .. } => (position + 1).saturating_sub(keys) / block_size,
            Self::Chunk { keys, .. } => position / keys * keys / block_size,
        }
    }

    /// Most blocks of a sequence of up to `tokens` tokens.
    pub const fn most_blocks(self, tokens: usize, block_size: usize) -> usize {
        let all = blocks_for(tokens, block_size);
        match self {
            Self::Window { keys, ahead } | Self::Chunk { keys, ahead } => {
                // They may begin in the middle of a block, and those that the last block sees are kept, too.
                let seen = blocks_for(keys.saturating_add(ahead), block_size).saturating_add(2);
                if seen < all { seen } else { all }
            }
            Self::All => all,
        }
    }
}

/// Size of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Its blocks.
    pub blocks: usize,
    /// What they are for.
    pub keep: Keep,
}

/// Blocks of one kind of layer.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub(super) keep: Keep,
    pub(super) allocator: BlockAllocator,
}

impl Pool {
    /// # Errors
    ///
    /// As [`PagedKv::new`](super::PagedKv::new).
    pub(super) fn new(config: PoolConfig, block_size: usize) -> Result<Self, PagedKvError> {
        let PoolConfig { blocks, keep } = config;
        let keys = match keep {
            Keep::All => 1,
            Keep::Window { keys, .. } | Keep::Chunk { keys, .. } => keys,
        };
        for (name, size) in [("blocks", blocks), ("keys", keys)] {
            if size == 0 {
                return Err(PagedKvError::Zero(name));
            }
        }
        let slots = blocks
            .checked_mul(block_size)
            .and_then(|slots| u32::try_from(slots).ok());
        let (Some(_), Ok(capacity)) = (slots, u32::try_from(blocks)) else {
            return Err(PagedKvError::TooManySlots {
                blocks,
                block_size,
                limit: u32::MAX as usize,
            });
        };
        let allocator = BlockAllocator::new(capacity);
        Ok(Self { keep, allocator })
    }
}

/// A number of blocks of each pool, and of slots of states if there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BlockCounts(pub Vec<usize>);

impl BlockCounts {
    /// Whether no pool has fewer than these.
    pub fn fit(&self, free: &Self) -> bool {
        self.0.iter().zip(&free.0).all(|(needed, free)| needed <= free)
    }

    /// These and `others`.
    #[must_use]
    pub fn plus(&self, others: &Self) -> Self {
        Self(
            self.0
                .iter()
                .zip(&others.0)
                .map(|(a, b)| a.saturating_add(*b))
                .collect(),
        )
    }
}
