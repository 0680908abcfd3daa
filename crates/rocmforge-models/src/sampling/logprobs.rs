//! Checks of logits, and the logarithm of the sum of their exponentials.

use super::SamplingError;

/// The largest logit, after a check that logits are as they must be.
pub(super) fn check(logits: &[f32]) -> Result<f32, SamplingError> {
    if logits.is_empty() || u32::try_from(logits.len()).is_err() {
        return Err(SamplingError::Vocabulary(logits.len()));
    }
    let max = match scan(logits) {
        Some(max) if max < f32::INFINITY => max,
        _ => {
            let bad = |value: &f32| value.is_nan() || *value == f32::INFINITY;
            let position = logits.iter().position(bad).unwrap_or_default();
            let value = logits[position];
            return Err(SamplingError::Logit { position, value });
        }
    };
    if max == f32::NEG_INFINITY {
        return Err(SamplingError::NothingLeft(logits.len()));
    }
    Ok(max)
}

/// Independent partial results, so that the compiler can use vector instructions.
const LANES: usize = 16;

/// The maximum, or None if there is a NaN.
fn scan(logits: &[f32]) -> Option<f32> {
    let mut max = [f32::NEG_INFINITY; LANES];
    let mut nan = [false; LANES];
    let chunks = logits.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks.chain([rest]) {
        for ((max, nan), &x) in max.iter_mut().zip(&mut nan).zip(chunk) {
            *max = if x > *max { x } else { *max };
            *nan |= x.is_nan();
        }
    }
    let max = max.into_iter().fold(f32::NEG_INFINITY, f32::max);
    (!nan.contains(&true)).then_some(max)
}

/// `ln(sum of exp(logits))`, with an error of about 1e-7. NaN and -inf count as nothing.
pub(super) fn log_sum_exp(logits: &[f32], max: f32) -> f64 {
    // f32 sums of few numbers, then f64: the error stays that of `exp`.
    const BLOCK: usize = 16 * LANES;
    let mut total = 0.0;
    for block in logits.chunks(BLOCK) {
        let mut sums = [0.0_f32; LANES];
        let chunks = block.chunks_exact(LANES);
        let rest = chunks.remainder();
        for chunk in chunks.chain([rest]) {
            for (sum, &x) in sums.iter_mut().zip(chunk) {
                *sum += exp(x - max);
            }
        }
        total += sums.iter().map(|&sum| f64::from(sum)).sum::<f64>();
    }
    f64::from(max) + total.ln()
}

/// `e^x` for x <= 0, with a relative error under 3e-7; below -87, and for NaN, about 1e-38.
///
/// `e^x = 2^n * e^r` with n = x / ln 2 rounded, and the Taylor series of e^r to r^7: |r| <= 0.347, so what is left out is under 6e-9.
/// Without branches or calls, unlike the standard library's, so that it runs on several numbers at a time.
fn exp(x: f32) -> f32 {
    // Adding this rounds to an integer, which then stands in the low bits.
    const ROUND: f32 = 12_582_912.0; // 1.5 * 2^23
    const LN_2_HIGH: f32 = 0.693_359_4; // 355/512, so that n times it is exact
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = if x > -87.0 { x } else { -87.0 };
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    const TAYLOR: [f32; 7] = [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];
    let series = TAYLOR
        .into_iter()
        .fold(1.0 / 5040.0, |sum, coefficient| sum * r + coefficient);
    let exponent = shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127);
    series * f32::from_bits(exponent << 23)
}
