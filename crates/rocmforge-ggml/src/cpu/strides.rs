//! Iteration over the elements of strided tensors in row-major order.

use smallvec::{SmallVec, smallvec};

use crate::DType;

/// A shape, strides or an index; no memory of its own up to eight dimensions.
pub(super) type Dims = SmallVec<[usize; 8]>;

/// Strides of a row-major tensor without gaps.
pub(super) fn row_major(shape: &[usize]) -> Dims {
    let mut strides: Dims = smallvec![1; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * shape[i + 1];
    }
    strides
}

/// Shape and strides in stored units: of a block format, blocks along the last dimension.
pub(super) fn unit_dims(dtype: DType, shape: &[usize], strides: &[usize]) -> (Dims, Dims) {
    let block = dtype.block_len();
    let (mut shape, mut strides) = (Dims::from_slice(shape), Dims::from_slice(strides));
    if block > 1
        && let Some(last) = shape.len().checked_sub(1)
    {
        shape[last] /= block;
        strides.iter_mut().for_each(|s| *s /= block);
        strides[last] = 1;
    }
    (shape, strides)
}

/// Calls `visit` with the offset of every element, in row-major order.
pub(super) fn each_offset(shape: &[usize], strides: &[usize], mut visit: impl FnMut(usize)) {
    each_pair(shape, strides, strides, |at, _| visit(at));
}

/// Calls `visit` with the offsets of every element under two lists of strides, in row-major order.
pub(super) fn each_pair(shape: &[usize], a: &[usize], b: &[usize], mut visit: impl FnMut(usize, usize)) {
    if shape.contains(&0) {
        return;
    }
    let Some((&row, outer)) = shape.split_last() else {
        return visit(0, 0);
    };
    let [a_step, b_step] = [a[outer.len()], b[outer.len()]];
    let mut index: Dims = smallvec![0; outer.len()];
    loop {
        let base = |strides: &[usize]| index.iter().zip(strides).map(|(i, s)| i * s).sum::<usize>();
        let (a_base, b_base) = (base(a), base(b));
        for i in 0..row {
            visit(a_base + i * a_step, b_base + i * b_step);
        }
        if !next_index(&mut index, outer) {
            return;
        }
    }
}

/// The next index in row-major order; false after the last.
pub(super) fn next_index(index: &mut [usize], shape: &[usize]) -> bool {
    for dim in (0..shape.len()).rev() {
        index[dim] += 1;
        if index[dim] < shape[dim] {
            return true;
        }
        index[dim] = 0;
    }
    false
}

/// For matrix `index` of `outer` (leading dimensions, row-major), the index of the matrix of `parts` (aligned at the last) that it uses.
///
/// With `repeat` of `false` each part serves a run of neighbours (grouped heads: 8 over 2 are 0 0 0 0 1 1 1 1); with `true` the parts
/// repeat (0 1 0 1 0 1 0 1).
pub(super) fn part_of(index: usize, outer: &[usize], parts: &[usize], repeat: bool) -> usize {
    let (mut rest, mut at, mut step) = (index, 0, 1);
    let shift = outer.len() - parts.len();
    for dim in (0..outer.len()).rev() {
        let i = rest % outer[dim];
        rest /= outer[dim];
        if dim >= shift {
            let part = parts[dim - shift];
            let i = if repeat { i % part } else { i / (outer[dim] / part) };
            at += i * step;
            step *= part;
        }
    }
    at
}
