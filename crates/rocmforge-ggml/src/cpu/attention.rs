//! Scaled dot-product attention with grouped heads, causality and padding.

use super::matmul::{Matrix, gemm};
use super::norm::softmax_row;
use super::operand::Operand;
use super::rows::check_lengths;
use super::threads::{WORTH_A_THREAD, parallel};
use crate::{Attention, GgmlResult};

/// Queries per task: small enough to share out, large enough for the matrix kernels.
const QUERIES: usize = 64;

pub(super) fn attention(inputs: &[Operand<'_>], a: Attention, out: &mut [f32], threads: usize) -> GgmlResult<()> {
    let (q, k, v) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
    let (seq_q, seq_k) = (inputs[0].shape[1], inputs[1].shape[1]);
    let (width, kv_width) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
    let lengths = inputs.get(3).map(Operand::words);
    if let Some(lengths) = &lengths {
        check_lengths("Attention", lengths, seq_k)?;
    }
    if out.is_empty() {
        return Ok(());
    }
    let mut tasks = Vec::new();
    for (batch, out) in out.chunks_mut(seq_q * width).enumerate() {
        for (block, out) in out.chunks_mut(QUERIES * width).enumerate() {
            tasks.push((batch, block * QUERIES, out));
        }
    }
    let work = tasks.len() * QUERIES.min(seq_q) * seq_k * width / 8;
    let threads = if work < WORTH_A_THREAD { 1 } else { threads };
    parallel(threads, tasks, |(batch, first, out)| {
        let keys = lengths.as_ref().map_or(seq_k, |l| l[batch] as usize);
        let rows = out.len() / width;
        let mut scores = vec![0.0f32; rows * keys];
        for head in 0..a.heads {
            let kv_head = head / (a.heads / a.kv_heads);
            let q_at = (batch * seq_q + first) * width + head * a.head_dim;
            let kv_at = batch * seq_k * kv_width + kv_head * a.head_dim;
            if keys == 0 {
                out.chunks_mut(width)
                    .for_each(|row| row[head * a.head_dim..][..a.head_dim].fill(0.0));
                continue;
            }
            let queries = Matrix {
                data: &q[q_at..],
                rows,
                cols: a.head_dim,
                row_stride: width,
                col_stride: 1,
            };
            let transposed_keys = Matrix {
                data: &k[kv_at..],
                rows: a.head_dim,
                cols: keys,
                row_stride: 1,
                col_stride: kv_width,
            };
            gemm(queries, transposed_keys, &mut scores, keys);
            for (i, row) in scores.chunks_mut(keys).enumerate() {
                row.iter_mut().for_each(|s| *s *= a.scale);
                if a.causal {
                    // Query i is the token at position i + seq_k - seq_q; it sees itself and what is before it.
                    let visible = (first + i + 1 + seq_k).saturating_sub(seq_q).min(keys);
                    row[visible..].fill(f32::NEG_INFINITY);
                }
                softmax_row(row);
            }
            let weights = Matrix {
                data: &scores,
                rows,
                cols: keys,
                row_stride: keys,
                col_stride: 1,
            };
            let values = Matrix {
                data: &v[kv_at..],
                rows: keys,
                cols: a.head_dim,
                row_stride: kv_width,
                col_stride: 1,
            };
            gemm(weights, values, &mut out[head * a.head_dim..], width);
        }
    });
    Ok(())
}
