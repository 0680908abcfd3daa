//! Products of quantised weights and a vector.

use crate::check::Check;
use crate::{KernelError, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// Weights of a Q4_0 block.
const BLOCK: usize = 32;
/// Its bytes: a scale in f16, and a nibble for each weight.
const BLOCK_BYTES: usize = 18;

impl Kernels {
    /// `y = w x` for weights `[rows, cols]` in ggml's Q4_0 blocks (`rows * cols / 32 * 18` bytes, row by row), `x` `[cols]` and `y`
    /// `[rows]`. Weights become f32 as they are read; sums are f32.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, `cols` that is no multiple of 32, weights at an odd address.
    pub fn matvec_q4_0(
        &self,
        stream: &HipStream,
        w: &HipBuffer<u8>,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
    ) -> KernelResult<()> {
        let check = Check("matvec_q4_0");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        let refuse = |what, left, right| {
            Err(KernelError::Mismatch {
                op: check.0,
                what,
                left,
                right,
            })
        };
        if !cols.is_multiple_of(BLOCK) {
            return refuse("cols must be a multiple of the block", cols, BLOCK);
        }
        check.len("w", w, &[rows, cols / BLOCK, BLOCK_BYTES])?;
        check.len("x", x, &[cols])?;
        check.len("y", y, &[rows])?;
        check.disjoint(("y", y), ("w", w))?;
        check.disjoint(("y", y), ("x", x))?;
        // The scale of a block is read as two bytes at once.
        let address = w.as_device_ptr().addr();
        if !address.is_multiple_of(2) {
            return refuse("the weights' address must be a multiple of its alignment", address, 2);
        }
        let args = LaunchArgs::new()
            .buffer(w)
            .buffer(x)
            .out(y)
            .value(r)
            .value(c / BLOCK as u32);
        // SAFETY: lengths are those of the shapes, the blocks are aligned and nothing overlaps, all checked above.
        unsafe { self.launch(stream, "matvec_q4_0", "matvec_q4_0", geometry::rows(r), args) }
    }
}
