//! Shapes of attention ops.

use super::{At, Inferred, broadcasts};
use crate::{Attention, AttentionMask, DType, GgmlResult, PagedAttention};

/// Attention over whole sequences.
pub(super) fn whole(at: &At<'_>, a: &Attention) -> GgmlResult<Inferred> {
    match a.mask {
        AttentionMask::None => at.arity(3..=3, "q, k, v and 1 output")?,
        AttentionMask::Additive => at.arity(4..=4, "q, k, v, mask and 1 output")?,
    }
    heads(at, a.heads, a.kv_heads, a.head_dim, a.scale)?;
    let dtype = at.same_float(3)?;
    let q = at.rank(0, 3..=3, "q must be [batch, seq_q, heads * head_dim]")?;
    let k = at.rank(1, 3..=3, "k must be [batch, seq_k, kv_heads * head_dim]")?;
    let v = at.rank(2, 3..=3, "v must be [batch, seq_k, kv_heads * head_dim]")?;
    at.rule(q[0] == k[0], "q and k must have the same batch", q, k)?;
    at.rule(k == v, "k and v must have the same shape", k, v)?;
    let width = |heads: usize| heads.checked_mul(a.head_dim);
    at.rule(
        width(a.heads) == Some(q[2]),
        "q's width must be heads * head_dim",
        q,
        &[a.heads, a.head_dim],
    )?;
    at.rule(
        width(a.kv_heads) == Some(k[2]),
        "k's width must be kv_heads * head_dim",
        k,
        &[a.kv_heads, a.head_dim],
    )?;
    if a.mask == AttentionMask::Additive {
        at.same_float(4)?;
        let mask = at.inputs[3].shape.as_slice();
        let scores = [q[0], a.heads, q[1], k[1]];
        let padding = mask == [q[0], k[1]];
        let fits = padding || (mask.len() == 4 && broadcasts(&scores, mask));
        at.rule(
            fits,
            "the mask must be [batch, seq_k] or broadcast to the scores",
            &scores,
            mask,
        )?;
    }
    Ok(Inferred::Exact(q.to_vec(), dtype))
}

/// Attention over a paged cache.
pub(super) fn paged(at: &At<'_>, a: &PagedAttention) -> GgmlResult<Inferred> {
    at.arity(6..=6, "q, k, v, block table, sequences, positions and 1 output")?;
    heads(at, a.heads, a.kv_heads, a.head_dim, a.scale)?;
    at.parameter(
        a.block_size > 0,
        "block_size",
        a.block_size as f64,
        "it must be positive",
    )?;
    let window = a.window.unwrap_or(1);
    at.parameter(window > 0, "window", window as f64, "it must be positive")?;
    let cap = a.softcap.unwrap_or(1.0);
    at.parameter(
        cap.is_finite() && cap > 0.0,
        "softcap",
        f64::from(cap),
        "it must be finite and positive",
    )?;
    if at.inputs[0].dtype != DType::F32 {
        return Err(at.dtype(0, "F32", at.inputs[0].dtype));
    }
    let q = at.rank(0, 2..=2, "q must be [tokens, heads * head_dim]")?;
    let k = at.rank(1, 2..=2, "k must be [slots, kv_heads * head_dim]")?;
    let v = at.rank(2, 2..=2, "v must be [slots, kv_heads * head_dim]")?;
    at.rule(k == v, "k and v must have the same shape", k, v)?;
    at.rule(
        a.heads.checked_mul(a.head_dim) == Some(q[1]),
        "q's width must be heads * head_dim",
        q,
        &[a.heads, a.head_dim],
    )?;
    at.rule(
        a.kv_heads.checked_mul(a.head_dim) == Some(k[1]),
        "k's width must be kv_heads * head_dim",
        k,
        &[a.kv_heads, a.head_dim],
    )?;
    at.rule(
        k[0].is_multiple_of(a.block_size),
        "the slots must be whole blocks",
        k,
        &[a.block_size],
    )?;
    let cache = at.inputs[1].dtype;
    if !matches!(cache, DType::F32 | DType::F16) {
        return Err(at.dtype(1, "F32 or F16", cache));
    }
    if at.inputs[2].dtype != cache {
        return Err(at.dtype(2, "of k's type", at.inputs[2].dtype));
    }
    at.rank(3, 2..=2, "the block table must be [sequences, blocks]")?;
    for operand in 3..6 {
        at.index(operand)?;
    }
    for operand in [4, 5] {
        let per_token = at.rank(operand, 1..=1, "sequences and positions must be [tokens]")?;
        at.rule(
            per_token[0] == q[0],
            "there must be one sequence and one position per token",
            q,
            per_token,
        )?;
    }
    Ok(Inferred::Exact(q.to_vec(), DType::F32))
}

fn heads(at: &At<'_>, heads: usize, kv_heads: usize, head_dim: usize, scale: f32) -> GgmlResult<()> {
    at.parameter(heads > 0, "heads", heads as f64, "there must be at least one")?;
    at.parameter(
        kv_heads > 0 && heads.is_multiple_of(kv_heads),
        "kv_heads",
        kv_heads as f64,
        "it must divide the number of heads",
    )?;
    at.parameter(head_dim > 0, "head_dim", head_dim as f64, "it must be positive")?;
    at.parameter(scale.is_finite(), "scale", f64::from(scale), "it must be finite")
}
