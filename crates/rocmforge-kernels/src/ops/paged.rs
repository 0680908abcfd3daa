//! The paged cache of keys and values: attention over it.

use super::matvec_q8::Q8Activations;
use crate::check::MAX_DIM;
use crate::declared::{Call, Declared};
use crate::kv_type::by_kv;
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, KvType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

/// The most elements of a head, of all kernels but `paged_wide`.
pub(super) const MAX_HEAD_DIM: usize = 256;
/// What a head of a type in blocks must be.
pub(super) const WHOLE_HEADS: &str = "head_dim must be whole blocks of the cache's type";
/// Types of caches whose eights are read at once: those of all kernels but `paged_attention` and `paged_wide`.
pub(super) const IN_EIGHTS: &[KvType] = &[KvType::F16, KvType::Bf16, KvType::Q8_0];
/// The fewest tokens of a block of the kernels on the matrix unit: they look a block up for 16 keys at a time.
const LEAST_BLOCK: usize = 16;
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
    /// Elements of a head: a multiple of 4 up to [`Kernels::MAX_PAGED_HEAD`], of 32 in q8_0; up to 256 in parts and on the matrix unit.
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
    /// `[heads]`: one more logit for the softmax of each head, that takes weight and has no key. `None`: there is no such logit.
    pub sinks: Option<&'a HipBuffer<f32>>,
    /// `[tokens, heads, head_dim]`.
    pub out: &'a HipBuffer<f32>,
}

impl Kernels {
    /// The most elements of a head of [`paged_attention`](Self::paged_attention).
    pub const MAX_PAGED_HEAD: usize = 640;

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
        let (o, s) = (operands, shape);
        let (op, d) = paged(
            self.op("paged_attention"),
            kv,
            o,
            s,
            options,
            [kv.alignment(), Self::MAX_PAGED_HEAD],
        )?;
        let (family, name) = match d.head_dim {
            ..=64 => ("paged_attention", by_kv!(kv, "paged_attention_", "_d64")),
            65..=128 => ("paged_attention", by_kv!(kv, "paged_attention_", "_d128")),
            129..=256 => ("paged_attention", by_kv!(kv, "paged_attention_", "_d256")),
            _ => ("paged_wide", by_kv!(kv, "paged_wide_", "")),
        };
        let op = op.read_or_null("sinks", o.sinks, &[s.heads])?;
        let op = op.write("out", o.out, &[s.tokens, s.heads, s.head_dim], &[])?;
        let op = d.limits(op.values([d.heads, d.kv_heads, d.head_dim])).faults(faults)?;
        let config = geometry::config([d.tokens, d.heads, 1], 256);
        op.run(stream, family, (name, config))
    }
}

/// Dimensions of a paged attention as the kernels count them.
pub(super) struct PagedDims {
    pub(super) tokens: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    pub(super) head_dim: u32,
    /// Of the cache and its table.
    limits: [u32; 4],
    /// 0 stands for none.
    window: u32,
    /// The scale, and the cap: 0 stands for none.
    numbers: [f32; 2],
}

impl PagedDims {
    /// Adds the cache's limits and the options, in the order in which the kernels take them.
    pub(super) fn limits<'k, 'a>(&self, op: Launch<'k, 'a>) -> Launch<'k, 'a> {
        op.values(self.limits).value(self.window).values(self.numbers)
    }
}

/// What the address of a cache is a multiple of whose eights are read at once: 16 bytes, and of a q8_0 block what its elements need.
pub(super) const fn alignment_in_eights(kv: KvType) -> usize {
    match kv {
        KvType::Q8_0 => kv.alignment(),
        KvType::F32 | KvType::F16 | KvType::Bf16 => 16,
    }
}

/// Whether the kernels on the matrix unit read such caches: whole eights of heads, in blocks of a power of two.
pub(super) fn fits_matrix_unit(kv: KvType, s: PagedShape) -> bool {
    IN_EIGHTS.contains(&kv)
        && s.head_dim.is_multiple_of(kv.block_len().max(8))
        && s.block_size.is_power_of_two()
        && s.block_size >= LEAST_BLOCK
}

/// [`paged`] for the kernels on the matrix unit, over heads of at most so many elements, with what [`fits_matrix_unit`] asks.
pub(super) fn paged_on_matrix_unit<'k, 'a>(
    op: Launch<'k, 'a>,
    kv: KvType,
    o: PagedOperands<'a>,
    s: PagedShape,
    options: PagedOptions,
    most: usize,
) -> KernelResult<(Launch<'k, 'a>, PagedDims)> {
    op.kv_type(kv, IN_EIGHTS)?;
    let (op, d) = paged(op, kv, o, s, options, [alignment_in_eights(kv), most])?;
    op.multiple("head_dim must be a multiple of 8", s.head_dim, 8)?;
    op.holds(
        s.block_size.is_power_of_two() && s.block_size >= LEAST_BLOCK,
        "block_size must be a power of two from 16 on",
        s.block_size,
        LEAST_BLOCK,
    )?;
    Ok((op, d))
}

/// Adds what all kernels of a paged attention read, and checks it. The caches have this alignment, and heads at most so many elements.
pub(super) fn paged<'k, 'a>(
    op: Launch<'k, 'a>,
    kv: KvType,
    o: PagedOperands<'a>,
    s: PagedShape,
    options: PagedOptions,
    [alignment, most]: [usize; 2],
) -> KernelResult<(Launch<'k, 'a>, PagedDims)> {
    let tokens = op.dim("tokens", s.tokens)?;
    let heads = op.dim_to("heads", s.heads, MAX_HEADS)?;
    let kv_heads = op.dim("kv_heads", s.kv_heads)?;
    let head_dim = op.dim_to("head_dim", s.head_dim, most)?;
    let block_size = op.dim_to("block_size", s.block_size, MAX_BLOCK)?;
    let [blocks, sequences, max_blocks] = op.dims([
        ("blocks", s.blocks),
        ("sequences", s.sequences),
        ("max_blocks", s.max_blocks),
    ])?;
    op.rows("max_blocks * block_size", &[s.max_blocks, s.block_size])?;
    op.heads(s.heads, s.kv_heads)?;
    op.multiple("head_dim must be a multiple of 4", s.head_dim, 4)?;
    let [parts, part_bytes] = op.kv_row(kv, WHOLE_HEADS, s.head_dim)?;
    op.check().value("scale", options.scale, |_| true, "finite")?;
    // 0 stands for none on the device.
    let window = match options.window {
        Some(window) => op.dim("window", window.min(MAX_DIM))?,
        None => 0,
    };
    let softcap = op.softcap(options.softcap)?;
    let slots = [s.blocks, s.block_size, s.kv_heads, parts, part_bytes];
    let op = (op.read("q", o.q, &[s.tokens, s.heads, s.head_dim])?)
        .read_bytes("k_cache", o.k_cache, &slots, alignment)?
        .read_bytes("v_cache", o.v_cache, &slots, alignment)?
        .read("block_table", o.block_table, &[s.sequences, s.max_blocks])?
        .read("seq_of", o.seq_of, &[s.tokens])?
        .read("positions", o.positions, &[s.tokens])?;
    let dims = PagedDims {
        tokens,
        heads,
        kv_heads,
        head_dim,
        limits: [block_size, blocks, sequences, max_blocks],
        window,
        numbers: [options.scale, softcap],
    };
    Ok((op, dims))
}

/// The operands of a declared call. Tokens belong to the sequences in turn.
pub(super) struct PagedCall {
    q: HipBuffer<f32>,
    k_cache: HipBuffer<u8>,
    v_cache: HipBuffer<u8>,
    block_table: HipBuffer<u32>,
    seq_of: HipBuffer<u32>,
    positions: HipBuffer<u32>,
    sinks: Option<HipBuffer<f32>>,
    /// Where there are parts.
    pub(super) partial: Option<HipBuffer<f32>>,
    out: HipBuffer<f32>,
    /// The result in 8 bits, where there are parts.
    pub(super) to: Option<HipBuffer<u8>>,
    word: HipBuffer<u64>,
    pub(super) shape: PagedShape,
}

impl PagedCall {
    /// Sequences whose blocks lie in any order, in a cache that has as many. The last token is the last of its sequence, and each is
    /// `apart` places before the next.
    pub(super) fn new(
        c: &mut Call<'_>,
        kv: KvType,
        dims: [usize; 7],
        apart: usize,
        parts: Option<usize>,
        sinks: bool,
    ) -> KernelResult<Self> {
        let [tokens, heads, kv_heads, head_dim, block_size, sequences, max_blocks] = dims;
        let blocks = sequences * max_blocks;
        let shape = PagedShape {
            tokens,
            heads,
            kv_heads,
            head_dim,
            block_size,
            blocks,
            sequences,
            max_blocks,
        };
        let width = heads * head_dim;
        let cache = blocks * block_size * kv_heads * head_dim;
        let last = (max_blocks * block_size).saturating_sub(1);
        let of_tokens = |of: &dyn Fn(usize) -> usize| (0..tokens).map(|token| of(token) as u32).collect();
        Ok(Self {
            q: c.input("q", tokens * width, -2.0..2.0)?,
            k_cache: c.cache("k_cache", kv, cache)?,
            v_cache: c.cache("v_cache", kv, cache)?,
            block_table: c.words("block_table", (0..blocks).map(|n| (n * 7 % blocks) as u32).collect())?,
            seq_of: c.words("seq_of", of_tokens(&|token| token % sequences.max(1)))?,
            positions: c.words(
                "positions",
                of_tokens(&|token| last.saturating_sub(apart * (tokens - 1 - token))),
            )?,
            sinks: sinks.then(|| c.input("sinks", heads, -1.0..3.0)).transpose()?,
            partial: match parts {
                Some(parts) => Some(c.output("partial", Kernels::paged_partial_len(shape, parts).unwrap_or(0))?),
                None => None,
            },
            out: c.output("out", tokens * width)?,
            to: match parts {
                Some(_) => Some(c.output_bytes("to", Q8Activations::byte_len(tokens, width).unwrap_or(0))?),
                None => None,
            },
            word: c.fault_word()?,
            shape,
        })
    }

    pub(super) fn operands(&self) -> PagedOperands<'_> {
        PagedOperands {
            q: &self.q,
            k_cache: &self.k_cache,
            v_cache: &self.v_cache,
            block_table: &self.block_table,
            seq_of: &self.seq_of,
            positions: &self.positions,
            sinks: self.sinks.as_ref(),
            out: &self.out,
        }
    }

    pub(super) fn faults(&self) -> Faults<'_> {
        Faults {
            word: &self.word,
            tag: 0,
        }
    }

    /// [`Self::expect`] of kernels on the matrix unit: queries and weights have 11 bits, over a cache in bf16 8.
    pub(super) fn expect_rounded(&self, c: &mut Call<'_>, kv: KvType, options: PagedOptions) {
        self.expect(c, kv, options, if kv == KvType::Bf16 { 1.2e-2 } else { 1.5e-3 });
    }

    pub(super) fn expect(&self, c: &mut Call<'_>, kv: KvType, options: PagedOptions, within: f64) {
        c.expect("out", within, |c| {
            let [table, seq_of, positions] = ["block_table", "seq_of", "positions"].map(|name| c.u32(name));
            let (k, v) = (c.kv("k_cache", kv), c.kv("v_cache", kv));
            let sinks = self.sinks.as_ref().map(|_| c.f32("sinks"));
            reference::paged_attention(c.f32("q"), &k, &v, table, seq_of, positions, sinks, self.shape, options)
        });
    }
}

const PAGED: Declared = Declared {
    name: "paged_attention",
    call: |c, dims| attention(c, dims, KvType::F32),
    tested: &[
        &[2, 2, 1, 32, 16, 2, 5],
        &[2, 2, 1, 64, 31, 2, 1],
        &[2, 1, 1, 64, 32, 2, 1],
        &[2, 1, 1, 64, 33, 2, 1],
        &[2, 1, 1, 64, 63, 1, 1],
        &[2, 1, 1, 64, 64, 1, 1],
        &[2, 1, 1, 64, 65, 1, 1],
        &[2, 2, 2, 96, 127, 1, 1],
        &[2, 3, 1, 128, 128, 1, 1],
        &[2, 1, 1, 160, 129, 1, 1],
        &[5, 4, 2, 256, 5, 2, 4],
        &[2, 2, 1, 288, 33, 2, 1],
        &[3, 4, 1, 576, 16, 2, 5],
        &[2, 2, 2, 640, 5, 1, 3],
    ],
    counted: &[
        &[2, 4, 1, 576, 16, 2, 8],
        &[2, 4, 2, 64, 16, 2, 8],
        &[2, 4, 2, 128, 16, 2, 8],
        &[2, 4, 2, 256, 16, 2, 8],
    ],
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    PAGED,
    Declared {
        // Heads that are no whole blocks of q8_0.
        tested: &[
            &[2, 2, 1, 4, 16, 2, 5],
            &[2, 2, 1, 28, 16, 2, 5],
            &[2, 2, 1, 60, 16, 2, 5],
            &[2, 2, 1, 68, 16, 2, 5],
            &[2, 2, 1, 80, 16, 2, 5],
            &[2, 2, 1, 132, 16, 2, 5],
        ],
        counted: &[],
        ..PAGED
    },
    Declared {
        call: |c, dims| attention(c, dims, KvType::F16),
        ..PAGED
    },
    Declared {
        call: |c, dims| attention(c, dims, KvType::Bf16),
        ..PAGED
    },
    Declared {
        call: |c, dims| attention(c, dims, KvType::Q8_0),
        ..PAGED
    },
];

fn attention(c: &mut Call<'_>, dims: &[usize], kv: KvType) -> KernelResult<()> {
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = PagedCall::new(c, kv, dims, 7, None, true)?;
    let options = PagedOptions::new(call.shape.head_dim);
    c.kernels
        .paged_attention(c.stream, kv, call.operands(), call.shape, options, call.faults())?;
    call.expect(c, kv, options, 5e-6);
    Ok(())
}
