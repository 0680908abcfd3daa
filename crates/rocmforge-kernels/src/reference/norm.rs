//! Norms of rows in f64: RMSNorm, LayerNorm and L2.

use super::wide;

/// x / sqrt(mean(x^2) + eps) * weight, rows of weight's length.
pub fn rms_norm(x: &[f32], weight: &[f32], eps: f32) -> Vec<f64> {
    let row = |row: &[f32]| {
        let row = wide(row);
        let mean = row.iter().map(|v| v * v).sum::<f64>() / row.len() as f64;
        let factor = 1.0 / (mean + f64::from(eps)).sqrt();
        row.into_iter()
            .zip(wide(weight))
            .map(move |(v, w)| v * factor * w)
            .collect::<Vec<_>>()
    };
    x.chunks(weight.len()).flat_map(row).collect()
}

/// (x - mean) / sqrt(variance + eps) * weight + bias, rows of weight's length.
pub fn layer_norm(x: &[f32], weight: &[f32], bias: &[f32], eps: f32) -> Vec<f64> {
    let row = |row: &[f32]| {
        let row = wide(row);
        let n = row.len() as f64;
        let mean = row.iter().sum::<f64>() / n;
        let variance = row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
        let factor = 1.0 / (variance + f64::from(eps)).sqrt();
        row.into_iter()
            .zip(wide(weight).into_iter().zip(wide(bias)))
            .map(move |(v, (w, b))| (v - mean) * factor * w + b)
            .collect::<Vec<_>>()
    };
    x.chunks(weight.len()).flat_map(row).collect()
}

/// x / max(|x|, eps), rows of `cols`.
pub fn l2_normalize(x: &[f32], cols: usize, eps: f32) -> Vec<f64> {
    let row = |row: &[f32]| {
        let row = wide(row);
        let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt().max(f64::from(eps));
        row.into_iter().map(move |v| v / norm).collect::<Vec<_>>()
    };
    x.chunks(cols).flat_map(row).collect()
}
