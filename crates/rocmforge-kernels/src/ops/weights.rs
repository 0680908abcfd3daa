//! Products with weights of any type, and rows of them.

use crate::check::{Check, MAX_COLUMNS};
use crate::{Faults, KernelResult, Kernels, WeightType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// Rows of an expert's weights that a block takes.
const PAIR_ROWS: usize = 32;

impl Kernels {
    /// `y = x w^T (+ bias)`: `x` `[m, k]`, weights `[n, k]` of type `ty` row by row, `bias` `[n]`, `y` `[m, n]`. Weights become f32 as
    /// they are read; products and sums are f32.
    ///
    /// Up to 8 rows of `x` go through a kernel that reads the weights once and is bound by that; more through tiles in LDS. The two
    /// sum in different orders, so a row of `y` may differ in its last digits with `m`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` that is no multiple of the type's block or over 2^24 - 1, weights whose address
    /// is no multiple of [`WeightType::alignment`].
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
        let check = Check("matmul_weight");
        let rows = check.dim("m", m)?;
        let cols = check.dim_to("n", n, MAX_COLUMNS)?;
        let depth = check.dim_to("k", k, MAX_COLUMNS)?;
        weights(check, ty, ("w", w), [n, k])?;
        check.len("x", x, &[m, k])?;
        check.len("y", y, &[m, n])?;
        check.disjoint(("y", y), ("w", w))?;
        check.disjoint(("y", y), ("x", x))?;
        check.bias(bias, n, y)?;
        let args = LaunchArgs::new().buffer(w).buffer(x).buffer_or_null(bias);
        let args = args.out(y).values([rows, cols, depth]);
        let format = ty.format();
        let (name, config) = match format.matvec.iter().find(|matvec| m <= matvec.most) {
            Some(matvec) => (matvec.name, geometry::rows(cols.div_ceil(matvec.rows))),
            None => (format.matmul, geometry::gemm(rows, cols, 1)),
        };
        // SAFETY: lengths are those of the shapes, rows are whole blocks, aligned and short enough, nothing overlaps: checked above.
        unsafe { self.launch(stream, format.family, name, config, args) }
    }

    /// `y[r, :] = table[ids[r], :]` in f32, for a table `[table_rows, cols]` of type `ty` and as many rows as there are ids. An id that
    /// is not below `table_rows` reads nothing, gives a row of NaN and is a fault at position r.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `cols` that is no multiple of the type's block, a table whose address is no multiple
    /// of [`WeightType::alignment`], a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one lookup
    pub fn get_rows_weight(
        &self,
        stream: &HipStream,
        ty: WeightType,
        table: &HipBuffer<u8>,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        table_rows: usize,
        cols: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        self.get_rows_of_tables(stream, ty, table, ids, y, [1, table_rows, cols], faults)
    }

    /// [`get_rows_weight`](Self::get_rows_weight) of several tables `[tables, table_rows, cols]`, each with as many
    /// ids: `y[t, i, :] = table[t, ids[t, i], :]`. A fault's position counts through the ids of all tables.
    ///
    /// # Errors
    ///
    /// As for one table, and ids that the number of tables does not divide.
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
        let check = Check("get_rows_weight");
        let rows = check.dim("ids", ids.len())?;
        let (t, c) = (check.dim("table_rows", table_rows)?, check.dim("cols", cols)?);
        let lists = check.dim("tables", tables)?;
        check.multiple("each table must have as many ids", ids.len(), tables)?;
        weights(
            check,
            ty,
            ("table", table),
            [check.elements("table", &[tables, table_rows])?, cols],
        )?;
        check.len("y", y, &[ids.len(), cols])?;
        check.disjoint(("y", y), ("table", table))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let args = LaunchArgs::new().buffer(table).buffer(ids).out(y);
        let args = args.values([rows, c, t, rows / lists]);
        let args = faults.args(check, args)?;
        let format = ty.format();
        // SAFETY: lengths are those of the shapes, blocks are whole and aligned, nothing overlaps, checked above; the kernel compares
        // each id with table_rows.
        unsafe {
            self.launch(
                stream,
                format.family,
                format.get_rows,
                geometry::row_tile(rows, c),
                args,
            )
        }
    }
}

impl Kernels {
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
        let check = Check("matmul_id");
        let pairs = check.dim("pairs", ids.len())?;
        let (e, s) = (check.dim("experts", experts)?, check.dim("share", share)?);
        // Rows of weights lie along the grid's second dimension.
        let cols = check.dim_to("n", n, 65_535 * PAIR_ROWS)?;
        let depth = check.dim_to("k", k, MAX_COLUMNS)?;
        check.multiple("as many pairs must share each row of x", ids.len(), share)?;
        weights(check, ty, ("w", w), [check.elements("w", &[experts, n])?, k])?;
        check.len("x", x, &[ids.len() / share, k])?;
        check.len("y", y, &[ids.len(), n])?;
        check.disjoint(("y", y), ("w", w))?;
        check.disjoint(("y", y), ("x", x))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let args = LaunchArgs::new().buffer(w).buffer(x).buffer(ids).out(y);
        let args = args.values([cols, depth, e, s]);
        let args = faults.args(check, args)?;
        let format = ty.format();
        let config = geometry::config([pairs, cols.div_ceil(PAIR_ROWS as u32), 1], 256);
        // SAFETY: lengths are those of the shapes, rows are whole blocks, aligned and short enough, nothing overlaps,
        // checked above; the kernel compares each id with `experts`.
        unsafe { self.launch(stream, format.family, format.matvec_id, config, args) }
    }
}

/// Weights of `[rows, k]` in whole, aligned blocks.
pub(super) fn weights(
    check: Check,
    ty: WeightType,
    (operand, w): (&'static str, &HipBuffer<u8>),
    [rows, k]: [usize; 2],
) -> KernelResult<()> {
    check.multiple("a row of weights must be whole blocks", k, ty.block_len())?;
    check.len(operand, w, &[rows, k / ty.block_len(), ty.block_bytes()])?;
    check.aligned(operand, w, ty.alignment())
}
