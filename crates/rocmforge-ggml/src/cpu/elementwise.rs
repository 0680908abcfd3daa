//! Element by element.

use super::operand::Operand;
use super::threads::Threads;
use crate::Gelu;

/// Elements per piece that threads share out.
const PIECE: usize = 4096;

/// `x / (1 + exp(-x))`.
pub(super) fn silu(x: f32) -> f32 {
    x / (1.0 + (-x).exp())
}

/// GELU's tanh approximation.
pub(super) fn gelu_tanh(x: f32) -> f32 {
    let inner = (2.0 / std::f32::consts::PI).sqrt() * (x + 0.044_715 * x * x * x);
    0.5 * x * (1.0 + inner.tanh())
}

/// Calls `work` on pieces of `out`, with the index of each piece's first element.
fn pieces(out: &mut [f32], threads: &Threads, work: impl Fn(usize, &mut [f32]) + Sync) {
    let row = PIECE.min(out.len());
    if row == 0 {
        return;
    }
    // `by_rows` wants whole rows: the tail is done here.
    let whole = out.len() / row * row;
    let (body, tail) = out.split_at_mut(whole);
    // A transcendental function costs about eight visits.
    threads.by_rows(body, row, 8 * row, |first, piece| work(first * row, piece));
    work(whole, tail);
}

pub(super) fn map(x: &Operand<'_>, out: &mut [f32], threads: &Threads, f: impl Fn(f32) -> f32 + Sync) {
    let x = x.f32();
    pieces(out, threads, |first, piece| {
        for (o, &x) in piece.iter_mut().zip(&x[first..]) {
            *o = f(x);
        }
    });
}

/// `f(a, b)` of operands of one shape.
pub(super) fn zip(
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut [f32],
    threads: &Threads,
    f: impl Fn(f32, f32) -> f32 + Sync,
) {
    let (a, b) = (a.f32(), b.f32());
    pieces(out, threads, |first, piece| {
        for ((o, &a), &b) in piece.iter_mut().zip(&a[first..]).zip(&b[first..]) {
            *o = f(a, b);
        }
    });
}

/// `f(a, b)` with `b` repeated to `a`'s shape.
pub(super) fn broadcast(a: &Operand<'_>, b: &Operand<'_>, out: &mut [f32], f: impl Fn(f32, f32) -> f32) {
    let (x, y) = (a.f32(), b.f32());
    // Dimensions of b, aligned with a's; repeated ones get stride 0.
    let mut strides = vec![0usize; a.shape.len()];
    let mut step = 1;
    let shift = a.shape.len() - b.shape.len();
    for dim in (0..b.shape.len()).rev() {
        if b.shape[dim] != 1 {
            strides[shift + dim] = step;
        }
        step *= b.shape[dim];
    }
    let Some((&row, outer)) = a.shape.split_last() else {
        out[0] = f(x[0], y[0]);
        return;
    };
    if row == 0 {
        return;
    }
    let inner = strides[outer.len()];
    for (index, (o, x)) in out.chunks_mut(row).zip(x.chunks(row)).enumerate() {
        let mut base = 0;
        let mut rest = index;
        for dim in (0..outer.len()).rev() {
            base += rest % outer[dim] * strides[dim];
            rest /= outer[dim];
        }
        if inner == 1 {
            for ((o, &x), &y) in o.iter_mut().zip(x).zip(&y[base..]) {
                *o = f(x, y);
            }
        } else {
            let y = y[base];
            for (o, &x) in o.iter_mut().zip(x) {
                *o = f(x, y);
            }
        }
    }
}

pub(super) fn gelu(x: &Operand<'_>, out: &mut [f32], kind: Gelu, threads: &Threads) {
    match kind {
        Gelu::Erf => map(x, out, threads, |x| {
            0.5 * x * (1.0 + libm::erff(x * std::f32::consts::FRAC_1_SQRT_2))
        }),
        Gelu::Tanh => map(x, out, threads, gelu_tanh),
    }
}
