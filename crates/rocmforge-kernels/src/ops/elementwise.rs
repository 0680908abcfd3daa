//! scale, copy, add, mul, a row vector added to or multiplied with every row, and parts of rows.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y = x * factor`, element by element. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn scale(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>, factor: f32) -> KernelResult<()> {
        let args = self.unary("scale", x, y)?.value(factor);
        // SAFETY: `unary` checked both lengths against n and that they coincide or are apart.
        unsafe { self.launch(stream, "scale", "scale", geometry::flat(x.len()), args) }
    }

    /// `y = x`.
    ///
    /// # Errors
    ///
    /// Different lengths, overlap, no elements.
    pub fn copy(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>) -> KernelResult<()> {
        let args = self.unary("copy", x, y)?;
        // SAFETY: as for `scale`.
        unsafe { self.launch(stream, "copy", "copy", geometry::flat(x.len()), args) }
    }

    /// `y = a + b`, element by element. `y` may be one of them.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn add(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        b: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let args = self.binary("add", ("a", a), ("b", b), y)?;
        // SAFETY: `binary` checked all lengths against n, and that y coincides with or is apart from each operand.
        unsafe { self.launch(stream, "add", "add", geometry::flat(y.len()), args) }
    }

    /// `y = a * b`, element by element. `y` may be one of them.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements.
    pub fn mul(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        b: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
    ) -> KernelResult<()> {
        let args = self.binary("mul", ("a", a), ("b", b), y)?;
        // SAFETY: as for `add`.
        unsafe { self.launch(stream, "mul", "mul", geometry::flat(y.len()), args) }
    }

    /// `y[r, c] = x[r, c] + bias[c]` for `x` and `y` `[rows, cols]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0.
    pub fn add_row_bias(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        bias: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        self.with_row(stream, ["add", "add_row_bias"], x, ("bias", bias), y, [rows, cols])
    }

    /// `y[r, c] = x[r, c] * factor[c]` for `x` and `y` `[rows, cols]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0.
    pub fn mul_row(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        factor: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        self.with_row(stream, ["mul", "mul_row"], x, ("factor", factor), y, [rows, cols])
    }

    /// Each row of x and the same row vector.
    fn with_row(
        &self,
        stream: &HipStream,
        [family, name]: [&'static str; 2],
        x: &HipBuffer<f32>,
        vector: (&'static str, &HipBuffer<f32>),
        y: &HipBuffer<f32>,
        [rows, cols]: [usize; 2],
    ) -> KernelResult<()> {
        let check = Check(name);
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.one_shape(x, y, &[rows, cols])?;
        check.input(vector.0, vector.1, &[cols], ("y", y))?;
        let args = LaunchArgs::new().buffer(x).buffer(vector.1).out(y).values([r, c]);
        // SAFETY: lengths are those of the shape and aliasing is as the kernel allows, all checked above.
        unsafe { self.launch(stream, family, name, geometry::row_tile(r, c), args) }
    }

    /// The arguments x, y, n of a kernel that goes element by element and may work in place.
    pub(super) fn unary<'a>(
        &self,
        op: &'static str,
        x: &'a HipBuffer<f32>,
        y: &'a HipBuffer<f32>,
    ) -> KernelResult<LaunchArgs<'a>> {
        let check = Check(op);
        check.dim_to("elements", x.len(), usize::MAX)?;
        check.len("y", y, &[x.len()])?;
        check.in_place(("y", y), ("x", x))?;
        Ok(LaunchArgs::new().buffer(x).out(y).value(x.len() as u64))
    }

    /// The arguments a, b, y, n of the same with two operands.
    pub(super) fn binary<'a>(
        &self,
        op: &'static str,
        a: (&'static str, &'a HipBuffer<f32>),
        b: (&'static str, &'a HipBuffer<f32>),
        y: &'a HipBuffer<f32>,
    ) -> KernelResult<LaunchArgs<'a>> {
        let check = Check(op);
        let n = y.len();
        check.dim_to("elements", n, usize::MAX)?;
        check.len(a.0, a.1, &[n])?;
        check.len(b.0, b.1, &[n])?;
        check.in_place(("y", y), a)?;
        check.in_place(("y", y), b)?;
        Ok(LaunchArgs::new().buffer(a.1).buffer(b.1).out(y).value(n as u64))
    }
}
