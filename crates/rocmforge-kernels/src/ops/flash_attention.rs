//! Attention in one kernel, without the scores in memory.

use crate::check::Check;
use crate::layout::{causal_offset, check_operand, check_output};
use crate::{AttentionShape, KernelResult, Kernels, Operand, geometry};
use rocmforge_runtime::{HipStream, LaunchArgs};

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
        let check = Check("flash_attention");
        check.dim_to("head_dim", shape.head_dim, FLASH_MAX_HEAD_DIM)?;
        let dims = shape.dims(check)?;
        let kv = [shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim];
        check_operand(check, "q", q, [shape.batch, shape.heads, shape.seq_q, shape.head_dim])?;
        check_operand(check, "k", k, kv)?;
        check_operand(check, "v", v, kv)?;
        check_output(
            check,
            "out",
            out,
            [shape.batch, shape.heads, shape.seq_q, shape.head_dim],
        )?;
        for (name, operand) in [("q", q), ("k", k), ("v", v)] {
            check.disjoint(("out", out.buffer), (name, operand.buffer))?;
        }
        check.value("scale", options.scale, |_| true, "finite")?;
        if let Some(mask) = options.mask {
            check_operand(
                check,
                "mask",
                mask,
                [shape.batch, shape.heads, shape.seq_q, shape.seq_k],
            )?;
            check.disjoint(("out", out.buffer), ("mask", mask.buffer))?;
        }
        let offset = if options.causal {
            causal_offset(check, dims.seq_q, dims.seq_k)?
        } else {
            0
        };

        let variant = VARIANTS
            .iter()
            .find(|v| v.head_dim >= dims.head_dim)
            .unwrap_or(&VARIANTS[VARIANTS.len() - 1]);
        let mut args = LaunchArgs::new().buffer(q.buffer).buffer(k.buffer).buffer(v.buffer);
        if let Some(mask) = options.mask {
            args = args.buffer(mask.buffer);
        }
        args = args
            .out(out.buffer)
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .value(q.strides)
            .value(k.strides)
            .value(v.strides)
            .value(out.strides);
        let (name, args) = match (options.mask, options.causal) {
            (Some(mask), causal) => {
                let args = args.value(mask.strides).value(options.scale);
                let args = args.value(u32::from(causal)).value(offset);
                (variant.masked, args)
            }
            (None, true) => (variant.causal, args.value(options.scale).value(offset)),
            (None, false) => (variant.plain, args.value(options.scale)),
        };
        let config = geometry::config([dims.seq_q.div_ceil(variant.queries), dims.heads, dims.batch], THREADS);
        // SAFETY: strides stay inside of every operand, the output is written once and overlaps nothing, head_dim fits the variant:
        // checked above. The grid has exactly `heads` and `batch` blocks along y and z.
        unsafe { self.launch(stream, family_of(options.mask.is_some()), name, config, args) }
    }
}
