//! Attention in one kernel, without the scores in memory.

use crate::declared::{Call, Declared};
use crate::layout::causal_offset;
use crate::{AttentionShape, KernelResult, Kernels, Operand, Strides, geometry, reference};
use rocmforge_runtime::HipStream;

/// The largest head_dim of flash attention. Its tiles of queries and keys lie in LDS (64 KiB to a block) and its accumulators in
/// registers; both grow with head_dim, and 256 is the largest size compiled.
pub const FLASH_MAX_HEAD_DIM: usize = 256;
const THREADS: u32 = 128;

/// What to do besides `softmax(scale q k^T) v`.
#[derive(Debug, Clone, Copy)]
pub struct FlashOptions<'a> {
    /// Factor of the scores, usually 1 / sqrt(head_dim).
    pub scale: f32,
    /// Query i sees key j only when j <= i + seq_k - seq_q: the last query lines up with the last key.
    pub causal: bool,
    /// Added to the scaled scores; broadcasts through its strides (`Strides::per_batch` is key padding).
    pub mask: Option<Operand<'a>>,
}

/// A compiled size: names of its three kernels and queries per block.
struct Variant {
    head_dim: u32,
    plain: &'static str,
    causal: &'static str,
    masked: &'static str,
    queries: u32,
}

macro_rules! variant {
    ($head_dim:literal, $queries:literal) => {
        Variant {
            head_dim: $head_dim,
            plain: concat!("flash_attention_d", $head_dim),
            causal: concat!("flash_attention_causal_d", $head_dim),
            masked: concat!("flash_attention_masked_d", $head_dim),
            queries: $queries,
        }
    };
}

/// The family of the kernels with or without a mask.
const fn family_of(masked: bool) -> &'static str {
    if masked {
        "flash_attention_masked"
    } else {
        "flash_attention"
    }
}

const VARIANTS: [Variant; 4] = [variant!(32, 32), variant!(64, 32), variant!(128, 32), variant!(256, 16)];

impl Kernels {
    /// `out = softmax(scale q k^T + mask) v` for MHA, MQA and GQA, `seq_q` and `seq_k` independent, head_dim up to 256. A query that
    /// sees no key gives zeros.
    ///
    /// # Errors
    ///
    /// Strides that leave a buffer or overlap in the output, overlap, a dimension of 0, a head_dim over 256, heads that `kv_heads`
    /// does not divide, more heads or batches than a grid takes.
    pub fn flash_attention(
        &self,
        stream: &HipStream,
        q: Operand<'_>,
        k: Operand<'_>,
        v: Operand<'_>,
        out: Operand<'_>,
        shape: AttentionShape,
        options: FlashOptions<'_>,
    ) -> KernelResult<()> {
        let op = self.op("flash_attention");
        op.dim_to("head_dim", shape.head_dim, FLASH_MAX_HEAD_DIM)?;
        let dims = shape.dims(op.check())?;
        op.value_of("scale", options.scale, options.scale.is_finite(), "finite")?;
        let offset = match options.causal {
            true => causal_offset(op.check(), dims.seq_q, dims.seq_k)?,
            false => 0,
        };
        let variant = VARIANTS
            .iter()
            .find(|v| v.head_dim >= dims.head_dim)
            .unwrap_or(&VARIANTS[VARIANTS.len() - 1]);
        let op = (op
            .read_strided("q", q, shape.queries())?
            .read_strided("k", k, shape.keys())?)
        .read_strided("v", v, shape.keys())?;
        let op = match options.mask {
            Some(mask) => op.read_strided("mask", mask, shape.scores())?,
            None => op,
        };
        let op = (op.write_strided("out", out, shape.queries())?)
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .values([q.strides, k.strides, v.strides, out.strides]);
        let (name, op) = match (options.mask, options.causal) {
            (Some(mask), causal) => {
                let op = op.value(mask.strides).value(options.scale);
                (variant.masked, op.value(u32::from(causal)).value(offset))
            }
            (None, true) => (variant.causal, op.value(options.scale).value(offset)),
            (None, false) => (variant.plain, op.value(options.scale)),
        };
        let config = geometry::config([dims.seq_q.div_ceil(variant.queries), dims.heads, dims.batch], THREADS);
        op.run(stream, family_of(options.mask.is_some()), (name, config))
    }
}

const FLASH: Declared = Declared {
    name: "flash_attention",
    call: |c, dims| flash(c, dims, false, false),
    tested: &[
        &[1, 1, 1, 1, 1, 40],
        &[1, 1, 1, 31, 31, 40],
        &[1, 1, 1, 32, 32, 40],
        &[1, 1, 1, 33, 33, 40],
        &[1, 1, 1, 63, 63, 40],
        &[1, 1, 1, 64, 64, 40],
        &[1, 1, 1, 65, 65, 40],
        &[1, 1, 1, 127, 127, 40],
        &[1, 1, 1, 128, 128, 40],
        &[1, 1, 1, 129, 129, 40],
        &[1, 2, 1, 1, 129, 1],
        &[1, 2, 2, 35, 35, 3],
        &[1, 2, 2, 35, 35, 31],
        &[2, 4, 4, 33, 33, 32],
        &[1, 2, 2, 35, 35, 33],
        &[1, 2, 2, 35, 35, 65],
        &[1, 2, 2, 35, 35, 80],
        &[1, 2, 2, 35, 35, 96],
        &[1, 2, 2, 35, 35, 128],
        &[1, 2, 2, 35, 35, 130],
        &[1, 2, 2, 35, 35, 255],
        &[1, 2, 2, 35, 35, 256],
        &[2, 2, 2, 1, 33, 64],
        &[2, 2, 2, 5, 64, 64],
        &[2, 2, 2, 33, 32, 64],
        // With more queries than keys the first ones see nothing and give zeros.
        &[2, 2, 2, 64, 7, 64],
        &[2, 2, 2, 70, 100, 64],
        &[2, 6, 2, 33, 33, 32],
        &[2, 4, 1, 33, 40, 32],
        &[1, 2, 64, 64, 32],
    ],
    counted: &[
        &[1, 2, 2, 128, 128, 32],
        &[1, 2, 2, 128, 128, 64],
        &[1, 2, 2, 128, 128, 96],
        &[1, 2, 2, 128, 128, 128],
        &[1, 2, 2, 128, 128, 256],
    ],
    timed: &[
        &[1, 32, 2048, 2048, 128],
        &[4, 16, 1024, 1024, 64],
        &[1, 32, 1, 8192, 128],
    ],
    ..Declared::NEW
};
const FLASH_CAUSAL: Declared = Declared {
    name: "flash_attention_causal",
    call: |c, dims| flash(c, dims, true, false),
    timed: &[&[1, 32, 2048, 2048, 128]],
    ..FLASH
};
/// One mask for all heads.
const FLASH_MASKED: Declared = Declared {
    name: "flash_attention_masked",
    call: |c, dims| flash(c, dims, false, true),
    tested: &[
        &[1, 1, 1, 1, 1, 32],
        &[3, 2, 2, 37, 37, 40],
        &[1, 2, 1, 33, 65, 80],
        &[1, 2, 2, 9, 33, 200],
        &[1, 2, 64, 64, 32],
    ],
    ..FLASH_CAUSAL
};

pub(super) const DECLARED: &[Declared] = &[FLASH, FLASH_CAUSAL, FLASH_MASKED];

fn flash(c: &mut Call<'_>, dims: &[usize], causal: bool, masked: bool) -> KernelResult<()> {
    let Some(s) = AttentionShape::of(dims) else {
        return Ok(());
    };
    c.computes(4 * s.pairs(causal) * s.head_dim);
    let q = c.input("q", s.q_elements()?, -2.0..2.0)?;
    let (k, v) = (
        c.input("k", s.kv_elements()?, -2.0..2.0)?,
        c.input("v", s.kv_elements()?, -2.0..2.0)?,
    );
    let mask = match masked {
        true => Some(c.input("mask", s.seq_q * s.seq_k, -2.0..2.0)?),
        false => None,
    };
    let y = c.output("out", s.q_elements()?)?;
    let options = FlashOptions {
        scale: 1.0 / (s.head_dim.max(1) as f32).sqrt(),
        causal,
        mask: mask.as_ref().map(|mask| Operand::new(mask, Strides::per_row(s.seq_k))),
    };
    let [q, out] = [&q, &y].map(|buffer| Operand::new(buffer, s.q_strides()));
    let [k, v] = [&k, &v].map(|buffer| Operand::new(buffer, s.kv_strides()));
    c.kernels.flash_attention(c.stream, q, k, v, out, s, options)?;
    c.expect("out", 1e-5, |c| {
        let mask = |_: usize, _: usize, i: usize, j: usize| {
            if causal && !reference::causal_visible(i, j, s.seq_q, s.seq_k) {
                return f64::NEG_INFINITY;
            }
            c.f32("mask").get(i * s.seq_k + j).map_or(0.0, |&add| f64::from(add))
        };
        reference::attention(c.f32("q"), c.f32("k"), c.f32("v"), s, options.scale, mask)
    });
    Ok(())
}
