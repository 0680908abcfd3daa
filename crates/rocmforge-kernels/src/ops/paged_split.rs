//! Attention of a few tokens, or of one of each sequence, over a paged cache, its keys in parts that are computed side by side.

use super::matvec_q8::Q8Activations;
use super::paged::{IN_EIGHTS, MAX_HEAD_DIM, PagedCall, alignment_in_eights, paged};
use crate::check::Check;
use crate::declared::{Call, Declared};
use crate::kv_type::by_kv;
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, Parameter, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

const OP: &str = "paged_attention_split";
/// The most tokens of few sequences: with more, tiles of the matrix unit read each key once for many of them.
const FEW_TOKENS: usize = 8;
/// The most tokens.
pub(super) const MAX_TOKENS: usize = 128;
/// The fewest keys of a part: `RF_PART_KEYS` of the kernel.
pub(super) const PART_KEYS: usize = 64;
/// More parts cost more than they bring when they are joined.
pub(super) const MAX_PARTS: usize = 256;
/// Query heads that share a head of keys and values in one block, at most.
const MAX_PACK: usize = 4;

impl Kernels {
    /// The most parts of [`paged_attention_split`](Self::paged_attention_split).
    pub(crate) const MAX_PAGED_PARTS: usize = MAX_PARTS;

    /// Parts into which [`paged_attention_split`](Self::paged_attention_split) divides the keys. `None` if it has no kernel for the type or the
    /// head, or if there are more than 8 tokens and more than sequences, or more than 128. `None` too where one part is enough, except for more than 8 tokens whose query heads
    /// share keys: then [`paged_attention`](Self::paged_attention) is as quick.
    ///
    /// The number follows from the shape, the card and its [tuning](crate::Tuning) alone, so that a captured launch is right for every length.
    pub fn paged_parts(&self, kv: KvType, shape: PagedShape) -> Option<usize> {
        let has_kernel = IN_EIGHTS.contains(&kv) && matches!(shape.head_dim, 64 | 128 | 256);
        let few = shape.tokens <= FEW_TOKENS.max(shape.sequences.min(MAX_TOKENS));
        if !has_kernel || shape.tokens == 0 || !few || shape.kv_heads == 0 {
            return None;
        }
        let ratio = shape.heads / shape.kv_heads;
        let blocks = shape.tokens * shape.kv_heads * ratio.div_ceil(MAX_PACK).max(1);
        let of_one = self.tuning().value(Parameter::AttentionBlocks) as usize;
        let resident = of_one * self.backend().device().multiprocessors.max(1) as usize;
        let keys = shape.max_blocks.saturating_mul(shape.block_size);
        let parts = resident.div_ceil(blocks).min(keys.div_ceil(PART_KEYS)).min(MAX_PARTS);
        // Heads that share keys read them once even in one part.
        let shares = ratio > 1 && shape.tokens > FEW_TOKENS;
        (parts > 1 || shares && parts == 1).then_some(parts)
    }

    /// Floats that the parts of so many tokens take until they are joined. `None` if they overflow.
    pub fn paged_partial_len(shape: PagedShape, parts: usize) -> Option<usize> {
        let rows = shape.tokens.checked_mul(shape.heads)?.checked_mul(parts)?;
        rows.checked_mul(shape.head_dim + 2)
    }

    /// What [`paged_attention`](Self::paged_attention) computes over a cache of 16 bits or in q8_0, in another order of sums, in two launches: keys in `parts`, which then are joined;
    /// query heads that share keys read them once. `partial` has [`paged_partial_len`](Self::paged_partial_len) floats. With `q8` the result is
    /// also rounded to 8 bits, as rows `[tokens, heads * head_dim]`.
    ///
    /// # Errors
    ///
    /// As `paged_attention`. Also: a type or a head without a kernel; more than 128 tokens; 0 parts, or more than 256; what is added has a wrong length, or
    /// overlaps.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn paged_attention_split(
        &self,
        stream: &HipStream,
        kv: KvType,
        operands: PagedOperands<'_>,
        shape: PagedShape,
        options: PagedOptions,
        parts: usize,
        partial: &HipBuffer<f32>,
        q8: Option<HipBuffer<u8>>,
        faults: Faults<'_>,
    ) -> KernelResult<Option<Q8Activations>> {
        let op = self.op(OP);
        op.kv_type(kv, IN_EIGHTS)?;
        let (o, s) = (operands, shape);
        let (op, d) = paged(op, kv, o, s, options, [alignment_in_eights(kv), MAX_HEAD_DIM])?;
        let count = op.dim_to("parts", parts, MAX_PARTS)?;
        op.dim_to("tokens", s.tokens, MAX_TOKENS)?;
        let ratio = s.heads / s.kv_heads;
        let Some(Names {
            family,
            splits,
            combine,
        }) = names(kv, s.head_dim)
        else {
            return Err(op.mismatch("head_dim must be 64, 128 or 256", s.head_dim, 128));
        };
        let (name, pack) = match ratio {
            1 => (splits[0], 1),
            2 => (splits[1], 2),
            _ => (splits[2], MAX_PACK),
        };
        let packs = op.dim_to("heads", s.kv_heads * ratio.div_ceil(pack), 65_535)?;
        let parts = Parts::new(op.check(), s, count, partial, q8)?;
        let op = parts.stated(op, o, partial)?;
        let op = op.part(&parts.values).part(&parts.tops).part(&parts.sums);
        let op = d.limits(op.values([count, d.heads, d.kv_heads])).faults(faults)?;
        let config = geometry::config([count, packs, d.tokens], 256);
        op.run(stream, family, (name, config))?;
        parts.join(self.op(OP), stream, o.sinks, o.out, combine)
    }
}

/// What the blocks of parts leave in `partial`, and where it is joined.
pub(super) struct Parts {
    dims: [u32; 3],
    shape: [usize; 2],
    /// Sums of values `[tokens, heads, parts, head_dim]`.
    pub(super) values: HipBuffer<f32>,
    /// The largest scores `[tokens, heads, parts]`, and the sums of weights behind them.
    pub(super) tops: HipBuffer<f32>,
    sums: HipBuffer<f32>,
    q8: Option<HipBuffer<u8>>,
}

impl Parts {
    /// Of so many parts.
    pub(super) fn new(
        check: Check,
        s: PagedShape,
        count: u32,
        partial: &HipBuffer<f32>,
        q8: Option<HipBuffer<u8>>,
    ) -> KernelResult<Self> {
        let shape = [s.tokens, s.heads * s.head_dim];
        if let Some(to) = &q8 {
            Q8Activations::room(check, to, shape)?;
        }
        let rows = check.elements("partial", &[s.tokens, s.heads, count as usize])?;
        check.len("partial", partial, &[rows, s.head_dim + 2])?;
        let part = |from: usize, len: usize| partial.view(from..from + len);
        Ok(Self {
            dims: [s.tokens as u32, s.heads as u32, count],
            shape,
            values: part(0, rows * s.head_dim)?,
            tops: part(rows * s.head_dim, rows)?,
            sums: part(rows * (s.head_dim + 1), rows)?,
            q8,
        })
    }

    /// States what both launches access beside the operands of the first: the kernel of a part gets `values` and what follows them.
    pub(super) fn stated<'k, 'a>(
        &self,
        op: Launch<'k, 'a>,
        o: PagedOperands<'a>,
        partial: &HipBuffer<f32>,
    ) -> KernelResult<Launch<'k, 'a>> {
        let op = match o.sinks {
            Some(sinks) => op.read_later("sinks", sinks, &[self.dims[1] as usize])?,
            None => op,
        };
        let op = op.write_later("partial", partial, &[partial.len()])?;
        let op = op.write_later("out", o.out, &self.shape)?;
        match &self.q8 {
            Some(to) => op.write_later("to", to, &[to.len()]),
            None => Ok(op),
        }
    }

    /// The second launch, of the kernel of this name.
    pub(super) fn join(
        self,
        op: Launch<'_, '_>,
        stream: &HipStream,
        sinks: Option<&HipBuffer<f32>>,
        out: &HipBuffer<f32>,
        combine: &'static str,
    ) -> KernelResult<Option<Q8Activations>> {
        // A maximum and a sum for each part, and values where the sum is not 0.
        let op = op.reads("partial", &self.values);
        let op = op.reads("partial", &self.tops).reads("partial", &self.sums);
        let op = match sinks {
            Some(sinks) => op.reads("sinks", sinks),
            None => op.null(),
        };
        let op = op.writes("out", out, &[]);
        let op = match &self.q8 {
            Some(to) => op.writes("to", to, &[]),
            None => op.null(),
        };
        let [tokens, heads, _] = self.dims;
        let op = op.values(self.dims);
        let (op, blocks) = match combine {
            COMBINE_WIDE => {
                let head_dim = self.shape[1] as u32 / heads;
                (op.value(head_dim), head_dim.div_ceil(128))
            }
            _ => (op, 1),
        };
        let config = geometry::config([heads, tokens, blocks], 256);
        op.run(stream, COMBINE, (combine, config))?;
        Ok(self.q8.map(|to| Q8Activations::new(to, self.shape)))
    }
}

/// The family of the kernels that join parts.
const COMBINE: &str = "paged_combine";
/// The one for heads of any length, which is an argument.
pub(super) const COMBINE_WIDE: &str = "paged_combine_wide";

/// The kernels for a type and a head.
struct Names {
    /// Of those of a part.
    family: &'static str,
    /// Of a part, by the heads that share keys: one, two, up to four.
    splits: [&'static str; 3],
    /// Joins parts.
    combine: &'static str,
}

fn names(kv: KvType, head_dim: usize) -> Option<Names> {
    macro_rules! of {
        ($dim:literal) => {
            Some(Names {
                family: by_kv!(kv, "paged_split_", "_d", $dim),
                splits: [
                    by_kv!(kv, "paged_split_", "_d", $dim, "_r1"),
                    by_kv!(kv, "paged_split_", "_d", $dim, "_r2"),
                    by_kv!(kv, "paged_split_", "_d", $dim, "_r4"),
                ],
                combine: concat!("paged_combine_d", $dim),
            })
        };
    }
    match head_dim {
        64 => of!(64),
        128 => of!(128),
        256 => of!(256),
        _ => None,
    }
}

/// One, two, three, four and eight heads to a head of keys.
const SPLIT: Declared = Declared {
    name: "paged_attention_split",
    call: |c, dims| split(c, dims, KvType::F16),
    tested: &[
        &[2, 1, 1, 64, 16, 1, 4, 3],
        &[3, 4, 2, 128, 5, 2, 13, 5],
        &[2, 9, 3, 64, 32, 2, 4, 2],
        &[1, 8, 1, 128, 129, 1, 1, 33],
        &[4, 8, 2, 256, 16, 3, 5, 1],
        &[9, 4, 1, 64, 16, 9, 2, 1],
    ],
    counted: &[
        &[1, 2, 2, 64, 16, 1, 32, 8],
        &[1, 4, 2, 64, 16, 1, 32, 8],
        &[1, 8, 2, 64, 16, 1, 32, 8],
        &[1, 2, 2, 128, 16, 1, 32, 8],
        &[1, 4, 2, 128, 16, 1, 32, 8],
        &[1, 8, 2, 128, 16, 1, 32, 8],
        &[1, 2, 2, 256, 16, 1, 32, 8],
        &[1, 4, 2, 256, 16, 1, 32, 8],
        &[1, 8, 2, 256, 16, 1, 32, 8],
    ],
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    SPLIT,
    Declared {
        call: |c, dims| split(c, dims, KvType::Bf16),
        ..SPLIT
    },
    Declared {
        call: |c, dims| split(c, dims, KvType::Q8_0),
        ..SPLIT
    },
];

fn split(c: &mut Call<'_>, dims: &[usize], kv: KvType) -> KernelResult<()> {
    let &[ref dims @ .., parts] = dims else { return Ok(()) };
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = PagedCall::new(c, kv, dims, 7, Some(parts), true)?;
    let Some(partial) = &call.partial else { return Ok(()) };
    let options = PagedOptions::new(call.shape.head_dim);
    let (operands, faults, to) = (call.operands(), call.faults(), call.to.clone());
    c.kernels
        .paged_attention_split(c.stream, kv, operands, call.shape, options, parts, partial, to, faults)?;
    call.expect(c, kv, options, 5e-6);
    Ok(())
}
