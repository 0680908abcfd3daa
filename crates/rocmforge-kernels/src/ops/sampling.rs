//! Sampling: largest values and orders of rows.

use crate::declared::{Call, Declared};
use crate::{KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const DECLARED: &[Declared] = &[ARGMAX, ARGSORT, TOP_K, TOP_K_IN_PARTS];

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
        let op = self.op("argmax");
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        op.read("x", x, &[rows, cols])?
            .write("y", y, &[rows], &[])?
            .values([r, c])
            .run(stream, "sampling", ("argmax", a_block_to_a_row(r)))
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
        let op = self.op("argsort");
        let (r, c) = (op.dim("rows", rows)?, op.dim_to("cols", cols, Self::MAX_ARGSORT)?);
        op.read("x", x, &[rows, cols])?
            .write("ids", ids, &[rows, cols], &[])?
            .values([r, c, u32::from(descending)])
            .run(stream, "sampling", ("argsort", a_block_to_a_row(r)))
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
        let op = self.op("top_k");
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        let count = op.dim_to("k", k, cols.min(Self::MAX_TOP_K))?;
        let (shape, few) = ([rows, cols], [rows, k]);
        let Some(ranks) = scratch else {
            return op
                .read("x", x, &shape)?
                .write_or_null("values", values, &few, &[])?
                .write("ids", ids, &few, &[])?
                .values([r, c, count])
                .run(stream, "sampling", ("top_k", a_block_to_a_row(r)));
        };
        op.dim_to("k of parts", k, PART)?;
        op.dim_to("rows in parts", rows, MAX_GRID_Y)?;
        let parts = cols.div_ceil(PART);
        let ranked = [rows, parts, k];
        // Refused before anything is enqueued.
        let second = (self.op("top_k").reads("scratch", ranks).read("x", x, &shape)?)
            .write_or_null("values", values, &few, &[])?
            .write("ids", ids, &few, &[])?
            .values([r, c, count]);
        second.apart()?;
        op.read("x", x, &shape)?
            .write("scratch", ranks, &ranked, &[])?
            .values([r, c, count])
            .run(
                stream,
                "sampling",
                ("top_k_parts", geometry::config([parts as u32, r, 1], THREADS)),
            )?;
        second.run(stream, "sampling", ("top_k_of_parts", a_block_to_a_row(r)))
    }
}

fn a_block_to_a_row(rows: u32) -> LaunchConfig {
    geometry::config([rows, 1, 1], THREADS)
}

const ARGMAX: Declared = Declared {
    name: "argmax",
    call: |c, dims| {
        let &[rows, cols] = dims else { return Ok(()) };
        let (x, y) = (c.input("x", rows * cols, -9.0..9.0)?, c.output_words("y", rows)?);
        c.kernels.argmax(c.stream, &x, &y, rows, cols)?;
        c.expect("y", 0.0, |c| {
            c.f32("x")
                .chunks(cols)
                .map(|row| reference::arg_max(row).into())
                .collect()
        });
        Ok(())
    },
    tested: &[&[5, 1], &[5, 31], &[3, 65], &[2, 257], &[2, 5001]],
    counted: &[&[2, 1 << 15]],
    ..Declared::NEW
};

const ARGSORT: Declared = Declared {
    name: "argsort",
    call: |c, dims| {
        let &[rows, cols] = dims else { return Ok(()) };
        // Some are equal.
        let values = (0..rows * cols).map(|at| (at * 7919 % 1000) as f32 / 500.0 - 1.0);
        let (x, ids) = (c.floats("x", values.collect())?, c.output_words("ids", rows * cols)?);
        c.kernels.argsort(c.stream, &x, &ids, rows, cols, true)?;
        c.expect("ids", 0.0, |c| {
            reference::argsort(c.f32("x"), cols, true)
                .into_iter()
                .map(f64::from)
                .collect()
        });
        Ok(())
    },
    tested: &[&[5, 1], &[5, 31], &[3, 65], &[2, 257], &[1, 4096]],
    counted: &[&[64, 1024]],
    ..Declared::NEW
};

const TOP_K: Declared = Declared {
    name: "top_k",
    call: |c, dims| top_k(c, dims, false),
    tested: &[&[5, 1, 1], &[3, 33, 5], &[2, 257, 257], &[2, 9001, 40]],
    counted: &[&[2, 1 << 15, 40]],
    ..Declared::NEW
};
const TOP_K_IN_PARTS: Declared = Declared {
    call: |c, dims| top_k(c, dims, true),
    tested: &[&[3, 8193, 1], &[2, 12_289, 40]],
    ..TOP_K
};

fn top_k(c: &mut Call<'_>, dims: &[usize], parts: bool) -> KernelResult<()> {
    let &[rows, cols, k] = dims else { return Ok(()) };
    let x = c.input("x", rows * cols, -9.0..9.0)?;
    let scratch = match parts {
        true => Some(c.output_longs("scratch", Kernels::top_k_scratch_of([rows, cols], k) / 8)?),
        false => None,
    };
    let (values, ids) = (c.output("values", rows * k)?, c.output_words("ids", rows * k)?);
    c.kernels
        .top_k(c.stream, &x, Some(&values), &ids, rows, cols, k, scratch.as_ref())?;
    let best = |c: &Call<'_>| {
        c.f32("x")
            .chunks(cols)
            .flat_map(|row| reference::top_k(row, k))
            .collect::<Vec<u32>>()
    };
    c.expect("ids", 0.0, |c| best(c).into_iter().map(f64::from).collect());
    c.expect("values", 0.0, |c| {
        let of = |(at, id): (usize, u32)| f64::from(c.f32("x")[at / k * cols + id as usize]);
        best(c).into_iter().enumerate().map(of).collect()
    });
    Ok(())
}
