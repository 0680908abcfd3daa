//! Matrix products with several right matrices: batches that repeat, and experts chosen by id.

use super::gemm::{self, Left};
use super::matmul::{Strided, matmul};
use super::operand::Operand;
use super::ops::On;
use super::path::Path;
use super::strides::part_of;
use super::threads::Threads;
use crate::{DType, GgmlResult};

/// `a [.., m, k]` times `b [.., k, n]`, plus `bias [n]`.
pub(super) fn mul_mat(
    a: &Operand<'_>,
    b: &Operand<'_>,
    bias: Option<&Operand<'_>>,
    on: On<'_>,
    out: &mut [f32],
) -> GgmlResult<()> {
    product(a, b, on, out)?;
    let n = b.shape[b.shape.len() - 1];
    if let Some(bias) = bias.map(Operand::f32).filter(|_| n > 0) {
        for row in out.chunks_mut(n) {
            row.iter_mut().zip(bias.iter()).for_each(|(o, b)| *o += b);
        }
    }
    Ok(())
}

/// `a [.., m, k]` times `b [.., k, n]`.
fn product(a: &Operand<'_>, b: &Operand<'_>, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (left, right) = (a.shape.len(), b.shape.len());
    let [m, k] = [a.shape[left - 2], a.shape[left - 1]];
    let n = b.shape[right - 1];
    let one = right == 2 && (b.dtype == DType::F32 || (b.strides()[0] == 1 && b.strides()[1] == k));
    let each = right > 2 && b.dtype == DType::F32 && a.shape[..left - 2] == b.shape[..right - 2];
    if one || each {
        return matmul(a, b, on, out);
    }
    if m * n == 0 || out.is_empty() {
        return Ok(());
    }
    let lhs = a.f32();
    let decoded = (b.dtype != DType::F32).then(|| b.f32());
    let strides = b.strides();
    let matrix = |index: usize| {
        let part = part_of(index, &a.shape[..left - 2], &b.shape[..right - 2], false);
        match &decoded {
            Some(all) => Strided {
                data: &all[part * k * n..(part + 1) * k * n],
                row_stride: n,
                col_stride: 1,
            },
            None => {
                let mut rest = part;
                let mut at = 0;
                for dim in (0..right - 2).rev() {
                    at += rest % b.shape[dim] * strides[dim];
                    rest /= b.shape[dim];
                }
                Strided {
                    data: b.span_f32().get(at..).unwrap_or(&[]),
                    row_stride: strides[right - 2],
                    col_stride: strides[right - 1],
                }
            }
        }
    };
    let cost = m.saturating_mul(k).saturating_mul(n) / 8;
    on.threads.by_rows(out, m * n, cost, |first, piece| {
        for (index, out) in piece.chunks_mut(m * n).enumerate() {
            let at = first + index;
            let left = Left {
                data: &lhs[at * m * k..(at + 1) * m * k],
                stride: k,
            };
            // A pack of f32 cannot fail.
            let _ = gemm::product(Path::best(), left, k, &matrix(at), n, out, &Threads::ONE, on.scratch);
        }
    });
    Ok(())
}

/// Row `[t, u]` of `x [tokens, used or 1, k]` times matrix `ids[t, u]` of `experts [n_expert, k, n]`. All rows of one expert are one product.
pub(super) fn mul_mat_id(
    x: &Operand<'_>,
    experts: &Operand<'_>,
    ids: &Operand<'_>,
    on: On<'_>,
    out: &mut [f32],
) -> GgmlResult<()> {
    let &[count, k, n] = experts.shape else { return Ok(()) };
    let &[tokens, used] = ids.shape else { return Ok(()) };
    let ids = ids.indices();
    if n == 0 || tokens == 0 || used == 0 {
        return Ok(());
    }
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    let per_token = x.shape[1];
    let (values, scratch) = (x.f32(), on.scratch);
    // Rows in the order of their experts: those of expert `e` are `order[ends[e - 1]..ends[e]]`.
    let ends = scratch.filled(count, 0usize);
    ids.iter().for_each(|&expert| ends[expert as usize] += 1);
    let mut end = 0;
    for of_expert in ends.iter_mut() {
        end += std::mem::replace(of_expert, end);
    }
    let order = scratch.take::<usize>(ids.len());
    for (row, &expert) in ids.iter().enumerate() {
        let next = &mut ends[expert as usize];
        order[*next] = row;
        *next += 1;
    }
    let (gathered, found) = (scratch.take::<f32>(ids.len() * k), scratch.take::<f32>(ids.len() * n));
    let mut start = 0;
    for (expert, &end) in ends.iter().enumerate() {
        let rows = &order[start..end];
        start = end;
        if rows.is_empty() {
            continue;
        }
        let gathered = &mut gathered[..rows.len() * k];
        for (&row, place) in rows.iter().zip(gathered.chunks_exact_mut(k)) {
            let source = if per_token == 1 { row / used } else { row };
            place.copy_from_slice(&values[source * k..(source + 1) * k]);
        }
        let found = &mut found[..rows.len() * n];
        let (shape, strides) = ([rows.len(), k], [k, 1]);
        let left = Operand::of_f32(&shape, &strides, gathered, scratch);
        product(&left, &experts.part(expert), on, found)?;
        for (&row, found) in rows.iter().zip(found.chunks(n)) {
            out[row * n..(row + 1) * n].copy_from_slice(found);
        }
    }
    Ok(())
}
