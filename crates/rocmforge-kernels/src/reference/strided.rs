//! Copies between strided tensors, and row look-ups and writes.

use crate::{RowLists, StridedCopy};

/// Every index of a shape, outermost first.
fn indices([a, b, c, d]: [usize; 4]) -> impl Iterator<Item = [usize; 4]> {
    (0..a * b * c * d).map(move |at| [at / (b * c * d), at / (c * d) % b, at / d % c, at % d])
}

/// The places of each element of a copy in the source and in the destination, in elements.
pub fn strided_places(copy: StridedCopy) -> Vec<[usize; 2]> {
    let place = |index: [usize; 4]| {
        let from = (0..4).map(|d| index[d] % copy.source[d] * copy.from[d]).sum();
        let to = (0..4).map(|d| index[d] * copy.to[d]).sum();
        [from, to]
    };
    indices(copy.shape).map(place).collect()
}

/// The rows of source and destination, counted through all matrices, that [`crate::Kernels::set_rows`] copies; `None`
/// for an id that is out of range.
pub fn set_rows_places(shape: RowLists, ids: &[u64]) -> Vec<Option<[usize; 2]>> {
    let ([m0, m1], [l0, l1]) = (shape.matrices, shape.lists);
    let place = |[a, b, i, _]: [usize; 4]| {
        let id = ids[((a % l0) * l1 + b % l1) * shape.per + i];
        let matrix = a * m1 + b;
        let id = usize::try_from(id).ok().filter(|&id| id < shape.rows)?;
        Some([matrix * shape.per + i, matrix * shape.rows + id])
    };
    indices([m0, m1, shape.per, 1]).map(place).collect()
}
