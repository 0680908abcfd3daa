//! Attention of many tokens over a paged cache in f16, on the matrix unit.

use super::attention16::MAX_BLOCKS;
use super::paged::paged;
use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, geometry};
use rocmforge_runtime::HipStream;

/// The fewest tokens of a block of the cache: the kernels look up a block for 16 keys at a time.
const LEAST_BLOCK: usize = 16;
/// Scales that keep the order of scores and, times the powers of two that go with queries, are normal: the kernels without a cap look for the largest
/// product and scale it afterwards.
const PLAIN_SCALES: std::ops::RangeInclusive<f32> = 1e-20..=1e20;
const FAMILY: &str = "paged16";
const CAPPED: &str = "paged16_capped";
const HOPPER: &str = "paged16_hopper";

/// A compiled size: names of its kernels without and with a cap, tokens of a block, and the same kernel for Hopper with the tokens of its blocks.
struct Variant {
    plain: &'static str,
    capped: &'static str,
    tokens: usize,
    hopper: Option<(&'static str, usize, u32)>,
}

fn variant(head_dim: u32) -> Variant {
    // In LDS: 128 queries, two tiles of 128 keys and two of values, 9 barriers, and what aligns them.
    let hopper = |name, width: u32| Some((name, 128, (128 + 4 * 128) * width * 2 + 8 * 9 + 1024));
    match head_dim {
        0..=64 => Variant {
            plain: "paged16_d64",
            capped: "paged16_capped_d64",
            tokens: 64,
            hopper: hopper("paged16_hopper_d64", 64),
        },
        65..=128 => Variant {
            plain: "paged16_d128",
            capped: "paged16_capped_d128",
            tokens: 64,
            hopper: hopper("paged16_hopper_d128", 128),
        },
        _ => Variant {
            plain: "paged16_d256",
            capped: "paged16_capped_d256",
            tokens: 32,
            hopper: None,
        },
    }
}

impl Kernels {
    /// Whether [`paged_attention16`](Self::paged_attention16) has a kernel here for a cache of this type and shape.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn has_paged_attention16(&self, kv: KvType, shape: PagedShape) -> KernelResult<bool> {
        let fits = kv == KvType::F16
            && shape.head_dim.is_multiple_of(8)
            && shape.block_size.is_power_of_two()
            && shape.block_size >= LEAST_BLOCK;
        match u32::try_from(shape.head_dim) {
            Ok(head_dim) if fits => self.has(FAMILY, variant(head_dim).plain),
            _ => Ok(false),
        }
    }

    /// What [`paged_attention`](Self::paged_attention) computes over a cache in f16, on the matrix unit, for chunks of prompts: queries and weights are
    /// rounded to f16, scores and sums are f32. A head's query is multiplied by a power of two before and its scores by the inverse after, so that
    /// it may be as large as an f32.
    ///
    /// Quick where neighbouring tokens are neighbours in their sequence; right in any order. What a token gets does not depend on the sequences of
    /// others; but a value that is infinite or NaN also spoils the up to 127 tokens of its own sequence that come before it in the call.
    ///
    /// # Errors
    ///
    /// As `paged_attention`; a `head_dim` that is no multiple of 8, a `block_size` that is no power of two or below 16, caches at no multiple of 16 bytes;
    /// [`KernelError::NotForDevice`](crate::KernelError::NotForDevice) on NVIDIA cards before 8.0, and for a `head_dim` over 128 on gfx1030.
    pub fn paged_attention16(
        &self,
        stream: &HipStream,
        operands: PagedOperands<'_>,
        shape: PagedShape,
        options: PagedOptions,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("paged_attention16");
        let d = paged(check, KvType::F16, operands, shape, options, faults)?;
        let o = operands;
        check.multiple("head_dim must be a multiple of 8", shape.head_dim, 8)?;
        check.holds(
            shape.block_size.is_power_of_two() && shape.block_size >= LEAST_BLOCK,
            "block_size must be a power of two from 16 on",
            shape.block_size,
            LEAST_BLOCK,
        )?;
        check.aligned("k_cache", o.k_cache, 16)?;
        check.aligned("v_cache", o.v_cache, 16)?;
        let variant = variant(d.head_dim);
        let plain = options.softcap.is_none() && PLAIN_SCALES.contains(&options.scale);
        // That kernel reads and writes 16 bytes at a time.
        let aligned = [o.q, o.out].iter().all(|x| x.as_device_ptr().addr().is_multiple_of(16));
        let hopper = match variant.hopper {
            Some(hopper) if plain && aligned && self.has(HOPPER, hopper.0)? => Some(hopper),
            _ => None,
        };
        let (family, name, tokens, lds) = match hopper {
            Some((name, tokens, lds)) => (HOPPER, name, tokens, lds),
            None if plain => (FAMILY, variant.plain, variant.tokens, 0),
            None => (CAPPED, variant.capped, variant.tokens, 0),
        };
        let blocks = check.dim_to("blocks of tokens", shape.tokens.div_ceil(tokens), MAX_BLOCKS)?;
        let args = o.read().out(o.out);
        let args = args.values([d.tokens, d.heads, d.kv_heads, d.head_dim]);
        let args = faults.args(check, d.cache(args, options))?;
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([d.heads, 1, blocks], threads).with_dynamic_lds(lds);
        // SAFETY: lengths are those of the shapes, heads are whole multiples of 16 bytes up to the kernel's, caches are aligned to them, blocks of the
        // cache hold a power of two of keys, out is apart from all operands, checked above; the kernel compares each sequence, position and block
        // number with its limit.
        unsafe { self.launch(stream, family, name, config, args) }
    }
}
