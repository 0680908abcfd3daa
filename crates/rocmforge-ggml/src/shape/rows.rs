//! Shapes of row look-ups and writes, of routing, and of gated linear units.

use super::{At, Inferred, Outputs, divides};
use crate::{DType, GgmlResult, Route};

/// `table [.., n, d]`, `ids [.., r]` to `[.., r, d]`.
pub(super) fn get(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(2..=2, "a table, ids and 1 output")?;
    let table = at.rank(0, 2..=usize::MAX, "the table must have at least 2 dimensions")?;
    at.index(1)?;
    let ids = at.inputs[1].shape.as_slice();
    let batch = &table[..table.len() - 2];
    at.rule(
        batch.is_empty() || (ids.len() == batch.len() + 1 && ids.starts_with(batch)),
        "there must be a list of ids for each matrix of the table",
        table,
        ids,
    )?;
    let dtype = match at.inputs[0].dtype {
        moved @ (DType::F64 | DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U32) => moved,
        _ => {
            at.weight(0)?;
            DType::F32
        }
    };
    let mut shape = ids.to_vec();
    shape.push(table[table.len() - 1]);
    Ok(Inferred::Exact(shape, dtype))
}

/// `src [.., n, d]`, `dst [.., rows, d]`, `ids [.., n]`.
pub(super) fn set(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(3..=3, "src, dst, row ids, and a view of dst as output")?;
    at.float(0)?;
    let dtype = at.inputs[1].dtype;
    if !dtype.is_encodable() {
        return Err(at.dtype(1, "F32, F16, BF16 or a block format with an encoder", dtype));
    }
    if at.inputs[2].dtype != DType::I64 {
        at.index(2)?;
    }
    let src = at.rank(0, 2..=usize::MAX, "src must be [.., n, d]")?;
    let dst = at.rank(1, 2..=usize::MAX, "dst must be [.., rows, d]")?;
    let ids = at.rank(2, 1..=usize::MAX, "ids must be [.., n]")?;
    let lead = src.len() - 2;
    at.rule(
        dst.len() == src.len() && src[..lead] == dst[..lead],
        "src and dst must agree in all dimensions but the rows",
        src,
        dst,
    )?;
    at.rule(
        src[lead + 1] == dst[lead + 1],
        "rows of src and dst must be equally long",
        src,
        dst,
    )?;
    let lists = &ids[..ids.len() - 1];
    let repeat = ids.len() == src.len() - 1 && src[..lead].iter().zip(lists).all(|(&n, &part)| divides(part, n));
    at.rule(
        repeat && ids[ids.len() - 1] == src[lead],
        "there must be one row id per row of src",
        src,
        ids,
    )?;
    if dtype.is_quantized() && at.inputs[1].strides.last() != Some(&1) {
        return Err(at.dtype(1, "row-major where it is a block format", dtype));
    }
    Ok(Inferred::Exact(dst.to_vec(), dtype))
}

/// Two tensors of one shape, or one whose rows are two halves.
pub(super) fn glu(at: &At<'_>, swapped: bool) -> GgmlResult<Inferred> {
    at.arity(1..=2, "gate and up, or one tensor of both, and 1 output")?;
    let dtype = at.same_float(2)?;
    let gate = &at.inputs[0].shape;
    if let Some(up) = at.inputs.get(1) {
        at.rule(
            *gate == up.shape,
            "gate and up must have the same shape",
            gate,
            &up.shape,
        )?;
        at.parameter(!swapped, "swapped", 1.0, "it is for one tensor that holds both")?;
        return Ok(Inferred::Exact(gate.clone(), dtype));
    }
    let row = at.rows(0)?[gate.len() - 1];
    at.rule(
        row.is_multiple_of(2),
        "a row must have two halves",
        gate,
        &[row / 2, row / 2],
    )?;
    at.row_to(row / 2, None)
}

/// Rows whose indices are u32.
pub(super) fn countable(at: &At<'_>, x: &[usize]) -> GgmlResult<()> {
    let fits = x.last().is_none_or(|&row| u32::try_from(row).is_ok());
    at.rule(fits, "a row must not have more elements than u32 can count", x, &[])
}

/// Elements of ARANGE: no operand.
pub(super) fn arange(at: &At<'_>, [start, stop, step]: [f32; 3]) -> GgmlResult<Inferred> {
    at.arity(0..=0, "no input and 1 output")?;
    at.number("start", start)?;
    at.positive("step", step)?;
    let count = ((stop - start) / step).ceil();
    let rule = "it must be beyond the start, by at most 2^24 steps: f32 counts no further";
    let fits = (1.0..=(1 << 24) as f32).contains(&count);
    at.parameter(fits, "stop", f64::from(stop), rule)?;
    Ok(Inferred::Exact(vec![count as usize], DType::F32))
}

/// `scores [n, experts]`, an optional `bias [experts]`, to `[n, k]` of experts and of factors.
pub(super) fn route(at: &At<'_>, how: Route) -> GgmlResult<Outputs> {
    at.arity(1..=2, "scores, an optional bias, and 2 outputs")?;
    (0..at.inputs.len()).try_for_each(|input| at.f32(input))?;
    let scores = at.rank(0, 2..=2, "scores must be [n, experts]")?;
    countable(at, scores)?;
    let experts = scores[1];
    if let Some(bias) = at.inputs.get(1) {
        at.rule(
            bias.shape == [experts],
            "the bias must be [experts]",
            scores,
            &bias.shape,
        )?;
    }
    let [groups, kept] = how.groups;
    let rule = "they must divide the experts";
    at.parameter(
        groups > 0 && experts.is_multiple_of(groups),
        "groups",
        groups as f64,
        rule,
    )?;
    let rule = "it must be 1 to the number of groups";
    at.parameter((1..=groups).contains(&kept), "kept groups", kept as f64, rule)?;
    let rule = "it must be 1 to the experts of the kept groups";
    at.parameter((1..=experts / groups * kept).contains(&how.k), "k", how.k as f64, rule)?;
    at.not_negative("least_sum", how.least_sum)?;
    at.number("factor", how.factor)?;
    let outputs = [DType::U32, DType::F32].map(|dtype| Inferred::Exact(vec![scores[0], how.k], dtype));
    Ok(outputs.into_iter().collect())
}

/// Elements times a number, and another one added.
pub(super) fn scale_bias(at: &At<'_>, factor: f32, bias: f32) -> GgmlResult<Inferred> {
    at.number("factor", factor)?;
    at.number("bias", bias)?;
    at.unary()
}

pub(super) fn clamp(at: &At<'_>, min: f32, max: f32) -> GgmlResult<Inferred> {
    at.number("min", min)?;
    at.parameter(max >= min, "max", f64::from(max), "it must not be below min")?;
    at.unary()
}

/// A norm of `x [.., d]` with optional vectors `[d]`.
pub(super) fn norm(at: &At<'_>, eps: f32, vectors: usize, expected: &'static str) -> GgmlResult<Inferred> {
    at.not_negative("eps", eps)?;
    at.arity(1..=1 + vectors, expected)?;
    let dtype = at.same_float(1 + vectors)?;
    let x = at.rows(0)?;
    for vector in &at.inputs[1..] {
        at.rule(
            vector.shape == x[x.len() - 1..],
            "the vector must be as long as a row",
            x,
            &vector.shape,
        )?;
    }
    Ok(Inferred::Exact(x.to_vec(), dtype))
}

pub(super) fn diag_mask(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let x = at.rank(0, 2..=usize::MAX, "the input must have at least 2 dimensions")?;
    Ok(Inferred::Exact(x.to_vec(), at.float(0)?))
}

/// Rows of which there is a least or largest element.
fn with_elements(at: &At<'_>) -> GgmlResult<()> {
    let x = &at.inputs[0].shape;
    at.rule(x.last() != Some(&0), "a row must have elements", x, &[])
}

pub(super) fn arg_max(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    at.float(0)?;
    let x = at.rows(0)?;
    with_elements(at)?;
    countable(at, x)?;
    Ok(Inferred::Exact(x[..x.len() - 1].to_vec(), DType::U32))
}

pub(super) fn arg_sort(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    at.float(0)?;
    let x = at.rows(0)?;
    countable(at, x)?;
    Ok(Inferred::Exact(x.to_vec(), DType::U32))
}

pub(super) fn top_k(at: &At<'_>, k: usize) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let x = at.rows(0)?;
    countable(at, x)?;
    let rule = "it must be 1 to the length of a row";
    at.parameter((1..=x[x.len() - 1]).contains(&k), "k", k as f64, rule)?;
    at.row_to(k, Some(DType::U32))
}

pub(super) fn sum(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    Ok(Inferred::Exact(vec![1], at.float(0)?))
}

pub(super) fn mean(at: &At<'_>) -> GgmlResult<Inferred> {
    let sums = at.row_to(1, None)?;
    with_elements(at)?;
    Ok(sums)
}

pub(super) fn cumsum(at: &At<'_>) -> GgmlResult<Inferred> {
    let sums = at.unary()?;
    at.rows(0)?;
    Ok(sums)
}

pub(super) fn accumulate(at: &At<'_>, offset: usize) -> GgmlResult<Inferred> {
    at.arity(2..=2, "src, dst, and dst as output")?;
    let dtype = at.same_float(2)?;
    let (src, dst) = (at.inputs[0], at.inputs[1]);
    let end = offset.checked_add(src.element_count());
    let fits = end.is_some_and(|end| end <= dst.element_count());
    at.rule(fits, "src must fit into dst from the offset on", &src.shape, &dst.shape)?;
    Ok(Inferred::Exact(dst.shape.clone(), dtype))
}

pub(super) fn mean_pool(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(2..=2, "x, weight and 1 output")?;
    let dtype = at.same_float(2)?;
    let x = at.rank(0, 3..=3, "x must be [batch, seq, dim]")?;
    let weight = &at.inputs[1].shape;
    at.rule(*weight == x[..2], "the weight must be [batch, seq]", x, weight)?;
    Ok(Inferred::Exact(vec![x[0], x[2]], dtype))
}
