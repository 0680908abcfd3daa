//! Products with weights stored as rows `[n, k]`, in any type: rows are decoded to f32 as they are used.

use std::ops::Range;

use rocmforge_gguf::blocks::{self, Int8Row};
use rocmforge_gguf::{GgufError, TensorType};
use smallvec::SmallVec;

use super::dot::dot;
use super::gemm::{self, Columns, Left, Line};
use super::operand::Operand;
use super::path::Path;
use super::threads::Threads;
use crate::{GgmlError, GgmlResult, Op};

/// Up to so many rows of activations, dot products are quicker than a matrix product: each decoded weight row is used at once.
pub(super) const FEW: usize = 4;

/// Weight rows decoded together before they become columns of a panel.
const DECODED: usize = 16;

/// How activations meet weights of a block format in products of a few rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activations {
    /// As they are: weights become f32.
    #[default]
    F32,
    /// Rounded to 8 bits, with a scale for each 32 of them, and multiplied as integers, much as ggml's CPU backend does. The mean squared
    /// error of a product is below 5e-4 of its mean square. Only for weights of `q4_K` and `q6_K`, and products of up to 4 rows: others are
    /// quicker in f32, and stay so.
    Int8,
}

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

    /// Decodes elements `columns` of a row to f32; both ends are at blocks.
    pub(super) fn decode(&self, row: usize, columns: Range<usize>, out: &mut [f32]) -> GgmlResult<()> {
        let [start, end] = [columns.start, columns.end].map(|at| at / self.ty.block_len() * self.ty.block_bytes());
        let bytes = &self.bytes[row * self.row_bytes..][start..end];
        blocks::dequantize(self.ty, bytes, out).map_err(|source| self.failed(source))
    }

    /// The products of `out.len()` rows from `first` on with `x`.
    fn dots(&self, first: usize, x: &[f32], out: &mut [f32]) -> GgmlResult<()> {
        let bytes = &self.bytes[first * self.row_bytes..(first + out.len()) * self.row_bytes];
        if self.ty == TensorType::F32 {
            let rows: &[f32] = bytemuck::cast_slice(bytes);
            for (row, out) in rows.chunks(self.columns).zip(out) {
                *out = dot(Path::best(), row, x);
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
pub(super) fn product(
    x: &[f32],
    weight: &Operand<'_>,
    activations: Activations,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    let (k, n) = (weight.shape[0], weight.shape[1]);
    let m = out.len() / n;
    let rows = Rows::new(Op::MatMul, weight, k)?;
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    if m > FEW {
        let left = Left { data: x, stride: k };
        return gemm::product(Path::best(), left, k, &rows, n, out, threads);
    }
    few_products(x, &[rows], activations, &mut [out], threads)
}

/// The products of at most [`FEW`] rows with each of the weights, whose rows are as long. Threads share out the rows of all weights.
pub(super) fn few_products(
    x: &[f32],
    weights: &[Rows<'_>],
    activations: Activations,
    out: &mut [&mut [f32]],
    threads: &Threads,
) -> GgmlResult<()> {
    let all: SmallVec<[&Rows<'_>; 4]> = weights.iter().collect();
    let few = Few::new(x, &all, activations);
    few.run(out, threads, |weight, first, piece| {
        few.times(&weights[weight], first, piece)
    })
}

/// A few rows of activations, in the form in which they meet weights.
pub(super) struct Few<'a> {
    x: &'a [f32],
    /// If one of the weights wants them, rounded to 8 bits.
    int8: Option<Vec<Int8Row>>,
    /// Elements of a row.
    k: usize,
    /// Rows.
    m: usize,
}

impl<'a> Few<'a> {
    /// Rows as long as those of the weights, of which there is at least one.
    pub(super) fn new(x: &'a [f32], weights: &[&Rows<'_>], activations: Activations) -> Self {
        let k = weights[0].columns;
        let rounded = activations == Activations::Int8 && weights.iter().any(|rows| blocks::has_int8_dots(rows.ty));
        Self {
            x,
            int8: rounded.then(|| x.chunks(k).map(Int8Row::new).collect()),
            k,
            m: x.len() / k,
        }
    }

    /// Runs `work` on pieces of the outputs: rows from some row of a weight on, with all tokens of a row side by side. The outputs
    /// are `[m, n]` when it ends.
    pub(super) fn run(
        &self,
        out: &mut [&mut [f32]],
        threads: &Threads,
        work: impl Fn(usize, usize, &mut [f32]) -> GgmlResult<()> + Sync,
    ) -> GgmlResult<()> {
        // Threads share out the weights' rows, so each writes whole rows of the transposed results.
        let m = self.m;
        let mut transposed: SmallVec<[Vec<f32>; 4]> = SmallVec::new();
        if m > 1 {
            transposed.extend(out.iter().map(|out| vec![0.0; out.len()]));
        }
        let rows: usize = out.iter().map(|out| out.len() / m).sum();
        let rows_each = threads.rows_each(rows, self.k.saturating_mul(FEW) / 4);
        let targets: SmallVec<[&mut [f32]; 4]> = match m {
            1 => out.iter_mut().map(|out| &mut **out).collect(),
            _ => transposed.iter_mut().map(Vec::as_mut_slice).collect(),
        };
        let mut tasks = Vec::new();
        for (weight, target) in targets.into_iter().enumerate() {
            let pieces = target.chunks_mut(rows_each * m).enumerate();
            tasks.extend(pieces.map(|(index, piece)| (weight, index * rows_each, piece)));
        }
        let failure = std::sync::Mutex::new(None);
        threads.each(tasks, |(weight, first, piece)| {
            if let Err(error) = work(weight, first, piece) {
                failure
                    .lock()
                    .unwrap_or_else(std::sync::PoisonError::into_inner)
                    .get_or_insert(error);
            }
        });
        if let Some(error) = failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner) {
            return Err(error);
        }
        for (out, transposed) in out.iter_mut().zip(&transposed) {
            let n = out.len() / m;
            for (row, values) in transposed.chunks(m).enumerate() {
                for (token, &value) in values.iter().enumerate() {
                    out[token * n + row] = value;
                }
            }
        }
        Ok(())
    }

    /// The products with the weight's rows from `first` on: `piece[r, t]` is row `first + r` times token `t`.
    pub(super) fn times(&self, rows: &Rows<'_>, first: usize, piece: &mut [f32]) -> GgmlResult<()> {
        match &self.int8 {
            Some(x) if blocks::has_int8_dots(rows.ty) => int8_dots(x, rows, first, piece),
            _ => dots(self.x, rows, first, self.m, piece),
        }
    }
}

/// `piece[r, t] = row first + r times token t`, one dot product each.
fn dots(x: &[f32], rows: &Rows<'_>, first: usize, m: usize, piece: &mut [f32]) -> GgmlResult<()> {
    let k = rows.columns;
    if m == 1 {
        return rows.dots(first, x, piece);
    }
    let mut row = vec![0.0; k];
    for (index, out) in piece.chunks_mut(m).enumerate() {
        rows.decode(first + index, 0..k, &mut row)?;
        for (out, x) in out.iter_mut().zip(x.chunks(k)) {
            *out = dot(Path::best(), &row, x);
        }
    }
    Ok(())
}

/// The same with activations of 8 bits.
fn int8_dots(x: &[Int8Row], rows: &Rows<'_>, first: usize, piece: &mut [f32]) -> GgmlResult<()> {
    let m = x.len();
    let products = |bytes: &[u8], x: &Int8Row, out: &mut [f32]| {
        blocks::int8_dots(rows.ty, bytes, x, out).map_err(|source| rows.failed(source))
    };
    let bytes = &rows.bytes[first * rows.row_bytes..][..piece.len() / m * rows.row_bytes];
    if let [x] = x {
        return products(bytes, x, piece);
    }
    for (row, out) in bytes.chunks(rows.row_bytes).zip(piece.chunks_mut(m)) {
        for (out, x) in out.iter_mut().zip(x) {
            products(row, x, std::slice::from_mut(out))?;
        }
    }
    Ok(())
}

impl Columns for Rows<'_> {
    fn block(&self) -> usize {
        self.ty.block_len()
    }

    fn pack(
        &self,
        columns: Range<usize>,
        depth: Range<usize>,
        panel: &mut [Line],
        scratch: &mut Vec<f32>,
    ) -> GgmlResult<()> {
        scratch.resize(DECODED * depth.len(), 0.0);
        for first in columns.clone().step_by(DECODED) {
            let count = DECODED.min(columns.end - first);
            for (r, out) in scratch.chunks_exact_mut(depth.len()).take(count).enumerate() {
                self.decode(first + r, depth.clone(), out)?;
            }
            gemm::transpose(Path::best(), scratch, depth.len(), count, panel, first - columns.start);
        }
        Ok(())
    }
}
