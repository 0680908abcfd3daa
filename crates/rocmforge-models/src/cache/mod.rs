//! Caches: what layers keep of the tokens that they have seen.
//!
//! Attention asks for two tensors of a kind, keys and values; latent attention for one, whose rows are both. A layer that shares an earlier layer's
//! cache asks for none. A recurrent layer asks for a state.

use rocmforge_attention::paged::{Keep, PagedKvConfig, PoolConfig, blocks_for};
use rocmforge_ggml::{KvType, TensorId};

use crate::ModelError;
use crate::config::{QueryGrowth, WindowKind};

/// Which tokens a layer keeps something of. Layers of one kind share a pool of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// All of a sequence.
    Full,
    /// Those that a query sees: so many, itself among them.
    Window(usize),
    /// Those that a query sees: the ones from the last multiple of so many on, itself among them.
    Chunk(usize),
}

impl CacheKind {
    /// What attention with this window keeps.
    pub(crate) fn of_window(window: Option<usize>, kind: WindowKind) -> Self {
        match (window, kind) {
            (None, _) => Self::Full,
            (Some(keys), WindowKind::Last) => Self::Window(keys),
            (Some(keys), WindowKind::Chunk) => Self::Chunk(keys),
        }
    }

    /// Keys that a query sees at most, if not all.
    pub(crate) const fn keys(self) -> Option<usize> {
        match self {
            Self::Full => None,
            Self::Window(keys) | Self::Chunk(keys) => Some(keys),
        }
    }
}

/// What the layers of a model keep.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept {
    /// Kinds of caches: one pool of blocks for each.
    pub(crate) kinds: Vec<CacheKind>,
    /// Whether there are states.
    pub(crate) states: bool,
    /// Whether nothing is kept: each sequence is a whole text, padded to the longest.
    pub(crate) texts: bool,
    /// How queries grow with the position, where they do.
    pub(crate) growth: Option<QueryGrowth>,
    /// How many heads have a matrix each. A product finds a head's matrix by the number of the head. 0 in most models, which have one matrix for all heads.
    pub(crate) numbered_heads: usize,
}

/// A tensor of a cache that a part has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cached {
    /// Rows, one for each slot.
    pub(crate) id: TensorId,
    /// The pool of its kind.
    pub(crate) pool: usize,
}

/// A tensor of states that a part has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    /// Rows, one for each slot.
    pub(crate) id: TensorId,
}

/// Size of the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSpec {
    /// Element type.
    pub(crate) kv: KvType,
    /// Tokens of a block.
    pub(crate) block_size: usize,
    /// Tokens of all sequences.
    pub(crate) tokens: usize,
    /// Sequences whose windows and states have room whatever their lengths are.
    pub(crate) sequences: usize,
    /// Most tokens that a step adds to a sequence.
    pub(crate) chunk: usize,
    /// Blocks after those of sequences, which take the keys and values of padding.
    pub(crate) spare: usize,
    /// Slots after those of states, which take the states of padding.
    pub(crate) spare_states: usize,
    /// Longest sequence, in tokens.
    pub(crate) context: usize,
}

impl CacheSpec {
    fn keep(kind: CacheKind, ahead: usize) -> Keep {
        match kind {
            CacheKind::Full => Keep::All,
            CacheKind::Window(keys) => Keep::Window { keys, ahead },
            CacheKind::Chunk(keys) => Keep::Chunk { keys, ahead },
        }
    }

    /// Most blocks that a row of a block table names in a step of so many tokens: those of a sequence, or of one of its chunks.
    pub(crate) fn columns(&self, kind: CacheKind, tokens: usize) -> usize {
        match kind {
            CacheKind::Chunk(keys) => blocks_for(keys.min(self.context), self.block_size),
            _ => Self::keep(kind, self.chunk.max(tokens)).most_blocks(self.context, self.block_size),
        }
    }

    /// Most chunks of this many keys that a step of so many tokens of so many sequences is of.
    pub(crate) fn chunks(&self, keys: usize, [tokens, sequences]: [usize; 2]) -> usize {
        if keys >= self.context {
            return sequences;
        }
        // The tokens of a sequence may begin and end in the middle of a chunk.
        tokens.min(sequences.saturating_mul(2).saturating_add(tokens / keys.max(1)))
    }

    /// Refuses chunks that do not begin at a block's first token.
    ///
    /// # Errors
    /// [`ModelError::Chunk`].
    pub(crate) fn check_chunks(&self, kept: &Kept) -> Result<(), ModelError> {
        let split = |kind: &CacheKind| match *kind {
            CacheKind::Chunk(keys) if keys < self.context && !keys.is_multiple_of(self.block_size) => Some(keys),
            _ => None,
        };
        match kept.kinds.iter().find_map(split) {
            None => Ok(()),
            Some(keys) => Err(ModelError::Chunk {
                keys,
                block_size: self.block_size,
            }),
        }
    }

    /// The blocks of sequences for one kind of layer.
    fn pool(&self, kind: CacheKind) -> PoolConfig {
        let all = self.tokens.div_ceil(self.block_size);
        let keep = Self::keep(kind, self.chunk);
        let blocks = match kind {
            CacheKind::Full => all,
            CacheKind::Window(_) | CacheKind::Chunk(_) => {
                let of_one = keep.most_blocks(self.context, self.block_size);
                of_one.saturating_mul(self.sequences).min(all)
            }
        };
        PoolConfig { blocks, keep }
    }

    /// The bookkeeping of what layers keep.
    pub(crate) fn config(&self, kept: &Kept) -> PagedKvConfig {
        PagedKvConfig {
            block_size: self.block_size,
            pools: kept.kinds.iter().map(|&kind| self.pool(kind)).collect(),
            states: kept.states.then_some(self.states()),
        }
    }

    /// Slots of states: for each sequence the one that is read, the one that is written, and two checkpoints. After them is the slot of zeros,
    /// with which sequences begin.
    pub(crate) fn states(&self) -> usize {
        self.sequences.saturating_mul(4)
    }

    /// All slots of states: those of sequences, the one of zeros, and those of padding.
    pub(crate) fn state_slots(&self) -> usize {
        self.states().saturating_add(1 + self.spare_states)
    }

    /// The first block of padding.
    pub(crate) fn spare_block(&self, kind: CacheKind) -> usize {
        self.pool(kind).blocks
    }

    /// Tokens that all blocks hold, the spare ones among them.
    pub(crate) fn slots(&self, kind: CacheKind) -> usize {
        (self.pool(kind).blocks.saturating_add(self.spare)).saturating_mul(self.block_size)
    }
}
