//! Products with weights of any type, and rows of them.

use super::matvec_block::BlockProduct;
use crate::check::MAX_COLUMNS;
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::weight_type::{Format, Products};
use crate::{Faults, KernelResult, Kernels, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const PRODUCTS: &[Declared] = by_weight_type!(product, product_of);
pub(super) const ROWS: &[Declared] = by_weight_type!(rows, rows_of);
pub(super) const EXPERTS: &[Declared] = by_weight_type!(experts, experts_of);

/// Rows of an expert's weights that a block takes, and those of one launch.
const PAIR_ROWS: usize = 32;
const MOST_PAIR_ROWS: usize = 65_535 * PAIR_ROWS;

impl Kernels {
    /// `y = x w^T (+ bias)`: `x` `[m, k]`, weights `[n, k]` of type `ty` row by row, `bias` `[n]`, `y` `[m, n]`. Weights become f32 as
    /// they are read; products and sums are f32.
    ///
    /// Up to 8 rows of `x` go through a kernel that reads the weights once and is bound by that; or, where floats have so few rows that it would leave three of four
    /// multiprocessors without work, one with a block for each element of `y`. More rows go through tiles in LDS. These sum in different orders, so a row of `y` may
    /// differ in its last digits with `m`.
    /// Of the types from [`WeightType::Iq2Xxs`] on more rows are eight at a time, each of which reads the weights: many are better multiplied by
    /// [`matmul_halves`](Self::matmul_halves).
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` that is no multiple of the type's block or over 2^24 - 1, `m` over
    /// [`WeightType::product_rows`], weights whose address is no multiple of [`WeightType::alignment`].
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one product, as in BLAS
    pub fn matmul_weight(
        &self,
        stream: &HipStream,
        ty: WeightType,
        w: &HipBuffer<u8>,
        x: &HipBuffer<f32>,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        m: usize,
        n: usize,
        k: usize,
    ) -> KernelResult<()> {
        let op = self.op("matmul_weight");
        let format = ty.format();
        let (rows, cols) = (op.dim_to("m", m, ty.product_rows())?, op.dim_to("n", n, MAX_COLUMNS)?);
        let depth = op.dim_to("k", k, MAX_COLUMNS)?;
        if self.takes_block(ty, m, n) {
            let product = BlockProduct { w, bias, y, n };
            return self.matvec_block(stream, ty, x, [m, k], &[product]);
        }
        let op = (op.weights("w", ty, w, [n, k])?.read("x", x, &[m, k])?).read_or_null("bias", bias, &[n])?;
        let kernel = match &format.products {
            Products::Each { matvec, matmul } => match matvec.iter().find(|matvec| m <= matvec.most) {
                Some(matvec) => (matvec.name, geometry::rows(cols.div_ceil(matvec.rows))),
                None => (*matmul, geometry::gemm(rows, cols, 1)),
            },
            Products::Eights(_) if m == 1 && n <= MOST_PAIR_ROWS => {
                // One pair without ids, of one matrix.
                let op = op.null().write("y", y, &[m, n], &[])?;
                let op = op.values([cols, depth, 1, 1]).null().value(0u32);
                return op.run(stream, format.family, (format.matvec_id, of_pairs(1, n)));
            }
            Products::Eights(matvec) => {
                let blocks = geometry::rows(cols.div_ceil(matvec.rows)).grid[0];
                (matvec.name, geometry::config([blocks, rows.div_ceil(8), 1], 256))
            }
        };
        (op.write("y", y, &[m, n], &[])?)
            .values([rows, cols, depth])
            .run(stream, format.family, kernel)
    }

    /// `y[t, i, :] = table[t, ids[t, i], :]` in f32, for tables `[tables, table_rows, cols]` of type `ty`, each with as many ids. An id that is not below
    /// `table_rows` reads nothing, gives a row of NaN and is a fault at its position, which counts through the ids of all tables.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `cols` that is no multiple of the type's block, a table whose address is no multiple
    /// of [`WeightType::alignment`], ids that the number of tables does not divide, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one lookup
    pub fn get_rows_of_tables(
        &self,
        stream: &HipStream,
        ty: WeightType,
        table: &HipBuffer<u8>,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        [tables, table_rows, cols]: [usize; 3],
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("get_rows_of_tables");
        let n = ids.len();
        let [rows, t] = op.dims([("ids", n), ("table_rows", table_rows)])?;
        let [c, lists] = op.dims([("cols", cols), ("tables", tables)])?;
        op.multiple("each table must have as many ids", n, tables)?;
        let all = op.elements("table", &[tables, table_rows])?;
        let (format, config) = (ty.format(), geometry::row_tile(rows, c));
        (op.weights("table", ty, table, [all, cols])?.read("ids", ids, &[n])?)
            .write("y", y, &[n, cols], &[])?
            .values([rows, c, t, rows / lists])
            .faults(faults)?
            .run(stream, format.family, (format.get_rows, config))
    }

    /// `y[p, :] = w[ids[p]] x[p / share, :]`: `x` `[pairs / share, k]`, matrices `w` `[experts, n, k]` of type `ty`,
    /// one id for each pair, `y` `[pairs, n]`. Each pair reads its expert's weights. An id that is not below `experts`
    /// reads nothing, gives a row of NaN and is a fault at its pair.
    ///
    /// # Errors
    ///
    /// As [`matmul_weight`](Self::matmul_weight), `share` that does not divide the pairs, `n` over 2^21 - 32, a tag
    /// over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one product
    pub fn matmul_id(
        &self,
        stream: &HipStream,
        ty: WeightType,
        w: &HipBuffer<u8>,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        [experts, n, k]: [usize; 3],
        share: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("matmul_id");
        let n_pairs = ids.len();
        let [pairs, e, s] = op.dims([("pairs", n_pairs), ("experts", experts), ("share", share)])?;
        // Rows of weights lie along the grid's second dimension.
        let cols = op.dim_to("n", n, MOST_PAIR_ROWS)?;
        let depth = op.dim_to("k", k, MAX_COLUMNS)?;
        op.multiple("as many pairs must share each row of x", n_pairs, share)?;
        let all = op.elements("w", &[experts, n])?;
        let format = ty.format();
        let op = op.weights("w", ty, w, [all, k])?.read("x", x, &[n_pairs / share, k])?;
        let op = match format.products {
            Products::Each { .. } => op,
            Products::Eights(_) => op.null(), // no bias
        };
        let config = of_pairs(pairs, n);
        (op.read("ids", ids, &[n_pairs])?)
            .write("y", y, &[n_pairs, n], &[])?
            .values([cols, depth, e, s])
            .faults(faults)?
            .run(stream, format.family, (format.matvec_id, config))
    }
}

/// Blocks for pairs of a row of activations and a matrix with `n` rows.
fn of_pairs(pairs: u32, n: usize) -> LaunchConfig {
    geometry::config([pairs, n.div_ceil(PAIR_ROWS) as u32, 1], 256)
}

/// Rows of activations, rows and columns of weights; with a bias where the rows of weights are odd.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let (w, x) = (c.weights("w", ty, n * k)?, c.input("x", m * k, -1.0..1.0)?);
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", m * n)?;
    c.kernels
        .matmul_weight(c.stream, ty, &w, &x, bias.as_ref(), &y, m, n, k)?;
    c.expect_within("y", |c| {
        let values = reference::matmul_weight(ty, c.u8("w"), c.f32("x"), c.bias(), k);
        (rounding(ty, c.u8("w"), k), values)
    });
    Ok(())
}

/// What rounding may change in sums of `k` products with activations of up to 1.
fn rounding(ty: WeightType, w: &[u8], k: usize) -> f64 {
    let widest = reference::dequantize(ty, w)
        .iter()
        .fold(0.1, |a: f64, b| a.max(b.abs()));
    1e-6 * widest * (k as f64).sqrt().max(4.0)
}

/// Each number of rows that has a kernel and those between, the edges of tiles, and columns around the wave size.
const fn product_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_weight",
        tested: match ty.block_len() {
            1 => &[
                &[1, 1, 1],
                &[1, 7, 31],
                &[1, 8, 33],
                &[1, 9, 64],
                &[1, 33, 129],
                &[1, 8, 300],
                &[2, 9, 43],
                &[3, 8, 7],
                &[4, 9, 65],
                &[5, 9, 43],
                &[7, 8, 8],
                &[8, 9, 43],
                &[9, 64, 127],
                &[65, 3, 63],
                &[33, 65, 9],
                // Too many rows for the kernel for few.
                &[1, 801, 33],
                &[2, 801, 9],
                &[4, 801, 12],
                &[7, 801, 43],
            ],
            32 => &[
                &[1, 1, 32],
                &[1, 7, 64],
                &[1, 33, 288],
                &[2, 9, 32],
                &[3, 8, 224],
                &[4, 9, 32],
                &[6, 9, 64],
                &[8, 9, 32],
                &[9, 64, 576],
                &[65, 3, 32],
                &[33, 65, 64],
            ],
            64 => &[
                &[1, 7, 64],
                &[1, 33, 320],
                &[2, 9, 128],
                &[8, 9, 192],
                &[9, 64, 64],
                &[33, 65, 64],
            ],
            128 => &[
                &[1, 7, 128],
                &[1, 33, 384],
                &[2, 9, 256],
                &[8, 9, 128],
                &[9, 64, 128],
                &[33, 65, 128],
            ],
            _ => &[
                &[1, 7, 256],
                &[1, 33, 768],
                &[2, 9, 256],
                &[3, 8, 256],
                &[4, 9, 256],
                &[5, 9, 256],
                &[8, 9, 256],
                &[9, 64, 256],
                &[33, 65, 256],
            ],
        },
        counted: match ty.block_len() {
            1 => &[
                &[1, 64, 1024],
                &[1, 1024, 1024],
                &[2, 1024, 1024],
                &[4, 1024, 1024],
                &[8, 1024, 1024],
                &[64, 128, 1024],
            ],
            _ => &[
                &[1, 128, 1024],
                &[2, 128, 1024],
                &[4, 128, 1024],
                &[8, 128, 1024],
                &[64, 128, 1024],
            ],
        },
        moved: match ty.format() {
            Format { block: Some(_), .. } => &[
                &[1, 64, 1024],
                &[1, 801, 256],
                &[2, 801, 256],
                &[4, 801, 256],
                &[8, 801, 256],
            ],
            Format {
                products: Products::Each { .. },
                ..
            } => &[&[1, 64, 1024], &[2, 64, 1024], &[4, 64, 1024], &[8, 64, 1024]],
            // Codebooks of up to 4 KiB are little of this.
            _ => &[&[1, 512, 1024], &[8, 256, 1024]],
        },
        again: Again::Blocks,
        ..Declared::NEW
    }
}

/// Ids, rows and columns of the table: each row once where there are as many ids.
fn rows(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[ids, rows, cols] = dims else { return Ok(()) };
    let table = c.weights("table", ty, rows * cols)?;
    let list = c.indices("ids", ids, rows)?;
    let (y, word) = (c.output("y", ids * cols)?, c.fault_word()?);
    let faults = Faults { word: &word, tag: 1 };
    c.kernels
        .get_rows_of_tables(c.stream, ty, &table, &list, &y, [1, rows, cols], faults)?;
    // The same bits; only zeros may differ, in their sign.
    c.expect("y", f64::MIN_POSITIVE, |c| {
        let values = reference::get_rows_weight(ty, c.u8("table"), c.u32("ids"), cols);
        values.iter().map(|&v| f64::from(v as f32)).collect()
    });
    Ok(())
}

const fn rows_of(ty: WeightType) -> Declared {
    Declared {
        name: "get_rows_of_tables",
        tested: match ty.block_len() {
            1 => &[
                &[9, 5, 1],
                &[9, 5, 31],
                &[9, 5, 32],
                &[9, 5, 33],
                &[9, 5, 129],
                &[9, 5, 300],
            ],
            32 => &[&[9, 5, 32], &[9, 5, 64], &[9, 5, 288], &[9, 5, 32 * 41]],
            64 | 128 => &[&[9, 5, 128], &[9, 5, 384], &[9, 5, 128 * 11]],
            _ => &[&[9, 5, 256], &[9, 5, 768], &[9, 5, 256 * 41]],
        },
        counted: &[&[64, 128, 1024]],
        moved: &[&[64, 64, 1024]],
        again: if ty.block_len() == 1 { Again::No } else { Again::Blocks },
        ..Declared::NEW
    }
}

/// Experts, rows and columns of their weights, pairs, and pairs that share a row of activations.
fn experts(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[experts, n, k, pairs, share] = dims else {
        return Ok(());
    };
    let w = c.weights("w", ty, experts * n * k)?;
    let x = c.input("x", pairs / share.max(1) * k, -1.0..1.0)?;
    let ids = c.indices("ids", pairs, experts)?;
    let (y, word) = (c.output("y", pairs * n)?, c.fault_word()?);
    let faults = Faults { word: &word, tag: 1 };
    c.kernels
        .matmul_id(c.stream, ty, &w, &x, &ids, &y, [experts, n, k], share, faults)?;
    c.expect_within("y", |c| {
        let (w, ids) = (c.u8("w"), c.u32("ids"));
        let values = reference::matmul_id(ty, w, c.f32("x"), ids, [experts, n, k], share);
        (rounding(ty, w, k), values)
    });
    Ok(())
}

const fn experts_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_id",
        tested: match ty.block_len() {
            1 => &[&[1, 1, 65, 1, 1], &[5, 33, 65, 6, 1], &[4, 70, 65, 6, 3]],
            32 => &[&[1, 1, 96, 1, 1], &[5, 33, 96, 6, 1], &[4, 70, 96, 6, 3]],
            _ => &[&[1, 1, 1280, 1, 1], &[5, 33, 256, 6, 1], &[4, 70, 256, 6, 3]],
        },
        counted: &[&[8, 64, 512, 16, 1]],
        moved: match ty.format().products {
            Products::Each { .. } => &[&[4, 16, 1024, 4, 1]],
            // The kernel of `product_of`.
            Products::Eights(_) => &[],
        },
        again: Again::Blocks,
        ..Declared::NEW
    }
}
