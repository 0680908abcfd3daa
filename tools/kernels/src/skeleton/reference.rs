//! `NAME`, from its definition.

/// `factor * x`, element by element.
pub fn NAME(x: &[f32], factor: f32) -> Vec<f64> {
    x.iter().map(|&x| f64::from(factor) * f64::from(x)).collect()
}
