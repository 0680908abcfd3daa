//! Embedding lookup.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y[r, :] = table[ids[r], :]` for a table `[table_rows, cols]` and as many rows as there are ids. An id that is not below
    /// `table_rows` reads nothing and gives a row of NaN: ids live on the device, so they cannot be checked here.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0.
    pub fn get_rows(
        &self,
        stream: &HipStream,
        table: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        y: &HipBuffer<f32>,
        table_rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        let check = Check("get_rows");
        let rows = check.dim("ids", ids.len())?;
        let (t, c) = (check.dim("table_rows", table_rows)?, check.dim("cols", cols)?);
        check.len("table", table, &[table_rows, cols])?;
        check.len("y", y, &[ids.len(), cols])?;
        check.disjoint(("y", y), ("table", table))?;
        check.disjoint(("y", y), ("ids", ids))?;
        let args = LaunchArgs::new().buffer(table).buffer(ids).out(y).values([rows, c, t]);
        // SAFETY: lengths are those of the shapes and nothing overlaps, checked above; the kernel compares each id with table_rows.
        unsafe { self.launch(stream, "get_rows", "get_rows", geometry::row_tile(rows, c), args) }
    }
}
