//! Attention of many tokens over a paged cache of 16 bits or in q8_0, on the matrix unit.

use super::attention16::MAX_BLOCKS;
use super::paged::{MAX_HEAD_DIM, PagedCall, fits_matrix_unit, paged_on_matrix_unit};
use super::paged_wide16;
use crate::declared::{Call, Declared};
use crate::{Faults, KernelResult, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, geometry};
use rocmforge_runtime::HipStream;

/// Scales that keep the order of scores and, times the powers of two that go with queries, are normal: the kernels without a cap look for the largest
/// product and scale it afterwards.
const PLAIN_SCALES: std::ops::RangeInclusive<f32> = 1e-20..=1e20;
const PLAIN: &str = "paged16";
const HOPPER: &str = "paged16_hopper";
/// The family of kernels with a cap and sinks: in types other than f16 there are no others.
fn capped(kv: KvType) -> &'static str {
    match kv {
        KvType::Bf16 => "paged16_bf16",
        KvType::Q8_0 => "paged16_q8_0",
        KvType::F16 | KvType::F32 => "paged16_capped",
    }
}

/// A compiled size: names of its kernels without a cap and sinks, if there is one, and with them, tokens of a block, and the same kernel for Hopper with the
/// tokens of its blocks.
struct Variant {
    plain: Option<&'static str>,
    capped: &'static str,
    tokens: usize,
    hopper: Option<(&'static str, usize, u32)>,
}

fn variant(kv: KvType, head_dim: u32) -> Variant {
    // In LDS: 128 queries, two tiles of 128 keys and two of values, 9 barriers, and what aligns them.
    let hopper = |name, width: u32| Some((name, 128, (128 + 4 * 128) * width * 2 + 8 * 9 + 1024));
    macro_rules! of {
        ($dim:literal, $tokens:literal, $hopper:expr) => {
            Variant {
                plain: (kv == KvType::F16).then_some(concat!("paged16_d", $dim)),
                capped: match kv {
                    KvType::Bf16 => concat!("paged16_bf16_d", $dim),
                    KvType::Q8_0 => concat!("paged16_q8_0_d", $dim),
                    KvType::F16 | KvType::F32 => concat!("paged16_capped_d", $dim),
                },
                tokens: $tokens,
                hopper: if kv == KvType::F16 { $hopper } else { None },
            }
        };
    }
    match head_dim {
        0..=64 => of!(64, 64, hopper("paged16_hopper_d64", 64)),
        65..=128 => of!(128, 64, hopper("paged16_hopper_d128", 128)),
        _ => of!(256, 32, None),
    }
}

impl Kernels {
    /// Whether [`paged_attention16`](Self::paged_attention16) has a kernel here for a cache of this type and shape.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept the module.
    pub fn has_paged_attention16(&self, kv: KvType, shape: PagedShape) -> KernelResult<bool> {
        if paged_wide16::fits(kv, shape) {
            return self.has_wide16(kv);
        }
        let fits = fits_matrix_unit(kv, shape) && shape.head_dim <= MAX_HEAD_DIM;
        match u32::try_from(shape.head_dim) {
            Ok(head_dim) if fits => self.has(capped(kv), variant(kv, head_dim).capped),
            _ => Ok(false),
        }
    }

    /// What [`paged_attention`](Self::paged_attention) computes over a cache of 16 bits or in q8_0, on the matrix unit, for chunks of prompts: queries and weights are
    /// rounded to f16, over a cache in bf16 to bf16; and elements of q8_0 to f16: one over 65,504 becomes infinite. Scores and sums are f32. A head's query is multiplied by a power of two before and its scores by the inverse after, so that
    /// it may be as large as an f32.
    ///
    /// Quick where neighbouring tokens are neighbours in their sequence; right in any order. What a token gets does not depend on the sequences of
    /// others; but a value that is infinite or NaN also spoils the up to 127 tokens of its own sequence that come before it in the call.
    ///
    /// # Errors
    ///
    /// As `paged_attention`; a cache in f32, a `head_dim` over 576 or no multiple of 8, a `block_size` that is no power of two or below 16, caches of 16 bits at no multiple of 16 bytes;
    /// [`KernelError::NotForDevice`](crate::KernelError::NotForDevice) on NVIDIA cards before 8.0, and for a `head_dim` over 128 on gfx1030.
    pub fn paged_attention16(
        &self,
        stream: &HipStream,
        kv: KvType,
        operands: PagedOperands<'_>,
        shape: PagedShape,
        options: PagedOptions,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let (o, s) = (operands, shape);
        if s.head_dim > MAX_HEAD_DIM {
            return self.paged_wide16(stream, kv, o, s, options, faults);
        }
        let op = self.op("paged_attention16");
        let (op, d) = paged_on_matrix_unit(op, kv, o, s, options, MAX_HEAD_DIM)?;
        let variant = variant(kv, d.head_dim);
        let plain = o.sinks.is_none() && options.softcap.is_none() && PLAIN_SCALES.contains(&options.scale);
        // That kernel reads and writes 16 bytes at a time.
        let aligned = [o.q, o.out].iter().all(|x| x.as_device_ptr().addr().is_multiple_of(16));
        let hopper = match variant.hopper {
            Some(hopper) if plain && aligned && self.has(HOPPER, hopper.0)? => Some(hopper),
            _ => None,
        };
        let (family, name, tokens, lds) = match hopper {
            Some((name, tokens, lds)) => (HOPPER, name, tokens, lds),
            None => match variant.plain.filter(|_| plain) {
                Some(name) => (PLAIN, name, variant.tokens, 0),
                None => (capped(kv), variant.capped, variant.tokens, 0),
            },
        };
        let blocks = op.dim_to("blocks of tokens", s.tokens.div_ceil(tokens), MAX_BLOCKS)?;
        let op = match family {
            PLAIN | HOPPER => op,
            _ => op.read_or_null("sinks", o.sinks, &[s.heads])?,
        };
        let op = op.write("out", o.out, &[s.tokens, s.heads, s.head_dim], &[])?;
        let op = d.limits(op.values([d.tokens, d.heads, d.kv_heads, d.head_dim]));
        let threads = self.kernel(family, name)?.meta().max_workgroup_size;
        let config = geometry::config([d.heads, 1, blocks], threads).with_dynamic_lds(lds);
        op.faults(faults)?.run(stream, family, (name, config))
    }
}

/// Neighbouring tokens; each in its own sequence where there are several.
const PAGED16: Declared = Declared {
    name: "paged_attention16",
    call: |c, dims| attention(c, dims, KvType::F16, None),
    tested: &[
        &[1, 2, 2, 8, 16, 1, 1],
        &[33, 2, 1, 64, 16, 1, 5],
        &[65, 1, 1, 80, 64, 1, 2],
        &[70, 3, 1, 128, 32, 3, 4],
        &[17, 1, 1, 136, 128, 1, 1],
        &[40, 2, 1, 256, 256, 1, 1],
    ],
    counted: &[
        &[128, 4, 2, 64, 16, 1, 16],
        &[128, 4, 2, 128, 16, 1, 16],
        &[128, 4, 2, 256, 16, 1, 16],
    ],
    ..Declared::NEW
};

pub(super) const DECLARED: &[Declared] = &[
    PAGED16,
    Declared {
        call: |c, dims| attention(c, dims, KvType::F16, Some(30.0)),
        ..PAGED16
    },
    Declared {
        call: |c, dims| attention(c, dims, KvType::Bf16, None),
        ..PAGED16
    },
    Declared {
        call: |c, dims| attention(c, dims, KvType::Q8_0, Some(30.0)),
        // Heads of whole blocks.
        tested: &[
            &[1, 2, 2, 32, 16, 1, 1],
            &[33, 2, 1, 64, 16, 1, 5],
            &[65, 1, 1, 96, 64, 1, 2],
            &[70, 3, 1, 128, 32, 3, 4],
            &[17, 1, 1, 160, 128, 1, 1],
            &[40, 2, 1, 256, 256, 1, 1],
        ],
        ..PAGED16
    },
];

fn attention(c: &mut Call<'_>, dims: &[usize], kv: KvType, softcap: Option<f32>) -> KernelResult<()> {
    let Ok(dims) = dims.try_into() else { return Ok(()) };
    let call = PagedCall::new(c, kv, dims, 1, None, softcap.is_some())?;
    let options = PagedOptions {
        softcap,
        ..PagedOptions::new(call.shape.head_dim)
    };
    c.kernels
        .paged_attention16(c.stream, kv, call.operands(), call.shape, options, call.faults())?;
    call.expect_rounded(c, kv, options);
    Ok(())
}
