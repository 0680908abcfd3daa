//! Attention in f16 and bf16.

use crate::attention::{check_mask, length};
use crate::{Attention, AttentionError, AttentionResult, MaskShape, Plan};
use rocmforge_kernels::{
    Attention16Operands, Attention16Options, Attention16Shape, FloatType, Half, Kernels, Operand, SequenceLengths,
    Visible,
};
use rocmforge_runtime::{HipBuffer, HipStream};

/// The operands of [`Attention::forward16`]: bits of the plan's type, in its layout.
#[derive(Debug, Clone, Copy)]
pub struct HalfOperands<'a> {
    /// Queries.
    pub q: &'a HipBuffer<u16>,
    /// Keys.
    pub k: &'a HipBuffer<u16>,
    /// Values.
    pub v: &'a HipBuffer<u16>,
    /// Exactly if the configuration names one.
    pub mask: Option<&'a HipBuffer<f32>>,
    /// ALiBi, `[heads]`: the score of query i and key j is lowered by slope (i + seq_k - seq_q - j).
    pub slopes: Option<&'a HipBuffer<f32>>,
    /// `[heads]`: one more score for each query, of a key whose value is 0.
    pub sinks: Option<&'a HipBuffer<f32>>,
    /// For sequences of different lengths, up to the plan's. The rows behind them are neither read nor written.
    pub lengths: Option<&'a SequenceLengths>,
    /// `[batch, heads, seq_q]`: receives the logarithm of the sum of the scores' exponentials.
    pub lse: Option<&'a HipBuffer<f32>>,
    /// The output.
    pub out: &'a HipBuffer<u16>,
}

impl<'a> HalfOperands<'a> {
    /// Only what attention cannot be without.
    pub fn new(q: &'a HipBuffer<u16>, k: &'a HipBuffer<u16>, v: &'a HipBuffer<u16>, out: &'a HipBuffer<u16>) -> Self {
        Self {
            q,
            k,
            v,
            mask: None,
            slopes: None,
            sinks: None,
            lengths: None,
            lse: None,
            out,
        }
    }
}

impl Attention {
    /// `out = softmax(scale q k^T + mask) v` in the plan's 16-bit type, enqueued on `stream`.
    ///
    /// As [`forward`](Attention::forward): buffers have exactly the elements that the plan tells, `out` and `lse` overlap no other operand, a
    /// query that sees no key gives zeros.
    ///
    /// # Errors
    ///
    /// [`AttentionError::Elements`] if the plan is for f32, [`AttentionError::Length`], [`AttentionError::MaskMissing`],
    /// [`AttentionError::MaskUnexpected`], or what the launch says: addresses that are no multiples of 16, overlap, lengths that exceed the plan's, a
    /// device without such kernels.
    pub fn forward16(&self, stream: &HipStream, operands: HalfOperands<'_>) -> AttentionResult<()> {
        let (plan, o) = (&self.plan, operands);
        let config = plan.config();
        let ty = match config.elements() {
            FloatType::F16 => Half::F16,
            FloatType::Bf16 => Half::Bf16,
            plan @ FloatType::F32 => return Err(AttentionError::Elements { plan }),
        };
        length("q", o.q, plan.q_elements(), plan.q_shape())?;
        length("k", o.k, plan.kv_elements(), plan.kv_shape())?;
        length("v", o.v, plan.kv_elements(), plan.kv_shape())?;
        length("out", o.out, plan.q_elements(), plan.q_shape())?;
        check_mask(plan, o.mask)?;
        let operands = Attention16Operands {
            ty,
            q: Operand::new(o.q, plan.q_strides()),
            k: Operand::new(o.k, plan.kv_strides()),
            v: Operand::new(o.v, plan.kv_strides()),
            out: Operand::new(o.out, plan.q_strides()),
            lse: o.lse,
            lengths: o.lengths,
        };
        let shape = shape(plan);
        let options = Attention16Options {
            mask: o.mask.map(|mask| Operand::new(mask, plan.mask_strides())),
            slopes: o.slopes,
            sinks: o.sinks,
            ..options(plan)
        };
        // Kernels in parts have neither slopes nor sinks.
        match &self.parts {
            Some((parts, partial)) if o.slopes.is_none() && o.sinks.is_none() => {
                let partial = partial.lock();
                (self.kernels).attention16_split(stream, operands, shape, options, *parts, &partial)?;
            }
            _ => self.kernels.attention16(stream, operands, shape, options)?,
        }
        Ok(())
    }
}

fn shape(plan: &Plan) -> Attention16Shape {
    let s = plan.shape();
    Attention16Shape {
        batch: s.batch,
        heads: s.heads,
        kv_heads: s.kv_heads,
        seq_q: s.seq_q,
        seq_k: s.seq_k,
        width_k: s.head_dim,
        width_v: s.head_dim,
    }
}

/// What the configuration says of the scores, but for the mask's elements.
fn options(plan: &Plan) -> Attention16Options<'static> {
    let config = plan.config();
    Attention16Options {
        scale: config.scale(),
        softcap: config.softcap(),
        mask: None,
        slopes: None,
        sinks: None,
        visible: match config.causal() {
            true => Visible::Causal {
                window: config.window(),
            },
            false => Visible::All,
        },
    }
}

/// Parts of a plan's keys on the device of `kernels`, and the floats that they take; `None` if it is computed at once.
pub(crate) fn parts(kernels: &Kernels, plan: &Plan) -> AttentionResult<Option<(usize, usize)>> {
    let ty = match plan.config().elements() {
        FloatType::F16 => Half::F16,
        FloatType::Bf16 => Half::Bf16,
        FloatType::F32 => return Ok(None),
    };
    if plan.config().mask() != MaskShape::None {
        return Ok(None);
    }
    let shape = shape(plan);
    let parts = kernels.attention16_parts(ty, shape, options(plan))?;
    Ok(parts.and_then(|parts| Some((parts, Kernels::attention16_partial_len(shape, parts)?))))
}
