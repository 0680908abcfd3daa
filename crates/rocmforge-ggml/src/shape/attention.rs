//! Shapes of attention ops.

use super::{At, Inferred, broadcasts, divides};
use crate::{Attention, AttentionMask, DType, FlashAttnExt, GgmlResult, PagedAttention, SoftMax};

/// `x [.., rows, cols]`, an optional mask and optional sinks.
pub(super) fn soft_max(at: &At<'_>, s: &SoftMax) -> GgmlResult<Inferred> {
    let expected = match (s.mask, s.sinks) {
        (false, false) => "1 input and 1 output",
        (true, false) => "x, a mask and 1 output",
        (false, true) => "x, sinks and 1 output",
        (true, true) => "x, a mask, sinks and 1 output",
    };
    let count = 1 + usize::from(s.mask) + usize::from(s.sinks);
    at.arity(count..=count, expected)?;
    let dtype = at.float(0)?;
    let x = at.rank(0, 0..=usize::MAX, "")?;
    at.number("scale", s.scale)?;
    bias(at, s.max_bias, s.mask)?;
    if s.mask {
        added(at, 1, x)?;
    }
    if s.sinks {
        let heads = x.len().checked_sub(3).map_or(1, |dim| x[dim]);
        sinks(at, count - 1, heads)?;
    }
    Ok(Inferred::Exact(x.to_vec(), dtype))
}

/// ggml's attention.
pub(super) fn ext(at: &At<'_>, a: &FlashAttnExt) -> GgmlResult<Inferred> {
    let count = 3 + usize::from(a.mask) + usize::from(a.sinks);
    at.arity(
        count..=count,
        "q, k, v, a mask and sinks where its parameters say so, and 1 output",
    )?;
    at.parameter(a.scale.is_finite(), "scale", f64::from(a.scale), "it must be finite")?;
    at.not_negative("softcap", a.softcap)?;
    bias(at, a.max_bias, a.mask)?;
    at.float(0)?;
    let q = at.rank(0, 4..=4, "q must be [batch, heads, n, hsk]")?;
    let k = at.rank(1, 4..=4, "k must be [batch', kv_heads, kv, hsk]")?;
    let v = at.rank(2, 4..=4, "v must be [batch', kv_heads, kv, hsv]")?;
    at.rule(
        k[..3] == v[..3],
        "k and v must agree in all dimensions but the last",
        k,
        v,
    )?;
    at.rule(q[3] == k[3], "q's and k's heads must have the same dimension", q, k)?;
    at.rule(
        divides(k[0], q[0]) && divides(k[1], q[1]),
        "k's batch and heads must divide q's",
        q,
        k,
    )?;
    for operand in [1, 2] {
        at.weight(operand)?;
    }
    if a.mask {
        added(at, 3, &[q[0], q[1], q[2], k[2]])?;
    }
    if a.sinks {
        sinks(at, count - 1, q[1])?;
    }
    Ok(Inferred::Exact(vec![q[0], q[2], q[1], v[3]], DType::F32))
}

fn bias(at: &At<'_>, max_bias: f32, mask: bool) -> GgmlResult<()> {
    at.not_negative("max_bias", max_bias)?;
    at.parameter(
        max_bias == 0.0 || mask,
        "max_bias",
        f64::from(max_bias),
        "a bias needs a mask that it scales",
    )
}

/// A mask added to `x [.., rows, cols]`: `[.., rows' >= rows, cols]`, leading dimensions that divide.
fn added(at: &At<'_>, operand: usize, x: &[usize]) -> GgmlResult<()> {
    let found = at.inputs[operand].dtype;
    if !matches!(found, DType::F32 | DType::F16) {
        return Err(at.dtype(operand, "F32 or F16", found));
    }
    let mask = at.inputs[operand].shape.as_slice();
    let fits = mask.len() <= x.len()
        && x.iter()
            .rev()
            .zip(mask.iter().rev())
            .enumerate()
            .all(|(back, (&n, &m))| match back {
                0 => n == m,
                1 => m >= n,
                _ => divides(m, n),
            });
    let rows = mask.len() >= 2 || x.len() < 2;
    at.rule(
        fits && rows,
        "the mask must be [.., at least as many rows, as many columns], with leading dimensions that divide",
        x,
        mask,
    )
}

/// One f32 for each head.
fn sinks(at: &At<'_>, operand: usize, heads: usize) -> GgmlResult<()> {
    at.f32(operand)?;
    let found = &at.inputs[operand].shape;
    at.rule(*found == [heads], "there must be one sink per head", &[heads], found)
}

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
    let expected = match a.sinks {
        false => "q, k, v, block table, sequences, positions and 1 output",
        true => "q, k, v, block table, sequences, positions, sinks and 1 output",
    };
    let count = 6 + usize::from(a.sinks);
    at.arity(count..=count, expected)?;
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
    if !matches!(cache, DType::F32 | DType::F16 | DType::Bf16 | DType::Q8_0) {
        return Err(at.dtype(1, "F32, F16, BF16 or Q8_0", cache));
    }
    at.rule(
        a.head_dim.is_multiple_of(cache.block_len()),
        "a head must be whole blocks of the cache's type",
        &[a.head_dim],
        &[cache.block_len()],
    )?;
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
    if a.sinks {
        sinks(at, count - 1, a.heads)?;
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
