//! Attention of a few queries over 16-bit floats, its keys in parts that are computed side by side.

use super::attention16::{Attention16Call, MAX_BLOCKS, problem, read};
use super::matmul16::Half;
use crate::declared::{Call, Declared};
use crate::layout::check_output_of_16_bytes;
use crate::{Attention16Operands, Attention16Options, Attention16Shape, KernelResult, Kernels, Visible, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

/// The most queries times heads that share keys: with more, tiles of one head's queries are as full.
const MAX_ROWS: usize = 64;
/// The most elements of a head.
const MAX_WIDTH: usize = 128;
/// The fewest keys of a part.
const PART_KEYS: usize = 256;
/// More parts cost more than they bring when they are joined.
const MAX_PARTS: usize = 256;
/// Blocks of the grid for each multiprocessor; on Hopper one has all of its shared memory.
const RESIDENT: usize = 4;

const FAMILY: &str = "attention16_split";
const HOPPER: &str = "attention16_split_hopper";

/// Names of the kernels of a type and size: for a part, for a part on Hopper, for all parts.
fn names(ty: Half, width: usize) -> [&'static str; 3] {
    macro_rules! of {
        ($end:literal) => {
            [
                concat!("attention16_split_", $end),
                concat!("attention16_split_hopper_", $end),
                concat!("attention16_combine_", $end),
            ]
        };
    }
    match (ty, width) {
        (Half::F16, ..=64) => of!("f16_d64"),
        (Half::F16, _) => of!("f16_d128"),
        (Half::Bf16, ..=64) => of!("bf16_d64"),
        (Half::Bf16, _) => of!("bf16_d128"),
    }
}

/// Elements of a head as the kernels pad it.
fn padded(shape: Attention16Shape) -> usize {
    if shape.width_k.max(shape.width_v) <= 64 {
        64
    } else {
        128
    }
}

/// Queries times heads that share keys, if the kernels take as many.
fn rows(shape: Attention16Shape) -> Option<usize> {
    let shared = shape.heads.checked_div(shape.kv_heads)?;
    let rows = shape.seq_q.checked_mul(shared)?;
    (1..=MAX_ROWS).contains(&rows).then_some(rows)
}

impl Kernels {
    /// Parts into which [`attention16_split`](Self::attention16_split) should divide the keys, by the shape and the card. `None` where it has no kernel,
    /// and where [`attention16`](Self::attention16) is as quick: many queries, or one head to each head of keys and enough of them to fill the card.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn attention16_parts(
        &self,
        ty: Half,
        shape: Attention16Shape,
        options: Attention16Options<'_>,
    ) -> KernelResult<Option<usize>> {
        let width = shape.width_k.max(shape.width_v);
        let (Some(rows), true) = (rows(shape), options.plain() && width <= MAX_WIDTH) else {
            return Ok(None);
        };
        let [name, hopper, _] = names(ty, width);
        let multiprocessors = self.backend().device().multiprocessors.max(1) as usize;
        let (resident, tile) = if self.has(HOPPER, hopper)? {
            (multiprocessors, 64)
        } else if self.has(FAMILY, name)? {
            (RESIDENT * multiprocessors, 16)
        } else {
            return Ok(None);
        };
        let blocks = shape
            .batch
            .saturating_mul(shape.kv_heads)
            .saturating_mul(rows.div_ceil(tile));
        let most = shape.seq_k.div_ceil(PART_KEYS).clamp(1, MAX_PARTS);
        let parts = (resident / blocks.max(1)).clamp(1, most);
        Ok((parts > 1 || shape.heads > shape.kv_heads).then_some(parts))
    }

    /// Floats that the parts take until they are joined. `None` if they overflow.
    pub fn attention16_partial_len(shape: Attention16Shape, parts: usize) -> Option<usize> {
        let rows = shape.batch.checked_mul(shape.heads)?.checked_mul(shape.seq_q)?;
        rows.checked_mul(parts)?.checked_mul(padded(shape) + 1)
    }

    /// What [`attention16`](Self::attention16) computes, with the keys in `parts` that are joined by a second launch, for a few queries: all heads that share
    /// a head of keys and values read them once. `partial` has [`attention16_partial_len`](Self::attention16_partial_len) floats.
    ///
    /// # Errors
    ///
    /// As `attention16`; scores that are more than scaled by a factor from the smallest normal float to 1e20, heads of more than 128 elements, over 64
    /// queries times heads that share keys, parts that are none or over 256, a wrong length or overlap of `partial`, its address no multiple of 16.
    pub fn attention16_split(
        &self,
        stream: &HipStream,
        operands: Attention16Operands<'_>,
        shape: Attention16Shape,
        options: Attention16Options<'_>,
        parts: usize,
        partial: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let (op, s, o) = (self.op("attention16_split"), shape, operands);
        let problem = problem(op.check(), operands, shape, options)?;
        let width = s.width_k.max(s.width_v);
        op.holds(
            width <= MAX_WIDTH,
            "heads in parts have at most 128 elements",
            width,
            MAX_WIDTH,
        )?;
        let rows = rows(s).ok_or_else(|| {
            let rows = s.seq_q.saturating_mul(s.heads / s.kv_heads);
            op.mismatch(
                "in parts, queries times heads that share keys are at most 64",
                rows,
                MAX_ROWS,
            )
        })?;
        op.holds(
            options.plain(),
            "in parts, scores are scaled only, by a positive factor",
            0,
            1,
        )?;
        let count = op.dim_to("parts", parts, MAX_PARTS)?;
        let [name, hopper, combine] = names(o.ty, width);
        // That kernel has in LDS: 64 queries, two tiles of 128 keys and two of values, barriers, and what aligns them.
        let (family, name, tile, lds) = match self.has(HOPPER, hopper)? {
            true => (HOPPER, hopper, 64, (64 + 4 * 128) * padded(s) as u32 * 2 + 8 * 9 + 1024),
            false => (FAMILY, name, 16, 0),
        };
        let blocks = op.rows("blocks", &[s.kv_heads, rows.div_ceil(tile)])?;
        op.dim_to("seq_q", s.seq_q, MAX_BLOCKS)?;
        let sums_len = op.elements("partial", &[s.batch, s.heads, s.seq_q, parts])?;
        op.len_at("partial", partial, &[sums_len, padded(s) + 1], 16)?;
        check_output_of_16_bytes(op.check(), "out", o.out, s.out())?;
        let lse_shape = [s.batch, s.heads, s.seq_q];
        let op = (read(op, o, s)?.writes_later("partial", partial)).writes_later("out", o.out.buffer);
        let op = match o.lse {
            Some(lse) => op.write_later("lse", lse, &lse_shape)?,
            None => op,
        };
        let values_len = sums_len * padded(s);
        let (values, sums) = (
            partial.view(0..values_len)?,
            partial.view(values_len..values_len + sums_len)?,
        );
        let batch = s.batch as u32;
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([blocks, batch, count], threads).with_dynamic_lds(lds);
        (op.part(&values).part(&sums).lengths(o.lengths))
            .value(count)
            .value(problem)
            .run(stream, family, (name, config))?;
        // The numbers and rows of all queries that there are.
        let config = geometry::config([problem.heads[0], batch, problem.seq[0]], 256);
        let op = self.op("attention16_split").reads("partial", &values);
        (op.reads("partial", &sums).writes("out", o.out.buffer, &[]))
            .write_or_null("lse", o.lse, &lse_shape, &[])?
            .lengths(o.lengths)
            .value(count)
            .value(problem)
            .run(stream, FAMILY, (combine, config))
    }
}

const SPLIT: Declared = Declared {
    name: "attention16_split",
    call: |c, dims| split(c, dims, Half::F16),
    tested: &[
        &[1, 4, 1, 1, 300, 128, 128, 3],
        &[1, 2, 2, 1, 65, 64, 64, 1],
        &[1, 6, 2, 5, 130, 80, 80, 8],
        &[2, 16, 2, 3, 100, 40, 40, 3],
    ],
    counted: &[&[1, 4, 1, 1, 512, 64, 64, 4], &[1, 4, 1, 1, 512, 128, 128, 4]],
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    SPLIT,
    Declared {
        call: |c, dims| split(c, dims, Half::Bf16),
        ..SPLIT
    },
];

fn split(c: &mut Call<'_>, dims: &[usize], ty: Half) -> KernelResult<()> {
    let &[ref dims @ .., parts] = dims else { return Ok(()) };
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = Attention16Call::new(c, ty, dims, Some(parts))?;
    let Some(partial) = &call.partial else { return Ok(()) };
    let options = Attention16Options::new(call.shape.width_k.max(1), Visible::Causal { window: None });
    c.kernels
        .attention16_split(c.stream, call.operands(), call.shape, options, parts, partial)?;
    call.expect(c, options);
    Ok(())
}
