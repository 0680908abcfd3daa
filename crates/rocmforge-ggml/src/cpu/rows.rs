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

pub(super) fn mean_pool(x: &Operand<'_>, lengths: &Operand<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let &[_, seq, dim] = x.shape else { return Ok(()) };
    let (x, lengths) = (x.f32(), lengths.words());
    check_lengths(Op::MeanPool.name(), &lengths, seq)?;
    if dim == 0 {
        return Ok(());
    }
    let mut sums = vec![0.0f64; dim];
    for (entry, (&length, out)) in lengths.iter().zip(out.chunks_mut(dim)).enumerate() {
        sums.fill(0.0);
        let rows = &x[entry * seq * dim..][..length as usize * dim];
        for row in rows.chunks(dim) {
            sums.iter_mut().zip(row).for_each(|(s, &v)| *s += f64::from(v));
        }
        let divisor = f64::from(length.max(1));
        out.iter_mut().zip(&sums).for_each(|(o, s)| *o = (s / divisor) as f32);
    }
    Ok(())
}

/// Lengths may be at most `seq`.
pub(super) fn check_lengths(op: &'static str, lengths: &[u32], seq: usize) -> GgmlResult<()> {
    match lengths.iter().position(|&l| l as usize > seq) {
        None => Ok(()),
        Some(position) => Err(GgmlError::IndexOutOfRange {
            op,
            position,
            index: u64::from(lengths[position]),
            limit: seq + 1,
        }),
    }
}
