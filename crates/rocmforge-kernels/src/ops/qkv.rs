//! The two matrix products of attention as separate kernels: scores, and the weighted sum of the values.

use crate::declared::Declared;
use crate::{AttentionShape, KernelResult, Kernels, Operand, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[QK_MATMUL, WEIGHTED_MATMUL];

/// Rows of the scores are operands of a matrix product.
const MAX_SEQ_K: usize = (1 << 24) - 1;

impl Kernels {
    /// `scores[b, h, i, j] = scale * q[b, h, i, :] . k[b, kv(h), j, :]`; `scores` is contiguous `[batch, heads, seq_q, seq_k]`.
    ///
    /// # Errors
    ///
    /// Wrong length, strides that leave a buffer, overlap, a dimension of 0, heads that `kv_heads` does not divide.
    pub fn qk_matmul(
        &self,
        stream: &HipStream,
        q: Operand<'_>,
        k: Operand<'_>,
        scores: &HipBuffer<f32>,
        shape: AttentionShape,
        scale: f32,
    ) -> KernelResult<()> {
        let (op, s) = (self.op("qk_matmul"), shape);
        let dims = s.dims(op.check())?;
        op.dim_to("seq_k", s.seq_k, MAX_SEQ_K)?;
        op.value_of("scale", scale, scale.is_finite(), "finite")?;
        let config = geometry::gemm(dims.seq_q, dims.seq_k, dims.planes);
        (op.read_strided("q", q, [s.batch, s.heads, s.seq_q, s.head_dim])?)
            .read_strided("k", k, [s.batch, s.kv_heads, s.seq_k, s.head_dim])?
            .write("scores", scores, &[s.batch, s.heads, s.seq_q, s.seq_k], &[])?
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .values([q.strides, k.strides])
            .value(scale)
            .run(stream, "qk_matmul", ("qk_matmul", config))
    }

    /// `out[b, h, i, :] = sum_j weights[b, h, i, j] * v[b, kv(h), j, :]`; `weights` is contiguous `[batch, heads, seq_q, seq_k]`.
    ///
    /// # Errors
    ///
    /// Wrong length, strides that leave a buffer or overlap in the output, overlap, a dimension of 0, heads that `kv_heads` does not
    /// divide.
    pub fn weighted_matmul(
        &self,
        stream: &HipStream,
        weights: &HipBuffer<f32>,
        v: Operand<'_>,
        out: Operand<'_>,
        shape: AttentionShape,
    ) -> KernelResult<()> {
        let (op, s) = (self.op("weighted_matmul"), shape);
        let dims = s.dims(op.check())?;
        op.dim_to("seq_k", s.seq_k, MAX_SEQ_K)?;
        let config = geometry::gemm(dims.seq_q, dims.head_dim, dims.planes);
        (op.read("weights", weights, &[s.batch, s.heads, s.seq_q, s.seq_k])?)
            .read_strided("v", v, [s.batch, s.kv_heads, s.seq_k, s.head_dim])?
            .write_strided("out", out, [s.batch, s.heads, s.seq_q, s.head_dim])?
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .values([v.strides, out.strides])
            .run(stream, "weighted_matmul", ("weighted_matmul", config))
    }
}

/// Batch, heads, queries, keys, and elements of a head. Six heads have two of keys and values; others have as many.
fn shape_of(dims: &[usize]) -> Option<AttentionShape> {
    let &[batch, heads, seq_q, seq_k, head_dim] = dims else {
        return None;
    };
    let kv_heads = if heads == 6 { 2 } else { heads };
    let shape = AttentionShape::square(batch, heads, seq_q, head_dim);
    Some(shape.with_seq_k(seq_k).with_kv_heads(kv_heads))
}

const QK_MATMUL: Declared = Declared {
    name: "qk_matmul",
    call: |c, dims| {
        let Some(shape) = shape_of(dims) else { return Ok(()) };
        let AttentionShape { seq_k, head_dim, .. } = shape;
        let rows = shape.batch * shape.heads * shape.seq_q;
        c.computes(2 * rows * seq_k * head_dim);
        let q = c.input("q", rows * head_dim, -1.0..1.0)?;
        let k = c.input("k", shape.batch * shape.kv_heads * seq_k * head_dim, -1.0..1.0)?;
        let scores = c.output("scores", rows * seq_k)?;
        let of_q = Operand::new(&q, shape.q_strides());
        let of_k = Operand::new(&k, shape.kv_strides());
        c.kernels.qk_matmul(c.stream, of_q, of_k, &scores, shape, 0.125)?;
        c.expect("scores", 1e-5, |c| {
            reference::qk_matmul(c.f32("q"), c.f32("k"), shape, 0.125)
        });
        Ok(())
    },
    tested: SHAPES,
    counted: &[&[1, 2, 128, 128, 64]],
    timed: &[&[1, 32, 2048, 2048, 128]],
    ..Declared::NEW
};

const WEIGHTED_MATMUL: Declared = Declared {
    name: "weighted_matmul",
    call: |c, dims| {
        let Some(shape) = shape_of(dims) else { return Ok(()) };
        let AttentionShape { seq_k, head_dim, .. } = shape;
        let rows = shape.batch * shape.heads * shape.seq_q;
        c.computes(2 * rows * seq_k * head_dim);
        // A row's weights are at most 1 together.
        let weights = c.input("weights", rows * seq_k, 0.0..1.0 / seq_k.max(1) as f32)?;
        let v = c.input("v", shape.batch * shape.kv_heads * seq_k * head_dim, -1.0..1.0)?;
        let out = c.output("out", rows * head_dim)?;
        let of_v = Operand::new(&v, shape.kv_strides());
        let of_out = Operand::new(&out, shape.q_strides());
        c.kernels.weighted_matmul(c.stream, &weights, of_v, of_out, shape)?;
        c.expect("out", 1e-6, |c| {
            let weights: Vec<f64> = c.f32("weights").iter().map(|&w| f64::from(w)).collect();
            reference::weighted_matmul(&weights, c.f32("v"), shape)
        });
        Ok(())
    },
    ..QK_MATMUL
};

/// Any head, and sequences around the wave size and the tiles.
const SHAPES: &[&[usize]] = &[
    &[1, 2, 5, 6, 1],
    &[1, 2, 5, 6, 3],
    &[1, 6, 5, 6, 40],
    &[1, 2, 5, 6, 64],
    &[1, 6, 5, 6, 80],
    &[1, 2, 5, 6, 96],
    &[2, 6, 5, 6, 128],
    &[1, 2, 5, 6, 129],
    &[1, 6, 5, 6, 256],
    &[1, 1, 1, 129, 17],
    &[1, 1, 31, 99, 17],
    &[1, 1, 33, 97, 17],
    &[1, 1, 64, 66, 17],
    &[1, 1, 128, 2, 17],
    &[1, 1, 65, 65, 17],
];
