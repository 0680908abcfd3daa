//! Sampling: largest values of rows, penalties, and a draw from sorted candidates.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs, LaunchConfig};

/// Threads of a block.
const THREADS: u32 = 256;
/// Columns of a part of a long row, as `kernels/sampling.hip` has them.
const PART: usize = 4096;
/// Blocks of a grid's second dimension.
const MAX_GRID_Y: usize = 65_535;

/// How much the logits of tokens that were seen before are lowered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Penalties {
    /// A logit l over 0 becomes l / `repeat`, another l * `repeat`. 1: off.
    pub repeat: f32,
    /// Subtracted for each time that the token was seen. 0: off.
    pub frequency: f32,
    /// Subtracted once. 0: off.
    pub presence: f32,
}

/// How a token is drawn from sorted candidates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Draw {
    /// Logits are divided by it. 0: the first candidate.
    pub temperature: f32,
    /// Keeps the fewest first candidates whose probabilities sum up to it. 1: off.
    pub top_p: f32,
    /// Then keeps those of at least this share of the largest probability. 0: off.
    pub min_p: f32,
    /// Whether the temperature comes before `top_p` and `min_p`, as in vLLM, and not after them, as in llama.cpp.
    pub temperature_first: bool,
}

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

    /// Lowers `x[r, ids[r, i]]`, for `x` `[rows, cols]` and each of `m` tokens `ids` `[rows, m]` that was seen `counts` `[rows, m]` times,
    /// by [`Penalties`]: repetition (Keskar et al., CTRL, 2019), then `count * frequency + presence` is subtracted. The quotient, the
    /// penalty and the result are held within the range of f32; -inf and NaN become -inf.
    ///
    /// A count of 0, and an id that is no column, change nothing. An id must not occur twice in a row with a count over 0: its logit
    /// would be lowered once or twice.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, more ids than a grid takes, a penalty that is not finite, a `repeat` that is not positive.
    pub fn penalties(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        counts: &HipBuffer<u32>,
        [rows, cols, m]: [usize; 3],
        penalties: Penalties,
    ) -> KernelResult<()> {
        let check = Check("penalties");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        let listed = check.dim_to("m", m, MAX_GRID_Y * THREADS as usize)?;
        check.len("x", x, &[rows, cols])?;
        check.len("ids", ids, &[rows, m])?;
        check.len("counts", counts, &[rows, m])?;
        check.disjoint(("x", x), ("ids", ids))?;
        check.disjoint(("x", x), ("counts", counts))?;
        check.value("repeat", penalties.repeat, |p| p > 0.0, "positive and finite")?;
        check.value("frequency", penalties.frequency, |_| true, "finite")?;
        check.value("presence", penalties.presence, |_| true, "finite")?;
        let args = LaunchArgs::new()
            .out(x)
            .buffer(ids)
            .buffer(counts)
            .values([r, c, listed])
            .values([penalties.repeat, penalties.frequency, penalties.presence]);
        let config = geometry::config([r, listed.div_ceil(THREADS), 1], THREADS);
        // SAFETY: lengths are those of the shapes and nothing overlaps, checked above; the kernel compares each id with the columns.
        unsafe { self.launch(stream, "sampling", "penalties", config, args) }
    }

    /// `y[r]` = one of `ids[r, :]`, drawn by `uniform[r]` in [0, 1) as [`Draw`] says: `values` `[rows, k]` are the candidates' logits,
    /// which do not rise along a row (as [`top_k`](Self::top_k) leaves them), `ids` `[rows, k]`, `uniform` and `y` `[rows]`.
    ///
    /// It is the first kept candidate at which the sum of probabilities passes `uniform[r]`. Sums are f32, so for a number within a few
    /// units in the last place of such a sum it may be a neighbour. A row whose first logit is not finite gives `u32::MAX`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, a temperature below 0, a `top_p` or `min_p` that is not from 0 to 1.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn draw(
        &self,
        stream: &HipStream,
        values: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        uniform: &HipBuffer<f32>,
        y: &HipBuffer<u32>,
        rows: usize,
        k: usize,
        draw: Draw,
    ) -> KernelResult<()> {
        let check = Check("draw");
        let (r, count) = (check.dim("rows", rows)?, check.dim("k", k)?);
        check.len("values", values, &[rows, k])?;
        check.len("ids", ids, &[rows, k])?;
        check.len("uniform", uniform, &[rows])?;
        check.len("y", y, &[rows])?;
        check.disjoint(("y", y), ("values", values))?;
        check.disjoint(("y", y), ("ids", ids))?;
        check.disjoint(("y", y), ("uniform", uniform))?;
        let share = |p: f32| (0.0..=1.0).contains(&p);
        check.value("temperature", draw.temperature, |t| t >= 0.0, "0 or positive")?;
        check.value("top_p", draw.top_p, share, "0 to 1")?;
        check.value("min_p", draw.min_p, share, "0 to 1")?;
        // Temperature 0 draws from the first candidate alone, whatever its logit is divided by.
        let (used, temperature) = match draw.temperature {
            t if t > 0.0 => (count, t),
            _ => (1, 1.0),
        };
        let truncate_at = if draw.temperature_first { temperature } else { 1.0 };
        let log_min_p = f64::from(draw.min_p).ln() as f32;
        let args = LaunchArgs::new()
            .buffer(values)
            .buffer(ids)
            .buffer(uniform)
            .out(y)
            .values([r, count, used])
            .values([temperature, truncate_at, draw.top_p, log_min_p]);
        // SAFETY: lengths are those of the shapes, used is at most k, nothing overlaps: checked above. What is drawn is a place below
        // `used` whatever the values are.
        unsafe { self.launch(stream, "sampling", "draw", a_block_to_a_row(r), args) }
    }
}

fn a_block_to_a_row(rows: u32) -> LaunchConfig {
    geometry::config([rows, 1, 1], THREADS)
}
