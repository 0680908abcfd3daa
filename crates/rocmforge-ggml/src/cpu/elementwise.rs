//! Element by element.

use super::operand::Operand;
use super::strides::part_of;
use super::threads::Threads;
use super::unary::function;
use crate::GluKind;

/// Elements per piece that threads share out.
const PIECE: usize = 4096;

/// Calls `work` on pieces of `out`, with the index of each piece's first element.
pub(super) fn pieces(out: &mut [f32], threads: &Threads, work: impl Fn(usize, &mut [f32]) + Sync) {
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

/// `f(a, b)` with `b` repeated to `a`'s shape: each of its dimensions, aligned at the last, divides `a`'s.
pub(super) fn broadcast(
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut [f32],
    threads: &Threads,
    f: impl Fn(f32, f32) -> f32 + Sync,
) {
    if a.shape == b.shape {
        return zip(a, b, out, threads, f);
    }
    let (x, y) = (a.f32(), b.f32());
    let Some((&row, outer)) = a.shape.split_last() else {
        return;
    };
    let Some((&repeated, parts)) = b.shape.split_last() else {
        let y = y[0];
        return out.iter_mut().zip(x.iter()).for_each(|(o, &x)| *o = f(x, y));
    };
    threads.by_rows(out, row, 8 * row, |first, piece| {
        let rows = piece.chunks_mut(row).zip(x[first * row..].chunks(row));
        for (index, (o, x)) in rows.enumerate() {
            let at = part_of(first + index, outer, parts, true) * repeated;
            let y = &y[at..at + repeated];
            if let &[y] = y {
                o.iter_mut().zip(x).for_each(|(o, &x)| *o = f(x, y));
                continue;
            }
            for (o, x) in o.chunks_mut(repeated).zip(x.chunks(repeated)) {
                for ((o, &x), &y) in o.iter_mut().zip(x).zip(y) {
                    *o = f(x, y);
                }
            }
        }
    });
}

/// `f(gate) * up` of two tensors, or of the halves of one tensor's rows.
pub(super) fn glu(inputs: &[Operand<'_>], kind: GluKind, swapped: bool, out: &mut [f32], threads: &Threads) {
    let gate = function(kind.gate());
    if let [a, b] = inputs {
        return zip(a, b, out, threads, |g, u| gate(g) * u);
    }
    let x = inputs[0].f32();
    let row = inputs[0].shape.last().map_or(0, |n| n / 2);
    threads.by_rows(out, row, 8 * row, |first, piece| {
        let rows = piece.chunks_mut(row).zip(x[2 * first * row..].chunks(2 * row));
        for (o, both) in rows {
            let (left, right) = both.split_at(row);
            let (gates, ups) = if swapped { (right, left) } else { (left, right) };
            for ((o, &g), &u) in o.iter_mut().zip(gates).zip(ups) {
                *o = gate(g) * u;
            }
        }
    });
}
