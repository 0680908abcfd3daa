//! Caches: what layers keep of the tokens that they have seen.

use rocmforge_ggml::{KvType, TensorId};

/// Which tokens a layer keeps something of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CacheKind {
    /// All of a sequence.
    Full,
    /// Those that a query sees: so many, itself among them.
    Window(usize),
}

impl CacheKind {
    /// What attention with this window keeps.
    pub(crate) fn of_window(window: Option<usize>) -> Self {
        window.map_or(Self::Full, Self::Window)
    }
}

/// A tensor of a cache that a part has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cached {
    /// Rows, one for each slot.
    pub(crate) id: TensorId,
}

/// Size of a paged KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheSpec {
    /// Element type.
    pub(crate) kv: KvType,
    /// Tokens of a block.
    pub(crate) block_size: usize,
    /// Blocks of sequences.
    pub(crate) blocks: usize,
    /// Blocks after them, which take the keys and values of padding.
    pub(crate) spare: usize,
    /// Longest sequence, in tokens.
    pub(crate) context: usize,
}

impl CacheSpec {
    /// Blocks of the longest sequence: the columns of a block table.
    pub(crate) fn table_width(&self) -> usize {
        self.context.div_ceil(self.block_size)
    }

    /// Tokens that all blocks hold, the spare ones among them.
    pub(crate) const fn slots(&self) -> usize {
        (self.blocks + self.spare) * self.block_size
    }

    /// The slots of padding.
    pub(crate) const fn spare_slots(&self) -> std::ops::Range<usize> {
        self.blocks * self.block_size..self.slots()
    }
}
