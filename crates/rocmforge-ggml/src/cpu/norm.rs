//! Ops on whole rows: normalisations and softmax. Sums are taken in f64.

use super::operand::Operand;
use super::threads::Threads;

/// Runs `f(row, out)` on every row.
fn each_row(x: &Operand<'_>, out: &mut [f32], threads: &Threads, f: impl Fn(&[f32], &mut [f32]) + Sync) {
    let row = x.shape.last().copied().unwrap_or(1);
    let x = x.f32();
    threads.by_rows(out, row, row * 4, |first, piece| {
        for (o, x) in piece.chunks_mut(row).zip(x[first * row..].chunks(row)) {
            f(x, o);
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
    each_row(x, out, threads, |x, out| {
        let n = x.len() as f64;
        let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        let factor = 1.0 / (variance + f64::from(eps)).sqrt();
        for (o, &v) in out.iter_mut().zip(x) {
            *o = ((f64::from(v) - mean) * factor) as f32;
        }
        if let Some(weight) = &weight {
            out.iter_mut().zip(weight.iter()).for_each(|(o, w)| *o *= w);
        }
        if let Some(bias) = &bias {
            out.iter_mut().zip(bias.iter()).for_each(|(o, b)| *o += b);
        }
    });
}

fn sum_of_squares(x: &[f32]) -> f64 {
    x.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

pub(super) fn rms_norm(x: &Operand<'_>, weight: Option<&Operand<'_>>, eps: f32, out: &mut [f32], threads: &Threads) {
    let weight = weight.map(Operand::f32);
    each_row(x, out, threads, |x, out| rms_row(x, weight, eps, out));
}

/// One row divided by its root mean square, times the weight.
pub(super) fn rms_row(x: &[f32], weight: Option<&[f32]>, eps: f32, out: &mut [f32]) {
    let factor = (1.0 / (sum_of_squares(x) / x.len() as f64 + f64::from(eps)).sqrt()) as f32;
    for (o, &v) in out.iter_mut().zip(x) {
        *o = v * factor;
    }
    if let Some(weight) = weight {
        out.iter_mut().zip(weight).for_each(|(o, w)| *o *= w);
    }
}

pub(super) fn l2_norm(x: &Operand<'_>, eps: f32, out: &mut [f32], threads: &Threads) {
    each_row(x, out, threads, |x, out| {
        let norm = sum_of_squares(x).sqrt().max(f64::from(eps));
        // A row of zeros stays one, also with eps 0.
        let factor = if norm > 0.0 { 1.0 / norm } else { 0.0 };
        for (o, &v) in out.iter_mut().zip(x) {
            *o = (f64::from(v) * factor) as f32;
        }
    });
}
