//! Sums and means. Sums are taken in f64.

use super::operand::Operand;

fn sum(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v)).sum()
}

/// All elements.
pub(super) fn total(x: &Operand<'_>, out: &mut [f32]) {
    out.fill(sum(x.f32()) as f32);
}

/// Each row's sum times `factor(length)`.
pub(super) fn rows(x: &Operand<'_>, out: &mut [f32], factor: impl Fn(f64) -> f64) {
    let length = x.shape.last().copied().unwrap_or(1);
    if length == 0 {
        return out.fill(0.0);
    }
    let factor = factor(length as f64);
    for (out, row) in out.iter_mut().zip(x.f32().chunks(length)) {
        *out = (sum(row) * factor) as f32;
    }
}

/// Running sums of each row.
pub(super) fn running(x: &Operand<'_>, out: &mut [f32]) {
    let length = x.shape.last().copied().unwrap_or(1).max(1);
    for (out, row) in out.chunks_mut(length).zip(x.f32().chunks(length)) {
        let mut sum = 0.0;
        for (out, &v) in out.iter_mut().zip(row) {
            sum += f64::from(v);
            *out = sum as f32;
        }
    }
}
