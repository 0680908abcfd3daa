//! Conversions between plain float types, and concatenation.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};

use super::operand::Operand;
use crate::{DType, GgmlError, GgmlResult, Op};

/// Halves of type `dtype` as f32, to as many places.
pub(super) fn halves_to_f32(dtype: DType, bits: &[u16], out: &mut [f32]) {
    match dtype {
        DType::Bf16 => bits.reinterpret_cast::<bf16>().convert_to_f32_slice(out),
        _ => bits.reinterpret_cast::<f16>().convert_to_f32_slice(out),
    }
}

/// The operand's elements as f32, in memory order, without gaps.
fn to_f32(x: &Operand<'_>) -> Vec<f32> {
    match x.dtype {
        DType::F32 => x.f32().into_owned(),
        dtype => {
            let halves: &[u16] = bytemuck::cast_slice(x.raw());
            let mut out = vec![0.0; halves.len()];
            halves_to_f32(dtype, halves, &mut out);
            out
        }
    }
}

/// Every element in type `to`.
pub(super) fn cast(x: &Operand<'_>, to: DType, out: &mut [u8]) -> GgmlResult<()> {
    if x.dtype != DType::F32 && !x.is_contiguous() {
        return Err(gaps(Op::Cast { to }, x));
    }
    let values = to_f32(x);
    match to {
        DType::F32 => out.copy_from_slice(bytemuck::cast_slice(&values)),
        DType::Bf16 => write_halves(out, values.iter().map(|&v| bf16::from_f32(v).to_bits())),
        _ => write_halves(out, values.iter().map(|&v| f16::from_f32(v).to_bits())),
    }
    Ok(())
}

fn write_halves(out: &mut [u8], halves: impl Iterator<Item = u16>) {
    for (out, half) in out.as_chunks_mut::<2>().0.iter_mut().zip(halves) {
        *out = half.to_ne_bytes();
    }
}

fn gaps(op: Op, x: &Operand<'_>) -> GgmlError {
    GgmlError::Unimplemented {
        backend: super::NAME,
        op: op.name(),
        what: format!("{} {:?} with gaps", x.dtype, x.shape),
    }
}

/// `a` and `b` one after the other along `axis`.
pub(super) fn concat(a: &Operand<'_>, b: &Operand<'_>, axis: usize, out: &mut [u8]) -> GgmlResult<()> {
    let bytes = |x: &Operand<'_>| -> GgmlResult<Vec<u8>> {
        match x.dtype.block_bytes() {
            4 => Ok(bytemuck::cast_slice(&x.words()).to_vec()),
            _ if x.is_contiguous() => Ok(x.raw().to_vec()),
            _ => Err(gaps(Op::Concat { axis }, x)),
        }
    };
    let size = a.dtype.block_bytes();
    let run = |x: &Operand<'_>| x.shape[axis..].iter().product::<usize>() * size;
    let (a_run, b_run) = (run(a), run(b));
    let (a, b) = (bytes(a)?, bytes(b)?);
    if a_run + b_run == 0 {
        return Ok(());
    }
    for (index, out) in out.chunks_exact_mut(a_run + b_run).enumerate() {
        let (left, right) = out.split_at_mut(a_run);
        left.copy_from_slice(&a[index * a_run..(index + 1) * a_run]);
        right.copy_from_slice(&b[index * b_run..(index + 1) * b_run]);
    }
    Ok(())
}
