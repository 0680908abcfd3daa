//! Rows of f16 with a power of two each, made from f32 and from weights of every type.

use super::matvec_q8::PackedWeights;
use crate::check::{Check, MAX_COLUMNS};
use crate::{KernelError, KernelResult, Kernels, WeightType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};
use std::ops::Range;

const OP: &str = "half_rows";
/// What the address of a row is a multiple of, in bytes and in elements.
const ROW_BYTES: usize = 16;
const ROW_ELEMENTS: usize = 8;

/// Rows of f16, each with a power of two: what [`Kernels::half_rows`] makes of f32.
///
/// The power brings the largest magnitude of a row to 2^14 .. 2^15, so nothing overflows, and what is at least 2^-28 of the largest keeps the 11
/// bits of f16. Clones share the memory.
#[derive(Debug, Clone)]
pub struct HalfRows {
    /// `[rows, k]`, k rounded up to a multiple of 8.
    pub(super) halves: HipBuffer<u16>,
    pub(super) exponents: HipBuffer<i32>,
    rows: usize,
    k: usize,
}

/// The exponents of the rows of both operands of a product; without those of `b` its rows are as they are.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HalfExponents<'a> {
    pub(super) a: Option<&'a HipBuffer<i32>>,
    pub(super) b: Option<&'a HipBuffer<i32>>,
}

impl HalfRows {
    /// Bytes of `rows` rows of `k`. `None` if they cannot be counted.
    pub fn byte_len(rows: usize, k: usize) -> Option<usize> {
        let row = Self::padded(k)?.checked_mul(size_of::<u16>())?;
        row.checked_add(size_of::<i32>())?.checked_mul(rows)
    }

    /// Columns with those that fill up to 16 bytes.
    fn padded(k: usize) -> Option<usize> {
        k.checked_next_multiple_of(ROW_ELEMENTS)
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns, of which more are there: zeros up to a multiple of 8.
    pub fn k(&self) -> usize {
        self.k
    }

    /// From a row to the next, in elements.
    pub(super) fn stride(&self) -> usize {
        self.halves.len() / self.rows
    }

    /// Rows of `k` that an earlier launch on the stream has left in `bytes`.
    ///
    /// # Errors
    /// `bytes` is not as long as [`Self::byte_len`] says, or a dimension is 0 or too large.
    pub fn written(bytes: &HipBuffer<u8>, dims: [usize; 2]) -> KernelResult<Self> {
        Self::room(Check(OP), bytes, dims)
    }

    /// The room for rows in memory that is as long as [`Self::byte_len`].
    fn room(check: Check, to: &HipBuffer<u8>, [rows, k]: [usize; 2]) -> KernelResult<Self> {
        check.dim("rows", rows)?;
        check.dim_to("k", k, MAX_COLUMNS)?;
        let bytes = Self::byte_len(rows, k).unwrap_or(usize::MAX);
        check.len("to", to, &[bytes])?;
        check.aligned("to", to, ROW_BYTES)?;
        let split = bytes - rows * size_of::<i32>();
        Ok(Self {
            halves: to.view(0..split)?.cast()?,
            exponents: to.view(split..bytes)?.cast()?,
            rows,
            k,
        })
    }
}

/// A matrix of weights `[n, k]`.
#[derive(Debug, Clone, Copy)]
pub enum WeightMatrix<'a> {
    /// In the order of [`PackedWeights`].
    Packed(&'a PackedWeights),
    /// In ggml's order, row by row, at a multiple of [`WeightType::alignment`].
    Plain(WeightType, &'a HipBuffer<u8>, [usize; 2]),
}

impl WeightMatrix<'_> {
    /// Rows and columns.
    pub fn shape(&self) -> [usize; 2] {
        match self {
            Self::Packed(packed) => [packed.n(), packed.k()],
            Self::Plain(_, _, shape) => *shape,
        }
    }

    fn ty(&self) -> WeightType {
        match self {
            Self::Packed(packed) => packed.ty(),
            Self::Plain(ty, _, _) => *ty,
        }
    }

    pub(super) fn bytes(&self) -> &HipBuffer<u8> {
        match self {
            Self::Packed(packed) => packed.bytes(),
            Self::Plain(_, bytes, _) => bytes,
        }
    }

    /// Checks lengths and alignment of weights in ggml's order.
    pub(super) fn check(&self, check: Check) -> KernelResult<()> {
        let [n, k] = self.shape();
        check.dim_to("n", n, MAX_COLUMNS)?;
        check.dim_to("k", k, MAX_COLUMNS)?;
        match self {
            Self::Packed(_) => Ok(()),
            Self::Plain(ty, bytes, shape) => check.weights(*ty, ("w", bytes), *shape),
        }
    }

    /// The weights where they are, if they are rows of f16 that products read.
    pub(super) fn as_halves(&self) -> KernelResult<Option<HipBuffer<u16>>> {
        match self {
            Self::Plain(WeightType::F16, bytes, [_, k])
                if k.is_multiple_of(ROW_ELEMENTS) && bytes.as_device_ptr().addr().is_multiple_of(ROW_BYTES) =>
            {
                Ok(Some(bytes.cast()?))
            }
            _ => Ok(None),
        }
    }
}

impl Kernels {
    /// `x` `[m, k]` as rows of f16 in `to`, of [`HalfRows::byte_len`] bytes at an address that is a multiple of 16. A row with an infinite value or
    /// a NaN has one at the same place.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` over 2^24 - 1, an address that is no multiple of 16.
    pub fn half_rows(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        to: &HipBuffer<u8>,
        [m, k]: [usize; 2],
    ) -> KernelResult<HalfRows> {
        let w = x.cast()?;
        self.half_rows_of(stream, WeightMatrix::Plain(WeightType::F32, &w, [m, k]), 0..m, to)
    }

    /// Some rows of weights as f16 in `to`, of [`HalfRows::byte_len`] bytes at an address that is a multiple of 16.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, no rows or more than there are, `k` over 2^24 - 1 or no multiple of the type's block, addresses that are no multiples
    /// of 16 and of [`WeightType::alignment`].
    pub fn half_rows_of(
        &self,
        stream: &HipStream,
        w: WeightMatrix<'_>,
        rows: Range<usize>,
        to: &HipBuffer<u8>,
    ) -> KernelResult<HalfRows> {
        let op = self.op(OP);
        w.check(op.check())?;
        let [n, k] = w.shape();
        if rows.end > n {
            return Err(KernelError::Dimension {
                op: OP,
                dim: "rows",
                value: rows.end,
                limit: n,
            });
        }
        let out = HalfRows::room(op.check(), to, [rows.len(), k])?;
        // Of the whole matrix: the kernel's operand is a part of it.
        op.disjoint(("to", to), ("w", w.bytes()))?;
        let (count, columns) = (rows.len() as u32, k as u32);
        let (name, part, first) = match &w {
            WeightMatrix::Packed(packed) => (
                packed.kernels(op.check())?.half_rows,
                packed.bytes().clone(),
                Some(rows.start as u32),
            ),
            WeightMatrix::Plain(ty, bytes, _) => {
                let row = bytes.len() / n;
                let part = bytes.view(rows.start * row..rows.end * row)?;
                (ty.format().half_rows, part, None)
            }
        };
        let kernel = geometry::by_row(count, columns, name, name);
        let op = (op.reads("w", &part).writes("to", &out.halves, &[])).writes("to", &out.exponents, &[]);
        let op = match first {
            Some(first) => op.values([first, count, n as u32]),
            None => op.value(count),
        };
        (op.value(columns).value(out.stride() as u64)).run(stream, w.ty().format().half_rows_family, kernel)?;
        Ok(out)
    }
}
