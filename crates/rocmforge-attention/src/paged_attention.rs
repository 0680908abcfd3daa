//! Attention over a paged cache on a device.

use crate::AttentionResult;
use rocmforge_kernels::{Faults, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, Q8Activations};
use rocmforge_runtime::{HipBuffer, HipStream};
use std::fmt;

/// What a layer of a model fixes about attention over a paged cache.
///
/// Tokens, blocks and sequences are as many as the operands hold; [`Kernels::paged_attention`] checks that all fit together, and says
/// what it computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PagedAttention {
    /// Query heads.
    pub heads: usize,
    /// Key and value heads: they divide `heads`.
    pub kv_heads: usize,
    /// Elements of a head: a multiple of 4 up to 640, of 32 in q8_0.
    pub head_dim: usize,
    /// Tokens of a block, 1 to 256.
    pub block_size: usize,
    /// Element type of the cache.
    pub kv: KvType,
    /// Scale, window and cap of the scores.
    pub options: PagedOptions,
}

impl PagedAttention {
    /// `out = softmax(scale q k^T) v` for each token over the keys of its sequence that it sees, enqueued on `stream`. `max_blocks` is the
    /// number of columns of the block table.
    ///
    /// Sequences, positions and block numbers lie on the device: one out of range gives NaN for its token, and is written into `faults`.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Kernel`](crate::AttentionError::Kernel) with what [`Kernels::paged_attention`] says.
    pub fn forward(
        &self,
        kernels: &Kernels,
        stream: &HipStream,
        operands: PagedOperands<'_>,
        max_blocks: usize,
        faults: Faults<'_>,
    ) -> AttentionResult<()> {
        let shape = self.shape(&operands, max_blocks);
        kernels.paged_attention(stream, self.kv, operands, shape, self.options, faults)?;
        Ok(())
    }

    /// Which kernels to use, and why: the same for every length, so that a captured launch stays right. `max_blocks` is the number of columns of the
    /// block table.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Kernel`](crate::AttentionError::Kernel) if the device does not accept a module.
    pub fn plan(
        &self,
        kernels: &Kernels,
        operands: PagedOperands<'_>,
        max_blocks: usize,
        rounding: Rounding,
    ) -> AttentionResult<PagedExplain> {
        self.plan_for(kernels, self.shape(&operands, max_blocks), rounding)
    }

    /// [`Self::plan`] of so many tokens, sequences and columns of the block table: what `shape` says of heads and blocks is this layer's.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn plan_for(&self, kernels: &Kernels, shape: PagedShape, rounding: Rounding) -> AttentionResult<PagedExplain> {
        let because = |algorithm, reason| Ok(PagedExplain { algorithm, reason });
        let split = |parts: Option<usize>, rounding| parts.and_then(|parts| PagedSplit::new(shape, parts, rounding));
        let long = shape.head_dim > LONG_HEAD && rounding == Rounding::F16;
        if long && kernels.has_paged_attention16(self.kv, shape)? {
            let split = split(kernels.paged_parts16(self.kv, shape)?, rounding);
            let reason = "long heads: a block reads each key and value once for up to 32 rows of tokens and heads";
            return because(split.map_or(PagedAlgorithm::MatrixUnit, PagedAlgorithm::Parts), reason);
        }
        if let Some(split) = split(kernels.paged_parts(self.kv, shape), Rounding::None) {
            let reason = "few tokens, or one of each sequence: heads that share keys read them once, and keys may be divided among more blocks";
            because(PagedAlgorithm::Parts(split), reason)
        } else if rounding == Rounding::None {
            because(PagedAlgorithm::Floats, "queries and weights are to stay f32")
        } else if shape.tokens <= shape.sequences.saturating_mul(FEW_TOKENS) {
            let reason = "a sequence has too few tokens to fill tiles of the matrix unit";
            because(PagedAlgorithm::Floats, reason)
        } else if kernels.has_paged_attention16(self.kv, shape)? {
            let reason = "many tokens of a sequence, which share each key and value that is read";
            because(PagedAlgorithm::MatrixUnit, reason)
        } else {
            let reason = "no kernel for the matrix unit here: it wants a cache of 16 bits or in q8_0, heads in eights and blocks of 16, 32, 64, 128 or 256 tokens";
            because(PagedAlgorithm::Floats, reason)
        }
    }

    /// [`Self::forward`] on the matrix unit, with queries and weights rounded to f16, over a cache in bf16 to bf16.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Kernel`](crate::AttentionError::Kernel) with what [`Kernels::paged_attention16`] says.
    pub fn forward16(
        &self,
        kernels: &Kernels,
        stream: &HipStream,
        operands: PagedOperands<'_>,
        max_blocks: usize,
        faults: Faults<'_>,
    ) -> AttentionResult<()> {
        let shape = self.shape(&operands, max_blocks);
        Ok(kernels.paged_attention16(stream, self.kv, operands, shape, self.options, faults)?)
    }

    /// [`Self::forward`] with the keys in parts, which `partial` (of [`PagedSplit::partial_len`] floats) holds until they are joined. With `q8` the result
    /// is rounded to 8 bits, too.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Kernel`](crate::AttentionError::Kernel) with what [`Kernels::paged_attention_split`] and [`Kernels::paged_attention16_split`] say.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn forward_split(
        &self,
        kernels: &Kernels,
        stream: &HipStream,
        operands: PagedOperands<'_>,
        max_blocks: usize,
        split: PagedSplit,
        partial: &HipBuffer<f32>,
        q8: Option<HipBuffer<u8>>,
        faults: Faults<'_>,
    ) -> AttentionResult<Option<Q8Activations>> {
        let (shape, parts, kv, options) = (self.shape(&operands, max_blocks), split.parts, self.kv, self.options);
        Ok(match split.rounding {
            Rounding::None => {
                kernels.paged_attention_split(stream, kv, operands, shape, options, parts, partial, q8, faults)
            }
            Rounding::F16 => {
                kernels.paged_attention16_split(stream, kv, operands, shape, options, parts, partial, q8, faults)
            }
        }?)
    }

    fn shape(&self, operands: &PagedOperands<'_>, max_blocks: usize) -> PagedShape {
        // Heads that are no whole blocks of the type are refused by the launcher.
        let head = self.head_dim / self.kv.block_len() * self.kv.block_bytes();
        let sizes = [self.block_size, self.kv_heads, head];
        let block_bytes = sizes.into_iter().fold(1, usize::saturating_mul);
        PagedShape {
            tokens: operands.positions.len(),
            heads: self.heads,
            kv_heads: self.kv_heads,
            head_dim: self.head_dim,
            block_size: self.block_size,
            // What does not divide evenly fails the check of lengths.
            blocks: operands.k_cache.byte_len() / block_bytes.max(1),
            sequences: operands.block_table.len() / max_blocks.max(1),
            max_blocks,
        }
    }
}

/// Up to so many tokens for each sequence, a block for every token and head is as quick as tiles that are mostly empty.
const FEW_TOKENS: usize = 8;

/// Heads over so many elements have a kernel of their own on the matrix unit, for any number of tokens.
const LONG_HEAD: usize = 256;

/// What may be rounded on the way to a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// Nothing: queries, weights and sums are f32.
    None,
    /// Queries and weights, to f16 (over a cache in bf16 to bf16), for the matrix unit. Scores and sums are f32.
    F16,
}

/// Which kernels compute attention over a paged cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PagedAlgorithm {
    /// [`PagedAttention::forward`]: a block for each token and head, in f32.
    Floats,
    /// [`PagedAttention::forward_split`]: few tokens, keys in parts, in f32; of long heads on the matrix unit.
    Parts(PagedSplit),
    /// [`PagedAttention::forward16`]: tiles of tokens on the matrix unit.
    MatrixUnit,
}

/// Which kernels are to be used, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagedExplain {
    /// The kernels.
    pub algorithm: PagedAlgorithm,
    /// What decided it.
    pub reason: &'static str,
}

impl fmt::Display for PagedExplain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.algorithm {
            PagedAlgorithm::Floats => f.write_str("attention in f32"),
            PagedAlgorithm::Parts(split) if split.rounding == Rounding::F16 => {
                write!(f, "attention in {} parts on the matrix unit", split.parts)
            }
            PagedAlgorithm::Parts(split) => write!(f, "attention in {} parts", split.parts),
            PagedAlgorithm::MatrixUnit => f.write_str("attention on the matrix unit"),
        }?;
        write!(f, ": {}", self.reason)
    }
}

/// How the keys of a few tokens are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagedSplit {
    /// Parts of the keys.
    pub parts: usize,
    /// Floats that the parts take until they are joined.
    pub partial_len: usize,
    /// What the kernels of the parts round: with [`Rounding::F16`] the matrix unit multiplies.
    pub rounding: Rounding,
}

impl PagedSplit {
    /// `None` if there are more floats than can be counted.
    fn new(shape: PagedShape, parts: usize, rounding: Rounding) -> Option<Self> {
        Some(Self {
            parts,
            partial_len: Kernels::paged_partial_len(shape, parts)?,
            rounding,
        })
    }
}
