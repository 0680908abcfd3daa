//! Products with weights of any type, and rows of them.

use crate::check::Check;
use crate::{Faults, KernelError, KernelResult, Kernels, WeightType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// 64 rows of an operand must be addressable in 32 bits within a tile.
const MAX_COLUMNS: usize = (1 << 24) - 1;

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
        let mut args = LaunchArgs::new().buffer(w).buffer(x);
        args = match bias {
            Some(bias) => {
                check.len("bias", bias, &[n])?;
                check.disjoint(("y", y), ("bias", bias))?;
                args.buffer(bias)
            }
            None => args.null(),
        };
        let args = args.out(y).value(rows).value(cols).value(depth);
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
        let check = Check("get_rows_weight");
        let rows = check.dim("ids", ids.len())?;
        let (t, c) = (check.dim("table_rows", table_rows)?, check.dim("cols", cols)?);
        weights(check, ty, ("table", table), [table_rows, cols])?;
        check.len("y", y, &[ids.len(), cols])?;
        check.disjoint(("y", y), ("table", table))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let args = LaunchArgs::new()
            .buffer(table)
            .buffer(ids)
            .out(y)
            .value(rows)
            .value(c)
            .value(t);
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

/// Weights of `[rows, k]` in whole, aligned blocks.
fn weights(
    check: Check,
    ty: WeightType,
    (operand, w): (&'static str, &HipBuffer<u8>),
    [rows, k]: [usize; 2],
) -> KernelResult<()> {
    if !k.is_multiple_of(ty.block_len()) {
        return Err(KernelError::Mismatch {
            op: check.0,
            what: "a row of weights must be whole blocks",
            left: k,
            right: ty.block_len(),
        });
    }
    check.len(operand, w, &[rows, k / ty.block_len(), ty.block_bytes()])?;
    check.aligned(operand, w, ty.alignment())
}
