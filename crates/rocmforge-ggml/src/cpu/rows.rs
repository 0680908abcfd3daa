//! Row lookup, row writes and pooling.

use half::f16;

use super::operand::Operand;
use super::weights::Rows;
use crate::{DType, GgmlError, GgmlResult, Op, TensorDesc, indices};

/// The row ids, all below `limit`.
fn checked_ids(ids: &Operand<'_>, op: Op, limit: usize) -> GgmlResult<Vec<usize>> {
    let ids = ids.words();
    indices::check(&op, &ids, limit)?;
    Ok(ids.iter().map(|&id| id as usize).collect())
}

pub(super) fn get_rows(table: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (count, dim) = (table.shape[0], table.shape[1]);
    let ids = checked_ids(ids, Op::GetRows, count)?;
    if dim == 0 {
        return Ok(());
    }
    if table.dtype == DType::F32 {
        let table = table.f32();
        for (id, out) in ids.into_iter().zip(out.chunks_mut(dim)) {
            out.copy_from_slice(&table[id * dim..(id + 1) * dim]);
        }
        return Ok(());
    }
    let rows = Rows::new(Op::GetRows, table, dim)?;
    for (id, out) in ids.into_iter().zip(out.chunks_mut(dim)) {
        rows.decode(id, 0..out.len(), out)?;
    }
    Ok(())
}

/// Writes row `i` of `src` to row `ids[i]` of `target`, whose span is `bytes`. Nothing is written if an id is out of range.
pub(super) fn set_rows(src: &Operand<'_>, ids: &Operand<'_>, target: &TensorDesc, bytes: &mut [u8]) -> GgmlResult<()> {
    if !target.is_contiguous() {
        return Err(GgmlError::Unimplemented {
            backend: super::NAME,
            op: Op::SetRows.name(),
            what: target.summary(),
        });
    }
    let (rows, dim) = (target.shape[0], target.shape[1]);
    let ids = checked_ids(ids, Op::SetRows, rows)?;
    let src = src.f32();
    if dim == 0 {
        return Ok(());
    }
    let size = target.dtype.block_bytes();
    for (id, row) in ids.into_iter().zip(src.chunks(dim)) {
        let out = &mut bytes[id * dim * size..(id + 1) * dim * size];
        if target.dtype == DType::F32 {
            out.copy_from_slice(bytemuck::cast_slice(row));
        } else {
            for (out, &value) in out.as_chunks_mut::<2>().0.iter_mut().zip(row) {
                *out = f16::from_f32(value).to_bits().to_ne_bytes();
            }
        }
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
