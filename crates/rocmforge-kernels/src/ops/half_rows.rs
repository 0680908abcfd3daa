//! Rows of f16 with a power of two each, made from f32 and from weights of every type.

use super::matvec_q8::{PackedWeights, packed};
use crate::check::{Check, MAX_COLUMNS};
use crate::declared::{Call, Declared, by_weight_type};
use crate::weight_type::Products;
use crate::{KernelResult, Kernels, KvType, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};
use std::ops::Range;

pub(super) const DECLARED: &[Declared] = &[OF_FLOATS];
pub(super) const PLAIN: &[Declared] = by_weight_type!(of_plain, rows_of);
pub(super) const PACKED: &[Declared] = by_weight_type!(of_packed, rows_of, packable);

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
    pub(super) fn room(check: Check, to: &HipBuffer<u8>, [rows, k]: [usize; 2]) -> KernelResult<Self> {
        check.dim("rows", rows)?;
        check.dim_to("k", k, MAX_COLUMNS)?;
        let bytes = Self::byte_len(rows, k).unwrap_or(usize::MAX);
        check.len_at("to", to, &[bytes], ROW_BYTES)?;
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
        op.at_most("rows", rows.end, n)?;
        let out = HalfRows::room(op.check(), to, [rows.len(), k])?;
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
        let kernel = match w.ty().format().products {
            Products::Each { .. } => geometry::by_row(count, columns, name, name),
            Products::Eights(_) => (name, geometry::config([count, 1, 1], 256)),
        };
        // Apart from the whole matrix: the kernel's operand is a part of it.
        let op = op.reads_later("w", w.bytes()).writes_later("to", to);
        let op = op.part_read(&part).part(&out.halves).part(&out.exponents);
        let op = match first {
            Some(first) => op.values([first, count, n as u32]),
            None => op.value(count),
        };
        (op.value(columns).value(out.stride() as u64)).run(stream, w.ty().format().half_rows_family, kernel)?;
        Ok(out)
    }
}

/// Rows and columns, of which the second half of the rows is made.
const fn rows_of(ty: WeightType) -> Declared {
    Declared {
        name: "half_rows_of",
        tested: match ty.block_len() {
            1 => &[&[1, 1], &[3, 33], &[9, 8], &[2, 1025]],
            32 => &[&[1, 32], &[3, 96], &[2, 1056]],
            _ => &[&[1, 256], &[3, 768], &[2, 1280]],
        },
        // `counters` has its launches.
        ..Declared::NEW
    }
}

fn of_plain(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let w = c.weights("w", ty, n * k)?;
    made(c, WeightMatrix::Plain(ty, &w, [n, k]), "w")
}

fn of_packed(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    made(c, WeightMatrix::Packed(&w), "blocks of w")
}

fn made(c: &mut Call<'_>, w: WeightMatrix<'_>, blocks: &'static str) -> KernelResult<()> {
    let ([n, k], ty) = (w.shape(), w.ty());
    let rows = n / 2..n;
    let to = c.output_bytes("to", HalfRows::byte_len(rows.len(), k).unwrap_or(0))?;
    c.kernels.half_rows_of(c.stream, w, rows.clone(), &to)?;
    let values = |c: &Call<'_>| reference::dequantize(ty, c.u8(blocks))[rows.start * k..].to_vec();
    if ty.block_len() == 1 {
        c.expect_bytes("to", |c| defined(&values(c), k));
    } else {
        // A weight is rounded to f32 before it is f16: a step of the largest numbers.
        c.expect_typed("to", KvType::F16, 16.0, |c| {
            reference::kv_values(KvType::F16, &defined(&values(c), k))
        });
    }
    Ok(())
}

/// Rows of f32.
const OF_FLOATS: Declared = Declared {
    name: "half_rows",
    call: |c, dims| {
        let &[m, k] = dims else { return Ok(()) };
        let x = c.input("w", m * k, -3.0..3.0)?;
        let to = c.output_bytes("to", HalfRows::byte_len(m, k).unwrap_or(0))?;
        c.kernels.half_rows(c.stream, &x, &to, [m, k])?;
        c.expect_bytes("to", |c| defined(&reference::wide(c.f32("w")), k));
        Ok(())
    },
    ..rows_of(WeightType::F32)
};

/// Rows of `k` as f16 with zeros up to a multiple of 8, then the power of two of each: its largest magnitude becomes 2^14 to 2^15.
fn defined(values: &[f64], k: usize) -> Vec<u8> {
    let mut exponents = Vec::new();
    let mut bytes = Vec::new();
    for row in values.chunks(k) {
        let largest = row.iter().fold(0f64, |most, x| most.max(x.abs()));
        let exponent = (largest.log2().floor() as i32).saturating_sub(14).clamp(-126, 113);
        let scaled = row.iter().map(|x| (x * f64::from(-exponent).exp2()) as f32);
        let fill = std::iter::repeat_n(0.0, k.next_multiple_of(ROW_ELEMENTS) - k);
        bytes.extend(reference::kv_bytes(
            KvType::F16,
            &scaled.chain(fill).collect::<Vec<f32>>(),
        ));
        exponents.extend(exponent.to_le_bytes());
    }
    bytes.extend(exponents);
    bytes
}
