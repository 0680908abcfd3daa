//! Matrix products.

use crate::check::{Check, MAX_COLUMNS};
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// The dimensions of `y[m, n] = a[m, k] * b`, `batch` times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MatmulShape {
    /// Products.
    pub batch: usize,
    /// Rows of `a` and `y`.
    pub m: usize,
    /// Columns of `y`.
    pub n: usize,
    /// Columns of `a`.
    pub k: usize,
    /// `b` is `[n, k]`, as linear layers store their weights, instead of `[k, n]`.
    pub b_transposed: bool,
    /// One `b` for all of the batch.
    pub b_shared: bool,
}

impl MatmulShape {
    /// One product with `b` `[k, n]`.
    pub const fn new(m: usize, n: usize, k: usize) -> Self {
        Self {
            batch: 1,
            m,
            n,
            k,
            b_transposed: false,
            b_shared: false,
        }
    }

    /// One product with `b` `[n, k]`: a linear layer.
    pub const fn linear(m: usize, n: usize, k: usize) -> Self {
        Self {
            b_transposed: true,
            ..Self::new(m, n, k)
        }
    }

    /// `batch` products, each with its own `b`.
    pub const fn batched(self, batch: usize) -> Self {
        Self { batch, ..self }
    }

    const fn b_batch(&self) -> usize {
        if self.b_shared { 1 } else { self.batch }
    }
}

impl Kernels {
    /// `y = a b (+ bias)`, f32 throughout: `a` `[batch, m, k]`, `b` `[batch or 1, k, n]` (or `[.., n, k]`), `bias` `[n]`, `y`
    /// `[batch, m, n]`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, rows longer than 2^24 - 1 elements.
    pub fn matmul(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        b: &HipBuffer<f32>,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        shape: MatmulShape,
    ) -> KernelResult<()> {
        let check = Check("matmul");
        let batch = check.dim("batch", shape.batch)?;
        let m = check.dim("m", shape.m)?;
        let n = check.dim_to("n", shape.n, MAX_COLUMNS)?;
        let k = check.dim_to("k", shape.k, MAX_COLUMNS)?;
        check.len("a", a, &[shape.batch, shape.m, shape.k])?;
        check.len("b", b, &[shape.b_batch(), shape.k, shape.n])?;
        check.len("y", y, &[shape.batch, shape.m, shape.n])?;
        check.disjoint(("y", y), ("a", a))?;
        check.disjoint(("y", y), ("b", b))?;
        let mut args = LaunchArgs::new().buffer(a).buffer(b);
        if let Some(bias) = bias {
            check.input("bias", bias, &[shape.n], ("y", y))?;
            args = args.buffer(bias);
        }
        let b_stride = if shape.b_shared { 0 } else { shape.k * shape.n };
        let strides = [shape.m * shape.k, b_stride, shape.m * shape.n].map(|stride| stride as u64);
        let args = args.out(y).values([m, n, k]).values(strides);
        let name = match (shape.b_transposed, bias.is_some()) {
            (false, false) => "matmul_nn",
            (false, true) => "matmul_nn_bias",
            (true, false) => "matmul_nt",
            (true, true) => "matmul_nt_bias",
        };
        // SAFETY: lengths are those of the shape (so the strides stay inside), rows are short enough, nothing overlaps: checked above.
        unsafe { self.launch(stream, "matmul", name, geometry::gemm(m, n, batch), args) }
    }
}
