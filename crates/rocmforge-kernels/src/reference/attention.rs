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
