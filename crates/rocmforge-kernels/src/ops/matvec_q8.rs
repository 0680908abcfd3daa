//! Products of packed weights with a few rows of activations of 8 bits.

use super::row_input::{RowInput, RowNorm};
use crate::check::{Check, MAX_COLUMNS};
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::launch::Launch;
use crate::weight_type::Packed;
use crate::{Faults, KernelError, KernelResult, Kernels, Parameter, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const DECLARED: &[Declared] = by_weight_type!(matvec, matvec_of, packable);
pub(super) const QUANTIZE: &[Declared] = &[QUANTIZE_Q8, QUANTIZE_Q8_ROWS];
pub(super) const PACKING: &[Declared] = by_weight_type!(pack, pack_of, packable);
pub(super) const PACKING_ROWS: &[Declared] = by_weight_type!(pack_in_two, in_two_of, packable);
pub(super) const ROW: &[Declared] = by_weight_type!(row, row_of, packable);
pub(super) const MANY: &[Declared] = by_weight_type!(many, many_of, packable);
pub(super) const TABLE: &[Declared] = by_weight_type!(table, table_of, packable);

/// Activations that share a scale.
pub(super) const BLOCK: usize = 32;
/// Bytes of a block: 32 integers, their scale and their sums.
pub(super) const BLOCK_BYTES: usize = 40;
/// The family of products of many rows, and of rows of packed matrices.
const ROWS: &str = "packed_rows";
/// What the addresses of packed weights and 8-bit activations are multiples of.
const ALIGNMENT: usize = 16;
/// The most rows of activations.
const MAX_ROWS: usize = 8;

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
        packable(check, self.ty)
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

/// The kernels of a type that can be packed.
fn packable(check: Check, ty: WeightType) -> KernelResult<&'static Packed> {
    ty.packed().ok_or(KernelError::NotPackable { op: check.0, ty })
}

impl WeightPacking {
    /// A matrix `[n, k]` of type `ty` in `packed`, which has as many bytes as its blocks and an address that is a multiple of 16.
    ///
    /// # Errors
    ///
    /// As [`Kernels::pack_weight`].
    pub fn new(ty: WeightType, packed: HipBuffer<u8>, [n, k]: [usize; 2]) -> KernelResult<Self> {
        let check = Check(PACK);
        packable(check, ty)?;
        let (rows, cols) = (check.dim_to("n", n, MAX_COLUMNS)?, check.dim_to("k", k, MAX_COLUMNS)?);
        check.weights(ty, ("packed", &packed), [n, k])?;
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
        check.len_at("to", to, &[m, k / BLOCK, BLOCK_BYTES], ALIGNMENT)
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

    pub(super) fn bytes(&self) -> &HipBuffer<u8> {
        &self.bytes
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
        let op = self.op(PACK);
        let PackedWeights { bytes, ty, n, k } = &packing.matrix;
        let count = op.dim_to("rows", rows, (n - packing.rows) as usize)?;
        let kernels = packing.matrix.kernels(op.check())?;
        let row_blocks = k / BLOCK as u32;
        // All blocks of the matrix are below 2^32: `WeightPacking::new`.
        let blocks = count * row_blocks;
        let config = geometry::config([blocks.div_ceil(256), 1, 1], 256);
        (op.weights("w", *ty, w, [rows, *k as usize])?
            .writes("packed", bytes, &[]))
        .values([n * row_blocks, packing.rows * row_blocks, blocks].map(u64::from))
        .run(stream, "pack_weights", (kernels.pack, config))?;
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
        let op = self.op("quantize_q8");
        op.dim("m", m)?;
        op.dim_to("k", k, MAX_COLUMNS)?;
        Q8Activations::room(op.check(), &to, [m, k])?;
        let n = x.len() as u64;
        (op.read("x", x, &[m, k])?.writes("to", &to, &[]).value(n)).run(
            stream,
            "quantize_q8",
            ("quantize_q8", geometry::flat(n)),
        )?;
        Ok(Q8Activations::new(to, [m, k]))
    }

    /// [`quantize_q8`](Self::quantize_q8) of rows of `k` elements that lie `step` elements apart, as a part of longer rows does.
    ///
    /// # Errors
    ///
    /// The same, a `step` below `k`, over 2^34 elements.
    pub fn quantize_q8_rows(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        to: HipBuffer<u8>,
        [m, k]: [usize; 2],
        step: usize,
    ) -> KernelResult<Q8Activations> {
        let op = self.op("quantize_q8_rows");
        op.dim("m", m)?;
        let cols = op.dim_to("k", k, MAX_COLUMNS)?;
        Q8Activations::room(op.check(), &to, [m, k])?;
        // The kernel counts fours in 32 bits.
        op.rows("fours of x", &[m, k / 4])?;
        let n = (m * k) as u64;
        (op.read_rows("x", x, [m, k], step)?.writes("to", &to, &[]))
            .value(n)
            .value(cols)
            .value(step as u64)
            .run(stream, "quantize_q8", ("quantize_q8_rows", geometry::flat(n)))?;
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
        let op = self.op("matvec_q8");
        let rows = op.dim_to("m", x.m, MAX_ROWS)?;
        let rule = "weights and activations must have as many columns";
        op.holds(x.k == w.k(), rule, w.k(), x.k)?;
        let kernels = w.kernels(op.check())?;
        let most = kernels.matvec.iter().find(|matvec| x.m <= matvec.most);
        let matvec = most.unwrap_or(&kernels.matvec[2]); // eight: checked above
        let (share, config) = self.shares(w.n.div_ceil(matvec.rows), (kernels.family, matvec.name))?;
        let op = op.reads("w", &w.bytes).reads("x", &x.bytes);
        results(op, [x.m, w.n()], bias, residual, y)?
            .values([rows, w.n, w.k / BLOCK as u32])
            .values(share)
            .run(stream, kernels.family, (matvec.name, config))
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
        let op = self.op("matvec_q8_row");
        let kernels = w.kernels(op.check())?;
        let (share, config) = self.shares(w.n.div_ceil(kernels.group), (kernels.family, kernels.row))?;
        let op = x.read(op.reads("w", &w.bytes), w.k())?;
        results(op, [1, w.n()], bias, residual, y)?
            .values([w.n, w.k / BLOCK as u32])
            .values(share)
            .run(stream, kernels.family, (kernels.row, config))
    }

    /// Blocks of so many threads that share out the rows of weights: each loads the activations, so more than the card runs at once are seldom faster.
    pub(super) fn resident_blocks(&self, threads: u32) -> u32 {
        let of_one = self.tuning().value(Parameter::ProductThreads) / threads;
        self.backend().device().multiprocessors.max(1) * of_one.max(1)
    }

    /// Groups of rows for each block of a kernel's grid and those that are left, and the grid. All blocks together have every group once. A block
    /// has the threads that the device's code is made for: on NVIDIA's cards one row of activations has twice as many.
    pub(super) fn shares(
        &self,
        groups: u32,
        (family, kernel): (&'static str, &'static str),
    ) -> KernelResult<([u32; 2], LaunchConfig)> {
        let threads = self.kernel(family, kernel)?.meta().max_workgroup_size;
        let blocks = groups.min(self.resident_blocks(threads));
        let config = geometry::config([blocks, 1, 1], threads);
        Ok(([groups / blocks, groups % blocks], config))
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
        let op = self.op("matmul_packed");
        let rows = op.dim("m", m)?;
        let kernels = w.kernels(op.check())?;
        (op.reads("w", &w.bytes).read("x", x, &[m, w.k()])?)
            .read_or_null("bias", bias, &[w.n()])?
            .write("y", y, &[m, w.n()], &[])?
            .values([rows, w.n, w.k])
            .run(stream, ROWS, (kernels.matmul, geometry::gemm(rows, w.n, 1)))
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
        let op = self.op("get_rows_packed");
        let rows = op.dim("ids", ids.len())?;
        let kernels = table.kernels(op.check())?;
        (op.reads("table", &table.bytes).read("ids", ids, &[ids.len()])?)
            .write("y", y, &[ids.len(), table.k()], &[])?
            .values([rows, table.k, table.n])
            .faults(faults)?
            .run(stream, ROWS, (kernels.get_rows, geometry::row_tile(rows, table.k)))
    }
}

/// What a product `[m, n]` adds and writes: the kernels' arguments in their order.
fn results<'k, 'a>(
    op: Launch<'k, 'a>,
    shape: [usize; 2],
    bias: Option<&'a HipBuffer<f32>>,
    residual: Option<Residual<'a>>,
    y: &'a HipBuffer<f32>,
) -> KernelResult<Launch<'k, 'a>> {
    op.read_or_null("bias", bias, &shape[1..])?
        .read_or_null("residual", residual.map(|residual| residual.of), &shape)?
        .write("y", y, &shape, &[])?
        .write_or_null("sum", residual.map(|residual| residual.sum), &shape, &["y", "residual"])
}

/// A packed matrix `[n, k]` as the operand `name`, of blocks that have a name, too.
pub(super) fn packed(
    c: &mut Call<'_>,
    [blocks, name]: [&'static str; 2],
    ty: WeightType,
    [n, k]: [usize; 2],
) -> KernelResult<PackedWeights> {
    let w = c.weights(blocks, ty, n * k)?;
    let to = c.output_bytes(name, n * k / ty.block_len() * ty.block_bytes())?;
    c.preparing().pack_weight(c.stream, ty, &w, to, [n, k])
}

fn expect_packed(c: &mut Call<'_>, ty: WeightType) {
    c.expect_bytes("packed", |c| reference::packed(ty, c.u8("w")));
}

fn pack(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let w = c.weights("w", ty, n * k)?;
    let packed = c.output_bytes("packed", n * k / ty.block_len() * ty.block_bytes())?;
    c.kernels.pack_weight(c.stream, ty, &w, packed, [n, k])?;
    expect_packed(c, ty);
    Ok(())
}

/// The first row alone, then the others.
fn pack_in_two(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let w = c.weights("w", ty, n * k)?;
    let packed = c.output_bytes("packed", n * k / ty.block_len() * ty.block_bytes())?;
    let mut packing = WeightPacking::new(ty, packed, [n, k])?;
    let first = w.len() / n;
    c.kernels.pack_rows(c.stream, &mut packing, &w.view(0..first)?, 1)?;
    c.kernels
        .pack_rows(c.stream, &mut packing, &w.view(first..w.len())?, n - 1)?;
    packing.finish()?;
    expect_packed(c, ty);
    Ok(())
}

const fn pack_of(ty: WeightType) -> Declared {
    Declared {
        name: "pack_weight",
        tested: match ty.block_len() {
            32 => &[&[1, 32], &[5, 96], &[33, 288]],
            _ => &[&[1, 256], &[5, 768], &[33, 256]],
        },
        // `counters` and `bytes` have its launches, of every type.
        ..Declared::NEW
    }
}

const fn in_two_of(ty: WeightType) -> Declared {
    Declared {
        name: "pack_rows",
        tested: match ty.block_len() {
            32 => &[&[2, 32], &[33, 288]],
            _ => &[&[2, 256], &[11, 768]],
        },
        ..pack_of(ty)
    }
}

/// `n` activations that 8 bits hold: the largest of 32 is a power of two, another one for each of four neighbours, and the others are multiples of 1 / 127 of it,
/// so that none lies between two integers.
pub(super) fn activations(n: usize) -> Vec<f32> {
    let integer = |i: usize| {
        if i.is_multiple_of(BLOCK) {
            127
        } else {
            (i * 7919 % 255) as i32 - 127
        }
    };
    let scale = |i: usize| 0.5f32.powi((i / BLOCK % 4) as i32);
    (0..n).map(|i| integer(i) as f32 / 127.0 * scale(i)).collect()
}

/// What rounding may change in products of weights and activations of up to 1: it grows with the sum of the products' sizes.
pub(super) fn rounding(ty: WeightType, w: &[u8], k: usize) -> f64 {
    let weights = reference::dequantize(ty, w);
    let sizes = weights.chunks(k).map(|w| w.iter().map(|w| w.abs()).sum());
    5e-7 * sizes.fold(1.0, f64::max)
}

/// Rows of activations, rows and columns of weights. A bias is added where the rows of weights are odd.
fn matvec(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    let x = c.floats("values of x", activations(m * k))?;
    let to = c.output_bytes("x", m * (k / BLOCK) * BLOCK_BYTES)?;
    let x = c.preparing().quantize_q8(c.stream, &x, to, [m, k])?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let of = c.input("residual", m * n, -1.0..1.0)?;
    let (y, sum) = (c.output("y", m * n)?, c.output("sum", m * n)?);
    let residual = Some(Residual { of: &of, sum: &sum });
    c.kernels.matvec_q8(c.stream, &w, &x, bias.as_ref(), residual, &y)?;
    expect(c, ty, |c| reference::wide(c.f32("values of x")), k);
    Ok(())
}

/// The product of `x` and its sum with the residual.
fn expect(c: &mut Call<'_>, ty: WeightType, x: fn(&Call<'_>) -> Vec<f64>, k: usize) {
    for (name, adds) in [("y", false), ("sum", true)] {
        c.expect_within(name, |c| {
            let (w, bias, x) = (c.u8("blocks of w"), c.bias(), x(c));
            let residual = adds.then(|| c.f32("residual"));
            let largest = x.iter().fold(1.0, |a: f64, x| a.max(x.abs()));
            let values = reference::matvec_q8(ty, w, &x, bias, residual, k);
            (largest * rounding(ty, w, k), values)
        });
    }
}

const fn matvec_of(ty: WeightType) -> Declared {
    Declared {
        name: "matvec_q8",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32],
                &[1, 31, 96],
                &[1, 128, 288],
                &[2, 13, 64],
                &[3, 13, 64],
                &[4, 12, 64],
                &[5, 13, 64],
                &[7, 12, 64],
                &[8, 13, 64],
                &[3, 33, 96],
            ],
            _ => &[
                &[1, 1, 256],
                &[1, 31, 768],
                &[1, 64, 1280],
                &[2, 13, 512],
                &[4, 12, 256],
                &[7, 12, 256],
                &[8, 13, 256],
                &[3, 33, 512],
            ],
        },
        // Not counted here: `counters` has several products with the same packed matrix.
        again: Again::Activations,
        ..Declared::NEW
    }
}

/// Rows and columns of weights, and one row of activations, which is normed where the rows of weights are odd.
fn row(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[n, k] = dims else { return Ok(()) };
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    let x = c.floats("x", activations(k))?;
    let norm = if n % 2 == 1 { Some(norm(c, k)?) } else { None };
    let bias = c.input_bias(n.is_multiple_of(3), n)?;
    let of = c.input("residual", n, -1.0..1.0)?;
    let (y, sum) = (c.output("y", n)?, c.output("sum", n)?);
    let norm = norm.as_ref().map(|[weight, y]| RowNorm { weight, eps: EPS, y });
    let (x, residual) = (RowInput { x: &x, norm }, Residual { of: &of, sum: &sum });
    c.kernels
        .matvec_q8_row(c.stream, &w, x, bias.as_ref(), Some(residual), &y)?;
    expect(c, ty, input, k);
    if norm.is_some() {
        c.expect("the norm", 2e-6, input);
    }
    Ok(())
}

pub(super) const EPS: f32 = 1e-5;

/// The norm's weights, of which 32 are the same so that 8 bits hold the normed row, and room for it.
pub(super) fn norm(c: &mut Call<'_>, k: usize) -> KernelResult<[HipBuffer<f32>; 2]> {
    let weight = (0..k).map(|i| 0.25 + (i / BLOCK % 3) as f32).collect();
    Ok([c.floats("the norm's weight", weight)?, c.output("the norm", k)?])
}

/// The row that is multiplied.
pub(super) fn input(c: &Call<'_>) -> Vec<f64> {
    match c.f32("the norm's weight") {
        [] => reference::wide(c.f32("x")),
        weight => reference::rms_norm(c.f32("x"), weight, EPS),
    }
}

const fn row_of(ty: WeightType) -> Declared {
    Declared {
        name: "matvec_q8_row",
        tested: match ty.block_len() {
            32 => &[&[1, 32], &[2, 96], &[10, 4384], &[6, 96], &[33, 96]],
            _ => &[&[1, 256], &[2, 768], &[10, 4352], &[6, 256], &[33, 768]],
        },
        ..matvec_of(ty)
    }
}

/// Rows of activations, rows and columns of weights; with a bias where the rows of weights are odd.
fn many(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    let x = c.input("x", m * k, -1.0..1.0)?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", m * n)?;
    c.kernels.matmul_packed(c.stream, &w, &x, bias.as_ref(), &y, m)?;
    c.expect_within("y", |c| {
        let (w, bias) = (c.u8("blocks of w"), c.bias());
        (rounding(ty, w, k), reference::matmul_weight(ty, w, c.f32("x"), bias, k))
    });
    Ok(())
}

const fn many_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_packed",
        tested: match ty.block_len() {
            32 => &[&[1, 64, 32], &[65, 2, 32], &[9, 67, 96]],
            _ => &[&[65, 2, 256], &[9, 67, 256]],
        },
        ..matvec_of(ty)
    }
}

/// Ids, rows and columns of a packed table.
fn table(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[ids, rows, cols] = dims else { return Ok(()) };
    let table = packed(c, ["blocks of the table", "table"], ty, [rows, cols])?;
    let list = c.indices("ids", ids, rows)?;
    let (y, word) = (c.output("y", ids * cols)?, c.fault_word()?);
    let faults = Faults { word: &word, tag: 1 };
    c.kernels.get_rows_packed(c.stream, &table, &list, &y, faults)?;
    // The same bits; only zeros may differ, in their sign.
    c.expect("y", f64::MIN_POSITIVE, |c| {
        let values = reference::get_rows_weight(ty, c.u8("blocks of the table"), c.u32("ids"), cols);
        values.iter().map(|&v| f64::from(v as f32)).collect()
    });
    Ok(())
}

const fn table_of(ty: WeightType) -> Declared {
    Declared {
        name: "get_rows_packed",
        tested: match ty.block_len() {
            32 => &[&[1, 1, 32], &[9, 37, 160]],
            _ => &[&[1, 1, 256], &[9, 37, 1280]],
        },
        ..matvec_of(ty)
    }
}

/// Rows and columns.
const QUANTIZE_Q8: Declared = Declared {
    name: "quantize_q8",
    call: |c, dims| {
        let &[m, k] = dims else { return Ok(()) };
        let x = c.floats("x", activations(m * k))?;
        let to = c.output_bytes("to", m * (k / BLOCK) * BLOCK_BYTES)?;
        c.kernels.quantize_q8(c.stream, &x, to, [m, k])?;
        c.expect_bytes("to", |c| rounded(c.f32("x")));
        Ok(())
    },
    tested: &[&[1, 32], &[1, 1056], &[8, 4096], &[3, 96]],
    // As above.
    again: Again::Parts,
    ..Declared::NEW
};

const QUANTIZE_Q8_ROWS: Declared = Declared {
    name: "quantize_q8_rows",
    call: |c, dims| {
        let &[m, k, step] = dims else { return Ok(()) };
        // Larger numbers lie between the rows.
        let mut x = vec![9.0; m.saturating_sub(1) * step + k];
        if (1..=step).contains(&k) {
            for (to, row) in x.chunks_mut(step).zip(activations(m * k).chunks(k)) {
                to[..k].copy_from_slice(row);
            }
        }
        let x = c.floats("x", x)?;
        let to = c.output_bytes("to", m * (k / BLOCK) * BLOCK_BYTES)?;
        c.kernels.quantize_q8_rows(c.stream, &x, to, [m, k], step)?;
        c.expect_bytes("to", |c| {
            let rows: Vec<f32> = c.f32("x").chunks(step).flat_map(|row| &row[..k]).copied().collect();
            rounded(&rows)
        });
        Ok(())
    },
    tested: &[
        &[1, 32, 40],
        &[5, 64, 64],
        &[7, 96, 99],
        &[20, 512, 576],
        &[3, 1056, 1057],
    ],
    counted: &[&[64, 192, 256]],
    moved: &[&[64, 192, 192]],
    again: Again::Parts,
    ..Declared::NEW
};

/// What the activations become: the first 16 integers of each block, the others, then scale and sums of each block.
fn rounded(x: &[f32]) -> Vec<u8> {
    let (integers, scales) = reference::quantize_q8(x);
    let part = |at: usize| integers.chunks(BLOCK).flat_map(move |block| &block[at..at + BLOCK / 2]);
    let mut bytes: Vec<u8> = part(0).chain(part(BLOCK / 2)).map(|q| q.cast_unsigned()).collect();
    for (block, scale) in integers.chunks(BLOCK).zip(scales) {
        bytes.extend((scale as f32).to_le_bytes());
        for half in block.chunks(BLOCK / 2) {
            let sum: i16 = half.iter().map(|&q| i16::from(q)).sum();
            bytes.extend(sum.to_le_bytes());
        }
    }
    bytes
}
