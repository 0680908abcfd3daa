//! Conversions between types.

use half::{bf16, f16};

use super::operand::Operand;
use super::output::encode;
use super::scratch::Scratch;
use crate::{DType, GgmlResult};

/// Every element in type `to`, in row-major order: floats rounded to nearest, ties to even; integers from floats without their fraction;
/// what is out of range becomes the nearest integer, NaN 0.
pub(super) fn convert<'a>(x: &Operand<'a>, to: DType) -> GgmlResult<&'a [u8]> {
    if x.dtype == to {
        return Ok(x.units());
    }
    let exact = |dtype: DType| !(dtype.is_plain_float() || dtype.is_quantized());
    let scratch = x.scratch();
    match (integers(x), exact(x.dtype) || exact(to)) {
        (Some(values), _) if is_integer(to) => Ok(write_integers(values.iter().copied(), to, scratch)),
        (Some(values), _) => reals_to(values.iter().map(|&v| v as f64), to, scratch),
        (None, true) if x.dtype == DType::F64 => reals_to(x.numbers(f64::from_ne_bytes).iter().copied(), to, scratch),
        (None, true) => reals_to(x.f32().iter().map(|&v| f64::from(v)), to, scratch),
        (None, false) => encode(to, x.f32(), scratch),
    }
}

const fn is_integer(dtype: DType) -> bool {
    matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64 | DType::U32)
}

fn integers<'a>(x: &Operand<'a>) -> Option<&'a [i64]> {
    match x.dtype {
        DType::I8 => Some(x.numbers(|b: [u8; 1]| i64::from(i8::from_ne_bytes(b)))),
        DType::I16 => Some(x.numbers(|b: [u8; 2]| i64::from(i16::from_ne_bytes(b)))),
        DType::I32 => Some(x.numbers(|b: [u8; 4]| i64::from(i32::from_ne_bytes(b)))),
        DType::U32 => Some(x.numbers(|b: [u8; 4]| i64::from(u32::from_ne_bytes(b)))),
        DType::I64 => Some(x.numbers(i64::from_ne_bytes)),
        _ => None,
    }
}

/// The bytes of each value, one after the other.
fn each<T, const N: usize>(
    values: impl ExactSizeIterator<Item = T>,
    scratch: &Scratch,
    bytes: impl Fn(T) -> [u8; N],
) -> &[u8] {
    let out = scratch.take(values.len() * N);
    for (place, value) in out.as_chunks_mut::<N>().0.iter_mut().zip(values) {
        *place = bytes(value);
    }
    out
}

fn write_integers(values: impl ExactSizeIterator<Item = i64>, to: DType, scratch: &Scratch) -> &[u8] {
    match to {
        DType::I8 => each(values, scratch, |v| {
            (v.clamp(i8::MIN.into(), i8::MAX.into()) as i8).to_ne_bytes()
        }),
        DType::I16 => each(values, scratch, |v| {
            (v.clamp(i16::MIN.into(), i16::MAX.into()) as i16).to_ne_bytes()
        }),
        DType::I32 => each(values, scratch, |v| {
            (v.clamp(i32::MIN.into(), i32::MAX.into()) as i32).to_ne_bytes()
        }),
        DType::U32 => each(values, scratch, |v| (v.clamp(0, u32::MAX.into()) as u32).to_ne_bytes()),
        _ => each(values, scratch, i64::to_ne_bytes),
    }
}

/// The f32 next to `value` whose last bit is odd where `value` is not exact: rounding that again to a shorter type gives what rounding
/// `value` once would (Boldo and Melquiond 2005, "When double rounding is odd").
fn to_odd(value: f64) -> f32 {
    let near = value as f32;
    let wide = f64::from(near);
    if wide == value || near.is_nan() || value.is_infinite() {
        return near;
    }
    let toward_zero = near.to_bits() - u32::from(wide.abs() > value.abs());
    f32::from_bits(toward_zero | 1)
}

fn reals_to(values: impl ExactSizeIterator<Item = f64>, to: DType, scratch: &Scratch) -> GgmlResult<&[u8]> {
    match to {
        DType::F64 => Ok(each(values, scratch, f64::to_ne_bytes)),
        DType::F16 => Ok(each(values, scratch, |v| {
            f16::from_f32(to_odd(v)).to_bits().to_ne_bytes()
        })),
        DType::Bf16 => Ok(each(values, scratch, |v| {
            bf16::from_f32(to_odd(v)).to_bits().to_ne_bytes()
        })),
        _ if is_integer(to) => Ok(write_integers(values.map(|v| v as i64), to, scratch)),
        _ => {
            let floats = scratch.take(values.len());
            floats.iter_mut().zip(values).for_each(|(float, v)| *float = v as f32);
            encode(to, floats, scratch)
        }
    }
}
