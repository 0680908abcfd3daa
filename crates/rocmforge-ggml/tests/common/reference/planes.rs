//! Ops on matrices and images, element by element.

use rocmforge_ggml::{PoolKind, TriKind, UpscaleMode};

use super::{Values, ravel, unravel};

/// The indices of all elements of a shape.
fn each(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> {
    (0..shape.iter().product()).map(move |at| unravel(at, shape))
}

/// The shape with other last dimensions.
fn resized(x: &Values, sizes: [usize; 2]) -> Vec<usize> {
    [&x.shape[..x.shape.len() - 2], &sizes].concat()
}

pub(super) fn group_norm(x: &Values, n_groups: usize, eps: f64) -> Vec<f64> {
    let rank = x.shape.len();
    let per = x.shape[rank - 3].div_ceil(n_groups);
    let group = |index: &[usize]| (index[..rank - 3].to_vec(), index[rank - 3] / per);
    let indices: Vec<_> = each(&x.shape).collect();
    let mut out = Vec::new();
    for (index, value) in indices.iter().zip(&x.data) {
        let own = group(index);
        let members: Vec<f64> = indices
            .iter()
            .zip(&x.data)
            .filter(|(other, _)| group(other) == own)
            .map(|(_, &v)| v)
            .collect();
        let mean = members.iter().sum::<f64>() / members.len() as f64;
        let variance = members.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / members.len() as f64;
        out.push((value - mean) / (variance + eps).sqrt());
    }
    out
}

pub(super) fn tri(x: &Values, kind: TriKind) -> Vec<f64> {
    let rank = x.shape.len();
    let kept = |index: &[usize]| {
        let order = index[rank - 1].cmp(&index[rank - 2]);
        match kind {
            TriKind::UpperDiag => order.is_ge(),
            TriKind::Upper => order.is_gt(),
            TriKind::LowerDiag => order.is_le(),
            TriKind::Lower => order.is_lt(),
        }
    };
    let elements = each(&x.shape).zip(&x.data);
    elements.map(|(index, &v)| if kept(&index) { v } else { 0.0 }).collect()
}

/// Column by column of the matrix: each unknown is known, and taken from the rows below.
pub(super) fn solve_tri(a: &Values, b: &Values) -> Vec<f64> {
    let (n, cols) = (a.cols(), b.cols());
    let mut out = b.data.clone();
    for (a, x) in a.data.chunks(n * n).zip(out.chunks_mut(n * cols)) {
        for i in 0..n {
            for c in 0..cols {
                x[i * cols + c] /= a[i * n + i];
                for below in i + 1..n {
                    x[below * cols + c] -= a[below * n + i] * x[i * cols + c];
                }
            }
        }
    }
    out
}

/// The element of a padded image, if it is one of the image.
fn padded(x: &Values, lead: &[usize], place: [usize; 2], padding: [usize; 2]) -> Option<f64> {
    let rank = x.shape.len();
    let mut index = lead.to_vec();
    for d in 0..2 {
        index.push(place[d].checked_sub(padding[d])?);
    }
    (index[rank - 2] < x.shape[rank - 2] && index[rank - 1] < x.shape[rank - 1])
        .then(|| x.data[ravel(&index, &x.shape)])
}

/// Rows and columns of the places of a kernel.
fn places(kernel: &Values, x: &Values, [stride, padding, dilation]: [[usize; 2]; 3]) -> [usize; 2] {
    [0, 1].map(|d| (x.shape[2 + d] + 2 * padding[d] - dilation[d] * (kernel.shape[2 + d] - 1) - 1) / stride[d] + 1)
}

pub(super) fn im2col(kernel: &Values, x: &Values, parameters: [[usize; 2]; 3]) -> Vec<f64> {
    let ([stride, padding, dilation], [rows, cols]) = (parameters, places(kernel, x, parameters));
    let mut out = Vec::new();
    for place in each(&[x.shape[0], rows, cols]) {
        for under in each(&kernel.shape[1..]) {
            let at = [0, 1].map(|d| place[1 + d] * stride[d] + under[1 + d] * dilation[d]);
            out.push(padded(x, &[place[0], under[0]], at, padding).unwrap_or(0.0));
        }
    }
    out
}

/// The sum over all channels and elements of the kernel.
pub(super) fn conv(kernel: &Values, x: &Values, parameters: [[usize; 2]; 3]) -> Vec<f64> {
    let ([stride, padding, dilation], [rows, cols]) = (parameters, places(kernel, x, parameters));
    let sum = |index: Vec<usize>| -> f64 {
        let products = each(&kernel.shape[1..]).map(|under| {
            let at = [0, 1].map(|d| index[2 + d] * stride[d] + under[1 + d] * dilation[d]);
            let weight = kernel.data[ravel(&[&index[1..2], &under].concat(), &kernel.shape)];
            weight * padded(x, &[index[0], under[0]], at, padding).unwrap_or(0.0)
        });
        products.sum()
    };
    each(&[x.shape[0], kernel.shape[0], rows, cols]).map(sum).collect()
}

/// The elements of a row under each window.
pub(super) fn pool_rows(x: &Values, kind: PoolKind, [kernel, stride, padding]: [usize; 3]) -> Vec<f64> {
    let windows = (x.cols() + 2 * padding - kernel) / stride + 1;
    x.rows(|row| {
        let window = |at: usize| {
            let places = (0..kernel).filter_map(|k| row.get((at * stride + k).checked_sub(padding)?).copied());
            let own: Vec<f64> = places.collect();
            match kind {
                PoolKind::Max => own.into_iter().fold(f64::from(f32::MIN), f64::max),
                PoolKind::Avg => own.iter().sum::<f64>() / own.len().max(1) as f64,
            }
        };
        (0..windows).map(window).collect()
    })
}

pub(super) fn pool(x: &Values, kind: PoolKind, [kernel, stride, padding]: [[usize; 2]; 3]) -> Vec<f64> {
    let rank = x.shape.len();
    let sizes = [0, 1].map(|d| (x.shape[rank - 2 + d] + 2 * padding[d] - kernel[d]) / stride[d] + 1);
    let window = |index: Vec<usize>| {
        let (lead, place) = index.split_at(rank - 2);
        let at = |under: Vec<usize>| [0, 1].map(|d| place[d] * stride[d] + under[d]);
        let values = each(&kernel).filter_map(|under| padded(x, lead, at(under), padding));
        match kind {
            PoolKind::Max => values.fold(f64::from(f32::MIN), f64::max),
            PoolKind::Avg => values.sum::<f64>() / (kernel[0] * kernel[1]) as f64,
        }
    };
    each(&resized(x, sizes)).map(window).collect()
}

pub(super) fn upscale(x: &Values, mode: UpscaleMode, sizes: [usize; 2]) -> Vec<f64> {
    let rank = x.shape.len();
    let from = [x.shape[rank - 2], x.shape[rank - 1]];
    // How much of element `i` is in the result's element `at`: a hat around its centre, or its area.
    let part = |d: usize, at: usize, i: usize| {
        let scale = from[d] as f64 / sizes[d] as f64;
        match mode {
            UpscaleMode::Nearest => f64::from(u8::from(at * from[d] / sizes[d] == i)),
            UpscaleMode::Bilinear => {
                let centre = ((at as f64 + 0.5) * scale - 0.5).max(0.0).min(from[d] as f64 - 1.0);
                (1.0 - (centre - i as f64).abs()).max(0.0)
            }
        }
    };
    let element = |index: Vec<usize>| {
        let (lead, place) = index.split_at(rank - 2);
        let parts = each(&from).map(|i| {
            let value = x.data[ravel(&[lead, &i].concat(), &x.shape)];
            part(0, place[0], i[0]) * part(1, place[1], i[1]) * value
        });
        parts.sum()
    };
    each(&resized(x, sizes)).map(element).collect()
}
