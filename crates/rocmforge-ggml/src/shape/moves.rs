//! Shapes of ops that move elements.

use super::{At, Inferred};
use crate::op::MAX_DIMS;
use crate::{DType, GgmlResult};

/// A block format's blocks must lie along the rows, so that whole blocks are moved.
fn movable(at: &At<'_>, operand: usize) -> GgmlResult<()> {
    let desc = at.inputs[operand];
    if desc.dtype.is_quantized() && desc.block_dim().is_none_or(|dim| dim + 1 != desc.shape.len()) {
        return Err(at.dtype(operand, "row-major where it is a block format", desc.dtype));
    }
    Ok(())
}

pub(super) fn dup(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    movable(at, 0)?;
    Ok(Inferred::Exact(at.inputs[0].shape.clone(), at.inputs[0].dtype))
}

pub(super) fn cpy(at: &At<'_>, to: Option<DType>) -> GgmlResult<Inferred> {
    at.arity(1..=2, "src, optional dst, and 1 output")?;
    let src = at.inputs[0];
    let dst = at.inputs.get(1);
    let target = to.or(dst.map(|dst| dst.dtype)).unwrap_or(src.dtype);
    if target == src.dtype {
        movable(at, 0)?;
    } else {
        if !(src.dtype.is_weight() || src.dtype.is_plain_number()) {
            return Err(at.dtype(0, "a plain number, or a block format of weights", src.dtype));
        }
        if !(target.is_plain_number() || target.is_encodable()) {
            let operand = at.inputs.len();
            return Err(at.dtype(operand, "a plain number, or a block format with an encoder", target));
        }
    }
    let Some(dst) = dst else {
        let shape = src.shape.clone();
        let row = shape.last().copied().unwrap_or(1);
        at.rule(
            row.is_multiple_of(target.block_len()),
            "rows must be whole blocks of the output's type",
            &shape,
            &[target.block_len()],
        )?;
        return Ok(Inferred::Exact(shape, target));
    };
    if dst.dtype != target {
        return Err(at.dtype(1, "of the type that is asked for", dst.dtype));
    }
    movable(at, 1)?;
    at.rule(
        src.element_count() == dst.element_count(),
        "both must have the same number of elements",
        &src.shape,
        &dst.shape,
    )?;
    Ok(Inferred::Exact(dst.shape.clone(), target))
}

pub(super) fn concat(at: &At<'_>, axis: usize) -> GgmlResult<Inferred> {
    at.arity(2..=2, "2 inputs and 1 output")?;
    let (a, b) = (&at.inputs[0].shape, &at.inputs[1].shape);
    at.parameter(axis < a.len(), "axis", axis as f64, "it must be a dimension")?;
    let agree = a.len() == b.len() && (0..a.len()).all(|d| d == axis || a[d] == b[d]);
    at.rule(agree, "all dimensions but the axis must agree", a, b)?;
    if at.inputs[1].dtype != at.inputs[0].dtype {
        return Err(at.dtype(1, "of the first operand's type", at.inputs[1].dtype));
    }
    movable(at, 0)?;
    movable(at, 1)?;
    let mut shape = a.clone();
    shape[axis] = shape[axis].saturating_add(b[axis]);
    Ok(Inferred::Exact(shape, at.inputs[0].dtype))
}

pub(super) fn repeat(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    movable(at, 0)?;
    Ok(Inferred::Multiple(at.inputs[0].shape.clone(), at.inputs[0].dtype))
}

pub(super) fn pad(at: &At<'_>, left: [usize; MAX_DIMS], right: [usize; MAX_DIMS]) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let x = at.rank(0, 0..=MAX_DIMS, "the input must have at most 4 dimensions")?;
    let dtype = at.inputs[0].dtype;
    if !dtype.is_plain_number() {
        return Err(at.dtype(0, "a plain number", dtype));
    }
    let beyond = left[x.len()..]
        .iter()
        .chain(&right[x.len()..])
        .copied()
        .max()
        .unwrap_or(0);
    at.parameter(
        beyond == 0,
        "padding beyond the last dimension",
        beyond as f64,
        "it must be 0",
    )?;
    let sum = |d: usize| x[d].saturating_add(left[d]).saturating_add(right[d]);
    Ok(Inferred::Exact((0..x.len()).map(sum).collect(), dtype))
}

pub(super) fn permute(at: &At<'_>, axes: [usize; MAX_DIMS]) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let x = at.rank(0, 0..=MAX_DIMS, "the input must have at most 4 dimensions")?;
    let all = (0..x.len()).all(|d| axes[..x.len()].contains(&d));
    let rest = (x.len()..MAX_DIMS).all(|d| axes[d] == d);
    at.rule(
        all && rest,
        "the axes must be a permutation of the dimensions",
        x,
        &axes,
    )?;
    Ok(Inferred::Exact(
        axes[..x.len()].iter().map(|&d| x[d]).collect(),
        at.inputs[0].dtype,
    ))
}

pub(super) fn transpose(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let mut shape = at
        .rank(0, 2..=usize::MAX, "the input must have at least 2 dimensions")?
        .to_vec();
    let rank = shape.len();
    shape.swap(rank - 1, rank - 2);
    Ok(Inferred::Exact(shape, at.inputs[0].dtype))
}

pub(super) fn reshape(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    Ok(Inferred::Elements(at.inputs[0].element_count(), at.inputs[0].dtype))
}

pub(super) fn view(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    Ok(Inferred::Part)
}
