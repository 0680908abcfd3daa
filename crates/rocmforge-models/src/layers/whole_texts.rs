//! Attention within whole texts, padded to one length: nothing is kept for later steps.

use rocmforge_ggml::{Attention, AttentionMask, FlashAttnExt, GgmlResult, Op, TensorId, Unary};

use super::AttentionShape;
use crate::config::WindowKind;
use crate::step::StepGraph;

/// What is added to the score of a hidden key, times how far it lies outside of what a query sees: far below any score, and finite.
const HIDDEN: f32 = -1e30;

/// Attention of queries, keys and values, each `[tokens, heads * head_dim]`.
pub(super) fn attend(
    g: &mut StepGraph<'_>,
    s: &AttentionShape,
    head_dim: usize,
    parts: [TensorId; 3],
    sinks: Option<TensorId>,
) -> GgmlResult<TensorId> {
    let texts = g.texts()?;
    let [count, length] = texts.shape;
    let heads = [s.heads, s.kv_heads, s.kv_heads];
    let result = if s.alibi == 0.0 && s.softcap.is_none() && sinks.is_none() {
        let mut inputs = Vec::new();
        for (x, heads) in parts.into_iter().zip(heads) {
            inputs.push(g.reshape(x, [count, length, heads * head_dim])?);
        }
        inputs.push(match s.window {
            None => texts.mask,
            Some(_) => mask(g, s)?,
        });
        let op = Op::Attention(Attention {
            heads: s.heads,
            kv_heads: s.kv_heads,
            head_dim,
            scale: s.scale,
            causal: !s.sees_all,
            mask: AttentionMask::Additive,
        });
        g.push(op, &inputs)?
    } else {
        let mut inputs = Vec::new();
        for (x, heads) in parts.into_iter().zip(heads) {
            let x = g.reshape(x, [count, length, heads, head_dim])?;
            inputs.push(g.permute(x, &[0, 2, 1, 3])?);
        }
        inputs.push(mask(g, s)?);
        inputs.extend(sinks);
        let op = Op::FlashAttnExt(FlashAttnExt {
            scale: s.scale,
            max_bias: s.alibi,
            softcap: s.softcap.unwrap_or(0.0),
            mask: true,
            sinks: sinks.is_some(),
        });
        g.push(op, &inputs)?
    };
    g.reshape(result, [count * length, s.heads * head_dim])
}

/// What is added to the scores of all heads, `[texts, 1, length, length]`. Layers of one kind share it: equal nodes are computed once.
fn mask(g: &mut StepGraph<'_>, s: &AttentionShape) -> GgmlResult<TensorId> {
    let texts = g.texts()?;
    let [count, length] = texts.shape;
    let square = [1, 1, length, length];
    let keys = g.reshape(texts.places, [1, 1, 1, length])?;
    let keys = g.repeat(keys, square)?;
    let queries = g.reshape(texts.places, [1, 1, length, 1])?;
    // The place of each key minus that of each query.
    let after = g.push(Op::Sub, &[keys, queries])?;
    let distance = g.push(Op::Unary(Unary::Abs), &[after])?;
    let mut sum = None;
    let mut add = |g: &mut StepGraph<'_>, x| -> GgmlResult<()> {
        sum = Some(match sum {
            None => x,
            Some(sum) => g.push(Op::Add, &[sum, x])?,
        });
        Ok(())
    };
    let beyond = |g: &mut StepGraph<'_>, x: TensorId, most: usize| {
        let (factor, bias) = (1.0, -(most as f32));
        let x = g.push(Op::ScaleBias { factor, bias }, &[x])?;
        let x = g.push(Op::Unary(Unary::Relu), &[x])?;
        g.push(Op::Scale { factor: HIDDEN }, &[x])
    };
    if s.alibi > 0.0 {
        let x = g.push(Op::Scale { factor: -1.0 }, &[distance])?;
        add(g, x)?;
    }
    if !s.sees_all {
        let x = beyond(g, after, 0)?;
        add(g, x)?;
    }
    if let (Some(window), WindowKind::Chunk) = (s.window, s.window_kind) {
        // The chunk of each key, and that of each query; a half keeps the quotient away from whole numbers.
        let chunks = |g: &mut StepGraph<'_>, places: TensorId| {
            let factor = 1.0 / window as f32;
            let (factor, bias) = (factor, 0.5 * factor);
            let x = g.push(Op::ScaleBias { factor, bias }, &[places])?;
            g.push(Op::Unary(Unary::Floor), &[x])
        };
        let (of_keys, of_queries) = (chunks(g, keys)?, chunks(g, queries)?);
        let apart = g.push(Op::Sub, &[of_keys, of_queries])?;
        let apart = g.push(Op::Unary(Unary::Abs), &[apart])?;
        let x = beyond(g, apart, 0)?;
        add(g, x)?;
    } else if let Some(window) = s.window {
        // Half of a window that is seen from its middle lies on each side.
        let x = beyond(g, distance, if s.sees_all { window / 2 } else { window - 1 })?;
        add(g, x)?;
    }
    let padding = g.reshape(texts.mask, [count, 1, 1, length])?;
    let padding = g.repeat(padding, [count, 1, length, length])?;
    match sum {
        None => Ok(padding),
        Some(sum) => g.push(Op::Add, &[padding, sum]),
    }
}
