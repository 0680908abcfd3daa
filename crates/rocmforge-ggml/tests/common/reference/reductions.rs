//! Norms, orders and means of rows.

use super::Values;

fn mean(row: &[f64]) -> f64 {
    row.iter().sum::<f64>() / row.len() as f64
}

/// `row * weight + bias`, where they are given.
fn affine(row: &mut [f64], weight: Option<&Values>, bias: Option<&Values>) {
    for (i, value) in row.iter_mut().enumerate() {
        *value = *value * weight.map_or(1.0, |w| w.data[i]) + bias.map_or(0.0, |b| b.data[i]);
    }
}

pub(super) fn layer_norm(x: &Values, weight: Option<&Values>, bias: Option<&Values>, eps: f64) -> Vec<f64> {
    x.rows(|row| {
        let middle = mean(row);
        let variance = row.iter().map(|v| (v - middle).powi(2)).sum::<f64>() / row.len() as f64;
        let mut out: Vec<f64> = row.iter().map(|v| (v - middle) / (variance + eps).sqrt()).collect();
        affine(&mut out, weight, bias);
        out
    })
}

pub(super) fn rms_norm(x: &Values, weight: Option<&Values>, eps: f64) -> Vec<f64> {
    x.rows(|row| {
        let root = (row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64 + eps).sqrt();
        let mut out: Vec<f64> = row.iter().map(|v| v / root).collect();
        affine(&mut out, weight, None);
        out
    })
}

/// Rows divided by `max(their 2-norm, eps)`; a row of zeros stays.
pub(super) fn l2_norm(x: &Values, eps: f64) -> Vec<f64> {
    x.rows(|row| {
        let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(eps);
        row.iter().map(|v| if norm == 0.0 { 0.0 } else { v / norm }).collect()
    })
}

/// The first `k` indices of each row in order: smallest or largest first, the lower index first on ties, NaN last.
pub(crate) fn order(x: &Values, largest: bool, k: usize) -> Vec<f64> {
    x.rows(|row| {
        let mut ids = order_of(row, largest);
        ids.truncate(k);
        ids.into_iter().map(|i| i as f64).collect()
    })
}

/// The indices of one row in this order.
pub(super) fn order_of(row: &[f64], largest: bool) -> Vec<usize> {
    let mut ids: Vec<usize> = (0..row.len()).collect();
    ids.sort_by(|&a, &b| {
        let (a, b) = (row[a], row[b]);
        let by_value = if largest { b.partial_cmp(&a) } else { a.partial_cmp(&b) };
        // Stable: equal values keep the order of their indices.
        by_value.unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
    });
    ids
}

/// The mean over the middle dimension of `x [b, s, d]`, weighted by `weight [b, s]`: zeros where the weights sum to 0.
pub(super) fn mean_pool(x: &Values, weight: &Values) -> Vec<f64> {
    let [batch, seq, d] = [0, 1, 2].map(|i| x.shape[i]);
    let mut out = vec![0.0; batch * d];
    for b in 0..batch {
        let own = &weight.data[b * seq..][..seq];
        let total: f64 = own.iter().sum();
        for (s, w) in own.iter().enumerate().filter(|(_, w)| **w != 0.0 && total != 0.0) {
            for c in 0..d {
                out[b * d + c] += w / total * x.data[(b * seq + s) * d + c];
            }
        }
    }
    out
}
