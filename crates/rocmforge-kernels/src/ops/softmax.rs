//! Softmax over the last dimension: plain, causal, with a mask.

use crate::check::Check;
use crate::layout::{causal_offset, check_operand};
use crate::{KernelResult, Kernels, Operand, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y = softmax(x * scale)` row by row over `[rows, cols]`, any row length. `y` may be `x`. A row of nothing but -inf gives zeros.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.len("x", x, &[rows, cols])?;
        check.len("y", y, &[rows, cols])?;
        check.in_place(("y", y), ("x", x))?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new().buffer(x).out(y).value(r).value(c).value(scale);
        let (name, config) = geometry::by_row(r, c, "softmax_rows", "softmax_block");
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }

    /// `y = softmax(x * scale)` over the keys that a causal mask leaves visible (j <= i + seq_k - seq_q), 0 elsewhere, for scores
    /// `[planes, seq_q, seq_k]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax_causal(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [planes, seq_q, seq_k]: [usize; 3],
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax_causal");
        let shape = [planes, seq_q, seq_k];
        let (q, k) = (check.dim("seq_q", seq_q)?, check.dim("seq_k", seq_k)?);
        let rows = check.rows("planes * seq_q", &shape[..2])?;
        check.len("x", x, &shape)?;
        check.len("y", y, &shape)?;
        check.in_place(("y", y), ("x", x))?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new()
            .buffer(x)
            .out(y)
            .value(rows)
            .value(q)
            .value(k)
            .value(causal_offset(check, q, k)?)
            .value(scale);
        let (name, config) = geometry::by_row(rows, k, "softmax_causal_rows", "softmax_causal_block");
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }

    /// `y = softmax(x * scale + mask)` for scores `[batch, heads, seq_q, seq_k]`; the mask broadcasts through its strides. `y` may be
    /// `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, strides that leave the mask, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax_masked(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        mask: Operand<'_>,
        y: &HipBuffer<f32>,
        shape: [usize; 4],
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax_masked");
        let [_, heads, seq_q, seq_k] = shape;
        let (h, q, k) = (
            check.dim("heads", heads)?,
            check.dim("seq_q", seq_q)?,
            check.dim("seq_k", seq_k)?,
        );
        let rows = check.rows("batch * heads * seq_q", &shape[..3])?;
        check.len("x", x, &shape)?;
        check.len("y", y, &shape)?;
        check_operand(check, "mask", mask, shape)?;
        check.in_place(("y", y), ("x", x))?;
        check.disjoint(("y", y), ("mask", mask.buffer))?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new()
            .buffer(x)
            .buffer(mask.buffer)
            .out(y)
            .value(rows)
            .value(h)
            .value(q)
            .value(k)
            .value(mask.strides)
            .value(scale);
        let (name, config) = geometry::by_row(rows, k, "softmax_masked_rows", "softmax_masked_block");
        // SAFETY: x and y have the shape's elements, the mask's strides stay inside of it, aliasing is as the kernel allows.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }
}
