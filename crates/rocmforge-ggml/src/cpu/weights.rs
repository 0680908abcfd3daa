//! Products with weights stored as rows `[n, k]`, in any type: rows are decoded to f32 as they are used.

use rocmforge_gguf::{GgufError, TensorType, blocks};

use super::dot::dot;
use super::matmul::{Matrix, gemm};
use super::operand::Operand;
use super::threads::Threads;
use crate::{GgmlError, GgmlResult, Op};

/// Up to so many rows of activations, dot products are quicker than a matrix product: each decoded weight row is used at once.
pub(super) const FEW: usize = 4;

/// Weight rows decoded at a time for a matrix product: with 1536 columns 384 KiB, within a core's L2 cache.
const TILE: usize = 64;

/// Rows of one weight, without gaps.
pub(super) struct Rows<'a> {
    ty: TensorType,
    bytes: &'a [u8],
    row_bytes: usize,
    columns: usize,
}

impl<'a> Rows<'a> {
    /// The rows of `weight`, each of `columns` elements.
    pub(super) fn new(op: Op, weight: &Operand<'a>, columns: usize) -> GgmlResult<Self> {
        let cannot = || GgmlError::Unimplemented {
            backend: super::NAME,
            op: op.name(),
            what: format!("{} {:?}", weight.dtype, weight.shape),
        };
        let ty = weight.dtype.tensor_type().ok_or_else(cannot)?;
        let row_bytes = weight.dtype.row_bytes(columns).ok_or_else(cannot)?;
        Ok(Self {
            ty,
            bytes: weight.raw(),
            row_bytes,
            columns,
        })
    }

    /// Decodes a row to f32.
    pub(super) fn decode(&self, row: usize, out: &mut [f32]) -> GgmlResult<()> {
        let bytes = &self.bytes[row * self.row_bytes..(row + 1) * self.row_bytes];
        blocks::dequantize(self.ty, bytes, out).map_err(|source| self.failed(source))
    }

    /// The products of `out.len()` rows from `first` on with `x`.
    fn dots(&self, first: usize, x: &[f32], out: &mut [f32]) -> GgmlResult<()> {
        let bytes = &self.bytes[first * self.row_bytes..(first + out.len()) * self.row_bytes];
        if self.ty == TensorType::F32 {
            let rows: &[f32] = bytemuck::cast_slice(bytes);
            for (row, out) in rows.chunks(self.columns).zip(out) {
                *out = dot(row, x);
            }
            return Ok(());
        }
        blocks::dots(self.ty, bytes, x, out).map_err(|source| self.failed(source))
    }

    fn failed(&self, source: GgufError) -> GgmlError {
        GgmlError::Backend {
            backend: super::NAME,
            at: format!("decoding a row of {}", self.ty.name()),
            source: Box::new(source),
        }
    }
}

/// `x [m, k]` times the transpose of `weight`'s rows `[n, k]`, to `out [m, n]`.
pub(super) fn product(x: &[f32], weight: &Operand<'_>, out: &mut [f32], threads: &Threads) -> GgmlResult<()> {
    let (k, n) = (weight.shape[0], weight.shape[1]);
    let m = out.len() / n;
    let rows = Rows::new(Op::MatMul, weight, k)?;
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    // Threads share out the weight's rows, so each writes whole rows of the transposed result.
    let mut transposed = Vec::new();
    let target = if m == 1 {
        &mut *out
    } else {
        transposed.resize(n * m, 0.0);
        &mut transposed
    };
    let failure = std::sync::Mutex::new(None);
    threads.by_rows(target, m, k.saturating_mul(m.max(FEW)) / 4, |first, piece| {
        let done = if m <= FEW {
            dots(x, &rows, first, m, piece)
        } else {
            tiles(x, &rows, first, m, piece)
        };
        if let Err(error) = done {
            failure
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .get_or_insert(error);
        }
    });
    if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
        return Err(error);
    }
    for (row, values) in transposed.chunks(m).enumerate() {
        for (token, &value) in values.iter().enumerate() {
            out[token * n + row] = value;
        }
    }
    Ok(())
}

/// `piece[r, t] = row first + r times token t`, one dot product each.
fn dots(x: &[f32], rows: &Rows<'_>, first: usize, m: usize, piece: &mut [f32]) -> GgmlResult<()> {
    let k = rows.columns;
    if m == 1 {
        return rows.dots(first, x, piece);
    }
    let mut row = vec![0.0; k];
    for (index, out) in piece.chunks_mut(m).enumerate() {
        rows.decode(first + index, &mut row)?;
        for (out, x) in out.iter_mut().zip(x.chunks(k)) {
            *out = dot(&row, x);
        }
    }
    Ok(())
}

/// The same as a matrix product, tile by tile.
fn tiles(x: &[f32], rows: &Rows<'_>, first: usize, m: usize, piece: &mut [f32]) -> GgmlResult<()> {
    let k = rows.columns;
    let tokens = Matrix {
        data: x,
        rows: k,
        cols: m,
        row_stride: 1,
        col_stride: k,
    };
    let mut tile = vec![0.0; TILE.min(piece.len() / m) * k];
    for (index, out) in piece.chunks_mut(TILE * m).enumerate() {
        let count = out.len() / m;
        for (r, row) in tile.chunks_mut(k).take(count).enumerate() {
            rows.decode(first + index * TILE + r, row)?;
        }
        let weights = Matrix {
            data: &tile[..count * k],
            rows: count,
            cols: k,
            row_stride: k,
            col_stride: 1,
        };
        gemm(weights, tokens, out, m);
    }
    Ok(())
}
