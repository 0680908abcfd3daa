//! Ops on single elements in f64: scale, copy, add, mul and row vectors.

use super::wide;

/// `x * factor`.
pub fn scale(x: &[f32], factor: f32) -> Vec<f64> {
    wide(x).into_iter().map(|v| v * f64::from(factor)).collect()
}

/// `a + b`.
pub fn add(a: &[f32], b: &[f32]) -> Vec<f64> {
    wide(a).into_iter().zip(wide(b)).map(|(a, b)| a + b).collect()
}

/// `a * b`.
pub fn mul(a: &[f32], b: &[f32]) -> Vec<f64> {
    wide(a).into_iter().zip(wide(b)).map(|(a, b)| a * b).collect()
}

/// `x[r, c] + bias[c]`.
pub fn add_row_bias(x: &[f32], bias: &[f32]) -> Vec<f64> {
    let bias = wide(bias);
    wide(x)
        .into_iter()
        .enumerate()
        .map(|(i, v)| v + bias[i % bias.len()])
        .collect()
}

/// `x[r, c] * factor[c]`.
pub fn mul_row(x: &[f32], factor: &[f32]) -> Vec<f64> {
    let products = |row: &[f32]| mul(row, factor);
    x.chunks(factor.len()).flat_map(products).collect()
}
