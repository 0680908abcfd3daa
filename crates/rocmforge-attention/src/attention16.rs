//! Attention in f16 and bf16.

use crate::attention::check_mask;
use crate::error::CHECK;
use crate::halves::{options, shape};
use crate::{Attention, AttentionError, AttentionResult};
use rocmforge_kernels::{Attention16Operands, Attention16Options, Operand, SequenceLengths};
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
    /// [`AttentionError::Elements`] if the plan is for f32, [`AttentionError::MaskMissing`], [`AttentionError::MaskUnexpected`], or
    /// [`AttentionError::Kernel`] with what is refused: a wrong length, addresses that are no multiples of 16, overlap, lengths that exceed the
    /// plan's, a device without such kernels.
    pub fn forward16(&self, stream: &HipStream, operands: HalfOperands<'_>) -> AttentionResult<()> {
        let (plan, o) = (&self.plan, operands);
        let config = plan.config();
        let plan_type = config.elements();
        let ty = plan_type.half().ok_or(AttentionError::Elements { plan: plan_type })?;
        CHECK.len("q", o.q, &plan.q_shape())?;
        CHECK.len("k", o.k, &plan.kv_shape())?;
        CHECK.len("v", o.v, &plan.kv_shape())?;
        CHECK.len("out", o.out, &plan.q_shape())?;
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
