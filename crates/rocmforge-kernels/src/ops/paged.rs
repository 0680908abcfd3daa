//! The paged cache of keys and values: attention over it.

use crate::check::{Check, MAX_DIM};
use crate::{Faults, KernelResult, Kernels, KvType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// The most elements of a head.
pub(super) const MAX_HEAD_DIM: usize = 256;
/// What a head of a type in blocks must be.
pub(super) const WHOLE_HEADS: &str = "head_dim must be whole blocks of the cache's type";
/// The most tokens of a block.
const MAX_BLOCK: usize = 256;
/// The most blocks of the grid's second dimension.
const MAX_HEADS: usize = 65_535;

/// The dimensions of a paged attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PagedShape {
    /// Queries: tokens of any sequences in any order.
    pub tokens: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads: they divide `heads`, and query head h reads head h / (heads / kv_heads).
    pub kv_heads: usize,
    /// Elements of a head: a multiple of 4 up to 256, of 32 in q8_0.
    pub head_dim: usize,
    /// Tokens of a block, 1 to 256.
    pub block_size: usize,
    /// Blocks of each cache.
    pub blocks: usize,
    /// Rows of the block table.
    pub sequences: usize,
    /// Columns of the block table.
    pub max_blocks: usize,
}

/// What changes the scores of a paged attention.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PagedOptions {
    /// Factor of q . k.
    pub scale: f32,
    /// A token at position p sees the keys at positions over p - window. `None`: all up to its own.
    pub window: Option<usize>,
    /// A score s becomes cap * tanh(s / cap), as in Gemma 2. `None`: it stays.
    pub softcap: Option<f32>,
}

impl PagedOptions {
    /// 1 / sqrt(head_dim), all keys, no cap.
    pub fn new(head_dim: usize) -> Self {
        Self {
            scale: 1.0 / (head_dim as f32).sqrt(),
            window: None,
            softcap: None,
        }
    }
}

/// The operands of a paged attention.
#[derive(Debug, Clone, Copy)]
pub struct PagedOperands<'a> {
    /// `[tokens, heads, head_dim]`.
    pub q: &'a HipBuffer<f32>,
    /// `[blocks * block_size, kv_heads, head_dim]`.
    pub k_cache: &'a HipBuffer<u8>,
    /// The same.
    pub v_cache: &'a HipBuffer<u8>,
    /// `[sequences, max_blocks]`: the block that holds keys `n * block_size ..` of a sequence. Entries behind its last token may hold
    /// anything.
    pub block_table: &'a HipBuffer<u32>,
    /// `[tokens]`: the row of the block table.
    pub seq_of: &'a HipBuffer<u32>,
    /// `[tokens]`: the place in the sequence, from 0.
    pub positions: &'a HipBuffer<u32>,
    /// `[tokens, heads, head_dim]`.
    pub out: &'a HipBuffer<f32>,
}

impl Kernels {
    /// Attention over a paged cache of type `kv`: `out[t, h] = sum_j softmax_j(score(t, h, j)) v[j]` over the keys j of the token's
    /// sequence that it sees, those at positions up to its own and within the window. Key j lies in slot
    /// `block_table[seq_of[t], j / block_size] * block_size + j % block_size`. Only slots that some token sees are read.
    ///
    /// A sequence that is no row of the table, a position beyond its columns, or the number of a seen block that is not below `blocks`
    /// gives NaN in all heads of its token, and is a fault at the token's number, in this order.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an address that is no multiple of the type's alignment, overlap of `out`, a dimension of 0 or over its limit, heads that
    /// `kv_heads` does not divide, a `head_dim` that is no multiple of 4 or not whole blocks of the type, a scale or cap that makes no sense, a tag over 4095.
    pub fn paged_attention(
        &self,
        stream: &HipStream,
        kv: KvType,
        operands: PagedOperands<'_>,
        shape: PagedShape,
        options: PagedOptions,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("paged_attention");
        let d = paged(check, kv, operands, shape, options, faults)?;
        let o = operands;
        let name = match (kv, d.head_dim) {
            (KvType::F32, ..=64) => "paged_attention_f32_d64",
            (KvType::F32, ..=128) => "paged_attention_f32_d128",
            (KvType::F32, _) => "paged_attention_f32_d256",
            (KvType::F16, ..=64) => "paged_attention_f16_d64",
            (KvType::F16, ..=128) => "paged_attention_f16_d128",
            (KvType::F16, _) => "paged_attention_f16_d256",
            (KvType::Bf16, ..=64) => "paged_attention_bf16_d64",
            (KvType::Bf16, ..=128) => "paged_attention_bf16_d128",
            (KvType::Bf16, _) => "paged_attention_bf16_d256",
            (KvType::Q8_0, ..=64) => "paged_attention_q8_0_d64",
            (KvType::Q8_0, ..=128) => "paged_attention_q8_0_d128",
            (KvType::Q8_0, _) => "paged_attention_q8_0_d256",
        };
        let args = o.read().out(o.out).values([d.heads, d.kv_heads, d.head_dim]);
        let args = faults.args(check, d.cache(args, options))?;
        let config = geometry::config([d.tokens, d.heads, 1], 256);
        // SAFETY: lengths are those of the shapes, caches are aligned and out is apart from all operands, checked above; the kernel
        // compares each sequence, position and block number with its limit.
        unsafe { self.launch(stream, "paged_attention", name, config, args) }
    }
}

impl<'a> PagedOperands<'a> {
    /// What the kernels read, as they take it.
    pub(super) fn read(&self) -> LaunchArgs<'a> {
        LaunchArgs::new()
            .buffer(self.q)
            .buffer(self.k_cache)
            .buffer(self.v_cache)
            .buffer(self.block_table)
            .buffer(self.seq_of)
            .buffer(self.positions)
    }
}

/// Dimensions of a paged attention as the kernels count them.
pub(super) struct PagedDims {
    pub(super) tokens: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) head_dim: u32,
    pub(super) block_size: u32,
    pub(super) blocks: u32,
    pub(super) sequences: u32,
    pub(super) max_blocks: u32,
    /// 0 stands for none.
    pub(super) window: u32,
    /// 0 stands for none.
    pub(super) softcap: f32,
}

impl PagedDims {
    /// Adds the cache's limits and the options, in the order in which the kernels take them.
    pub(super) fn cache<'a>(&self, args: LaunchArgs<'a>, options: PagedOptions) -> LaunchArgs<'a> {
        let limits = [self.block_size, self.blocks, self.sequences, self.max_blocks];
        args.values(limits)
            .value(self.window)
            .values([options.scale, self.softcap])
    }
}

/// Checks the operands of a paged attention.
pub(super) fn paged(
    check: Check,
    kv: KvType,
    operands: PagedOperands<'_>,
    shape: PagedShape,
    options: PagedOptions,
    faults: Faults<'_>,
) -> KernelResult<PagedDims> {
    let tokens = check.dim("tokens", shape.tokens)?;
    let heads = check.dim_to("heads", shape.heads, MAX_HEADS)?;
    let kv_heads = check.dim("kv_heads", shape.kv_heads)?;
    let head_dim = check.dim_to("head_dim", shape.head_dim, MAX_HEAD_DIM)?;
    let block_size = check.dim_to("block_size", shape.block_size, MAX_BLOCK)?;
    let blocks = check.dim("blocks", shape.blocks)?;
    let sequences = check.dim("sequences", shape.sequences)?;
    let max_blocks = check.dim("max_blocks", shape.max_blocks)?;
    check.rows("max_blocks * block_size", &[shape.max_blocks, shape.block_size])?;
    check.heads(shape.heads, shape.kv_heads)?;
    check.multiple("head_dim must be a multiple of 4", shape.head_dim, 4)?;
    let o = operands;
    let query = [shape.tokens, shape.heads, shape.head_dim];
    let [parts, part_bytes] = check.kv_row(kv, WHOLE_HEADS, shape.head_dim)?;
    let slots = [shape.blocks, shape.block_size, shape.kv_heads, parts, part_bytes];
    check.len("q", o.q, &query)?;
    check.len("out", o.out, &query)?;
    check.disjoint(("out", o.out), ("q", o.q))?;
    check.len("block_table", o.block_table, &[shape.sequences, shape.max_blocks])?;
    check.len("seq_of", o.seq_of, &[shape.tokens])?;
    check.len("positions", o.positions, &[shape.tokens])?;
    for (name, cache) in [("k_cache", o.k_cache), ("v_cache", o.v_cache)] {
        check.len(name, cache, &slots)?;
        check.aligned(name, cache, kv.alignment())?;
        check.disjoint(("out", o.out), (name, cache))?;
    }
    let indices = [
        ("block_table", o.block_table),
        ("seq_of", o.seq_of),
        ("positions", o.positions),
    ];
    for index in indices {
        check.disjoint(("out", o.out), index)?;
    }
    check.disjoint(("out", o.out), ("the fault word", faults.word))?;
    check.value("scale", options.scale, |_| true, "finite")?;
    // 0 stands for none on the device.
    let window = match options.window {
        Some(window) => check.dim("window", window.min(MAX_DIM))?,
        None => 0,
    };
    let softcap = match options.softcap {
        Some(cap) => check.value("softcap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal")?,
        None => 0.0,
    };
    Ok(PagedDims {
        tokens,
        heads,
        kv_heads,
        head_dim,
        block_size,
        blocks,
        sequences,
        max_blocks,
        window,
        softcap,
    })
}
