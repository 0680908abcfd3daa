//! `NAME`: say here what it is for.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

impl Kernels {
    /// `y = factor * x`, element by element. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Different lengths, partial overlap, no elements, a factor that is not finite.
    pub fn NAME(&self, stream: &HipStream, x: &HipBuffer<f32>, y: &HipBuffer<f32>, factor: f32) -> KernelResult<()> {
        Check("NAME").value("factor", factor, f32::is_finite, "finite")?;
        let args = self.unary("NAME", x, y)?.value(factor);
        // SAFETY: `unary` checked both lengths against n and that they coincide or are apart.
        unsafe { self.launch(stream, "NAME", "NAME", geometry::flat(x.len()), args) }
    }
}
