//! Sums of rows, running sums along rows, and rows of another matrix added.

use crate::declared::{Again, Declared, ROWS, kernel};
use crate::{Faults, KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[SUM_ROWS, CUMSUM, ADD_ID];

kernel! {
    /// `y[r, c] = x[r, 0] + .. + x[r, c]` for `[rows, cols]`. `y` may be `x`.
    CUMSUM: cumsum in "reduce"
    reads x [rows, cols] of -1.0..1.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    launch ("cumsum", geometry::config([rows, 1, 1], 256)), with [rows, cols];
    gives |c| reference::cumsum(c.f32("x"), cols), within 2e-5;
    tested &[&[9, 1], &[9, 31], &[9, 33], &[9, 64], &[3, 256], &[3, 257], &[2, 1025], &[2, 3000]];
    counted &[&[32, 2048]]; moved &[&[32, 1024]], Again::No; timed &[];
}

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
        let op = self.op("sum_rows");
        let c = op.dim("cols", cols)?;
        let rows = x.len().div_ceil(cols);
        let r = op.dim("rows", rows)?;
        op.value_of("factor", factor, factor.is_finite(), "finite")?;
        // The kernel stops at the end of x.
        op.reads("x", x)
            .write("y", y, &[rows], &[])?
            .value(x.len() as u64)
            .values([r, c])
            .value(factor)
            .run(
                stream,
                "reduce",
                geometry::by_row(r, c, "sum_rows_rows", "sum_rows_block"),
            )
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
        let op = self.op("add_id");
        let rows = op.dim("ids", ids.len())?;
        let [n, c] = op.dims([("b_rows", b_rows), ("cols", cols)])?;
        op.read("a", a, &[ids.len(), cols])?
            .read("b", b, &[b_rows, cols])?
            .read("ids", ids, &[ids.len()])?
            .write("y", y, &[ids.len(), cols], &["a"])?
            .values([rows, c, n])
            .faults(faults)?
            .run(stream, "reduce", ("add_id", geometry::row_tile(rows, c)))
    }
}

const SUM_ROWS: Declared = Declared {
    name: "sum_rows",
    call: |c, dims| {
        let &[rows, cols] = dims else { return Ok(()) };
        let (x, y) = (c.input("x", rows * cols, -1.0..1.0)?, c.output("y", rows)?);
        c.kernels.sum_rows(c.stream, &x, &y, cols, 0.5)?;
        c.expect("y", 1e-5, |c| reference::sum_rows(c.f32("x"), cols, 0.5));
        Ok(())
    },
    tested: ROWS,
    counted: &[&[128, 512], &[32, 2048]],
    moved: &[&[32, 1024], &[16, 2048]],
    ..Declared::NEW
};

const ADD_ID: Declared = Declared {
    name: "add_id",
    call: |c, dims| {
        let &[rows, cols, b_rows] = dims else { return Ok(()) };
        let (a, b) = (
            c.input("a", rows * cols, -1.0..1.0)?,
            c.input("b", b_rows * cols, -1.0..1.0)?,
        );
        let (ids, y) = (c.indices("ids", rows, b_rows)?, c.output("y", rows * cols)?);
        let word = c.fault_word()?;
        let faults = Faults { word: &word, tag: 0 };
        c.kernels.add_id(c.stream, &a, &b, &ids, &y, [b_rows, cols], faults)?;
        c.expect("y", 1e-6, |c| {
            reference::add_id(c.f32("a"), c.f32("b"), c.u32("ids"), cols)
        });
        Ok(())
    },
    tested: &[&[1, 1, 1], &[9, 31, 4], &[5, 33, 7], &[3, 1030, 2], &[3, 1025, 2]],
    counted: &[&[256, 256, 256]],
    moved: &[&[32, 1024, 32]],
    ..Declared::NEW
};
