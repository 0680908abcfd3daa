//! Scaled dot-product attention with grouped heads, causality and padding.

use std::borrow::Cow;

use super::matmul::{Matrix, gemm};
use super::norm::softmax_row;
use super::operand::Operand;
use super::threads::{Threads, WORTH_A_THREAD};
use crate::Attention;

/// Queries per task: small enough to share out, large enough for the matrix kernels.
const QUERIES: usize = 64;

pub(super) fn attention(inputs: &[Operand<'_>], a: Attention, out: &mut [f32], threads: &Threads) {
    let (q, k, v) = (inputs[0].f32(), inputs[1].f32(), inputs[2].f32());
    let (seq_q, seq_k) = (inputs[0].shape[1], inputs[1].shape[1]);
    let (width, kv_width) = (a.heads * a.head_dim, a.kv_heads * a.head_dim);
    let mask = inputs.get(3).map(Mask::new);
    if out.is_empty() {
        return;
    }
    if seq_k == 0 {
        return out.fill(0.0);
    }
    let mut tasks = Vec::new();
    for (batch, out) in out.chunks_mut(seq_q * width).enumerate() {
        for (block, out) in out.chunks_mut(QUERIES * width).enumerate() {
            tasks.push((batch, block * QUERIES, out));
        }
    }
    let work = tasks.len() * QUERIES.min(seq_q) * seq_k * width / 8;
    let run = |(batch, first, out): (usize, usize, &mut [f32])| {
        let rows = out.len() / width;
        let mut scores = vec![0.0f32; rows * seq_k];
        for head in 0..a.heads {
            let kv_head = head / (a.heads / a.kv_heads);
            let q_at = (batch * seq_q + first) * width + head * a.head_dim;
            let kv_at = batch * seq_k * kv_width + kv_head * a.head_dim;
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
                cols: seq_k,
                row_stride: 1,
                col_stride: kv_width,
            };
            gemm(queries, transposed_keys, &mut scores, seq_k);
            for (i, row) in scores.chunks_mut(seq_k).enumerate() {
                row.iter_mut().for_each(|s| *s *= a.scale);
                if let Some(mask) = &mask {
                    mask.add(batch, head, first + i, row);
                }
                if a.causal {
                    // Query i is the token at position i + seq_k - seq_q; it sees itself and what is before it.
                    let visible = (first + i + 1 + seq_k).saturating_sub(seq_q).min(seq_k);
                    row[visible..].fill(f32::NEG_INFINITY);
                }
                softmax_row(row);
            }
            let weights = Matrix {
                data: &scores,
                rows,
                cols: seq_k,
                row_stride: seq_k,
                col_stride: 1,
            };
            let values = Matrix {
                data: &v[kv_at..],
                rows: seq_k,
                cols: a.head_dim,
                row_stride: kv_width,
                col_stride: 1,
            };
            gemm(weights, values, &mut out[head * a.head_dim..], width);
        }
    };
    if work < WORTH_A_THREAD {
        tasks.into_iter().for_each(run);
    } else {
        threads.each(tasks, run);
    }
}

/// An additive mask, `[batch, seq_k]` or four-dimensional, with stride 0 where it repeats.
struct Mask<'a> {
    data: Cow<'a, [f32]>,
    strides: [usize; 4],
}

impl<'a> Mask<'a> {
    fn new(mask: &Operand<'a>) -> Self {
        let dims = match *mask.shape {
            [batch, keys] => [batch, 1, 1, keys],
            [batch, heads, queries, keys] => [batch, heads, queries, keys],
            _ => [1; 4],
        };
        let mut strides = [0; 4];
        let mut step = 1;
        for dim in (0..4).rev() {
            if dims[dim] != 1 {
                strides[dim] = step;
            }
            step *= dims[dim];
        }
        Self {
            data: mask.f32(),
            strides,
        }
    }

    fn add(&self, batch: usize, head: usize, query: usize, row: &mut [f32]) {
        let [sb, sh, sq, sk] = self.strides;
        let base = batch * sb + head * sh + query * sq;
        for (key, score) in row.iter_mut().enumerate() {
            *score += self.data[base + key * sk];
        }
    }
}
