//! Attention over a paged cache in f64.

use super::softmax::softmax_with_sink;
use crate::{PagedOptions, PagedShape};

/// Attention over paged caches with the values `k` and `v` `[blocks * block_size, kv_heads, head_dim]`: see
/// [`Kernels::paged_attention`](crate::Kernels::paged_attention). NaN for a token whose sequence, position or a seen block does not
/// exist.
#[allow(clippy::too_many_arguments)] // the operands of one operation
pub fn paged_attention(
    q: &[f32],
    k: &[f64],
    v: &[f64],
    block_table: &[u32],
    seq_of: &[u32],
    positions: &[u32],
    sinks: Option<&[f32]>,
    s: PagedShape,
    options: PagedOptions,
) -> Vec<f64> {
    // Where the rows of all heads of key j begin.
    let row_of = |token: usize, j: usize| -> Option<usize> {
        let (seq, column) = (seq_of[token] as usize, j / s.block_size);
        if seq >= s.sequences || column >= s.max_blocks {
            return None;
        }
        let block = block_table[seq * s.max_blocks + column] as usize;
        (block < s.blocks).then_some((block * s.block_size + j % s.block_size) * s.kv_heads * s.head_dim)
    };
    let mut out = Vec::new();
    for token in 0..s.tokens {
        let position = positions[token] as usize;
        let seen = |&j: &usize| options.window.is_none_or(|window| position - j < window);
        // A position beyond the table is none of which all keys could be listed.
        let last = position.min(s.max_blocks * s.block_size);
        let rows: Option<Vec<usize>> = (0..=last).filter(seen).map(|j| row_of(token, j)).collect();
        for head in 0..s.heads {
            let Some(rows) = &rows else {
                out.extend(std::iter::repeat_n(f64::NAN, s.head_dim));
                continue;
            };
            let kv = head / (s.heads / s.kv_heads) * s.head_dim;
            let query = &q[(token * s.heads + head) * s.head_dim..][..s.head_dim];
            let score = |&row: &usize| -> f64 {
                let key = &k[row + kv..][..s.head_dim];
                let dot: f64 = query.iter().zip(key).map(|(&q, k)| f64::from(q) * k).sum();
                let score = dot * f64::from(options.scale);
                options
                    .softcap
                    .map_or(score, |cap| f64::from(cap) * (score / f64::from(cap)).tanh())
            };
            let sink = sinks.map(|sinks| f64::from(sinks[head]));
            let weights = softmax_with_sink(&rows.iter().map(score).collect::<Vec<f64>>(), sink);
            for d in 0..s.head_dim {
                out.push(rows.iter().zip(&weights).map(|(row, w)| w * v[row + kv + d]).sum());
            }
        }
    }
    out
}
