//! Matrix product: with weights stored by rows, with f32 matrices of any strides, and of many matrices with one each.

use std::ops::Range;

use super::gemm::{self, Columns, Left, Line};
use super::operand::Operand;
use super::ops::On;
use super::path::Path;
use super::threads::Threads;
use super::weights;
use crate::{DType, GgmlResult};

/// The right matrix `[k, n]` as f32 with strides.
pub(super) struct Strided<'a> {
    pub(super) data: &'a [f32],
    pub(super) row_stride: usize,
    pub(super) col_stride: usize,
}

impl Columns for Strided<'_> {
    fn block(&self) -> usize {
        1
    }

    fn pack(&self, columns: Range<usize>, depth: Range<usize>, panel: &mut [Line], _: &mut [f32]) -> GgmlResult<()> {
        let at = depth.start * self.row_stride + columns.start * self.col_stride;
        let (data, count) = (&self.data[at..], columns.len());
        if self.row_stride == 1 {
            gemm::transpose(Path::best(), data, self.col_stride, count, panel, 0);
            return Ok(());
        }
        for (d, line) in panel.iter_mut().enumerate() {
            let row = &data[d * self.row_stride..];
            if self.col_stride == 1 {
                line[..count].copy_from_slice(&row[..count]);
            } else {
                for (c, place) in line[..count].iter_mut().enumerate() {
                    *place = row[c * self.col_stride];
                }
            }
        }
        Ok(())
    }

    fn scratch(&self, _: usize) -> usize {
        0
    }
}

/// `a [.., m, k]` times `b [k, n]` of any strides, or times one such matrix each.
pub(super) fn matmul(a: &Operand<'_>, b: &Operand<'_>, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let rank = b.shape.len();
    let (k, n) = (b.shape[rank - 2], b.shape[rank - 1]);
    let lhs = a.f32();
    if n == 0 || out.is_empty() {
        return Ok(());
    }
    if rank > 2 {
        batched(a, b, lhs, out, on.threads);
    } else if b.dtype != DType::F32 || (b.strides() == [1, k] && out.len() / n <= weights::FEW) {
        weights::product(lhs, b, on, out)?;
    } else {
        let right = Strided {
            data: b.span_f32(),
            row_stride: b.strides()[0],
            col_stride: b.strides()[1],
        };
        let left = Left { data: lhs, stride: k };
        gemm::product(Path::best(), left, k, &right, n, out, on.threads, on.scratch)?;
    }
    Ok(())
}

/// Every matrix of `a` times its own of `b`.
fn batched(a: &Operand<'_>, b: &Operand<'_>, lhs: &[f32], out: &mut [f32], threads: &Threads) {
    let rank = b.shape.len();
    let (m, k, n) = (a.shape[rank - 2], b.shape[rank - 2], b.shape[rank - 1]);
    let rhs = b.f32();
    if m == 0 {
        return;
    }
    // Each is one thread's, except where there are fewer matrices than threads: then all threads share each.
    let matrices = out.len() / (m * n);
    let one = |index: usize, out: &mut [f32], threads: &Threads| {
        let right = Strided {
            data: &rhs[index * k * n..(index + 1) * k * n],
            row_stride: n,
            col_stride: 1,
        };
        let left = Left {
            data: &lhs[index * m * k..(index + 1) * m * k],
            stride: k,
        };
        // A pack of f32 cannot fail.
        let _ = gemm::product(Path::best(), left, k, &right, n, out, threads, a.scratch());
    };
    if matrices < threads.count() {
        out.chunks_mut(m * n)
            .enumerate()
            .for_each(|(index, out)| one(index, out, threads));
        return;
    }
    threads.by_rows(out, m * n, m.saturating_mul(k).saturating_mul(n) / 8, |first, piece| {
        for (index, out) in piece.chunks_mut(m * n).enumerate() {
            one(first + index, out, &Threads::ONE);
        }
    });
}
