//! Options of an engine.

use rocmforge_ggml::KvType;
use rocmforge_ggml::optimizer::GraphOptimizer;

use crate::cache::CacheSpec;
use crate::step::Buckets;

/// A number of tokens that is asked for, or found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Limit {
    /// As many as fit and can be used.
    #[default]
    Auto,
    /// So many, or an error.
    Tokens(usize),
}

/// How an engine is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineOptions {
    /// Longest sequence; at most what the model was made for.
    pub max_context: Limit,
    /// Tokens that all sequences together can hold, beginnings in common counted once. [`Limit::Auto`]: as many as the memory allows, at most
    /// what all sequences can use.
    pub cache_tokens: Limit,
    /// Most sequences that a generator computes at a time; at most `chunk`. A step of more has memory of its own.
    pub max_sequences: usize,
    /// Element type of the KV cache.
    pub kv: KvType,
    /// Tokens of a cache block.
    pub block_size: usize,
    /// Most tokens of one step: longer prompts are computed in chunks. Layers with a window have room for so many tokens beyond it.
    pub chunk: usize,
    /// How many of the largest logits of each row a step finds where the model runs, so that tokens can be drawn without the rows; 0: none. `None`: 128 if
    /// the model runs on a device and its vocabulary is at least 32 times as large.
    pub candidates: Option<usize>,
    /// Passes that steps' graphs go through; `None`: those that help on the backend.
    pub passes: Option<GraphOptimizer>,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            max_context: Limit::Auto,
            cache_tokens: Limit::Auto,
            max_sequences: 16,
            kv: KvType::default(),
            block_size: 16,
            chunk: 128,
            candidates: None,
            passes: None,
        }
    }
}

impl EngineOptions {
    /// The sizes of steps for which graphs are kept.
    pub(super) fn buckets(&self) -> Buckets {
        Buckets {
            chunk: self.chunk,
            sequences: self.max_sequences.min(self.chunk),
        }
    }

    /// A cache of so many tokens, for sequences of at most `context`, of which so many have room for their windows and states.
    pub(super) fn cache(&self, tokens: usize, context: usize, sequences: usize) -> CacheSpec {
        CacheSpec {
            kv: self.kv,
            block_size: self.block_size,
            tokens,
            sequences,
            chunk: self.chunk,
            spare: self.buckets().padding().div_ceil(self.block_size),
            spare_states: self.buckets().sequences + 1,
            context,
        }
    }
}
