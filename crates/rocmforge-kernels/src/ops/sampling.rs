//! Sampling: largest values and orders of rows.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs, LaunchConfig};

/// Threads of a block.
const THREADS: u32 = 256;
/// Columns of a part of a long row, as `kernels/sampling.hip` has them.
const PART: usize = 4096;
/// Blocks of a grid's second dimension.
const MAX_GRID_Y: usize = 65_535;

impl Kernels {
    /// The largest k of [`top_k`](Self::top_k).
    pub const MAX_TOP_K: usize = 2048;

    /// `y[r]` = column of the largest `x[r, :]`, the lowest of equal ones, for `x` `[rows, cols]` and `y` `[rows]`. 0 and -0 are equal;
    /// NaN is below everything, so a row of nothing else gives 0.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0.
    pub fn argmax(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<u32>,
        rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        let check = Check("argmax");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.len("x", x, &[rows, cols])?;
        check.len("y", y, &[rows])?;
        check.disjoint(("y", y), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(y).values([r, c]);
        // SAFETY: lengths are those of the shape and nothing overlaps, checked above.
        unsafe { self.launch(stream, "sampling", "argmax", a_block_to_a_row(r), args) }
    }

    /// The longest row of [`argsort`](Self::argsort).
    pub const MAX_ARGSORT: usize = 4096;

    /// `ids[r, :]` = columns of `x[r, :]` in order, the largest or the smallest first, the lower of equal ones first,
    /// NaN last: `x` and `ids` `[rows, cols]`. 0 and -0 are equal.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `cols` over [`MAX_ARGSORT`](Self::MAX_ARGSORT).
    pub fn argsort(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        rows: usize,
        cols: usize,
        descending: bool,
    ) -> KernelResult<()> {
        let check = Check("argsort");
        let (r, c) = (check.dim("rows", rows)?, check.dim_to("cols", cols, Self::MAX_ARGSORT)?);
        check.len("x", x, &[rows, cols])?;
        check.len("ids", ids, &[rows, cols])?;
        check.disjoint(("ids", ids), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(ids);
        let args = args.values([r, c, u32::from(descending)]);
        // SAFETY: lengths are those of the shape, a row fits into LDS and nothing overlaps, checked above.
        unsafe { self.launch(stream, "sampling", "argsort", a_block_to_a_row(r), args) }
    }

    /// Bytes of the memory with which [`top_k`](Self::top_k) finds the `k` largest of a long row in parts of it, in two launches; 0 if one launch
    /// does as well.
    pub fn top_k_scratch_of([rows, cols]: [usize; 2], k: usize) -> usize {
        if cols <= 2 * PART || k > PART / 8 || rows > MAX_GRID_Y {
            return 0;
        }
        let ranks = rows.saturating_mul(cols.div_ceil(PART)).saturating_mul(k);
        ranks.saturating_mul(size_of::<u64>())
    }

    /// `ids[r, :]` = columns of the `k` largest `x[r, :]`, the largest first, the lower of equal ones first, and `values[r, :]` = their
    /// values, if wanted: `x` `[rows, cols]`, the others `[rows, k]`. 0 and -0 are equal; NaN comes last. With memory of
    /// [`top_k_scratch_of`](Self::top_k_scratch_of) bytes, if these are not 0, long rows are quicker.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `k` over `cols` or [`MAX_TOP_K`](Self::MAX_TOP_K), more rows than a grid takes in parts.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn top_k(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        values: Option<&HipBuffer<f32>>,
        ids: &HipBuffer<u32>,
        rows: usize,
        cols: usize,
        k: usize,
        scratch: Option<&HipBuffer<u64>>,
    ) -> KernelResult<()> {
        let check = Check("top_k");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        let count = check.dim_to("k", k, cols.min(Self::MAX_TOP_K))?;
        check.len("x", x, &[rows, cols])?;
        check.len("ids", ids, &[rows, k])?;
        check.disjoint(("ids", ids), ("x", x))?;
        if let Some(values) = values {
            check.len("values", values, &[rows, k])?;
            check.disjoint(("values", values), ("x", x))?;
            check.disjoint(("values", values), ("ids", ids))?;
        }
        let Some(ranks) = scratch else {
            let args = LaunchArgs::new().buffer(x).out_or_null(values);
            let args = args.out(ids).values([r, c, count]);
            // SAFETY: lengths are those of the shapes, k is at most cols and the kernel's list, nothing overlaps: checked above.
            return unsafe { self.launch(stream, "sampling", "top_k", a_block_to_a_row(r), args) };
        };
        check.dim_to("k of parts", k, PART)?;
        check.dim_to("rows in parts", rows, MAX_GRID_Y)?;
        let parts = cols.div_ceil(PART);
        check.len("scratch", ranks, &[rows, parts, k])?;
        check.disjoint(("scratch", ranks), ("x", x))?;
        check.disjoint(("scratch", ranks), ("ids", ids))?;
        if let Some(values) = values {
            check.disjoint(("scratch", ranks), ("values", values))?;
        }
        let args = LaunchArgs::new().buffer(x).out(ranks).values([r, c, count]);
        let config = geometry::config([parts as u32, r, 1], THREADS);
        // SAFETY: k is at most a part, lengths are those of the shapes, nothing overlaps: checked above.
        unsafe { self.launch(stream, "sampling", "top_k_parts", config, args)? };
        let args = LaunchArgs::new().buffer(ranks).buffer(x).out_or_null(values);
        let args = args.out(ids).values([r, c, count]);
        // SAFETY: as above; every rank was written by the launch before.
        unsafe { self.launch(stream, "sampling", "top_k_of_parts", a_block_to_a_row(r), args) }
    }
}

fn a_block_to_a_row(rows: u32) -> LaunchConfig {
    geometry::config([rows, 1, 1], THREADS)
}
