//! Attention over a paged cache on a device.

use crate::AttentionResult;
use rocmforge_kernels::{Faults, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, Q8Activations};
use rocmforge_runtime::{HipBuffer, HipStream};

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
    /// Elements of a head: a multiple of 4 up to 256.
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

    /// How [`Self::forward_split`] divides the keys of so few tokens; `None` if [`Self::forward`] is as quick. The same for every length, so that a
    /// captured launch stays right.
    pub fn split(&self, kernels: &Kernels, operands: PagedOperands<'_>, max_blocks: usize) -> Option<PagedSplit> {
        let shape = self.shape(&operands, max_blocks);
        let parts = kernels.paged_parts(self.kv, shape)?;
        Some(PagedSplit {
            parts,
            partial_len: Kernels::paged_partial_len(shape, parts)?,
        })
    }

    /// [`Self::forward`] with the keys in parts, which `partial` (of [`PagedSplit::partial_len`] floats) holds until they are joined. With `q8` the result
    /// is rounded to 8 bits, too.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Kernel`](crate::AttentionError::Kernel) with what [`Kernels::paged_attention_split`] says.
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
        let (shape, parts) = (self.shape(&operands, max_blocks), split.parts);
        Ok(kernels.paged_attention_split(stream, operands, shape, self.options, parts, partial, q8, faults)?)
    }

    fn shape(&self, operands: &PagedOperands<'_>, max_blocks: usize) -> PagedShape {
        let bytes = [self.block_size, self.kv_heads, self.head_dim, self.kv.bytes()];
        let block_bytes = bytes.into_iter().fold(1, usize::saturating_mul);
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

/// How the keys of a few tokens are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PagedSplit {
    /// Parts of the keys.
    pub parts: usize,
    /// Floats that the parts take until they are joined.
    pub partial_len: usize,
}
