//! Pooling: token vectors to sentence vectors.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y[b, c] = sum_s x[b, s, c] * weight[b, s] / max(sum_s weight[b, s], 1e-9)` for `x` `[batch, seq, cols]`, `weight` `[batch, seq]`
    /// (the attention mask, 1 or 0), `y` `[batch, cols]`. Tokens of weight 0 are not read.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0.
    pub fn mean_pool(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        weight: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [batch, seq, cols]: [usize; 3],
    ) -> KernelResult<()> {
        let check = Check("mean_pool");
        let [b, s, c] = check.dims([("batch", batch), ("seq", seq), ("cols", cols)])?;
        check.len("x", x, &[batch, seq, cols])?;
        check.len("weight", weight, &[batch, seq])?;
        check.len("y", y, &[batch, cols])?;
        check.disjoint(("y", y), ("x", x))?;
        check.disjoint(("y", y), ("weight", weight))?;
        let args = LaunchArgs::new().buffer(x).buffer(weight).out(y).values([s, c]);
        let config = geometry::config([c.div_ceil(256), b, 1], 256);
        // SAFETY: lengths are those of the shapes and nothing overlaps, checked above; the grid has exactly `batch` blocks along y.
        unsafe { self.launch(stream, "pool", "mean_pool", config, args) }
    }
}
