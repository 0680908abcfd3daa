//! Activations in f64: SiLU, GELU, their gated forms and the soft cap.

use std::f64::consts::PI;

/// x / (1 + e^-x).
pub fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

/// silu(gate) * up.
pub fn swiglu(gate: &[f32], up: &[f32]) -> Vec<f64> {
    gate.iter()
        .zip(up)
        .map(|(&g, &u)| silu(f64::from(g)) * f64::from(u))
        .collect()
}

/// The error function, 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x. Its series with e^(-x^2) in front has positive
/// terms only, so no digits cancel.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.5 {
        return if x.is_nan() { x } else { x.signum() };
    }
    let mut term = x;
    let mut sum = x;
    for n in 1..400 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
        if term.abs() < sum.abs() * 1e-17 {
            break;
        }
    }
    2.0 / PI.sqrt() * (-x * x).exp() * sum
}

pub(super) fn gelu_erf_of(x: f64) -> f64 {
    x * 0.5 * (1.0 + erf(x / 2f64.sqrt()))
}

pub(super) fn gelu_tanh_of(x: f64) -> f64 {
    let inner = (2.0 / PI).sqrt() * (x + 0.044715 * x.powi(3));
    0.5 * x * (1.0 + inner.tanh())
}

/// x times the distribution function of the normal distribution.
pub fn gelu_erf(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| gelu_erf_of(f64::from(x))).collect()
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))).
pub fn gelu_tanh(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&x| gelu_tanh_of(f64::from(x))).collect()
}

/// The tanh form of GELU of `gate`, times `up`.
pub fn geglu(gate: &[f32], up: &[f32]) -> Vec<f64> {
    gelu_tanh(gate).iter().zip(up).map(|(g, &u)| g * f64::from(u)).collect()
}

/// cap tanh(x / cap).
pub fn softcap(x: &[f32], cap: f32) -> Vec<f64> {
    let cap = f64::from(cap);
    x.iter().map(|&x| cap * (f64::from(x) / cap).tanh()).collect()
}

#[cfg(test)]
mod tests {
    use super::erf;

    #[test]
    fn erf_has_its_known_values() {
        // NIST Digital Library of Mathematical Functions, table 7.23.
        for (x, y) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
        ] {
            assert!((erf(x) - y).abs() < 1e-15, "{x}");
            assert!((erf(-x) + y).abs() < 1e-15, "-{x}");
        }
    }
}
