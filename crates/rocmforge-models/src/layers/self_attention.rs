//! Attention within padded texts, in which each token sees all others: nothing is kept for later steps.

use rocmforge_ggml::{Attention, AttentionMask, GgmlResult, Op, TensorId};

use super::{Linear, Part};
use crate::step::StepGraph;

/// Attention of one layer of an encoder.
#[derive(Debug)]
pub(crate) struct SelfAttention {
    pub(crate) heads: usize,
    pub(crate) head_dim: usize,
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) output: Linear,
}

impl Part for SelfAttention {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let texts = g.texts()?;
        let ([count, length], width) = (texts.shape, self.heads * self.head_dim);
        let mut projected = |part: &Linear| {
            let rows = part.build(g, x)?;
            g.reshape(rows, [count, length, width])
        };
        let (q, k, v) = (projected(&self.query)?, projected(&self.key)?, projected(&self.value)?);
        let attention = Op::Attention(Attention {
            heads: self.heads,
            kv_heads: self.heads,
            head_dim: self.head_dim,
            scale: 1.0 / (self.head_dim as f32).sqrt(),
            causal: false,
            mask: AttentionMask::Additive,
        });
        let context = g.push(attention, &[q, k, v, texts.mask])?;
        let context = g.reshape(context, [count * length, width])?;
        self.output.build(g, context)
    }
}
