//! Geometry of a paged KV cache: layers, heads, block size, and the bytes that follow.

use rocmforge_runtime::Bytes;

use super::{PagedKvError, blocks_for};

/// Storage of K and V: so many neighbouring elements of a head in so many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvElement {
    /// Elements that are stored together: a head has a multiple of them.
    pub block_len: usize,
    /// Their bytes.
    pub block_bytes: usize,
}

impl KvElement {
    /// 4 bytes.
    pub const F32: Self = Self::plain(4);
    /// 2 bytes.
    pub const F16: Self = Self::plain(2);
    /// 2 bytes.
    pub const BF16: Self = Self::plain(2);
    /// 34 bytes for 32 elements.
    pub const Q8_0: Self = Self {
        block_len: 32,
        block_bytes: 34,
    };

    /// Elements of their own, of so many bytes.
    pub const fn plain(bytes: usize) -> Self {
        Self {
            block_len: 1,
            block_bytes: bytes,
        }
    }
}

/// Sizes that fix how much memory the K and V of a token take.
///
/// ```
/// use rocmforge_attention::paged::{KvElement, KvGeometry};
/// use rocmforge_runtime::Bytes;
///
/// // Llama 3.1 8B in f16.
/// let geometry = KvGeometry { layers: 32, kv_heads: 8, k_dim: 128, v_dim: 128, element: KvElement::F16, block_size: 16 };
/// assert_eq!(geometry.bytes_per_token()?, Bytes::kib(128));
/// assert_eq!(geometry.largest_context(Bytes::gib(1))?, 8192);
/// # Ok::<(), rocmforge_attention::paged::PagedKvError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvGeometry {
    /// Layers that keep K and V.
    pub layers: usize,
    /// K and V heads of a layer.
    pub kv_heads: usize,
    /// Elements of one head's K.
    pub k_dim: usize,
    /// Elements of one head's V; 0 where V is computed from K.
    pub v_dim: usize,
    /// How elements are stored.
    pub element: KvElement,
    /// Tokens of a block.
    pub block_size: usize,
}

impl KvGeometry {
    /// Bytes of one token's K and V in all layers: `layers * kv_heads * (k_dim + v_dim)` elements.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::Zero`] if a size other than `v_dim` is 0, [`PagedKvError::PartialBlock`] for heads that are no whole blocks of the element,
    /// [`PagedKvError::Overflow`] beyond 64 bits.
    pub fn bytes_per_token(&self) -> Result<Bytes, PagedKvError> {
        let sizes = [
            ("layers", self.layers),
            ("kv_heads", self.kv_heads),
            ("k_dim", self.k_dim),
            ("block_len", self.element.block_len),
            ("block_bytes", self.element.block_bytes),
            ("block_size", self.block_size),
        ];
        if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
            return Err(PagedKvError::Zero(name));
        }
        let block_len = self.element.block_len;
        if let Some(&elements) = [self.k_dim, self.v_dim]
            .iter()
            .find(|dim| !dim.is_multiple_of(block_len))
        {
            return Err(PagedKvError::PartialBlock { elements, block_len });
        }
        let blocks = ((self.k_dim / block_len) as u64).checked_add((self.v_dim / block_len) as u64);
        [self.layers, self.kv_heads, self.element.block_bytes]
            .into_iter()
            .fold(blocks, |product, size| product?.checked_mul(size as u64))
            .map(Bytes)
            .ok_or(PagedKvError::Overflow("the size of a token's K and V"))
    }

    /// Bytes of one block in all layers.
    ///
    /// # Errors
    ///
    /// As [`bytes_per_token`](Self::bytes_per_token).
    pub fn bytes_per_block(&self) -> Result<Bytes, PagedKvError> {
        let token = self.bytes_per_token()?;
        token
            .0
            .checked_mul(self.block_size as u64)
            .map(Bytes)
            .ok_or(PagedKvError::Overflow("the size of a block"))
    }

    /// Bytes of a cache for `tokens` tokens, in whole blocks.
    ///
    /// # Errors
    ///
    /// As [`bytes_per_token`](Self::bytes_per_token).
    pub fn bytes_for(&self, tokens: usize) -> Result<Bytes, PagedKvError> {
        let block = self.bytes_per_block()?;
        (blocks_for(tokens, self.block_size) as u64)
            .checked_mul(block.0)
            .map(Bytes)
            .ok_or(PagedKvError::Overflow("the size of the cache"))
    }

    /// Tokens that fit into `budget`, in whole blocks; 0 if not even one block fits.
    ///
    /// # Errors
    ///
    /// As [`bytes_per_token`](Self::bytes_per_token).
    pub fn largest_context(&self, budget: Bytes) -> Result<usize, PagedKvError> {
        let blocks = budget.0 / self.bytes_per_block()?.0;
        // A token takes at least one byte, so the tokens are no more than the bytes of the budget.
        usize::try_from(blocks * self.block_size as u64).map_err(|_| PagedKvError::Overflow("the context"))
    }
}
