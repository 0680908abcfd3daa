//! Products with weights stored as rows `[n, k]`, in any type: rows are decoded to f32 as they are used.

use std::ops::Range;

use rocmforge_gguf::blocks::{self, INT8_UNIT, Int8Unit};
use rocmforge_gguf::{GgufError, TensorType};
use smallvec::SmallVec;

use super::dot::{dot, matrix_dots};
use super::gemm::{self, Columns, Left, Line};
#[cfg(target_arch = "x86_64")]
use super::int8_gemm;
use super::operand::Operand;
use super::ops::On;
use super::path::Path;
#[cfg(target_arch = "x86_64")]
use super::path::Vnni;
use super::scratch::Scratch;
use super::threads::Threads;
use crate::{GgmlError, GgmlResult, Op};

/// Up to so many rows of activations, dot products are quicker than a matrix product: each decoded weight row is used at once.
pub(super) const FEW: usize = 4;

/// Weight rows decoded together before they become columns of a panel.
const DECODED: usize = 16;

/// How activations meet weights of a block format in products of a few rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activations {
    /// As they are: weights become f32. The default: results are those of the formats' definition, to the rounding of f32.
    #[default]
    F32,
    /// Rounded to 8 bits, with a scale for each 32 of them, and multiplied as integers, much as ggml's CPU backend does. The mean squared
    /// error of a product is below 5e-4 of its mean square. Only for weights of `q4_0`, `q4_1`, `q8_0`, `q4_K` and `q6_K`; products of more
    /// than 4 rows only where the CPU has AVX-512 VNNI: elsewhere those are quicker in f32, and stay so. What a device does:
    /// [`HipGgmlBackend::activations`](crate::HipGgmlBackend::activations).
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

    /// The products of `out.len()` rows from `first` on with `x`, of which `sums` are the [`blocks::group_sums`].
    fn dots(&self, first: usize, x: &[f32], sums: &[f32], out: &mut [f32]) -> GgmlResult<()> {
        let bytes = &self.bytes[first * self.row_bytes..(first + out.len()) * self.row_bytes];
        if self.ty == TensorType::F32 {
            matrix_dots(Path::best(), bytemuck::cast_slice(bytes), x, out);
            return Ok(());
        }
        blocks::dots_with_sums(self.ty, bytes, x, sums, out).map_err(|source| self.failed(source))
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
pub(super) fn product(x: &[f32], weight: &Operand<'_>, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (k, n) = (weight.shape[0], weight.shape[1]);
    let m = out.len() / n;
    let rows = Rows::new(Op::MatMul, weight, k)?;
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    let int8 = on.activations == Activations::Int8 && blocks::has_int8_dots(rows.ty);
    #[cfg(target_arch = "x86_64")]
    if let Some(cpu) = Vnni::detect().filter(|_| int8 && m > FEW) {
        let rounded = round(x, k, on.threads, on.scratch);
        let weights = int8_gemm::Weights {
            ty: rows.ty,
            bytes: rows.bytes,
            row_bytes: rows.row_bytes,
        };
        return int8_gemm::product(
            cpu,
            rounded,
            k.div_ceil(INT8_UNIT),
            weights,
            out,
            n,
            on.threads,
            on.scratch,
        )
        .map_err(|source| rows.failed(source));
    }
    if m > FEW {
        let left = Left { data: x, stride: k };
        return gemm::product(Path::best(), left, k, &rows, n, out, on.threads, on.scratch);
    }
    few_products(x, &[rows], on, &mut [out])
}

/// Weights that need no memory of their own to be listed.
pub(super) const USUAL_WEIGHTS: usize = 4;

/// The products of at most [`FEW`] rows with each of the weights, whose rows are as long. Threads share out the rows of all weights.
pub(super) fn few_products(x: &[f32], weights: &[Rows<'_>], on: On<'_>, out: &mut [&mut [f32]]) -> GgmlResult<()> {
    let few = Few::new(x, weights, on);
    few.run(out, 0, |room, weight, first, piece| {
        few.times(&weights[weight], first, room, piece)
    })
}

/// A few rows of activations, in the forms in which they meet weights.
pub(super) struct Few<'a> {
    x: &'a [f32],
    /// If one of the weights wants them, rounded to 8 bits.
    int8: Option<&'a [Int8Unit]>,
    /// Of a single row, its [`blocks::group_sums`].
    sums: &'a [f32],
    /// Elements of a row.
    k: usize,
    /// Rows.
    m: usize,
    on: On<'a>,
}

impl<'a> Few<'a> {
    /// Rows as long as those of the weights, of which there is at least one.
    pub(super) fn new(x: &'a [f32], weights: &[Rows<'_>], on: On<'a>) -> Self {
        let k = weights[0].columns;
        let m = x.len() / k;
        let wants_int8 = |rows: &Rows<'_>| on.activations == Activations::Int8 && blocks::has_int8_dots(rows.ty);
        let sums = if m == 1 && !weights.iter().all(wants_int8) {
            let sums = on.scratch.take(k.div_ceil(blocks::SUMMED));
            blocks::group_sums(x, sums);
            sums
        } else {
            &mut []
        };
        Self {
            x,
            int8: weights
                .iter()
                .any(wants_int8)
                .then(|| round(x, k, on.threads, on.scratch)),
            sums,
            k,
            m,
            on,
        }
    }

    /// Runs `work` on pieces of the outputs: rows from some row of a weight on, with all tokens of a row side by side. The outputs
    /// are `[m, n]` when it ends. `work` has room for what [`Self::times`] needs, and for `spare` times the piece after it.
    pub(super) fn run(
        &self,
        out: &mut [&mut [f32]],
        spare: usize,
        work: impl Fn(&mut [f32], usize, usize, &mut [f32]) -> GgmlResult<()> + Sync,
    ) -> GgmlResult<()> {
        // Threads share out the weights' rows, so each writes whole rows of the transposed results.
        let (m, On { threads, scratch, .. }) = (self.m, self.on);
        let transposed = out.iter().map(|out| scratch.take(if m == 1 { 0 } else { out.len() }));
        let mut transposed: SmallVec<[&mut [f32]; USUAL_WEIGHTS]> = transposed.collect();
        let rows: usize = out.iter().map(|out| out.len() / m).sum();
        let rows_each = threads.rows_each(rows, self.k.saturating_mul(FEW) / 4);
        let pieces = out.iter().map(|out| (out.len() / m).div_ceil(rows_each)).sum();
        let targets = out.iter_mut().zip(&mut transposed).map(|(out, transposed)| match m {
            1 => &mut **out,
            _ => &mut **transposed,
        });
        let tasks = targets.enumerate().flat_map(|(weight, target)| {
            let pieces = target.chunks_mut(rows_each * m).enumerate();
            pieces.map(move |(index, piece)| (weight, index * rows_each, piece))
        });
        let room = self.room() + spare * rows_each * m;
        let rooms = scratch.take::<f32>(room * threads.count());
        // A room may be empty, and each thread needs one.
        let rooms = rooms
            .chunks_mut(room.max(1))
            .chain(std::iter::repeat_with(|| &mut [][..]));
        threads.try_each(tasks, pieces, rooms, |room, (weight, first, piece)| {
            work(room, weight, first, piece)
        })?;
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

    /// Values that [`Self::times`] has to have room for.
    pub(super) fn room(&self) -> usize {
        if self.m == 1 { 0 } else { self.k }
    }

    /// The products with the weight's rows from `first` on: `piece[r, t]` is row `first + r` times token `t`.
    pub(super) fn times(&self, rows: &Rows<'_>, first: usize, room: &mut [f32], piece: &mut [f32]) -> GgmlResult<()> {
        match self.int8 {
            Some(x) if blocks::has_int8_dots(rows.ty) => int8_dots(x, rows, first, self.m, piece),
            _ if self.m == 1 => rows.dots(first, self.x, self.sums, piece),
            _ => dots(self.x, rows, first, self.m, &mut room[..self.k], piece),
        }
    }
}

/// Rows of `k` activations as units.
fn round<'a>(x: &[f32], k: usize, threads: &Threads, scratch: &'a Scratch) -> &'a [Int8Unit] {
    let units = k.div_ceil(INT8_UNIT);
    let rounded = scratch.take::<Int8Unit>(x.len() / k * units);
    threads.by_rows_with(rounded, units, k, std::iter::repeat(()), |(), first, piece| {
        for (row, units) in x[first * k..].chunks(k).zip(piece.chunks_mut(units)) {
            blocks::round_to_int8(row, units);
        }
    });
    rounded
}

/// `piece[r, t] = row first + r times token t`, one dot product each; `row` has room for one row.
fn dots(x: &[f32], rows: &Rows<'_>, first: usize, m: usize, row: &mut [f32], piece: &mut [f32]) -> GgmlResult<()> {
    let k = rows.columns;
    for (index, out) in piece.chunks_mut(m).enumerate() {
        rows.decode(first + index, 0..k, row)?;
        for (out, x) in out.iter_mut().zip(x.chunks(k)) {
            *out = dot(Path::best(), row, x);
        }
    }
    Ok(())
}

/// The same with activations of 8 bits.
fn int8_dots(x: &[Int8Unit], rows: &Rows<'_>, first: usize, m: usize, piece: &mut [f32]) -> GgmlResult<()> {
    let products = |bytes: &[u8], x: &[Int8Unit], out: &mut [f32]| {
        blocks::int8_dots(rows.ty, bytes, x, rows.columns, out).map_err(|source| rows.failed(source))
    };
    let bytes = &rows.bytes[first * rows.row_bytes..][..piece.len() / m * rows.row_bytes];
    if m == 1 {
        return products(bytes, x, piece);
    }
    for (row, out) in bytes.chunks(rows.row_bytes).zip(piece.chunks_mut(m)) {
        for (out, x) in out.iter_mut().zip(x.chunks(x.len() / m)) {
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
        scratch: &mut [f32],
    ) -> GgmlResult<()> {
        let scratch = &mut scratch[..DECODED * depth.len()];
        for first in columns.clone().step_by(DECODED) {
            let count = DECODED.min(columns.end - first);
            for (r, out) in scratch.chunks_exact_mut(depth.len()).take(count).enumerate() {
                self.decode(first + r, depth.clone(), out)?;
            }
            gemm::transpose(Path::best(), scratch, depth.len(), count, panel, first - columns.start);
        }
        Ok(())
    }

    fn scratch(&self, depth: usize) -> usize {
        DECODED * depth
    }
}
