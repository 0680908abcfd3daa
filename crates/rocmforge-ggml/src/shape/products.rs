//! Shapes of matrix products and of additions by expert.

use super::{At, Inferred, divides};
use crate::{DType, GgmlResult};

/// `a [.., m, k]`, `b [.., k, n]`, optional `bias [n]`.
pub(super) fn mul_mat(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(2..=3, "2 matrices, an optional bias and 1 output")?;
    let a = at.rank(0, 2..=usize::MAX, "the left matrix must have at least 2 dimensions")?;
    let b = at.rank(1, 2..=usize::MAX, "the right matrix must have at least 2 dimensions")?;
    let (batch, [k, n]) = (&b[..b.len() - 2], [b[b.len() - 2], b[b.len() - 1]]);
    let lead = a[..a.len() - 2].iter().rev();
    at.rule(
        batch.len() <= a.len() - 2 && batch.iter().rev().zip(lead).all(|(&part, &n)| divides(part, n)),
        "the right matrices must divide the left ones in each leading dimension",
        a,
        b,
    )?;
    at.rule(a[a.len() - 1] == k, "the inner dimensions must agree", a, b)?;
    at.float(0)?;
    blocks_along(at, 1, b.len() - 2)?;
    if let Some(bias) = at.inputs.get(2) {
        at.rule(
            bias.shape == [n],
            "the bias must be as long as the right matrix is wide",
            b,
            &bias.shape,
        )?;
        at.f32(2)?;
    }
    Ok(widened(a, n))
}

/// f32 of `x`'s shape with rows of `n`.
pub(super) fn widened(x: &[usize], n: usize) -> Inferred {
    let mut shape = x.to_vec();
    shape.pop();
    shape.push(n);
    Inferred::Exact(shape, DType::F32)
}

/// `x [tokens, used or 1, k]`, `experts [n_expert, k, n]`, `ids [tokens, used]`.
pub(super) fn mul_mat_id(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(3..=3, "x, experts, ids and 1 output")?;
    let x = at.rank(0, 3..=3, "x must be [tokens, used or 1, k]")?;
    let experts = at.rank(1, 3..=3, "the experts must be [n_expert, k, n]")?;
    let ids = at.rank(2, 2..=2, "ids must be [tokens, used]")?;
    at.rule(
        x[0] == ids[0] && (x[1] == ids[1] || x[1] == 1),
        "there must be a row for each id, or one for each token",
        x,
        ids,
    )?;
    at.rule(x[2] == experts[1], "the inner dimensions must agree", x, experts)?;
    at.float(0)?;
    at.index(2)?;
    blocks_along(at, 1, 1)?;
    Ok(Inferred::Exact(vec![ids[0], ids[1], experts[2]], DType::F32))
}

/// `a [tokens, used, n]`, `b [n_expert, n]`, `ids [tokens, used]`.
pub(super) fn add_id(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(3..=3, "a, b, ids and 1 output")?;
    let a = at.rank(0, 3..=3, "a must be [tokens, used, n]")?;
    let b = at.rank(1, 2..=2, "b must be [n_expert, n]")?;
    let ids = at.rank(2, 2..=2, "ids must be [tokens, used]")?;
    at.rule(a[2] == b[1], "rows of a and b must be equally long", a, b)?;
    at.rule(a[..2] == *ids, "there must be one id per row of a", a, ids)?;
    let dtype = at.float(0)?;
    at.float(1)?;
    at.index(2)?;
    Ok(Inferred::Exact(a.to_vec(), dtype))
}

/// A weight whose blocks, if it is of a block format, lie along dimension `dim`.
fn blocks_along(at: &At<'_>, operand: usize, dim: usize) -> GgmlResult<()> {
    at.weight(operand)?;
    let weight = at.inputs[operand];
    if weight.dtype.is_quantized() && weight.block_dim() != Some(dim) {
        return Err(at.dtype(
            operand,
            "column-major where it is a block format: blocks lie along the inner dimension",
            weight.dtype,
        ));
    }
    Ok(())
}
