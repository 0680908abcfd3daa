//! Layout changes: transposition, replication of K and V heads.

use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y[b, c, r] = x[b, r, c]` for `x` `[batch, rows, cols]`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, more tiles than a grid takes.
    pub fn transpose(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [batch, rows, cols]: [usize; 3],
    ) -> KernelResult<()> {
        let check = Check("transpose");
        let [b, r, c] = check.dims([("batch", batch), ("rows", rows), ("cols", cols)])?;
        check.len("x", x, &[batch, rows, cols])?;
        check.len("y", y, &[batch, rows, cols])?;
        check.disjoint(("y", y), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(y).values([r, c]);
        let config = geometry::config([c.div_ceil(64), r.div_ceil(64), b], 256);
        // SAFETY: lengths are those of the shape and nothing overlaps, checked above; the grid has exactly `batch` blocks along z.
        unsafe { self.launch(stream, "transpose", "transpose", config, args) }
    }

    /// Repeats K or V heads for MQA and GQA: `x` `[tokens, kv_heads, head_dim]` to `y` `[tokens, heads, head_dim]`, where head h is kv
    /// head h / (heads / kv_heads). The attention kernels here do not need it.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, heads that `kv_heads` does not divide.
    pub fn kv_replicate(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        tokens: usize,
        [heads, kv_heads]: [usize; 2],
        head_dim: usize,
    ) -> KernelResult<()> {
        let check = Check("kv_replicate");
        let (t, d) = (check.dim("tokens", tokens)?, check.dim("head_dim", head_dim)?);
        let (h, kv) = (check.dim("heads", heads)?, check.dim("kv_heads", kv_heads)?);
        check.heads(heads, kv_heads)?;
        let rows = check.rows("tokens * heads", &[tokens, heads])?;
        check.len("x", x, &[tokens, kv_heads, head_dim])?;
        check.len("y", y, &[tokens, heads, head_dim])?;
        check.disjoint(("y", y), ("x", x))?;
        let args = LaunchArgs::new().buffer(x).out(y).values([t, h, kv, d]);
        // SAFETY: lengths are those of the shapes and nothing overlaps, checked above.
        unsafe {
            self.launch(
                stream,
                "kv_replicate",
                "kv_replicate",
                geometry::row_tile(rows, d),
                args,
            )
        }
    }
}
