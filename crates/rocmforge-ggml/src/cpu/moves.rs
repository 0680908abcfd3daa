//! Ops that move elements: copies, concatenation, repetition, padding, other orders of dimensions.

use smallvec::smallvec;

use super::convert::convert;
use super::operand::Operand;
use super::output::Results;
use super::strides::{Dims, each_offset, next_index, row_major, unit_dims};
use crate::op::MAX_DIMS;
use crate::{GgmlError, GgmlResult, Op};

/// `a` and `b` one after the other along `axis`.
pub(super) fn concat<'a>(a: &Operand<'a>, b: &Operand<'a>, axis: usize) -> &'a [u8] {
    let run = |x: &Operand<'_>| {
        let (shape, _) = unit_dims(x.dtype, x.shape, x.strides());
        shape[axis..].iter().product::<usize>() * x.dtype.block_bytes()
    };
    let (a_run, b_run) = (run(a), run(b));
    let (a_units, b_units) = (a.units(), b.units());
    let out = a.scratch().take(a_units.len() + b_units.len());
    for (index, out) in out.chunks_exact_mut((a_run + b_run).max(1)).enumerate() {
        let (left, right) = out.split_at_mut(a_run);
        left.copy_from_slice(&a_units[index * a_run..(index + 1) * a_run]);
        right.copy_from_slice(&b_units[index * b_run..(index + 1) * b_run]);
    }
    out
}

/// The elements in the output's type.
pub(super) fn cpy(x: &Operand<'_>, y: &mut Results<'_, '_>) -> GgmlResult<()> {
    let dtype = y.first().desc.dtype;
    y.put(convert(x, dtype)?);
    Ok(())
}

pub(super) fn repeat(x: &Operand<'_>, y: &mut Results<'_, '_>) {
    let target = y.first().desc;
    let size = x.dtype.block_bytes();
    let units = x.units();
    let (source, _) = unit_dims(x.dtype, x.shape, x.strides());
    let (shape, _) = unit_dims(target.dtype, &target.shape, &target.strides);
    let steps = row_major(&source);
    let out = x.scratch().take(shape.iter().product::<usize>() * size);
    let mut index: Dims = smallvec![0; shape.len()];
    for place in out.chunks_exact_mut(size) {
        let at: usize = (0..shape.len()).map(|d| index[d] % source[d] * steps[d]).sum();
        place.copy_from_slice(&units[at * size..(at + 1) * size]);
        next_index(&mut index, &shape);
    }
    y.put(out);
}

pub(super) fn pad(x: &Operand<'_>, left: [usize; MAX_DIMS], y: &mut Results<'_, '_>) {
    let target = y.first().desc;
    let size = x.dtype.block_bytes();
    let units = x.units();
    let steps = row_major(&target.shape);
    let first: usize = steps.iter().zip(left).map(|(step, before)| step * before).sum();
    let out = x.scratch().filled(target.element_count() * size, 0u8);
    let mut next = units.chunks(size);
    each_offset(x.shape, &steps, |at| {
        if let Some(unit) = next.next() {
            let at = (first + at) * size;
            out[at..at + size].copy_from_slice(unit);
        }
    });
    y.put(out);
}

/// `x` with its last two dimensions swapped.
pub(super) fn transpose(x: &Operand<'_>, y: &mut Results<'_, '_>) -> GgmlResult<()> {
    let rank = x.shape.len();
    let mut order: Dims = (0..rank).collect();
    order.swap(rank - 1, rank - 2);
    put_in_order(&Op::Transpose, x, &order, y)
}

/// `x` with dimension `i` taken from dimension `axes[i]`.
pub(super) fn permute(x: &Operand<'_>, axes: [usize; MAX_DIMS], y: &mut Results<'_, '_>) -> GgmlResult<()> {
    put_in_order(&Op::Permute { axes }, x, &axes[..x.shape.len()], y)
}

fn put_in_order(op: &Op, x: &Operand<'_>, order: &[usize], y: &mut Results<'_, '_>) -> GgmlResult<()> {
    let shape: Dims = order.iter().map(|&d| x.shape[d]).collect();
    let strides: Dims = order.iter().map(|&d| x.strides()[d]).collect();
    // Blocks cannot be cut: those of the result must be those of the input.
    if x.dtype.is_quantized() && strides.last() != Some(&1) {
        return Err(GgmlError::Unimplemented {
            backend: super::NAME,
            op: op.name(),
            what: format!("{} {:?}: blocks do not lie along the result's rows", x.dtype, x.shape),
        });
    }
    y.put(x.units_in(&shape, &strides));
    Ok(())
}
