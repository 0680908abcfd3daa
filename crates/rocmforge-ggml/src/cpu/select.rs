//! Largest values of rows.

use std::cmp::Ordering;

use super::operand::Operand;
use crate::SortOrder;

/// Index of the largest value of each row, the lowest on ties; NaN is below everything.
pub(super) fn arg_max(x: &Operand<'_>, out: &mut [u32]) {
    let row = x.shape.last().copied().unwrap_or(1).max(1);
    let x = x.f32();
    for (out, row) in out.iter_mut().zip(x.chunks(row)) {
        let best = (1..row.len()).fold(
            0,
            |best, i| {
                if order(row, i, best) == Ordering::Less { i } else { best }
            },
        );
        *out = best as u32;
    }
}

/// Indices of the `k` largest values of each row, largest first.
pub(super) fn top_k(x: &Operand<'_>, k: usize, out: &mut [u32]) {
    let row = x.shape.last().copied().unwrap_or(1).max(1);
    let ids = x.scratch().take(row);
    for (out, row) in out.chunks_mut(k).zip(x.f32().chunks(row)) {
        count(ids);
        highest(row, ids, out);
    }
}

/// The numbers of columns from 0 on.
pub(super) fn count(columns: &mut [u32]) {
    columns.iter_mut().zip(0..).for_each(|(column, i)| *column = i);
}

/// Those of some columns of a row with the largest values, largest first; `columns` change their order.
pub(super) fn highest(row: &[f32], columns: &mut [u32], out: &mut [u32]) {
    let compare = |&a: &u32, &b: &u32| order(row, a as usize, b as usize);
    if out.len() < columns.len() {
        columns.select_nth_unstable_by(out.len() - 1, compare);
    }
    columns[..out.len()].sort_unstable_by(compare);
    out.copy_from_slice(&columns[..out.len()]);
}

/// Indices of each row in order.
pub(super) fn arg_sort(x: &Operand<'_>, sort: SortOrder, out: &mut [u32]) {
    let row = x.shape.last().copied().unwrap_or(1).max(1);
    let x = x.f32();
    for (out, row) in out.chunks_mut(row).zip(x.chunks(row)) {
        for (i, out) in out.iter_mut().enumerate() {
            *out = i as u32;
        }
        out.sort_unstable_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            match sort {
                SortOrder::Descending => order(row, a, b),
                SortOrder::Ascending => {
                    let nan = row[a].is_nan().cmp(&row[b].is_nan());
                    let values = row[a].partial_cmp(&row[b]).unwrap_or(Ordering::Equal);
                    nan.then(values).then(a.cmp(&b))
                }
            }
        });
    }
}

/// The larger value first, NaN last, then the lower index.
fn order(row: &[f32], a: usize, b: usize) -> Ordering {
    let key = |i: usize| if row[i].is_nan() { f32::NEG_INFINITY } else { row[i] };
    let nan = row[a].is_nan().cmp(&row[b].is_nan());
    key(b)
        .partial_cmp(&key(a))
        .unwrap_or(Ordering::Equal)
        .then(nan)
        .then(a.cmp(&b))
}
