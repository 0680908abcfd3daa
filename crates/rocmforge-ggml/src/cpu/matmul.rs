//! Matrix product, on the `matrixmultiply` crate's kernels (AVX, FMA where the CPU has them).

use super::operand::Operand;
use super::threads::Threads;
use super::weights;
use crate::{DType, GgmlResult};

/// A matrix as a slice with strides.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    pub(super) data: &'a [f32],
    pub(super) rows: usize,
    pub(super) cols: usize,
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl Matrix<'_> {
    /// Elements from the first to one past the last.
    fn span(&self) -> usize {
        if self.rows == 0 || self.cols == 0 {
            return 0;
        }
        (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride + 1
    }
}

/// `out[i, j] = sum over k of a[i, k] * b[k, j]`; rows of `out` are `out_row_stride` apart and their elements adjacent.
///
/// # Panics
/// If a slice is shorter than its matrix, or `a.cols != b.rows`.
pub(super) fn gemm(a: Matrix<'_>, b: Matrix<'_>, out: &mut [f32], out_row_stride: usize) {
    assert_eq!(a.cols, b.rows, "inner dimensions");
    assert!(
        a.data.len() >= a.span() && b.data.len() >= b.span(),
        "operands span more than their slices"
    );
    let (m, k, n) = (a.rows, a.cols, b.cols);
    if m == 0 || n == 0 {
        return;
    }
    assert!(
        out_row_stride >= n && out.len() >= (m - 1) * out_row_stride + n,
        "the output is too short"
    );
    // SAFETY: the assertions above show that every element that sgemm reads or writes lies inside its slice, and that
    // output elements do not overlap; `out` is exclusively borrowed, so it overlaps neither input. Strides fit isize
    // because the slices do.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.data.as_ptr(),
            a.row_stride as isize,
            a.col_stride as isize,
            b.data.as_ptr(),
            b.row_stride as isize,
            b.col_stride as isize,
            0.0,
            out.as_mut_ptr(),
            out_row_stride as isize,
            1,
        );
    }
}

/// `a [.., m, k]` times `b [k, n]` of any strides, or times one such matrix each, plus `bias [n]`.
pub(super) fn matmul(
    a: &Operand<'_>,
    b: &Operand<'_>,
    bias: Option<&Operand<'_>>,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    let rank = b.shape.len();
    let (k, n) = (b.shape[rank - 2], b.shape[rank - 1]);
    let lhs = a.f32();
    if n == 0 || out.is_empty() {
        return Ok(());
    }
    if rank > 2 {
        batched(a, b, &lhs, out, threads);
    } else if b.dtype != DType::F32 || (b.strides() == [1, k] && out.len() / n <= weights::FEW) {
        weights::product(&lhs, b, out, threads)?;
    } else {
        let rhs = Matrix {
            data: b.span_f32(),
            rows: k,
            cols: n,
            row_stride: b.strides()[0],
            col_stride: b.strides()[1],
        };
        threads.by_rows(out, n, k.saturating_mul(n) / 8, |first, piece| {
            let rows = piece.len() / n;
            gemm(rows_of(&lhs, first, rows, k), rhs, piece, n);
        });
    }
    if let Some(bias) = bias.map(Operand::f32) {
        for row in out.chunks_mut(n) {
            row.iter_mut().zip(bias.iter()).for_each(|(o, b)| *o += b);
        }
    }
    Ok(())
}

/// Rows of a row-major matrix with `k` columns.
fn rows_of(data: &[f32], first: usize, rows: usize, k: usize) -> Matrix<'_> {
    Matrix {
        data: &data[first * k..(first + rows) * k],
        rows,
        cols: k,
        row_stride: k,
        col_stride: 1,
    }
}

/// Every matrix of `a` times its own of `b`.
fn batched(a: &Operand<'_>, b: &Operand<'_>, lhs: &[f32], out: &mut [f32], threads: &Threads) {
    let rank = b.shape.len();
    let (m, k, n) = (a.shape[rank - 2], b.shape[rank - 2], b.shape[rank - 1]);
    let rhs = b.f32();
    if m == 0 {
        return;
    }
    let cost = m.saturating_mul(k).saturating_mul(n) / 8;
    threads.by_rows(out, m * n, cost, |first, piece| {
        for (index, out) in piece.chunks_mut(m * n).enumerate() {
            let at = first + index;
            let right = Matrix {
                data: &rhs[at * k * n..(at + 1) * k * n],
                rows: k,
                cols: n,
                row_stride: n,
                col_stride: 1,
            };
            gemm(rows_of(lhs, at * m, m, k), right, out, n);
        }
    });
}
