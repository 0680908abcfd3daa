//! Row look-ups, row writes, additions by row and pooling.

use rocmforge_gguf::blocks;

use super::operand::Operand;
use super::output::encode;
use super::strides::part_of;
use crate::{DType, GgmlError, GgmlResult, Op, TensorDesc, indices};

/// The row ids, all below `limit`.
pub(super) fn checked_ids(ids: &Operand<'_>, op: Op, limit: usize) -> GgmlResult<Vec<usize>> {
    if ids.dtype == DType::I64 {
        let ids = ids.numbers(i64::from_ne_bytes);
        let outside = |&id: &i64| usize::try_from(id).map_or(true, |id| id >= limit);
        if let Some(position) = ids.iter().position(outside) {
            return Err(GgmlError::IndexOutOfRange {
                op: op.name(),
                position,
                index: ids[position] as u64,
                limit,
            });
        }
        return Ok(ids.iter().map(|&id| id as usize).collect());
    }
    let ids = ids.words();
    indices::check(&op, &ids, limit)?;
    Ok(ids.iter().map(|&id| id as usize).collect())
}

/// Offset of row `row` of matrix `matrix`, in elements.
fn row_offset(shape: &[usize], strides: &[usize], matrix: usize, row: usize) -> usize {
    let lead = shape.len() - 2;
    let mut rest = matrix;
    let mut at = row * strides[lead];
    for dim in (0..lead).rev() {
        at += rest % shape[dim] * strides[dim];
        rest /= shape[dim];
    }
    at
}

/// Rows of plain floats or of a block format, as f32.
pub(super) fn get_rows(table: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let [count, dim] = [table.shape[table.shape.len() - 2], table.shape[table.shape.len() - 1]];
    let matrices: usize = table.shape[..table.shape.len() - 2].iter().product();
    let ids = checked_ids(ids, Op::GetRows, count)?;
    if dim == 0 || ids.is_empty() {
        return Ok(());
    }
    let per_matrix = ids.len() / matrices;
    let rows = ids
        .iter()
        .enumerate()
        .map(|(i, &id)| (i / per_matrix, id))
        .zip(out.chunks_mut(dim));
    if dim > 1 && table.strides().last() != Some(&1) {
        let all = table.f32();
        for ((matrix, id), out) in rows {
            let at = (matrix * count + id) * dim;
            out.copy_from_slice(&all[at..at + dim]);
        }
        return Ok(());
    }
    let failed = |source| GgmlError::Backend {
        backend: super::NAME,
        at: format!("decoding a row of {}", table.dtype),
        source,
    };
    let ty = table
        .dtype
        .tensor_type()
        .ok_or_else(|| failed("not a type of GGUF".into()))?;
    let length = table
        .dtype
        .row_bytes(dim)
        .ok_or_else(|| failed("no whole blocks".into()))?;
    for ((matrix, id), out) in rows {
        let at = row_offset(table.shape, table.strides(), matrix, id);
        let start = at / table.dtype.block_len() * table.dtype.block_bytes();
        let bytes = &table.raw()[start..start + length];
        blocks::dequantize(ty, bytes, out).map_err(|source| failed(Box::new(source)))?;
    }
    Ok(())
}

/// Rows of other plain numbers, as their bytes.
pub(super) fn get_plain_rows(table: &Operand<'_>, ids: &Operand<'_>) -> GgmlResult<Vec<u8>> {
    let [count, dim] = [table.shape[table.shape.len() - 2], table.shape[table.shape.len() - 1]];
    let matrices: usize = table.shape[..table.shape.len() - 2].iter().product();
    let ids = checked_ids(ids, Op::GetRows, count)?;
    let units = table.units();
    let row = dim * table.dtype.block_bytes();
    let per_matrix = (ids.len() / matrices.max(1)).max(1);
    let rows = ids.iter().enumerate().map(|(i, &id)| {
        let at = (i / per_matrix * count + id) * row;
        &units[at..at + row]
    });
    Ok(rows.flatten().copied().collect())
}

/// Writes row `i` of each matrix of `src` to row `ids[i]` of `target`, whose span is `bytes`. Nothing is written if an id is out of range.
pub(super) fn set_rows(src: &Operand<'_>, ids: &Operand<'_>, target: &TensorDesc, bytes: &mut [u8]) -> GgmlResult<()> {
    let rank = target.shape.len();
    let [rows, dim] = [target.shape[rank - 2], target.shape[rank - 1]];
    let lists = &ids.shape[..ids.shape.len() - 1];
    let ids = checked_ids(ids, Op::SetRows, rows)?;
    let count = src.shape[rank - 2];
    let src_values = src.f32();
    if dim == 0 || count == 0 {
        return Ok(());
    }
    for (index, row) in src_values.chunks(dim).enumerate() {
        let matrix = index / count;
        let list = part_of(matrix, &src.shape[..rank - 2], lists, true);
        let id = ids[list * count + index % count];
        let at = row_offset(&target.shape, &target.strides, matrix, id);
        put_row(&encode(target.dtype, row)?, target, at, bytes);
    }
    Ok(())
}

/// Puts a row's stored units into `target`, whose span is `bytes`, from element `at` on.
pub(super) fn put_row(units: &[u8], target: &TensorDesc, at: usize, bytes: &mut [u8]) {
    let (block_len, size) = (target.dtype.block_len(), target.dtype.block_bytes());
    let rank = target.shape.len();
    let (dim, step) = (target.shape[rank - 1], target.strides[rank - 1]);
    if dim == 1 || step == 1 {
        let start = at / block_len * size;
        bytes[start..start + units.len()].copy_from_slice(units);
        return;
    }
    for (i, unit) in units.chunks(size).enumerate() {
        let start = (at + i * step) * size;
        bytes[start..start + size].copy_from_slice(unit);
    }
}

/// `a [tokens, used, n]` plus rows `ids[t, u]` of `b`.
pub(super) fn add_id(a: &Operand<'_>, b: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (experts, n) = (b.shape[0], b.shape[1]);
    let ids = checked_ids(ids, Op::AddId, experts)?;
    let (x, y) = (a.f32(), b.f32());
    if n == 0 {
        return Ok(());
    }
    for ((out, x), id) in out.chunks_mut(n).zip(x.chunks(n)).zip(ids) {
        for ((o, x), y) in out.iter_mut().zip(x).zip(&y[id * n..(id + 1) * n]) {
            *o = x + y;
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
