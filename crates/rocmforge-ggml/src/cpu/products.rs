//! Matrix products with several right matrices: batches that repeat, and experts chosen by id.

use super::gemm::{self, Left};
use super::matmul::{Strided, matmul};
use super::operand::Operand;
use super::path::Path;
use super::rows::checked_ids;
use super::strides::part_of;
use super::threads::Threads;
use crate::{Activations, DType, GgmlResult, Layout, Op, TensorDesc};

/// `a [.., m, k]` times `b [.., k, n]`, plus `bias [n]`.
pub(super) fn mul_mat(
    a: &Operand<'_>,
    b: &Operand<'_>,
    bias: Option<&Operand<'_>>,
    activations: Activations,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    product(a, b, activations, out, threads)?;
    let n = b.shape[b.shape.len() - 1];
    if let Some(bias) = bias.map(Operand::f32).filter(|_| n > 0) {
        for row in out.chunks_mut(n) {
            row.iter_mut().zip(bias.iter()).for_each(|(o, b)| *o += b);
        }
    }
    Ok(())
}

/// `a [.., m, k]` times `b [.., k, n]`.
fn product(
    a: &Operand<'_>,
    b: &Operand<'_>,
    activations: Activations,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    let (left, right) = (a.shape.len(), b.shape.len());
    let [m, k] = [a.shape[left - 2], a.shape[left - 1]];
    let n = b.shape[right - 1];
    let one = right == 2 && (b.dtype == DType::F32 || (b.strides()[0] == 1 && b.strides()[1] == k));
    let each = right > 2 && b.dtype == DType::F32 && a.shape[..left - 2] == b.shape[..right - 2];
    if one || each {
        return matmul(a, b, activations, out, threads);
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
    let alone = Threads::new(1);
    threads.by_rows(out, m * n, cost, |first, piece| {
        for (index, out) in piece.chunks_mut(m * n).enumerate() {
            let at = first + index;
            let left = Left {
                data: &lhs[at * m * k..(at + 1) * m * k],
                stride: k,
            };
            // A pack of f32 cannot fail.
            let _ = gemm::product(Path::best(), left, k, &matrix(at), n, out, &alone);
        }
    });
    Ok(())
}

/// Row `[t, u]` of `x [tokens, used or 1, k]` times matrix `ids[t, u]` of `experts [n_expert, k, n]`. All rows of one expert are one product.
pub(super) fn mul_mat_id(
    x: &Operand<'_>,
    experts: &Operand<'_>,
    ids: &Operand<'_>,
    activations: Activations,
    out: &mut [f32],
    threads: &Threads,
) -> GgmlResult<()> {
    let &[count, k, n] = experts.shape else { return Ok(()) };
    let &[tokens, used] = ids.shape else { return Ok(()) };
    let ids = checked_ids(ids, Op::MulMatId, count)?;
    if n == 0 || tokens == 0 || used == 0 {
        return Ok(());
    }
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    let per_token = x.shape[1];
    let values = x.f32();
    let mut rows_of: Vec<Vec<usize>> = vec![Vec::new(); count];
    for (row, &expert) in ids.iter().enumerate() {
        rows_of[expert].push(row);
    }
    let mut weight = TensorDesc::new([k, n], experts.dtype, Layout::ColMajor);
    weight.strides = experts.strides()[1..].to_vec();
    if weight.strides != [1, k] {
        weight.layout = Layout::Strided;
    }
    for (expert, rows) in rows_of.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
        let mut gathered = Vec::with_capacity(rows.len() * k);
        for &row in rows {
            let source = if per_token == 1 { row / used } else { row };
            gathered.extend_from_slice(&values[source * k..(source + 1) * k]);
        }
        let start = expert * experts.strides()[0] / weight.dtype.block_len() * weight.dtype.block_bytes();
        let bytes = &experts.raw()[start..start + weight.byte_size()];
        let left = TensorDesc::f32([rows.len(), k]);
        let left = Operand::strided(&left, bytemuck::cast_slice(&gathered));
        let mut found = vec![0.0; rows.len() * n];
        product(
            &left,
            &Operand::strided(&weight, bytes),
            activations,
            &mut found,
            threads,
        )?;
        for (&row, found) in rows.iter().zip(found.chunks(n)) {
            out[row * n..(row + 1) * n].copy_from_slice(found);
        }
    }
    Ok(())
}
