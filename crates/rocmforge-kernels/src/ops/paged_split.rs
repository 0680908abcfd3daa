//! Attention of a few tokens over a paged cache, its keys in parts that are computed side by side.

use super::matvec_q8::Q8Activations;
use super::paged::paged;
use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// The most tokens: with more there are enough blocks for a card without parts.
const MAX_TOKENS: usize = 8;
/// The fewest keys of a part: `RF_PART_KEYS` of the kernel.
const PART_KEYS: usize = 64;
/// More parts cost more than they bring when they are joined.
const MAX_PARTS: usize = 256;
/// Query heads that share a head of keys and values in one block, at most.
const MAX_PACK: usize = 4;
/// Types of caches that there are kernels for.
const TYPES: &[KvType] = &[KvType::F16, KvType::Bf16, KvType::Q8_0];
/// Blocks of the grid for each multiprocessor.
const RESIDENT: usize = 2;

impl Kernels {
    /// Parts into which [`paged_attention_split`](Self::paged_attention_split) divides the keys. `None` if it has no kernel for the type or the
    /// head, or if one part a head is enough: then [`paged_attention`](Self::paged_attention) is as quick.
    ///
    /// The number follows from the shape and the card alone, so that a captured launch is right for every length.
    pub fn paged_parts(&self, kv: KvType, shape: PagedShape) -> Option<usize> {
        let has_kernel = TYPES.contains(&kv) && matches!(shape.head_dim, 64 | 128 | 256);
        if !has_kernel || !(1..=MAX_TOKENS).contains(&shape.tokens) || shape.kv_heads == 0 {
            return None;
        }
        let ratio = shape.heads / shape.kv_heads;
        let blocks = shape.tokens * shape.kv_heads * ratio.div_ceil(MAX_PACK).max(1);
        let resident = RESIDENT * self.backend().device().multiprocessors.max(1) as usize;
        let keys = shape.max_blocks.saturating_mul(shape.block_size);
        let parts = resident.div_ceil(blocks).min(keys.div_ceil(PART_KEYS)).min(MAX_PARTS);
        (parts > 1).then_some(parts)
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
    /// As `paged_attention`; a type or head without a kernel, parts that are none or over 256, wrong lengths or overlap of what is added.
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
        let check = Check("paged_attention_split");
        check.kv_type(kv, TYPES)?;
        let d = paged(check, kv, operands, shape, options, faults)?;
        let o = operands;
        let count = check.dim_to("parts", parts, MAX_PARTS)?;
        check.dim_to("tokens", shape.tokens, MAX_TOKENS)?;
        // Lanes read 16 bytes at once, but of a q8_0 block what they need.
        let alignment = if kv == KvType::Q8_0 { kv.alignment() } else { 16 };
        for (name, cache) in [("k_cache", o.k_cache), ("v_cache", o.v_cache)] {
            check.aligned(name, cache, alignment)?;
            check.disjoint(("partial", partial), (name, cache))?;
        }
        let rows = check.elements("partial", &[shape.tokens, shape.heads, parts])?;
        check.len("partial", partial, &[rows, shape.head_dim + 2])?;
        check.disjoint(("partial", partial), ("q", o.q))?;
        check.disjoint(("partial", partial), ("out", o.out))?;
        for index in [o.block_table, o.seq_of, o.positions] {
            check.disjoint(("partial", partial), ("indices", index))?;
        }
        check.disjoint(("partial", partial), ("the fault word", faults.word))?;
        let width = shape.heads * shape.head_dim;
        if let Some(to) = &q8 {
            Q8Activations::room(check, to, [shape.tokens, width])?;
            check.disjoint(("to", to), ("out", o.out))?;
            check.disjoint(("to", to), ("partial", partial))?;
        }
        let ratio = shape.heads / shape.kv_heads;
        let (Some(family), Some((splits, combine))) = (family_of(kv, shape.head_dim), names(kv, shape.head_dim)) else {
            return Err(check.mismatch("head_dim must be 64, 128 or 256", shape.head_dim, 128));
        };
        let (name, pack) = match ratio {
            1 => (splits[0], 1),
            2 => (splits[1], 2),
            _ => (splits[2], MAX_PACK),
        };
        let packs = check.dim_to("heads", shape.kv_heads * ratio.div_ceil(pack), 65_535)?;
        let part = |from: usize, len: usize| partial.view(from..from + len);
        let values = part(0, rows * shape.head_dim)?;
        let (tops, sums) = (
            part(rows * shape.head_dim, rows)?,
            part(rows * (shape.head_dim + 1), rows)?,
        );
        let args = o.read().out(&values).out(&tops).out(&sums);
        let args = args.values([count, d.heads, d.kv_heads]);
        let args = faults.args(check, d.cache(args, options))?;
        let config = geometry::config([count, packs, d.tokens], 256);
        // SAFETY: lengths are those of the shapes, caches are aligned for what lanes read and heads are whole multiples of 8 elements, what is written is
        // apart from all operands, checked above; the kernel compares each sequence, position and block number with its limit.
        unsafe { self.launch(stream, family, name, config, args) }?;
        let args = (LaunchArgs::new().buffer(&values).buffer(&tops).buffer(&sums))
            .out(o.out)
            .out_or_null(q8.as_ref());
        let args = args.values([d.tokens, d.heads, count]);
        let config = geometry::config([d.heads, d.tokens, 1], 256);
        // SAFETY: as above; the launch before has written a maximum and a sum for each part, and values where the sum is not 0.
        unsafe { self.launch(stream, COMBINE, combine, config, args) }?;
        Ok(q8.map(|to| Q8Activations::new(to, [shape.tokens, width])))
    }
}

/// The family of the kernels that join parts.
const COMBINE: &str = "paged_combine";

/// The family of the kernels of a part.
const fn family_of(kv: KvType, head_dim: usize) -> Option<&'static str> {
    Some(match (kv, head_dim) {
        (KvType::F16, 64) => "paged_split_f16_d64",
        (KvType::F16, 128) => "paged_split_f16_d128",
        (KvType::F16, 256) => "paged_split_f16_d256",
        (KvType::Bf16, 64) => "paged_split_bf16_d64",
        (KvType::Bf16, 128) => "paged_split_bf16_d128",
        (KvType::Bf16, 256) => "paged_split_bf16_d256",
        (KvType::Q8_0, 64) => "paged_split_q8_0_d64",
        (KvType::Q8_0, 128) => "paged_split_q8_0_d128",
        (KvType::Q8_0, 256) => "paged_split_q8_0_d256",
        _ => return None,
    })
}

/// The kernels for a type and a head: those of a part by the heads that share keys (one, two, up to four), and the one that joins parts.
fn names(kv: KvType, head_dim: usize) -> Option<([&'static str; 3], &'static str)> {
    macro_rules! splits {
        ($start:literal) => {
            [
                concat!($start, "_r1"),
                concat!($start, "_r2"),
                concat!($start, "_r4"),
            ]
        };
    }
    let splits = match (kv, head_dim) {
        (KvType::F16, 64) => splits!("paged_split_f16_d64"),
        (KvType::F16, 128) => splits!("paged_split_f16_d128"),
        (KvType::F16, 256) => splits!("paged_split_f16_d256"),
        (KvType::Bf16, 64) => splits!("paged_split_bf16_d64"),
        (KvType::Bf16, 128) => splits!("paged_split_bf16_d128"),
        (KvType::Bf16, 256) => splits!("paged_split_bf16_d256"),
        (KvType::Q8_0, 64) => splits!("paged_split_q8_0_d64"),
        (KvType::Q8_0, 128) => splits!("paged_split_q8_0_d128"),
        (KvType::Q8_0, 256) => splits!("paged_split_q8_0_d256"),
        _ => return None,
    };
    let combine = match head_dim {
        64 => "paged_combine_d64",
        128 => "paged_combine_d128",
        _ => "paged_combine_d256",
    };
    Some((splits, combine))
}
