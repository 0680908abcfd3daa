use super::wide;

/// Softmax of one row: e^x over the sum of all e^x. A row of nothing but -inf gives zeros.
pub(super) fn softmax_row(row: &[f64]) -> Vec<f64> {
    let top = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return vec![0.0; row.len()];
    }
    let exponentials: Vec<f64> = row.iter().map(|x| (x - top).exp()).collect();
    let sum: f64 = exponentials.iter().sum();
    exponentials.into_iter().map(|e| e / sum).collect()
}

/// softmax(x * scale) over rows of `cols`.
pub fn softmax(x: &[f32], cols: usize, scale: f32) -> Vec<f64> {
    let scaled: Vec<f64> = wide(x).into_iter().map(|v| v * f64::from(scale)).collect();
    scaled.chunks(cols).flat_map(softmax_row).collect()
}

/// softmax(x * scale + mask(b, h, i, j)) for scores `[batch, heads, seq_q, seq_k]`.
pub fn softmax_masked(
    x: &[f32],
    [batch, heads, seq_q, seq_k]: [usize; 4],
    scale: f32,
    mask: impl Fn(usize, usize, usize, usize) -> f64,
) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len());
    for b in 0..batch {
        for h in 0..heads {
            for i in 0..seq_q {
                let at = ((b * heads + h) * seq_q + i) * seq_k;
                let row: Vec<f64> = (0..seq_k)
                    .map(|j| f64::from(x[at + j]) * f64::from(scale) + mask(b, h, i, j))
                    .collect();
                out.extend(softmax_row(&row));
            }
        }
    }
    out
}

/// x + mask(b, h, i, j).
pub fn mask(
    x: &[f32],
    [batch, heads, seq_q, seq_k]: [usize; 4],
    mask: impl Fn(usize, usize, usize, usize) -> f64,
) -> Vec<f64> {
    let mut out = Vec::with_capacity(x.len());
    for b in 0..batch {
        for h in 0..heads {
            for i in 0..seq_q {
                for j in 0..seq_k {
                    out.push(f64::from(x[out.len()]) + mask(b, h, i, j));
                }
            }
        }
    }
    out
}

/// Whether query i sees key j when the last query is the last token.
pub fn causal_visible(i: usize, j: usize, seq_q: usize, seq_k: usize) -> bool {
    j + seq_q <= i + seq_k
}

/// 0 where visible, -inf elsewhere, `[planes, seq_q, seq_k]`.
pub fn causal_mask(planes: usize, seq_q: usize, seq_k: usize) -> Vec<f64> {
    let mut out = Vec::with_capacity(planes * seq_q * seq_k);
    for _ in 0..planes {
        for i in 0..seq_q {
            for j in 0..seq_k {
                out.push(if causal_visible(i, j, seq_q, seq_k) {
                    0.0
                } else {
                    f64::NEG_INFINITY
                });
            }
        }
    }
    out
}
