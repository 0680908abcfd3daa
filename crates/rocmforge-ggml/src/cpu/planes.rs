//! Ops on matrices and images: the last two dimensions. Sums are taken in f64.

use super::operand::Operand;
use super::threads::Threads;
use crate::{PoolKind, TriKind, UpscaleMode};

/// Rows and columns of the matrices.
fn plane(shape: &[usize]) -> [usize; 2] {
    [shape[shape.len() - 2], shape[shape.len() - 1]]
}

pub(super) fn group_norm(x: &Operand<'_>, n_groups: usize, eps: f32, out: &mut [f32]) {
    let [rows, cols] = plane(x.shape);
    let channels = x.shape[x.shape.len() - 3];
    out.copy_from_slice(x.f32());
    if out.is_empty() {
        return;
    }
    let images = out.chunks_mut(channels * rows * cols);
    for group in images.flat_map(|image| image.chunks_mut(channels.div_ceil(n_groups) * rows * cols)) {
        let n = group.len() as f64;
        let mean = group.iter().map(|&v| f64::from(v)).sum::<f64>() / n;
        let variance = group.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / n;
        let factor = 1.0 / (variance + f64::from(eps)).sqrt();
        group
            .iter_mut()
            .for_each(|v| *v = ((f64::from(*v) - mean) * factor) as f32);
    }
}

pub(super) fn tri(x: &Operand<'_>, kind: TriKind, out: &mut [f32]) {
    let n = plane(x.shape)[0];
    for (at, (out, &x)) in out.iter_mut().zip(x.f32()).enumerate() {
        *out = if kind.keeps(at / n % n, at % n) { x } else { 0.0 };
    }
}

/// Row after row: what the rows before make of it is taken away.
pub(super) fn solve_tri(a: &Operand<'_>, b: &Operand<'_>, out: &mut [f32]) {
    let [n, cols] = plane(b.shape);
    if out.is_empty() {
        return;
    }
    let matrices = a.f32().chunks(n * n).zip(b.f32().chunks(n * cols));
    for ((a, b), out) in matrices.zip(out.chunks_mut(n * cols)) {
        for (row, a) in a.chunks(n).enumerate() {
            for col in 0..cols {
                let known = |i: usize| f64::from(a[i]) * f64::from(out[i * cols + col]);
                let rest = f64::from(b[row * cols + col]) - (0..row).map(known).sum::<f64>();
                out[row * cols + col] = (rest / f64::from(a[row])) as f32;
            }
        }
    }
}

/// Rows and columns of the places of a kernel.
fn places(kernel: &[usize], x: &[usize], [stride, padding, dilation]: [[usize; 2]; 3]) -> [usize; 2] {
    [0, 1].map(|d| (x[2 + d] + 2 * padding[d] - dilation[d] * (kernel[2 + d] - 1) - 1) / stride[d] + 1)
}

/// A row of the result at a time: what each element of the kernel adds to it.
pub(super) fn conv(
    kernel: &Operand<'_>,
    x: &Operand<'_>,
    parameters: [[usize; 2]; 3],
    out: &mut [f32],
    threads: &Threads,
) {
    let [stride, padding, dilation] = parameters;
    let (&[_, channels, h, w], &[filters, _, kh, kw]) = (x.shape, kernel.shape) else {
        return;
    };
    let [rows, cols] = places(kernel.shape, x.shape, parameters);
    let (x, kernel) = (x.f32(), kernel.f32());
    threads.by_rows(out, cols, cols * channels * kh * kw, |first, piece| {
        let mut sums = vec![0.0; cols];
        for (at, out) in (first..).zip(piece.chunks_mut(cols)) {
            let (row, filter, image) = (at % rows, at / rows % filters, at / (rows * filters));
            sums.fill(0.0);
            for (under, &weight) in kernel[filter * channels * kh * kw..][..channels * kh * kw]
                .iter()
                .enumerate()
            {
                let own_row = (row * stride[0] + under / kw % kh * dilation[0]).checked_sub(padding[0]);
                let Some(own_row) = own_row.filter(|&row| row < h) else {
                    continue;
                };
                let own = &x[((image * channels + under / (kh * kw)) * h + own_row) * w..][..w];
                for (col, sum) in sums.iter_mut().enumerate() {
                    let own_col = (col * stride[1] + under % kw * dilation[1]).checked_sub(padding[1]);
                    if let Some(value) = own_col.and_then(|col| own.get(col)) {
                        *sum += f64::from(weight) * f64::from(*value);
                    }
                }
            }
            out.iter_mut().zip(&sums).for_each(|(out, &sum)| *out = sum as f32);
        }
    });
}

pub(super) fn im2col(kernel: &[usize], x: &Operand<'_>, parameters: [[usize; 2]; 3], out: &mut [f32]) {
    let [stride, padding, dilation] = parameters;
    let &[_, channels, h, w] = x.shape else { return };
    let [kh, kw] = plane(kernel);
    let counts = places(kernel, x.shape, parameters);
    let x = x.f32();
    for (at, out) in out.iter_mut().enumerate() {
        let (under, place) = (at % (channels * kh * kw), at / (channels * kh * kw));
        let [row, col] = [
            place / counts[1] % counts[0] * stride[0] + under / kw % kh * dilation[0],
            place % counts[1] * stride[1] + under % kw * dilation[1],
        ];
        let row = row.checked_sub(padding[0]).filter(|&row| row < h);
        let col = col.checked_sub(padding[1]).filter(|&col| col < w);
        let image = place / (counts[0] * counts[1]) * channels + under / (kh * kw);
        *out = row.zip(col).map_or(0.0, |(row, col)| x[(image * h + row) * w + col]);
    }
}

/// In one dimension planes have one row, and a mean counts elements of the plane alone.
pub(super) fn pool(
    x: &Operand<'_>,
    kind: PoolKind,
    [kernel, stride, padding]: [[usize; 2]; 3],
    one_dimension: bool,
    out: &mut [f32],
) {
    let sizes = match one_dimension {
        true => [1, x.shape[x.shape.len() - 1]],
        false => plane(x.shape),
    };
    let [rows, cols] = [0, 1].map(|d| (sizes[d] + 2 * padding[d] - kernel[d]) / stride[d] + 1);
    let x = x.f32();
    for (at, out) in out.iter_mut().enumerate() {
        let first = [at / cols % rows * stride[0], at % cols * stride[1]];
        // The part of a window that lies in the image.
        let [own_rows, own_cols] = [0, 1].map(|d| {
            let end = (first[d] + kernel[d]).saturating_sub(padding[d]).min(sizes[d]);
            first[d].saturating_sub(padding[d])..end
        });
        let own = own_rows.len() as f64 * own_cols.len() as f64;
        let count = if one_dimension {
            own.max(1.0)
        } else {
            kernel[0] as f64 * kernel[1] as f64
        };
        let image = at / (rows * cols) * sizes[0];
        let window = own_rows.flat_map(|row| own_cols.clone().map(move |col| x[(image + row) * sizes[1] + col]));
        *out = match kind {
            PoolKind::Max => window.fold(f32::MIN, f32::max),
            PoolKind::Avg => (window.map(f64::from).sum::<f64>() / count) as f32,
        };
    }
}

pub(super) fn upscale(x: &Operand<'_>, mode: UpscaleMode, [rows, cols]: [usize; 2], out: &mut [f32]) {
    let [h, w] = plane(x.shape);
    let x = x.f32();
    for (at, out) in out.iter_mut().enumerate() {
        let (row, col, image) = (at / cols % rows, at % cols, at / (rows * cols) * h);
        let value = |row: usize, col: usize| f64::from(x[(image + row) * w + col]);
        *out = match mode {
            UpscaleMode::Nearest => value(nearest(row, h, rows), nearest(col, w, cols)) as f32,
            UpscaleMode::Bilinear => {
                let ([top, bottom], down) = between(row, h, rows);
                let ([left, right], along) = between(col, w, cols);
                let mix = |row: usize| value(row, left) * (1.0 - along) + value(row, right) * along;
                (mix(top) * (1.0 - down) + mix(bottom) * down) as f32
            }
        };
    }
}

/// The element of `from` that place `at` of `to` lies in.
fn nearest(at: usize, from: usize, to: usize) -> usize {
    (at as u128 * from as u128 / to as u128) as usize
}

/// The two elements of `from` around the centre of place `at` of `to`, and the weight of the second.
fn between(at: usize, from: usize, to: usize) -> ([usize; 2], f64) {
    let centre = ((at as f64 + 0.5) * from as f64 / to as f64 - 0.5).clamp(0.0, (from - 1) as f64);
    let first = centre as usize;
    ([first, (first + 1).min(from - 1)], centre - first as f64)
}
