//! Attention in f64: scores, masks and weighted sums.

use super::softmax::softmax_row;
use crate::AttentionShape;

/// Where an element of a contiguous `[batch, heads, rows, head_dim]` operand lies.
fn at(heads: usize, rows: usize, head_dim: usize, b: usize, h: usize, row: usize) -> usize {
    ((b * heads + h) * rows + row) * head_dim
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// scale * q k^T for contiguous q `[batch, heads, seq_q, head_dim]` and k `[batch, kv_heads, seq_k, head_dim]`.
pub fn qk_matmul(q: &[f32], k: &[f32], s: AttentionShape, scale: f32) -> Vec<f64> {
    let mut out = Vec::new();
    for b in 0..s.batch {
        for h in 0..s.heads {
            let kv = h / (s.heads / s.kv_heads);
            for i in 0..s.seq_q {
                for j in 0..s.seq_k {
                    let q = &q[at(s.heads, s.seq_q, s.head_dim, b, h, i)..][..s.head_dim];
                    let k = &k[at(s.kv_heads, s.seq_k, s.head_dim, b, kv, j)..][..s.head_dim];
                    out.push(f64::from(scale) * dot(q, k));
                }
            }
        }
    }
    out
}

/// weights v for contiguous weights `[batch, heads, seq_q, seq_k]` and v `[batch, kv_heads, seq_k, head_dim]`.
pub fn weighted_matmul(weights: &[f64], v: &[f32], s: AttentionShape) -> Vec<f64> {
    let mut out = Vec::new();
    for b in 0..s.batch {
        for h in 0..s.heads {
            let kv = h / (s.heads / s.kv_heads);
            for i in 0..s.seq_q {
                let weights = &weights[((b * s.heads + h) * s.seq_q + i) * s.seq_k..][..s.seq_k];
                for d in 0..s.head_dim {
                    let value = |j: usize| f64::from(v[at(s.kv_heads, s.seq_k, s.head_dim, b, kv, j) + d]);
                    out.push(weights.iter().enumerate().map(|(j, w)| w * value(j)).sum());
                }
            }
        }
    }
    out
}

/// softmax(scale q k^T + mask(b, h, i, j)) v, contiguous operands. A query whose keys are all hidden (-inf) gives zeros.
pub fn attention(
    q: &[f32],
    k: &[f32],
    v: &[f32],
    s: AttentionShape,
    scale: f32,
    mask: impl Fn(usize, usize, usize, usize) -> f64,
) -> Vec<f64> {
    let mut scores = qk_matmul(q, k, s, scale);
    for (n, score) in scores.iter_mut().enumerate() {
        let (j, i) = (n % s.seq_k, n / s.seq_k % s.seq_q);
        let (h, b) = (n / s.seq_k / s.seq_q % s.heads, n / s.seq_k / s.seq_q / s.heads);
        *score += mask(b, h, i, j);
    }
    let weights: Vec<f64> = scores.chunks(s.seq_k).flat_map(softmax_row).collect();
    weighted_matmul(&weights, v, s)
}

/// What changes the scores of [`flash_attn_ext`].
pub struct ExtScores<'a> {
    /// Factor of q . k.
    pub scale: f64,
    /// Bound of the scores.
    pub softcap: Option<f64>,
    /// ALiBi's largest bias.
    pub max_bias: f64,
    /// The mask of a batch, head, query and key.
    pub mask: &'a dyn Fn(usize, usize, usize, usize) -> f64,
    /// One more logit for each head.
    pub sinks: Option<&'a [f32]>,
}

/// softmax(cap(scale q . k) + slope * mask) v: q `[batch, heads, queries, dim_k]`, k and v without gaps, out
/// `[batch, queries, heads, dim_v]`.
pub fn flash_attn_ext(q: &[f64], k: &[f64], v: &[f64], shape: crate::ExtShape, scores: &ExtScores<'_>) -> Vec<f64> {
    let s = shape;
    let mut out = Vec::new();
    for at in 0..s.batch * s.queries * s.heads {
        let (b, i, h) = (at / s.heads / s.queries, at / s.heads % s.queries, at % s.heads);
        let shared = b * s.kv_batch / s.batch * s.kv_heads + h * s.kv_heads / s.heads;
        let query = &q[((b * s.heads + h) * s.queries + i) * s.dim_k..][..s.dim_k];
        let slope = super::softmax::alibi_slope(scores.max_bias, s.heads, h);
        let score = |j: usize| {
            let key = &k[(shared * s.keys + j) * s.dim_k..][..s.dim_k];
            let dot = scores.scale * query.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
            scores.softcap.map_or(dot, |cap| cap * (dot / cap).tanh()) + slope * (scores.mask)(b, h, i, j)
        };
        let row: Vec<f64> = (0..s.keys).map(score).collect();
        let sink = scores.sinks.map(|sinks| f64::from(sinks[h]));
        let weights = super::softmax::softmax_with_sink(&row, sink);
        let value = |j: usize, e: usize| v[(shared * s.keys + j) * s.dim_v + e];
        out.extend((0..s.dim_v).map(|e| weights.iter().enumerate().map(|(j, w)| w * value(j, e)).sum::<f64>()));
    }
    out
}
