//! Elements moved to other places.

use rocmforge_ggml::MAX_DIMS;

use super::{Values, ravel, repeated, unravel};

/// `out[index] = a[source(index)]`, 0 where there is none.
fn gather(a: &Values, shape: &[usize], source: impl Fn(&[usize]) -> Option<usize>) -> Vec<f64> {
    (0..shape.iter().product())
        .map(|at| source(&unravel(at, shape)).map_or(0.0, |from| a.data[from]))
        .collect()
}

/// Rows of `table [.., n, d]`, one list of `ids` for each matrix.
pub(super) fn get_rows(table: &Values, ids: &Values) -> Vec<f64> {
    let rank = table.shape.len();
    let [n, d] = [table.shape[rank - 2], table.shape[rank - 1]];
    // A table of one matrix takes all ids.
    let per_list = if rank == 2 { ids.data.len() } else { ids.cols() };
    (0..ids.data.len())
        .flat_map(|at| {
            let row = at / per_list.max(1) * n + ids.index(at);
            table.data[row * d..][..d].to_vec()
        })
        .collect()
}

/// `dst` with row `ids[i]` of each matrix replaced by row `i` of `src`; the lists of ids repeat over the matrices.
pub(super) fn set_rows(src: &Values, dst: &Values, ids: &Values) -> Vec<f64> {
    let rank = src.shape.len();
    let (lead, [count, d]) = (&src.shape[..rank - 2], [src.shape[rank - 2], src.shape[rank - 1]]);
    let (rows, lists) = (dst.shape[rank - 2], &ids.shape[..rank - 2]);
    let mut out = dst.data.clone();
    for matrix in 0..lead.iter().product() {
        let list = repeated(&unravel(matrix, lead), lists);
        for i in 0..count {
            let to = (matrix * rows + ids.index(list * count + i)) * d;
            out[to..to + d].copy_from_slice(&src.data[(matrix * count + i) * d..][..d]);
        }
    }
    out
}

pub(super) fn concat(a: &Values, b: &Values, axis: usize) -> Vec<f64> {
    let mut shape = a.shape.clone();
    shape[axis] += b.shape[axis];
    (0..shape.iter().product())
        .map(|at| {
            let mut index = unravel(at, &shape);
            if index[axis] < a.shape[axis] {
                return a.data[ravel(&index, &a.shape)];
            }
            index[axis] -= a.shape[axis];
            b.data[ravel(&index, &b.shape)]
        })
        .collect()
}

pub(super) fn repeat(a: &Values, shape: &[usize]) -> Vec<f64> {
    gather(a, shape, |index| Some(repeated(index, &a.shape)))
}

pub(super) fn pad(a: &Values, left: [usize; MAX_DIMS], shape: &[usize]) -> Vec<f64> {
    gather(a, shape, |index| {
        let mut own = Vec::new();
        for (d, &i) in index.iter().enumerate() {
            own.push(i.checked_sub(left[d]).filter(|&i| i < a.shape[d])?);
        }
        Some(ravel(&own, &a.shape))
    })
}

/// Output dimension `i` is input dimension `axes[i]`.
pub(super) fn permute(a: &Values, axes: &[usize]) -> Vec<f64> {
    let shape: Vec<usize> = axes.iter().map(|&d| a.shape[d]).collect();
    gather(a, &shape, |index| {
        let mut own = vec![0; index.len()];
        for (&d, &i) in axes.iter().zip(index) {
            own[d] = i;
        }
        Some(ravel(&own, &a.shape))
    })
}
