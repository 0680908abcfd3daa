//! Row look-ups, row writes, additions by row and pooling.

use rocmforge_gguf::blocks;

use super::operand::Operand;
use super::output::{Results, Target, encode_into};
use super::strides::part_of;
use crate::{DType, GgmlError, GgmlResult, TensorDesc};

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

/// Rows of plain floats or of a block format, as f32; of other plain numbers, as they are.
pub(super) fn get_rows(table: &Operand<'_>, ids: &Operand<'_>, y: &mut Results<'_, '_>) -> GgmlResult<()> {
    if y.first().desc.dtype != DType::F32 {
        y.put(plain_rows(table, ids));
        return Ok(());
    }
    let out = y.one();
    let [count, dim] = [table.shape[table.shape.len() - 2], table.shape[table.shape.len() - 1]];
    let matrices: usize = table.shape[..table.shape.len() - 2].iter().product();
    let ids = ids.indices();
    if dim == 0 || ids.is_empty() {
        return Ok(());
    }
    let per_matrix = ids.len() / matrices;
    let rows = ids
        .iter()
        .enumerate()
        .map(|(i, &id)| (i / per_matrix, id as usize))
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
fn plain_rows<'a>(table: &Operand<'a>, ids: &Operand<'a>) -> &'a [u8] {
    let [count, dim] = [table.shape[table.shape.len() - 2], table.shape[table.shape.len() - 1]];
    let matrices: usize = table.shape[..table.shape.len() - 2].iter().product();
    let ids = ids.indices();
    let units = table.units();
    let row = dim * table.dtype.block_bytes();
    let per_matrix = (ids.len() / matrices.max(1)).max(1);
    let out = table.scratch().take(ids.len() * row);
    for ((i, &id), out) in ids.iter().enumerate().zip(out.chunks_exact_mut(row.max(1))) {
        let at = (i / per_matrix * count + id as usize) * row;
        out.copy_from_slice(&units[at..at + row]);
    }
    out
}

/// Writes row `i` of each matrix of `src` to row `ids[i]` of the target.
pub(super) fn set_rows(src: &Operand<'_>, ids: &Operand<'_>, target: &mut Target<'_>) -> GgmlResult<()> {
    let Target { desc: target, bytes } = target;
    let rank = target.shape.len();
    let dim = target.shape[rank - 1];
    let (lists, ids) = (&ids.shape[..ids.shape.len() - 1], ids.indices());
    let count = src.shape[rank - 2];
    let src_values = src.f32();
    if dim == 0 || count == 0 {
        return Ok(());
    }
    let units = row_units(src, target);
    for (index, row) in src_values.chunks(dim).enumerate() {
        let matrix = index / count;
        let list = part_of(matrix, &src.shape[..rank - 2], lists, true);
        let id = ids[list * count + index % count] as usize;
        let at = row_offset(&target.shape, &target.strides, matrix, id);
        put_row(row, target, at, units, bytes)?;
    }
    Ok(())
}

/// Room for one row of `target` as it is stored.
pub(super) fn row_units<'a>(src: &Operand<'a>, target: &TensorDesc) -> &'a mut [u8] {
    let dim = target.shape.last().copied().unwrap_or(1);
    src.scratch()
        .take(dim / target.dtype.block_len() * target.dtype.block_bytes())
}

/// Encodes a row into `target`, whose span is `bytes`, from element `at` on; `units` are its [`row_units`].
pub(super) fn put_row(
    row: &[f32],
    target: &TensorDesc,
    at: usize,
    units: &mut [u8],
    bytes: &mut [u8],
) -> GgmlResult<()> {
    let (block_len, size) = (target.dtype.block_len(), target.dtype.block_bytes());
    let rank = target.shape.len();
    let (dim, step) = (target.shape[rank - 1], target.strides[rank - 1]);
    if dim == 1 || step == 1 {
        let start = at / block_len * size;
        return encode_into(target.dtype, row, &mut bytes[start..start + units.len()]);
    }
    encode_into(target.dtype, row, units)?;
    for (i, unit) in units.chunks(size).enumerate() {
        let start = (at + i * step) * size;
        bytes[start..start + size].copy_from_slice(unit);
    }
    Ok(())
}

/// `a [tokens, used, n]` plus rows `ids[t, u]` of `b`.
pub(super) fn add_id(a: &Operand<'_>, b: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) {
    a.values().put(out);
    add_chosen(b, ids, out);
}

/// Adds to each row the one of `b` that its id chooses.
pub(super) fn add_chosen(b: &Operand<'_>, ids: &Operand<'_>, out: &mut [f32]) {
    let (n, y) = (b.shape[1].max(1), b.f32());
    for (out, &id) in out.chunks_mut(n).zip(ids.indices()) {
        let id = id as usize;
        out.iter_mut().zip(&y[id * n..(id + 1) * n]).for_each(|(o, y)| *o += y);
    }
}

/// `dst`, and `src` added to its elements from `offset` on.
pub(super) fn accumulate(src: &Operand<'_>, dst: &Operand<'_>, offset: usize, out: &mut [f32]) {
    dst.values().put(out);
    let src = src.f32();
    out[offset..offset + src.len()]
        .iter_mut()
        .zip(src)
        .for_each(|(o, s)| *o += s);
}

pub(super) fn mean_pool(x: &Operand<'_>, weight: &Operand<'_>, out: &mut [f32]) {
    let &[_, seq, dim] = x.shape else { return };
    let sums = x.scratch().filled(dim, 0.0f64);
    let (x, weight) = (x.f32(), weight.f32());
    if dim == 0 {
        return;
    }
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
        out.iter_mut().zip(&*sums).for_each(|(o, s)| *o = (s * factor) as f32);
    }
}

pub(super) fn arange([start, step]: [f64; 2], out: &mut [f32]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = (start + i as f64 * step) as f32;
    }
}
