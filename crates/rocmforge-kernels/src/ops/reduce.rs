//! Sums of rows, running sums along rows, and rows of another matrix added.

use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y[r]` = `factor` times the sum of row r of `x`, whose rows have `cols` elements, the last one as many as are
    /// left: `y` has `ceil(len(x) / cols)` elements. The sum of all is the sum of such sums.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, a factor that is not finite.
    pub fn sum_rows(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        cols: usize,
        factor: f32,
    ) -> KernelResult<()> {
        let check = Check("sum_rows");
        let c = check.dim("cols", cols)?;
        let rows = x.len().div_ceil(cols);
        let r = check.dim("rows", rows)?;
        check.len("y", y, &[rows])?;
        check.disjoint(("y", y), ("x", x))?;
        check.value("factor", factor, |_| true, "finite")?;
        let args = LaunchArgs::new().buffer(x).out(y).value(x.len() as u64);
        let args = args.values([r, c]).value(factor);
        let (name, config) = geometry::by_row(r, c, "sum_rows_rows", "sum_rows_block");
        // SAFETY: y has an element for each row, the kernel stops at the end of x, nothing overlaps: checked above.
        unsafe { self.launch(stream, "reduce", name, config, args) }
    }

    /// `y[r, c] = x[r, 0] + .. + x[r, c]` for `[rows, cols]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0.
    pub fn cumsum(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        let check = Check("cumsum");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.one_shape(x, y, &[rows, cols])?;
        let args = LaunchArgs::new().buffer(x).out(y).values([r, c]);
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "reduce", "cumsum", geometry::config([r, 1, 1], 256), args) }
    }

    /// `y[r, :] = a[r, :] + b[ids[r], :]` for `a` and `y` `[len(ids), cols]`, `b` `[b_rows, cols]`. `y` may be `a`. An
    /// id that is not below `b_rows` reads nothing, gives a row of NaN and is a fault at r.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one sum
    pub fn add_id(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        b: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        [b_rows, cols]: [usize; 2],
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let check = Check("add_id");
        let rows = check.dim("ids", ids.len())?;
        let (n, c) = (check.dim("b_rows", b_rows)?, check.dim("cols", cols)?);
        check.len("a", a, &[ids.len(), cols])?;
        check.len("b", b, &[b_rows, cols])?;
        check.len("y", y, &[ids.len(), cols])?;
        check.in_place(("y", y), ("a", a))?;
        check.disjoint(("y", y), ("b", b))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("the fault word", faults.word))?;
        let args = LaunchArgs::new().buffer(a).buffer(b).buffer(ids).out(y);
        let args = faults.args(check, args.values([rows, c, n]))?;
        // SAFETY: lengths are those of the shapes and aliasing is as the kernel allows, checked above; it compares each
        // id with b_rows.
        unsafe { self.launch(stream, "reduce", "add_id", geometry::row_tile(rows, c), args) }
    }
}
