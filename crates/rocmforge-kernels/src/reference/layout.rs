//! Layout changes in f64: transposition, exchange of dimensions, replication of heads.

/// y[b, c, r] = x[b, r, c].
pub fn transpose(x: &[f32], [batch, rows, cols]: [usize; 3]) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for b in 0..batch {
        for c in 0..cols {
            out.extend((0..rows).map(|r| x[(b * rows + r) * cols + c]));
        }
    }
    out
}

/// y[a, c, b, d] = x[a, b, c, d] for `x` of this shape.
pub fn swap_middle(x: &[f32], [na, nb, nc, nd]: [usize; 4]) -> Vec<f32> {
    let mut out = Vec::with_capacity(x.len());
    for a in 0..na {
        for c in 0..nc {
            for b in 0..nb {
                out.extend_from_slice(&x[((a * nb + b) * nc + c) * nd..][..nd]);
            }
        }
    }
    out
}

/// Head h of each token is kv head h / (heads / kv_heads).
pub fn kv_replicate(x: &[f32], [heads, kv_heads]: [usize; 2], head_dim: usize) -> Vec<f32> {
    let mut out = Vec::new();
    for token in x.chunks(kv_heads * head_dim) {
        for h in 0..heads {
            out.extend_from_slice(&token[h / (heads / kv_heads) * head_dim..][..head_dim]);
        }
    }
    out
}

/// Weighted mean over the tokens of each sequence; `weight` is `[batch, seq]`.
pub fn mean_pool(x: &[f32], weight: &[f32], [batch, seq, cols]: [usize; 3]) -> Vec<f64> {
    let mut out = Vec::with_capacity(batch * cols);
    for b in 0..batch {
        let weight = &weight[b * seq..][..seq];
        let total: f64 = weight.iter().map(|&w| f64::from(w)).sum();
        for c in 0..cols {
            let value = |s: usize| f64::from(x[(b * seq + s) * cols + c]) * f64::from(weight[s]);
            // A token of weight 0 does not count, whatever it holds.
            let sum: f64 = (0..seq).filter(|&s| weight[s] != 0.0).map(value).sum();
            out.push(sum / total.max(1e-9));
        }
    }
    out
}
