//! Matrix products.

use crate::check::MAX_COLUMNS;
use crate::declared::{Call, Declared};
use crate::{KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[
    NN,
    Declared {
        name: "matmul_nt",
        call: |c, dims| matmul(c, dims, [true, false]),
        ..NN
    },
    Declared {
        name: "matmul_nn_bias",
        call: |c, dims| matmul(c, dims, [false, true]),
        ..NN
    },
    Declared {
        name: "matmul_nt_bias",
        call: |c, dims| matmul(c, dims, [true, true]),
        ..NN
    },
];

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
        let (op, s) = (self.op("matmul"), shape);
        let [batch, m] = op.dims([("batch", s.batch), ("m", s.m)])?;
        let (n, k) = (op.dim_to("n", s.n, MAX_COLUMNS)?, op.dim_to("k", s.k, MAX_COLUMNS)?);
        let op = (op.read("a", a, &[s.batch, s.m, s.k])?).read("b", b, &[s.b_batch(), s.k, s.n])?;
        let op = match bias {
            Some(bias) => op.read("bias", bias, &[s.n])?,
            None => op,
        };
        let b_stride = if s.b_shared { 0 } else { s.k * s.n };
        let name = match (s.b_transposed, bias.is_some()) {
            (false, false) => "matmul_nn",
            (false, true) => "matmul_nn_bias",
            (true, false) => "matmul_nt",
            (true, true) => "matmul_nt_bias",
        };
        op.write("y", y, &[s.batch, s.m, s.n], &[])?
            .values([m, n, k])
            .values([s.m * s.k, b_stride, s.m * s.n].map(|stride| stride as u64))
            .run(stream, "matmul", (name, geometry::gemm(m, n, batch)))
    }
}

/// m, n and k: every edge of a tile, and k around the wave size.
const NN: Declared = Declared {
    name: "matmul_nn",
    call: |c, dims| matmul(c, dims, [false, false]),
    tested: &[
        &[1, 129, 5],
        &[129, 1, 17],
        &[3, 4, 300],
        &[1, 1, 1],
        &[2, 1000, 3],
        &[31, 99, 17],
        &[32, 98, 17],
        &[33, 97, 17],
        &[63, 67, 17],
        &[64, 66, 17],
        &[67, 63, 17],
        &[127, 3, 17],
        &[2, 128, 17],
        &[5, 6, 31],
        &[5, 6, 32],
        &[5, 6, 33],
        &[5, 6, 63],
        &[5, 6, 64],
        &[5, 6, 65],
        &[5, 6, 127],
        &[5, 6, 128],
        &[5, 6, 129],
        &[65, 65, 64],
    ],
    counted: &[&[256, 256, 256]],
    timed: &[&[4096, 4096, 4096]],
    ..Declared::NEW
};

fn matmul(c: &mut Call<'_>, dims: &[usize], [transposed, biased]: [bool; 2]) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let shape = MatmulShape {
        b_transposed: transposed,
        ..MatmulShape::new(m, n, k)
    };
    c.computes(2 * m * n * k);
    let (a, b) = (c.input("a", m * k, -1.0..1.0)?, c.input("b", k * n, -1.0..1.0)?);
    let bias = c.input_bias(biased, n)?;
    let y = c.output("y", m * n)?;
    c.kernels.matmul(c.stream, &a, &b, bias.as_ref(), &y, shape)?;
    c.expect("y", 1e-5, |c| {
        reference::matmul(c.f32("a"), c.f32("b"), biased.then(|| c.f32("bias")), shape)
    });
    Ok(())
}
