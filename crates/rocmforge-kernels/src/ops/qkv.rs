//! The two matrix products of attention as separate kernels: scores, and the weighted sum of the values.

use crate::check::Check;
use crate::layout::{check_operand, check_output};
use crate::{AttentionShape, KernelResult, Kernels, Operand, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

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
        let check = Check("qk_matmul");
        let dims = shape.dims(check)?;
        check.dim_to("seq_k", shape.seq_k, MAX_SEQ_K)?;
        check_operand(check, "q", q, [shape.batch, shape.heads, shape.seq_q, shape.head_dim])?;
        check_operand(
            check,
            "k",
            k,
            [shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim],
        )?;
        check.len("scores", scores, &[shape.batch, shape.heads, shape.seq_q, shape.seq_k])?;
        check.disjoint(("scores", scores), ("q", q.buffer))?;
        check.disjoint(("scores", scores), ("k", k.buffer))?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new()
            .buffer(q.buffer)
            .buffer(k.buffer)
            .out(scores)
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .value(q.strides)
            .value(k.strides)
            .value(scale);
        let config = geometry::gemm(dims.seq_q, dims.seq_k, dims.planes);
        // SAFETY: strides stay inside of q and k, scores have the shape's elements, nothing overlaps: checked above.
        unsafe { self.launch(stream, "qk_matmul", "qk_matmul", config, args) }
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
        let check = Check("weighted_matmul");
        let dims = shape.dims(check)?;
        check.dim_to("seq_k", shape.seq_k, MAX_SEQ_K)?;
        check.len(
            "weights",
            weights,
            &[shape.batch, shape.heads, shape.seq_q, shape.seq_k],
        )?;
        check_operand(
            check,
            "v",
            v,
            [shape.batch, shape.kv_heads, shape.seq_k, shape.head_dim],
        )?;
        check_output(
            check,
            "out",
            out,
            [shape.batch, shape.heads, shape.seq_q, shape.head_dim],
        )?;
        check.disjoint(("out", out.buffer), ("weights", weights))?;
        check.disjoint(("out", out.buffer), ("v", v.buffer))?;
        let args = LaunchArgs::new()
            .buffer(weights)
            .buffer(v.buffer)
            .out(out.buffer)
            .values([dims.seq_q, dims.seq_k, dims.head_dim, dims.heads, dims.kv_heads])
            .value(v.strides)
            .value(out.strides);
        let config = geometry::gemm(dims.seq_q, dims.head_dim, dims.planes);
        // SAFETY: weights have the shape's elements, strides stay inside of v and out, nothing overlaps: checked above.
        unsafe { self.launch(stream, "weighted_matmul", "weighted_matmul", config, args) }
    }
}
