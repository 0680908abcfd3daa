//! Ops that move elements: copies, concatenation, repetition, padding, other orders of dimensions.

use std::borrow::Cow;

use super::convert::convert;
use super::operand::{Operand, unit_dims};
use super::strides::{each_offset, next_index, row_major};
use crate::op::MAX_DIMS;
use crate::{GgmlError, GgmlResult, Op, TensorDesc};

/// The output's stored units (plain elements or blocks) in row-major order; `None` if the op computes.
pub(super) fn run<'a>(op: &Op, inputs: &[Operand<'a>], target: &TensorDesc) -> GgmlResult<Option<Cow<'a, [u8]>>> {
    let x = match inputs {
        [x, ..] => x,
        [] => return Ok(None),
    };
    Ok(Some(match *op {
        Op::Dup | Op::Cont | Op::Reshape | Op::View => x.units(),
        Op::Cpy { .. } => convert(x, target.dtype)?,
        Op::Concat { axis } => Cow::Owned(concat(x, &inputs[1], axis)),
        Op::Repeat => Cow::Owned(repeat(x, target)),
        Op::Pad { left, .. } => Cow::Owned(pad(x, left, target)),
        Op::Transpose => {
            let rank = x.shape.len();
            let mut order: Vec<usize> = (0..rank).collect();
            order.swap(rank - 1, rank - 2);
            permute(op, x, &order)?
        }
        Op::Permute { axes } => permute(op, x, &axes[..x.shape.len()])?,
        _ => return Ok(None),
    }))
}

/// `a` and `b` one after the other along `axis`.
fn concat(a: &Operand<'_>, b: &Operand<'_>, axis: usize) -> Vec<u8> {
    let run = |x: &Operand<'_>| {
        let (shape, _) = unit_dims(x.dtype, x.shape, x.strides());
        shape[axis..].iter().product::<usize>() * x.dtype.block_bytes()
    };
    let (a_run, b_run) = (run(a), run(b));
    let (a_units, b_units) = (a.units(), b.units());
    let mut out = Vec::with_capacity(a_units.len() + b_units.len());
    for index in 0..a.shape[..axis].iter().product() {
        out.extend_from_slice(&a_units[index * a_run..(index + 1) * a_run]);
        out.extend_from_slice(&b_units[index * b_run..(index + 1) * b_run]);
    }
    out
}

fn repeat(x: &Operand<'_>, target: &TensorDesc) -> Vec<u8> {
    let size = x.dtype.block_bytes();
    let units = x.units();
    let (source, _) = unit_dims(x.dtype, x.shape, x.strides());
    let (shape, _) = unit_dims(target.dtype, &target.shape, &target.strides);
    let steps = row_major(&source);
    let mut out = Vec::with_capacity(shape.iter().product::<usize>() * size);
    if shape.contains(&0) {
        return out;
    }
    let mut index = vec![0; shape.len()];
    loop {
        let at: usize = (0..shape.len()).map(|d| index[d] % source[d] * steps[d]).sum();
        out.extend_from_slice(&units[at * size..(at + 1) * size]);
        if !next_index(&mut index, &shape) {
            return out;
        }
    }
}

fn pad(x: &Operand<'_>, left: [usize; MAX_DIMS], target: &TensorDesc) -> Vec<u8> {
    let size = x.dtype.block_bytes();
    let units = x.units();
    let steps = row_major(&target.shape);
    let first: usize = steps.iter().zip(left).map(|(step, before)| step * before).sum();
    let mut out = vec![0; target.element_count() * size];
    let mut next = units.chunks(size);
    each_offset(x.shape, &steps, |at| {
        if let Some(unit) = next.next() {
            let at = (first + at) * size;
            out[at..at + size].copy_from_slice(unit);
        }
    });
    out
}

/// `x` with dimension `i` taken from dimension `order[i]`.
fn permute<'a>(op: &Op, x: &Operand<'a>, order: &[usize]) -> GgmlResult<Cow<'a, [u8]>> {
    let shape: Vec<usize> = order.iter().map(|&d| x.shape[d]).collect();
    let strides: Vec<usize> = order.iter().map(|&d| x.strides()[d]).collect();
    // Blocks cannot be cut: those of the result must be those of the input.
    if x.dtype.is_quantized() && strides.last() != Some(&1) {
        return Err(GgmlError::Unimplemented {
            backend: super::NAME,
            op: op.name(),
            what: format!("{} {:?}: blocks do not lie along the result's rows", x.dtype, x.shape),
        });
    }
    Ok(x.units_in(&shape, &strides))
}
