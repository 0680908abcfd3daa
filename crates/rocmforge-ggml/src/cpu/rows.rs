//! Row lookup and pooling.

use super::operand::Operand;
use crate::{GgmlError, GgmlResult, Op};

pub(super) fn get_rows(table: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (rows, dim) = (table.shape[0], table.shape[1]);
    let (table, ids) = (table.f32(), ids.words());
    for (position, (&id, out)) in ids.iter().zip(out.chunks_mut(dim.max(1))).enumerate() {
        let index = id as usize;
        if index >= rows {
            return Err(GgmlError::IndexOutOfRange {
                op: Op::GetRows.name(),
                position,
                index: u64::from(id),
                limit: rows,
            });
        }
        out.copy_from_slice(&table[index * dim..(index + 1) * dim]);
    }
    Ok(())
}

pub(super) fn mean_pool(x: &Operand<'_>, weight: &Operand<'_>, out: &mut [f32]) {
    let &[_, seq, dim] = x.shape else { return };
    let (x, weight) = (x.f32(), weight.f32());
    if dim == 0 {
        return;
    }
    let mut sums = vec![0.0f64; dim];
    for (entry, out) in out.chunks_mut(dim).enumerate() {
        sums.fill(0.0);
        let weights = &weight[entry * seq..(entry + 1) * seq];
        // A weight of 0 must hide its row, whatever it holds: padding may be anything.
        for (row, &w) in x[entry * seq * dim..]
            .chunks(dim)
            .zip(weights)
            .filter(|&(_, &w)| w != 0.0)
        {
            sums.iter_mut()
                .zip(row)
                .for_each(|(s, &v)| *s += f64::from(v) * f64::from(w));
        }
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        let factor = if total == 0.0 { 0.0 } else { 1.0 / total };
        out.iter_mut().zip(&sums).for_each(|(o, s)| *o = (s * factor) as f32);
    }
}
