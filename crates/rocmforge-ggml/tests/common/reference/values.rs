//! Elements as bytes, in every type.

use half::{bf16, f16};
use rocmforge_ggml::DType;
use rocmforge_gguf::blocks;

/// Values in a type, as bytes.
///
/// Conversions to whole numbers cut and saturate. A block format without an encoder is no goal.
pub(crate) fn encode(dtype: DType, values: &[f64]) -> Vec<u8> {
    fn each<const N: usize>(values: &[f64], bytes: impl Fn(f64) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|&v| bytes(v)).collect()
    }
    match dtype {
        DType::F32 => each(values, |v| (v as f32).to_ne_bytes()),
        // By way of f32, which is what a backend computes in; `from_f64` does not see the lowest 32 bits.
        DType::F16 => each(values, |v| f16::from_f32(v as f32).to_bits().to_ne_bytes()),
        DType::Bf16 => each(values, |v| bf16::from_f32(v as f32).to_bits().to_ne_bytes()),
        DType::F64 => each(values, f64::to_ne_bytes),
        DType::I8 => each(values, |v| (v as i8).to_ne_bytes()),
        DType::I16 => each(values, |v| (v as i16).to_ne_bytes()),
        DType::I32 => each(values, |v| (v as i32).to_ne_bytes()),
        DType::U32 => each(values, |v| (v as u32).to_ne_bytes()),
        DType::I64 => each(values, |v| (v as i64).to_ne_bytes()),
        _ => {
            let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
            blocks::quantize(dtype.tensor_type().expect("a type of GGUF"), &values).expect("whole blocks")
        }
    }
}

/// Bytes of a type as values.
pub(crate) fn decode(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    fn each<const N: usize>(bytes: &[u8], value: impl Fn([u8; N]) -> f64) -> Vec<f64> {
        bytes.as_chunks::<N>().0.iter().map(|&b| value(b)).collect()
    }
    match dtype {
        DType::F32 => each(bytes, |b| f64::from(f32::from_ne_bytes(b))),
        DType::F16 => each(bytes, |b| f16::from_bits(u16::from_ne_bytes(b)).to_f64()),
        DType::Bf16 => each(bytes, |b| bf16::from_bits(u16::from_ne_bytes(b)).to_f64()),
        DType::F64 => each(bytes, f64::from_ne_bytes),
        DType::I8 => each(bytes, |b: [u8; 1]| f64::from(i8::from_ne_bytes(b))),
        DType::I16 => each(bytes, |b| f64::from(i16::from_ne_bytes(b))),
        DType::I32 => each(bytes, |b| f64::from(i32::from_ne_bytes(b))),
        DType::U32 => each(bytes, |b| f64::from(u32::from_ne_bytes(b))),
        DType::I64 => each(bytes, |b| i64::from_ne_bytes(b) as f64),
        _ => {
            let mut out = vec![0.0; bytes.len() / dtype.block_bytes() * dtype.block_len()];
            blocks::dequantize(dtype.tensor_type().expect("a type of GGUF"), bytes, &mut out).expect("whole blocks");
            out.iter().map(|&v| f64::from(v)).collect()
        }
    }
}
