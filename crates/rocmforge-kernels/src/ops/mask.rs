//! Additive and causal masks.

use crate::check::Check;
use crate::layout::{causal_offset, check_operand};
use crate::{KernelResult, Kernels, Operand, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y = x + mask` for scores `[batch, heads, seq_q, seq_k]`. The mask (0 and -inf, or any bias) broadcasts through its strides.
    /// `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, strides that leave the mask, partial overlap, a dimension of 0.
    pub fn mask(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        mask: Operand<'_>,
        y: &HipBuffer<f32>,
        [batch, heads, seq_q, seq_k]: [usize; 4],
    ) -> KernelResult<()> {
        let check = Check("mask");
        let shape = [batch, heads, seq_q, seq_k];
        let [h, q, k] = check.dims([("heads", heads), ("seq_q", seq_q), ("seq_k", seq_k)])?;
        let rows = check.rows("batch * heads * seq_q", &shape[..3])?;
        check.one_shape(x, y, &shape)?;
        check_operand(check, "mask", mask, shape)?;
        check.disjoint(("y", y), ("mask", mask.buffer))?;
        let args = LaunchArgs::new().buffer(x).buffer(mask.buffer).out(y);
        let args = args.values([rows, h, q, k]).value(mask.strides);
        // SAFETY: x and y have the shape's elements, the mask's strides stay inside of it, aliasing is as the kernel allows.
        unsafe { self.launch(stream, "mask", "mask", geometry::row_tile(rows, k), args) }
    }

    /// Writes a causal mask into `y` `[planes, seq_q, seq_k]`: 0 where query i sees key j, -inf elsewhere. The last query lines up
    /// with the last key: j <= i + seq_k - seq_q.
    ///
    /// # Errors
    ///
    /// Wrong length, a dimension of 0.
    pub fn causal_mask(
        &self,
        stream: &HipStream,
        y: &HipBuffer<f32>,
        planes: usize,
        seq_q: usize,
        seq_k: usize,
    ) -> KernelResult<()> {
        let check = Check("causal_mask");
        check.dim("planes", planes)?;
        let (q, k) = (check.dim("seq_q", seq_q)?, check.dim("seq_k", seq_k)?);
        let rows = check.rows("planes * seq_q", &[planes, seq_q])?;
        check.len("y", y, &[planes, seq_q, seq_k])?;
        let offset = causal_offset(check, q, k)?;
        let args = LaunchArgs::new().out(y).values([rows, q, k]).value(offset);
        // SAFETY: y has the shape's elements, checked above.
        unsafe { self.launch(stream, "causal_mask", "causal_mask", geometry::row_tile(rows, k), args) }
    }

    /// Copies `x` `[planes, rows, cols]` to `y` with `by` over the columns `c > n_past + r` of each row `r`. `y` may be
    /// `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0.
    pub fn diag_mask(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [planes, rows, cols]: [usize; 3],
        n_past: usize,
        by: f32,
    ) -> KernelResult<()> {
        let check = Check("diag_mask");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        let all = check.rows("planes * rows", &[planes, rows])?;
        check.one_shape(x, y, &[planes, rows, cols])?;
        // Beyond the columns nothing is hidden.
        let offset = i32::try_from(n_past.min(cols)).unwrap_or(i32::MAX);
        let args = LaunchArgs::new().buffer(x).out(y);
        let args = args.values([all, r, c]).value(offset).value(by);
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "causal_mask", "diag_mask", geometry::row_tile(all, c), args) }
    }
}
