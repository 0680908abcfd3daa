//! Ops on whole rows: normalisations and softmax. Sums are taken in f64.

use super::operand::Operand;
use super::threads::Threads;

/// Runs `f` on every row: in it is the operand's row, which `f` makes the result's.
fn each_row(x: &Operand<'_>, out: &mut [f32], threads: &Threads, f: impl Fn(&mut [f32]) + Sync) {
    let row = x.shape.last().copied().unwrap_or(1);
    let x = x.values();
    threads.by_rows(out, row, row * 4, |first, piece| {
        for (index, out) in piece.chunks_mut(row).enumerate() {
            x.from((first + index) * row).put(out);
            f(out);
        }
    });
}

pub(super) fn layer_norm(
    x: &Operand<'_>,
    weight: Option<&Operand<'_>>,
    bias: Option<&Operand<'_>>,
    eps: f32,
    out: &mut [f32],
    threads: &Threads,
) {
    let (weight, bias) = (weight.map(Operand::f32), bias.map(Operand::f32));
    each_row(x, out, threads, |row| {
        let n = row.len() as f64;
        let mean = row.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = row.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        let factor = 1.0 / (variance + f64::from(eps)).sqrt();
        for v in &mut *row {
            *v = ((f64::from(*v) - mean) * factor) as f32;
        }
        if let Some(weight) = &weight {
            row.iter_mut().zip(weight.iter()).for_each(|(v, w)| *v *= w);
        }
        if let Some(bias) = &bias {
            row.iter_mut().zip(bias.iter()).for_each(|(v, b)| *v += b);
        }
    });
}

fn sum_of_squares(x: &[f32]) -> f64 {
    x.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

pub(super) fn rms_norm(x: &Operand<'_>, weight: Option<&Operand<'_>>, eps: f32, out: &mut [f32], threads: &Threads) {
    let weight = weight.map(Operand::f32);
    each_row(x, out, threads, |row| rms_row(row, weight, eps));
}

/// Divides one row by its root mean square and multiplies it by the weight.
pub(super) fn rms_row(row: &mut [f32], weight: Option<&[f32]>, eps: f32) {
    let factor = (1.0 / (sum_of_squares(row) / row.len() as f64 + f64::from(eps)).sqrt()) as f32;
    match weight {
        Some(weight) => row.iter_mut().zip(weight).for_each(|(v, w)| *v = *v * factor * w),
        None => row.iter_mut().for_each(|v| *v *= factor),
    }
}

pub(super) fn l2_norm(x: &Operand<'_>, eps: f32, out: &mut [f32], threads: &Threads) {
    each_row(x, out, threads, |row| {
        let norm = sum_of_squares(row).sqrt().max(f64::from(eps));
        // A row of zeros stays one, also with eps 0.
        let factor = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        row.iter_mut().for_each(|v| *v = (f64::from(*v) * factor) as f32);
    });
}
