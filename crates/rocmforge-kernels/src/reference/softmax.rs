//! Softmax of rows in f64, with masks, slopes and sinks.

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

/// Softmax of one row with one more logit, the sink, that takes weight.
pub(super) fn softmax_with_sink(row: &[f64], sink: Option<f64>) -> Vec<f64> {
    let mut all = row.to_vec();
    all.extend(sink);
    all = softmax_row(&all);
    all.truncate(row.len());
    all
}

/// The slope of head `head` of `heads`: Press et al.'s geometric sequence for a power of two, with every second one of
/// the next power's for the heads beyond. 1 without a bias.
pub fn alibi_slope(max_bias: f64, heads: usize, head: usize) -> f64 {
    if max_bias == 0.0 {
        return 1.0;
    }
    let power = (1..=heads).rev().find(|n| n.is_power_of_two()).unwrap_or(1);
    let sequence = |n: usize, i: usize| 2f64.powf(-max_bias / n as f64 * (i + 1) as f64);
    match head.checked_sub(power) {
        None => sequence(power, head),
        Some(beyond) => sequence(2 * power, 2 * beyond),
    }
}

/// softmax(x * scale + slope * mask(b, h, i, j)) for scores `[batch, heads, rows, cols]`, with a sink for each head.
pub fn softmax_biased(
    x: &[f32],
    [_, heads, rows, cols]: [usize; 4],
    [scale, max_bias]: [f32; 2],
    mask: impl Fn(usize, usize, usize, usize) -> f64,
    sinks: Option<&[f32]>,
) -> Vec<f64> {
    let row = |(at, row): (usize, &[f32])| {
        let (b, h, i) = (at / rows / heads, at / rows % heads, at % rows);
        let slope = alibi_slope(f64::from(max_bias), heads, h);
        let scores = row.iter().enumerate();
        let scores = scores.map(|(j, &x)| f64::from(x) * f64::from(scale) + slope * mask(b, h, i, j));
        softmax_with_sink(&scores.collect::<Vec<_>>(), sinks.map(|sinks| f64::from(sinks[h])))
    };
    x.chunks(cols).enumerate().flat_map(row).collect()
}

/// `x` `[.., rows, cols]` with `by` where `c > n_past + r`.
pub fn diag_mask(x: &[f32], [rows, cols]: [usize; 2], n_past: usize, by: f32) -> Vec<f64> {
    let element = |(at, &x): (usize, &f32)| {
        let (r, c) = (at / cols % rows, at % cols);
        f64::from(if c > n_past + r { by } else { x })
    };
    x.iter().enumerate().map(element).collect()
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
