//! Ops on single elements: scale, add, mul and their like.

use super::operand::{Operand, Values};
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

/// `f` of each element.
pub(super) fn map(x: &Operand<'_>, out: &mut [f32], threads: &Threads, f: impl Fn(f32) -> f32 + Sync) {
    let x = x.values();
    pieces(out, threads, |first, piece| each(piece, x.from(first), &f));
}

fn each(out: &mut [f32], x: Values<'_>, f: impl Fn(f32) -> f32) {
    match x {
        Values::Apart(x) => out.iter_mut().zip(x).for_each(|(o, &x)| *o = f(x)),
        Values::InOutput(_) => out.iter_mut().for_each(|o| *o = f(*o)),
    }
}

/// Not [`f32::clamp`], which would panic if it were not checked that `min <= max`; NaN stays NaN.
pub(super) fn clamp(min: f32, max: f32) -> impl Fn(f32) -> f32 + Sync {
    move |x| match x {
        x if x < min => min,
        x if x > max => max,
        x => x,
    }
}

/// `f(a, b)` of operands of one shape.
pub(super) fn zip(
    a: &Operand<'_>,
    b: &Operand<'_>,
    out: &mut [f32],
    threads: &Threads,
    f: impl Fn(f32, f32) -> f32 + Sync,
) {
    let (a, b) = (a.values(), b.values());
    pieces(out, threads, |first, piece| {
        each_of_two(piece, a.from(first), b.from(first), &f);
    });
}

/// `f(a, b)` of each pair; operands in an output are in `out`.
pub(super) fn each_of_two(out: &mut [f32], a: Values<'_>, b: Values<'_>, f: impl Fn(f32, f32) -> f32) {
    match (a, b) {
        (Values::Apart(a), Values::Apart(b)) => {
            for ((o, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *o = f(a, b);
            }
        }
        (Values::Apart(a), Values::InOutput(_)) => out.iter_mut().zip(a).for_each(|(o, &a)| *o = f(a, *o)),
        (Values::InOutput(_), Values::Apart(b)) => out.iter_mut().zip(b).for_each(|(o, &b)| *o = f(*o, b)),
        (Values::InOutput(_), Values::InOutput(_)) => out.iter_mut().for_each(|o| *o = f(*o, *o)),
    }
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
    let (x, y) = (a.values(), b.f32());
    let Some((&row, outer)) = a.shape.split_last() else {
        return;
    };
    let Some((&repeated, parts)) = b.shape.split_last() else {
        let y = y[0];
        return each(out, x, |x| f(x, y));
    };
    threads.by_rows(out, row, 8 * row, |first, piece| {
        for (index, o) in piece.chunks_mut(row).enumerate() {
            let x = x.from((first + index) * row);
            let at = part_of(first + index, outer, parts, true) * repeated;
            let y = &y[at..at + repeated];
            if let &[y] = y {
                each(o, x, |x| f(x, y));
                continue;
            }
            for (part, o) in o.chunks_mut(repeated).enumerate() {
                each_of_two(o, x.from(part * repeated), Values::Apart(y), &f);
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
