//! Attention of a few queries over 16-bit floats, its keys in parts that are computed side by side.

use super::attention16::{Checked, MAX_BLOCKS, checked};
use super::matmul16::Half;
use crate::check::Check;
use crate::{Attention16Operands, Attention16Options, Attention16Shape, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
    match (ty, width) {
        (Half::F16, ..=64) => [
            "attention16_split_f16_d64",
            "attention16_split_hopper_f16_d64",
            "attention16_combine_f16_d64",
        ],
        (Half::F16, _) => [
            "attention16_split_f16_d128",
            "attention16_split_hopper_f16_d128",
            "attention16_combine_f16_d128",
        ],
        (Half::Bf16, ..=64) => [
            "attention16_split_bf16_d64",
            "attention16_split_hopper_bf16_d64",
            "attention16_combine_bf16_d64",
        ],
        (Half::Bf16, _) => [
            "attention16_split_bf16_d128",
            "attention16_split_hopper_bf16_d128",
            "attention16_combine_bf16_d128",
        ],
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
        let (check, s, o) = (Check("attention16_split"), shape, operands);
        let Checked { problem, lengths } = checked(check, operands, shape, options)?;
        let width = s.width_k.max(s.width_v);
        check.holds(
            width <= MAX_WIDTH,
            "heads in parts have at most 128 elements",
            width,
            MAX_WIDTH,
        )?;
        let rows = rows(s).ok_or_else(|| {
            let rows = s.seq_q.saturating_mul(s.heads / s.kv_heads);
            check.mismatch(
                "in parts, queries times heads that share keys are at most 64",
                rows,
                MAX_ROWS,
            )
        })?;
        check.holds(
            options.plain(),
            "in parts, scores are scaled only, by a positive factor",
            0,
            1,
        )?;
        let count = check.dim_to("parts", parts, MAX_PARTS)?;
        let sums_len = check.elements("partial", &[s.batch, s.heads, s.seq_q, parts])?;
        check.len("partial", partial, &[sums_len, padded(s) + 1])?;
        check.aligned("partial", &partial.cast::<u8>()?, 16)?;
        let apart = [o.q.buffer, o.k.buffer, o.v.buffer, o.out.buffer];
        for (name, buffer) in ["q", "k", "v", "out"].into_iter().zip(apart) {
            check.disjoint(("partial", partial), (name, buffer))?;
        }
        if let Some(lse) = o.lse {
            check.disjoint(("partial", partial), ("lse", lse))?;
        }
        let values_len = sums_len * padded(s);
        let (values, sums) = (
            partial.view(0..values_len)?,
            partial.view(values_len..values_len + sums_len)?,
        );
        let [name, hopper, combine] = names(o.ty, width);
        // That kernel has in LDS: 64 queries, two tiles of 128 keys and two of values, barriers, and what aligns them.
        let (family, name, tile, lds) = match self.has(HOPPER, hopper)? {
            true => (HOPPER, hopper, 64, (64 + 4 * 128) * padded(s) as u32 * 2 + 8 * 9 + 1024),
            false => (FAMILY, name, 16, 0),
        };
        let blocks = check.rows("blocks", &[s.kv_heads, rows.div_ceil(tile)])?;
        check.dim_to("seq_q", s.seq_q, MAX_BLOCKS)?;
        let batch = s.batch as u32;
        let args = LaunchArgs::new().buffer(o.q.buffer).buffer(o.k.buffer);
        let args = args.buffer(o.v.buffer).out(&values).out(&sums);
        let args = args.buffer_or_null(lengths).value(count).value(problem);
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([blocks, batch, count], threads).with_dynamic_lds(lds);
        // SAFETY: what `checked` says of attention16's operands; widths are at most the kernel's; values and sums have a row and a number for each
        // query, head and part, at multiples of 16 bytes, and overlap nothing.
        unsafe { self.launch(stream, family, name, config, args) }?;
        let args = LaunchArgs::new().buffer(&values).buffer(&sums).out(o.out.buffer);
        let args = args.out_or_null(o.lse).buffer_or_null(lengths);
        let args = args.value(count).value(problem);
        let config = geometry::config([problem.heads[0], batch, problem.seq[0]], 256);
        // SAFETY: as above; the launch before has written the numbers and rows of all queries that there are.
        unsafe { self.launch(stream, FAMILY, combine, config, args) }
    }
}
