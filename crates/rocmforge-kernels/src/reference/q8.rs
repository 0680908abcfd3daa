//! Products with 8-bit activations in f64, and the rounding of the activations.

use super::weights::dequantize;
use crate::WeightType;

/// The integers of 8-bit activations and the scale of each 32: the largest magnitude / 127, and the nearest integers to the quotients.
///
/// Whole blocks of finite numbers; what is beyond the last whole block is left out.
pub fn quantize_q8(x: &[f32]) -> (Vec<i8>, Vec<f64>) {
    let block = |x: &[f32]| {
        let d = x.iter().fold(0f64, |top, &v| top.max(f64::from(v).abs())) / 127.0;
        let integer = |&v: &f32| if d == 0.0 { 0 } else { (f64::from(v) / d).round() as i8 };
        (x.iter().map(integer).collect::<Vec<_>>(), d)
    };
    let blocks: (Vec<Vec<i8>>, Vec<f64>) = x.chunks_exact(32).map(block).unzip();
    (blocks.0.concat(), blocks.1)
}

/// x w^T (+ bias) (+ residual) for activations `[m, k]` of any values and weights `[n, k]`.
pub fn matvec_q8(
    ty: WeightType,
    w: &[u8],
    x: &[f64],
    bias: Option<&[f32]>,
    residual: Option<&[f32]>,
    k: usize,
) -> Vec<f64> {
    let weights = dequantize(ty, w);
    let n = weights.len() / k;
    let add = |values: Option<&[f32]>, i: usize| values.map_or(0.0, |values| f64::from(values[i]));
    (0..x.len() / k * n)
        .map(|i| {
            let products = x[i / n * k..][..k].iter().zip(&weights[i % n * k..][..k]);
            products.map(|(x, w)| x * w).sum::<f64>() + add(bias, i % n) + add(residual, i)
        })
        .collect()
}
