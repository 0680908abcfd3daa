//! Products of packed weights with a few rows of activations of 8 bits.

use super::row_input::RowInput;
use super::weights::weights;
use crate::check::{Check, MAX_COLUMNS};
use crate::weight_type::Packed;
use crate::{Faults, KernelError, KernelResult, Kernels, WeightType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs, LaunchConfig};

/// Activations that share a scale.
const BLOCK: usize = 32;
/// Bytes of a block: 32 integers, their scale and their sums.
const BLOCK_BYTES: usize = 40;
/// The family of products of many rows, and of rows of packed matrices.
const ROWS: &str = "packed_rows";
/// What the addresses of packed weights and 8-bit activations are multiples of.
const ALIGNMENT: usize = 16;
/// The most rows of activations.
const MAX_ROWS: usize = 8;
/// Blocks of the grid for each multiprocessor: those that the kernels' registers leave room for on NVIDIA's cards. Each takes an even share
/// of the rows, so more would only load the activations more often.
pub(super) const RESIDENT: u32 = 2;

/// A matrix of quantised weights in the order that [`Kernels::matvec_q8`] reads. It takes as many bytes as the blocks it was made of.
#[derive(Debug, Clone)]
pub struct PackedWeights {
    bytes: HipBuffer<u8>,
    ty: WeightType,
    n: u32,
    k: u32,
}

impl PackedWeights {
    pub(super) fn bytes(&self) -> &HipBuffer<u8> {
        &self.bytes
    }

    pub(super) fn kernels(&self, check: Check) -> KernelResult<&'static Packed> {
        let Self { ty, .. } = *self;
        ty.packed().ok_or(KernelError::NotPackable { op: check.0, ty })
    }

    /// The type of the weights.
    pub fn ty(&self) -> WeightType {
        self.ty
    }

    /// Rows: the length of a product.
    pub fn n(&self) -> usize {
        self.n as usize
    }

    /// Columns: the length of a row of activations.
    pub fn k(&self) -> usize {
        self.k as usize
    }
}

/// A packed matrix that does not have all of its rows yet: what [`Kernels::pack_rows`] fills.
#[derive(Debug)]
pub struct WeightPacking {
    matrix: PackedWeights,
    /// Rows that are there.
    rows: u32,
}

/// What a product is added to: `sum = y + of`. All are `[m, n]`.
#[derive(Debug, Clone, Copy)]
pub struct Residual<'a> {
    /// The other summand, apart from the product.
    pub of: &'a HipBuffer<f32>,
    /// The sum. It may be `of`, or the product, which is then not kept.
    pub sum: &'a HipBuffer<f32>,
}

const PACK: &str = "pack_weight";

impl WeightPacking {
    /// A matrix `[n, k]` of type `ty` in `packed`, which has as many bytes as its blocks and an address that is a multiple of 16.
    ///
    /// # Errors
    ///
    /// As [`Kernels::pack_weight`].
    pub fn new(ty: WeightType, packed: HipBuffer<u8>, [n, k]: [usize; 2]) -> KernelResult<Self> {
        let check = Check(PACK);
        if !ty.is_packable() {
            return Err(KernelError::NotPackable { op: check.0, ty });
        }
        let (rows, cols) = (check.dim_to("n", n, MAX_COLUMNS)?, check.dim_to("k", k, MAX_COLUMNS)?);
        weights(check, ty, ("packed", &packed), [n, k])?;
        check.aligned("packed", &packed, ALIGNMENT)?;
        check.dim("blocks of 32 weights", check.elements("packed", &[n, k / BLOCK])?)?;
        let matrix = PackedWeights {
            bytes: packed,
            ty,
            n: rows,
            k: cols,
        };
        Ok(Self { matrix, rows: 0 })
    }

    /// The matrix, once it has all rows.
    ///
    /// # Errors
    ///
    /// Rows are missing.
    pub fn finish(self) -> KernelResult<PackedWeights> {
        let (rows, n) = (self.rows as usize, self.matrix.n as usize);
        Check(PACK).holds(rows == n, "the matrix must have all of its rows", rows, n)?;
        Ok(self.matrix)
    }
}

/// Rows of activations as 8-bit integers, 32 to a scale: what [`Kernels::quantize_q8`] makes.
#[derive(Debug, Clone)]
pub struct Q8Activations {
    bytes: HipBuffer<u8>,
    m: usize,
    k: usize,
}

impl Q8Activations {
    /// Checks that `to` can hold `m` rows of `k`.
    pub(super) fn room(check: Check, to: &HipBuffer<u8>, [m, k]: [usize; 2]) -> KernelResult<()> {
        check.multiple("a row must be whole blocks", k, BLOCK)?;
        check.len("to", to, &[m, k / BLOCK, BLOCK_BYTES])?;
        check.aligned("to", to, ALIGNMENT)
    }

    /// What a kernel has written to a buffer with [`Self::room`].
    pub(super) const fn new(bytes: HipBuffer<u8>, [m, k]: [usize; 2]) -> Self {
        Self { bytes, m, k }
    }

    /// `m` rows of `k` that an earlier launch on the stream has left in `bytes`.
    ///
    /// # Errors
    /// `bytes` has another length, or `k` is no multiple of 32.
    pub fn written(bytes: HipBuffer<u8>, dims: [usize; 2]) -> KernelResult<Self> {
        Self::room(Check("quantize_q8"), &bytes, dims)?;
        Ok(Self::new(bytes, dims))
    }

    /// Bytes of `m` rows of `k`. `None` if `k` is no multiple of 32, or the product overflows.
    pub fn byte_len(m: usize, k: usize) -> Option<usize> {
        match k % BLOCK {
            0 => (k / BLOCK * BLOCK_BYTES).checked_mul(m),
            _ => None,
        }
    }

    /// Rows.
    pub fn m(&self) -> usize {
        self.m
    }

    /// Columns.
    pub fn k(&self) -> usize {
        self.k
    }
}

impl Kernels {
    /// Packs weights `[n, k]` of type `ty` into `packed`, which has as many bytes and an address that is a multiple of 16. No bit is lost.
    ///
    /// # Errors
    ///
    /// A type that is not [packable](WeightType::is_packable), wrong lengths, overlap, a dimension of 0, `k` that is no multiple of the
    /// type's block or over 2^24 - 1, 2^37 weights or more, addresses that are no multiples of 16 and of [`WeightType::alignment`].
    pub fn pack_weight(
        &self,
        stream: &HipStream,
        ty: WeightType,
        w: &HipBuffer<u8>,
        packed: HipBuffer<u8>,
        shape: [usize; 2],
    ) -> KernelResult<PackedWeights> {
        let mut packing = WeightPacking::new(ty, packed, shape)?;
        self.pack_rows(stream, &mut packing, w, shape[0])?;
        packing.finish()
    }

    /// Packs the next `rows` rows of a matrix, in ggml's blocks.
    ///
    /// # Errors
    ///
    /// More rows than are missing, 0 rows, a wrong length, overlap with the matrix, an address that is no multiple of [`WeightType::alignment`].
    pub fn pack_rows(
        &self,
        stream: &HipStream,
        packing: &mut WeightPacking,
        w: &HipBuffer<u8>,
        rows: usize,
    ) -> KernelResult<()> {
        let check = Check(PACK);
        let PackedWeights { bytes, ty, n, k } = &packing.matrix;
        let count = check.dim_to("rows", rows, (n - packing.rows) as usize)?;
        weights(check, *ty, ("w", w), [rows, *k as usize])?;
        check.disjoint(("packed", bytes), ("w", w))?;
        let kernels = packing.matrix.kernels(check)?;
        let row_blocks = k / BLOCK as u32;
        // All blocks of the matrix are below 2^32: `WeightPacking::new`.
        let blocks = count * row_blocks;
        let args = LaunchArgs::new().buffer(w).out(bytes).value(u64::from(n * row_blocks));
        let args = args.values([u64::from(packing.rows * row_blocks), u64::from(blocks)]);
        let config = geometry::config([blocks.div_ceil(256), 1, 1], 256);
        // SAFETY: w holds `count` rows of whole blocks, aligned; the matrix has its length and alignment since `WeightPacking::new` and room for
        // so many rows more; they are apart: checked above.
        unsafe { self.launch(stream, "pack_weights", kernels.pack, config, args) }?;
        packing.rows += count;
        Ok(())
    }

    /// `x` `[m, k]` as 8-bit integers in `to`, of [`Q8Activations::byte_len`] bytes at an address that is a multiple of 16. Of 32 neighbours the
    /// largest magnitude becomes 127, the others the nearest integers. Magnitudes below 2^-100 are 0; where one of 32 is infinite or NaN,
    /// products with them are NaN.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` that is no multiple of 32, an address that is no multiple of 16.
    pub fn quantize_q8(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        to: HipBuffer<u8>,
        [m, k]: [usize; 2],
    ) -> KernelResult<Q8Activations> {
        let check = Check("quantize_q8");
        check.dim("m", m)?;
        check.dim_to("k", k, MAX_COLUMNS)?;
        Q8Activations::room(check, &to, [m, k])?;
        check.len("x", x, &[m, k])?;
        check.disjoint(("to", &to), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(&to).value(x.len() as u64);
        // SAFETY: lengths are those of the shape, blocks are whole, nothing overlaps: checked above.
        unsafe {
            self.launch(
                stream,
                "quantize_q8",
                "quantize_q8",
                geometry::flat(x.len() as u64),
                args,
            )
        }?;
        Ok(Q8Activations::new(to, [m, k]))
    }

    /// `y = x w^T (+ bias)` for one to eight rows of activations: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `y` `[m, n]`. Products of integers
    /// are exact; they are scaled and summed in f32.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, more than 8 rows, activations and weights that differ in `k`.
    pub fn matvec_q8(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &Q8Activations,
        bias: Option<&HipBuffer<f32>>,
        residual: Option<Residual<'_>>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let check = Check("matvec_q8");
        let rows = check.dim_to("m", x.m, MAX_ROWS)?;
        check.holds(
            x.k == w.k(),
            "weights and activations must have as many columns",
            w.k(),
            x.k,
        )?;
        check.disjoint(("y", y), ("x", &x.bytes))?;
        if let Some(Residual { sum, .. }) = residual {
            check.disjoint(("sum", sum), ("x", &x.bytes))?;
        }
        outputs(check, w, bias, residual, y, x.m)?;
        let kernels = w.kernels(check)?;
        let most = kernels.matvec.iter().find(|matvec| x.m <= matvec.most);
        let matvec = most.unwrap_or(&kernels.matvec[2]); // eight: checked above
        let args = LaunchArgs::new().buffer(&w.bytes).buffer(&x.bytes);
        let args = results(args, bias, residual, y).value(rows);
        let (args, config) = self.shared_out(args, w, matvec.rows);
        // SAFETY: weights and activations have their lengths and alignment since they were made, the other lengths are those of the
        // shapes, y and sum overlap nothing but sum may be y or the residual: checked above. All blocks together have every group once.
        unsafe { self.launch(stream, kernels.family, matvec.name, config, args) }
    }

    /// `y = x w^T (+ bias)` for one row of f32 activations, which the kernel rounds to 8 bits: weights `[n, k]` with `k` at most
    /// [`RowInput::MAX_COLUMNS`], `bias` and `y` `[n]`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, more columns, an `eps` that is negative or not finite.
    pub fn matvec_q8_row(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: RowInput<'_>,
        bias: Option<&HipBuffer<f32>>,
        residual: Option<Residual<'_>>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let check = Check("matvec_q8_row");
        x.check(check, w.k())?;
        x.apart(check, "y", y)?;
        x.apart_from(check, "w", &w.bytes)?;
        if let Some(bias) = bias {
            x.apart_from(check, "bias", bias)?;
        }
        if let Some(Residual { of, sum }) = residual {
            x.apart(check, "sum", sum)?;
            x.apart_from(check, "residual", of)?;
        }
        outputs(check, w, bias, residual, y, 1)?;
        let kernels = w.kernels(check)?;
        let args = x.args(LaunchArgs::new().buffer(&w.bytes));
        let (args, config) = self.shared_out(results(args, bias, residual, y), w, kernels.group);
        // SAFETY: the weights have their length and alignment since they were made, the other lengths are those of the shapes, outputs overlap
        // nothing but sum may be y or the residual: checked above. All blocks together have every group once.
        unsafe { self.launch(stream, kernels.family, kernels.row, config, args) }
    }

    /// The last arguments of a product with one matrix, and the grid: equal shares of the groups of `rows` rows.
    fn shared_out<'a>(&self, args: LaunchArgs<'a>, w: &PackedWeights, rows: u32) -> (LaunchArgs<'a>, LaunchConfig) {
        let groups = w.n.div_ceil(rows);
        let blocks = self.packed_blocks(groups);
        let args = (args.values([w.n, w.k / BLOCK as u32])).values([groups / blocks, groups % blocks]);
        (args, geometry::config([blocks, 1, 1], 256))
    }

    /// `y = x w^T (+ bias)` for any number of rows of f32 activations: `x` `[m, k]`, `bias` `[n]`, `y` `[m, n]`. Bit for bit what
    /// [`matmul_weight`](Self::matmul_weight) gives for more than 8 rows with the same weights in ggml's blocks.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0.
    pub fn matmul_packed(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &HipBuffer<f32>,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        m: usize,
    ) -> KernelResult<()> {
        let check = Check("matmul_packed");
        let rows = check.dim("m", m)?;
        check.len("x", x, &[m, w.k()])?;
        check.len("y", y, &[m, w.n()])?;
        check.disjoint(("y", y), ("w", &w.bytes))?;
        check.disjoint(("y", y), ("x", x))?;
        check.bias(bias, w.n(), y)?;
        let args = LaunchArgs::new().buffer(&w.bytes).buffer(x).buffer_or_null(bias);
        let args = args.out(y).values([rows, w.n, w.k]);
        let kernels = w.kernels(check)?;
        let config = geometry::gemm(rows, w.n, 1);
        // SAFETY: the matrix has its length and alignment since it was made, the other lengths are those of the shapes, y overlaps nothing:
        // checked above.
        unsafe { self.launch(stream, ROWS, kernels.matmul, config, args) }
    }

    /// `y[r, :] = table[ids[r], :]` in f32, for a packed table and as many rows as there are ids. An id that is not below the table's rows
    /// reads nothing, gives a row of NaN and is a fault at position r.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, no ids, a tag over 4095.
    pub fn get_rows_packed(
        &self,
        stream: &HipStream,
        table: &PackedWeights,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("get_rows_packed");
        let rows = check.dim("ids", ids.len())?;
        check.len("y", y, &[ids.len(), table.k()])?;
        check.disjoint(("y", y), ("table", &table.bytes))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let args = LaunchArgs::new().buffer(&table.bytes).buffer(ids).out(y);
        let args = args.values([rows, table.k, table.n]);
        let args = faults.args(check, args)?;
        let kernels = table.kernels(check)?;
        let config = geometry::row_tile(rows, table.k);
        // SAFETY: the table has its length and alignment since it was made, the other lengths are those of the shapes, nothing overlaps, checked
        // above; the kernel compares each id with the table's rows.
        unsafe { self.launch(stream, ROWS, kernels.get_rows, config, args) }
    }
}

/// Checks what a product of `m` rows writes, and what it adds.
fn outputs(
    check: Check,
    w: &PackedWeights,
    bias: Option<&HipBuffer<f32>>,
    residual: Option<Residual<'_>>,
    y: &HipBuffer<f32>,
    m: usize,
) -> KernelResult<()> {
    check.len("y", y, &[m, w.n()])?;
    check.disjoint(("y", y), ("w", &w.bytes))?;
    check.bias(bias, w.n(), y)?;
    let Some(Residual { of, sum }) = residual else {
        return Ok(());
    };
    check.input("residual", of, &[m, w.n()], ("y", y))?;
    check.len("sum", sum, &[m, w.n()])?;
    check.in_place(("sum", sum), ("y", y))?;
    check.in_place(("sum", sum), ("residual", of))?;
    check.disjoint(("sum", sum), ("w", &w.bytes))?;
    match bias {
        Some(bias) => check.disjoint(("sum", sum), ("bias", bias)),
        None => Ok(()),
    }
}

/// The kernels' arguments for them.
fn results<'a>(
    args: LaunchArgs<'a>,
    bias: Option<&'a HipBuffer<f32>>,
    residual: Option<Residual<'a>>,
    y: &'a HipBuffer<f32>,
) -> LaunchArgs<'a> {
    args.buffer_or_null(bias)
        .buffer_or_null(residual.map(|residual| residual.of))
        .out(y)
        .out_or_null(residual.map(|residual| residual.sum))
}
