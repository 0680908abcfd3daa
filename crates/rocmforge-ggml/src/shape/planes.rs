//! Shapes of ops on matrices and images: the last two dimensions.

use super::{At, Inferred};
use crate::GgmlResult;

/// The last two dimensions, and those before.
fn plane<'a>(at: &At<'a>, input: usize) -> GgmlResult<(&'a [usize], [usize; 2])> {
    let shape = at.rank(input, 2..=usize::MAX, "the input must have at least 2 dimensions")?;
    let (lead, plane) = shape.split_at(shape.len() - 2);
    Ok((lead, [plane[0], plane[1]]))
}

/// Number of windows along one dimension. `None`: no window fits, or a parameter is 0 or too large.
fn windows(len: usize, kernel: usize, [stride, padding, dilation]: [usize; 3]) -> Option<usize> {
    let span = kernel.checked_sub(1)?.checked_mul(dilation)?;
    let room = padding
        .checked_mul(2)?
        .checked_add(len)?
        .checked_sub(span)?
        .checked_sub(1)?;
    Some(room.checked_div(stride)?.saturating_add(1)).filter(|_| dilation > 0)
}

/// Numbers of windows along all dimensions.
fn all(
    at: &At<'_>,
    sizes: impl Iterator<Item = Option<usize>>,
    shape: &[usize],
    kernel: &[usize],
) -> GgmlResult<Vec<usize>> {
    let sizes: Option<Vec<usize>> = sizes.collect();
    let rule = "a window must fit into the padded input; sizes, strides and dilations are positive";
    at.rule(sizes.is_some(), rule, shape, kernel)?;
    Ok(sizes.unwrap_or_default())
}

/// Most elements that POOL_1D and POOL_2D read for each element of the operand and the result: their windows, unlike kernels, take no memory.
const MOST_READS: usize = 1 << 12;

pub(super) fn group_norm(at: &At<'_>, n_groups: usize, eps: f32) -> GgmlResult<Inferred> {
    at.not_negative("eps", eps)?;
    at.arity(1..=1, "1 input and 1 output")?;
    let x = at.rank(0, 3..=usize::MAX, "the input must be [.., channels, h, w]")?;
    let fits = (1..=x[x.len() - 3]).contains(&n_groups);
    at.parameter(
        fits,
        "n_groups",
        n_groups as f64,
        "it must be 1 to the number of channels",
    )?;
    at.unary()
}

pub(super) fn tri(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let (_, [rows, cols]) = plane(at, 0)?;
    at.rule(rows == cols, "the matrices must be square", &at.inputs[0].shape, &[])?;
    at.unary()
}

pub(super) fn solve_tri(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(2..=2, "a, b and 1 output")?;
    let dtype = at.same_float(2)?;
    let ((lead, [rows, cols]), (own, [right, _])) = (plane(at, 0)?, plane(at, 1)?);
    let (a, b) = (&at.inputs[0].shape, &at.inputs[1].shape);
    at.rule(rows == cols, "the matrices of a must be square", a, b)?;
    at.rule(
        rows == right && lead == own,
        "a and b must agree in all dimensions but the last",
        a,
        b,
    )?;
    Ok(Inferred::Exact(b.clone(), dtype))
}

/// `kernel [oc, ic, kh, kw]`, `x [n, ic, h, w]`: the rows and columns of places.
fn places(at: &At<'_>, [stride, padding, dilation]: [[usize; 2]; 3]) -> GgmlResult<Vec<usize>> {
    at.arity(2..=2, "a kernel, x and 1 output")?;
    let kernel = at.rank(0, 4..=4, "the kernel must be [oc, ic, kh, kw]")?;
    let x = at.rank(1, 4..=4, "x must be [n, ic, h, w]")?;
    at.rule(
        kernel[1] == x[1],
        "the kernel and x must have as many channels",
        kernel,
        x,
    )?;
    let count = |d: usize| windows(x[2 + d], kernel[2 + d], [stride[d], padding[d], dilation[d]]);
    all(at, (0..2).map(count), x, &kernel[2..])
}

pub(super) fn im2col(at: &At<'_>, parameters: [[usize; 2]; 3]) -> GgmlResult<Inferred> {
    let places = places(at, parameters)?;
    let kernel = &at.inputs[0].shape;
    let under = kernel[1..].iter().fold(1usize, |n, &d| n.saturating_mul(d));
    let shape = [&at.inputs[1].shape[..1], &places, &[under]].concat();
    Ok(Inferred::Exact(shape, at.float(1)?))
}

pub(super) fn conv(at: &At<'_>, parameters: [[usize; 2]; 3]) -> GgmlResult<Inferred> {
    let places = places(at, parameters)?;
    at.float(0)?;
    let shape = [&at.inputs[1].shape[..1], &at.inputs[0].shape[..1], &places].concat();
    Ok(Inferred::Exact(shape, at.float(1)?))
}

/// Windows over as many of the last dimensions as there are parameters of each kind.
pub(super) fn pool(at: &At<'_>, [kernel, stride, padding]: [&[usize]; 3]) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let over = kernel.len();
    let shape = at.rank(0, over..=usize::MAX, "the input must have the dimensions of a window")?;
    let (lead, plane) = shape.split_at(shape.len() - over);
    let count = |d: usize| windows(plane[d], kernel[d], [stride[d], padding[d], 1]);
    let sizes = all(at, (0..over).map(count), plane, kernel)?;
    let product = |of: &mut dyn Iterator<Item = usize>| of.fold(1usize, usize::saturating_mul);
    let results = product(&mut sizes.iter().copied());
    let reads = product(&mut (0..over).map(|d| kernel[d].min(plane[d]))).saturating_mul(results);
    let elements = product(&mut plane.iter().copied()).saturating_add(results);
    at.rule(
        reads / MOST_READS <= elements,
        "windows must not overlap so much that an element is read more than 4096 times",
        plane,
        kernel,
    )?;
    Ok(Inferred::Exact([lead, &sizes].concat(), at.float(0)?))
}

pub(super) fn upscale(at: &At<'_>, sizes: [usize; 2]) -> GgmlResult<Inferred> {
    at.arity(1..=1, "1 input and 1 output")?;
    let (lead, plane) = plane(at, 0)?;
    let some = !plane.contains(&0) && !sizes.contains(&0);
    at.rule(some, "there must be elements before and after", &plane, &sizes)?;
    Ok(Inferred::Exact([lead, &sizes].concat(), at.float(0)?))
}
