//! Attention over a paged cache of long heads, on the matrix unit: the keys of few tokens in parts that are computed side by side.

use super::attention16::MAX_BLOCKS;
use super::matvec_q8::Q8Activations;
use super::paged::{PagedCall, PagedDims, fits_matrix_unit, paged_on_matrix_unit};
use super::paged_split::{COMBINE_WIDE, MAX_PARTS, MAX_TOKENS, PART_KEYS, Parts};
use crate::declared::{Call, Declared};
use crate::kv_type::by_kv;
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

/// Elements of a head: the kernels' waves have room for so many, and shorter heads have kernels of their own.
const HEADS: std::ops::RangeInclusive<usize> = 257..=576;
/// The most rows of a block: `RF_WIDE_ROWS` of the kernels.
const ROWS: usize = 32;
/// What a head is a multiple of whose parts are joined: a block of 8-bit activations lies in one head.
const PARTED_HEADS: usize = 32;
/// LDS that a launch gives kernels without LDS of their own: `WideLds::BYTES`.
const LDS: u32 = 58_512;
const FAMILY: &str = "paged_wide16";
const OP: &str = "paged_attention16";
const SPLIT: &str = "paged_attention16_split";

/// Whether the kernels are made for a cache of this type and shape.
pub(super) fn fits(kv: KvType, s: PagedShape) -> bool {
    fits_matrix_unit(kv, s) && HEADS.contains(&s.head_dim)
}

/// Rows of a block. Of tokens that are each in a sequence of their own one token's: another one's would have to wait for its keys.
fn step(s: PagedShape) -> usize {
    let ratio = (s.heads / s.kv_heads.max(1)).max(1);
    if s.tokens <= s.sequences { ratio.min(ROWS) } else { ROWS }
}

fn blocks(s: PagedShape) -> usize {
    let rows = s.tokens.saturating_mul(s.heads / s.kv_heads.max(1));
    rows.div_ceil(step(s)).max(1)
}

impl Kernels {
    /// Whether the device has these kernels.
    pub(super) fn has_wide16(&self, kv: KvType) -> KernelResult<bool> {
        self.has(FAMILY, by_kv!(kv, "paged_wide16_", ""))
    }

    /// Parts into which [`paged_attention16_split`](Self::paged_attention16_split) divides the keys. `None` if it has no kernel for the type or the head, if there are more
    /// than 128 tokens, or if one part is enough.
    ///
    /// The number follows from the shape and the card alone, so that a captured launch is right for every length.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn paged_parts16(&self, kv: KvType, shape: PagedShape) -> KernelResult<Option<usize>> {
        let whole = shape.head_dim.is_multiple_of(PARTED_HEADS);
        if !fits(kv, shape) || !whole || shape.tokens > MAX_TOKENS || shape.kv_heads == 0 || !self.has_wide16(kv)? {
            return Ok(None);
        }
        let multiprocessors = self.backend().device().multiprocessors.max(1) as usize;
        let keys = shape.max_blocks.saturating_mul(shape.block_size);
        let parts = multiprocessors / (blocks(shape) * shape.kv_heads);
        let parts = parts.min(keys / PART_KEYS).min(MAX_PARTS);
        Ok((parts > 1).then_some(parts))
    }

    /// [`paged_attention16`](Self::paged_attention16) of long heads in two launches: keys in `parts`, which then are joined. `partial` has
    /// [`paged_partial_len`](Self::paged_partial_len) floats. With `q8` the result is also rounded to 8 bits, as rows `[tokens, heads * head_dim]`.
    ///
    /// # Errors
    ///
    /// As `paged_attention16`. Also: heads of up to 256 elements, or of no multiple of 32; more than 128 tokens; less than 2 parts, or more than 256; what is added has a wrong
    /// length, or overlaps.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn paged_attention16_split(
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
        let (o, s) = (operands, shape);
        let (op, d) = wide16(self.op(SPLIT), kv, o, s, options)?;
        op.dim_to("tokens", s.tokens, MAX_TOKENS)?;
        op.multiple("head_dim must be a multiple of 32", s.head_dim, PARTED_HEADS)?;
        let count = op.dim_to("parts", parts, MAX_PARTS)?;
        op.holds(count > 1, "there must be several parts", parts, 2)?;
        let parts = Parts::new(op.check(), s, count, partial, q8)?;
        let op = parts.stated(op.null(), o, partial)?;
        let op = op.part(&parts.values).part(&parts.tops);
        self.run_wide16(op, stream, kv, s, d, count, faults)?;
        parts.join(self.op(SPLIT), stream, o.sinks, o.out, COMBINE_WIDE)
    }

    /// [`paged_attention16`](Self::paged_attention16) in one part.
    pub(super) fn paged_wide16(
        &self,
        stream: &HipStream,
        kv: KvType,
        o: PagedOperands<'_>,
        s: PagedShape,
        options: PagedOptions,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let (op, d) = wide16(self.op(OP), kv, o, s, options)?;
        let op = op.read_or_null("sinks", o.sinks, &[s.heads])?;
        let op = op.write("out", o.out, &[s.tokens, s.heads, s.head_dim], &[])?.null();
        self.run_wide16(op, stream, kv, s, d, 1, faults)
    }

    #[allow(clippy::too_many_arguments)] // what the launch of both is made of
    fn run_wide16(
        &self,
        op: Launch<'_, '_>,
        stream: &HipStream,
        kv: KvType,
        s: PagedShape,
        d: PagedDims,
        parts: u32,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let name = by_kv!(kv, "paged_wide16_", "");
        let blocks = op.dim_to("blocks of rows", blocks(s), MAX_BLOCKS)?;
        let op = op.values([d.tokens, parts, step(s) as u32, d.heads, d.kv_heads, d.head_dim]);
        let op = d.limits(op).faults(faults)?;
        let kernel = self.kernel(FAMILY, name)?;
        // A kernel without LDS of its own takes it from the launch: it has more than a kernel may have by itself.
        let lds = if kernel.meta().lds_size == 0 { LDS } else { 0 };
        let config = geometry::config([d.kv_heads, parts, blocks], kernel.meta().max_workgroup_size);
        op.run(stream, FAMILY, (name, config.with_dynamic_lds(lds)))
    }
}

/// Adds what the kernels read, and checks it.
fn wide16<'k, 'a>(
    op: Launch<'k, 'a>,
    kv: KvType,
    o: PagedOperands<'a>,
    s: PagedShape,
    options: PagedOptions,
) -> KernelResult<(Launch<'k, 'a>, PagedDims)> {
    let (op, d) = paged_on_matrix_unit(op, kv, o, s, options, *HEADS.end())?;
    op.holds(
        s.head_dim >= *HEADS.start(),
        "head_dim must be over 256",
        s.head_dim,
        *HEADS.start(),
    )?;
    Ok((op, d))
}

/// Neighbouring tokens; each in its own sequence where there are several.
const WIDE: Declared = Declared {
    name: "paged_attention16",
    call: |c, dims| whole(c, dims, KvType::F16),
    tested: &[
        &[1, 2, 1, 288, 16, 1, 3],
        &[3, 16, 1, 576, 16, 1, 5],
        &[33, 2, 2, 512, 32, 1, 2],
        &[5, 40, 1, 576, 64, 5, 1],
        &[2, 4, 2, 320, 16, 2, 9],
    ],
    counted: &[&[128, 4, 1, 576, 16, 1, 16]],
    ..Declared::NEW
};
const WIDE_SPLIT: Declared = Declared {
    name: "paged_attention16_split",
    call: |c, dims| split(c, dims, KvType::F16),
    tested: &[
        &[1, 20, 1, 576, 16, 1, 13, 3],
        &[3, 2, 2, 288, 16, 2, 30, 7],
        &[2, 33, 1, 512, 128, 1, 2, 2],
    ],
    counted: &[&[1, 16, 1, 576, 16, 1, 64, 8]],
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    WIDE,
    Declared {
        call: |c, dims| whole(c, dims, KvType::Bf16),
        ..WIDE
    },
    Declared {
        call: |c, dims| whole(c, dims, KvType::Q8_0),
        ..WIDE
    },
    WIDE_SPLIT,
    Declared {
        call: |c, dims| split(c, dims, KvType::Bf16),
        ..WIDE_SPLIT
    },
    Declared {
        call: |c, dims| split(c, dims, KvType::Q8_0),
        ..WIDE_SPLIT
    },
];

fn whole(c: &mut Call<'_>, dims: &[usize], kv: KvType) -> KernelResult<()> {
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = PagedCall::new(c, kv, dims, 1, None, true)?;
    let options = PagedOptions::new(call.shape.head_dim);
    c.kernels
        .paged_attention16(c.stream, kv, call.operands(), call.shape, options, call.faults())?;
    call.expect_rounded(c, kv, options);
    Ok(())
}

fn split(c: &mut Call<'_>, dims: &[usize], kv: KvType) -> KernelResult<()> {
    let &[ref dims @ .., parts] = dims else { return Ok(()) };
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = PagedCall::new(c, kv, dims, 1, Some(parts), true)?;
    let Some(partial) = &call.partial else { return Ok(()) };
    let options = PagedOptions::new(call.shape.head_dim);
    let (operands, faults, to) = (call.operands(), call.faults(), call.to.clone());
    c.kernels
        .paged_attention16_split(c.stream, kv, operands, call.shape, options, parts, partial, to, faults)?;
    call.expect_rounded(c, kv, options);
    Ok(())
}
