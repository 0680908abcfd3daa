//! Writes into a KV cache in f64, in every type of cache.

use super::cast::{float_values, round_to};
use super::weights::half;
use crate::{FloatType, KvType};

/// Elements that share a scale in q8_0.
const Q8_0_LEN: usize = 32;

/// Values in blocks of q8_0, as ggml's `quantize_row_q8_0` makes them in f32: d = the largest magnitude / 127 (written in f16), each integer the value
/// times 1 / d, rounded to the nearest, ties away from zero. A block with a value that is not finite has a d that is not finite, and zeros.
///
/// Whole blocks; what is beyond the last is left out.
pub fn quantize_q8_0(x: &[f32]) -> Vec<u8> {
    let block = |x: &[f32]| {
        let finite = x.iter().all(|v| v.is_finite());
        let most = x.iter().fold(0f32, |most, v| most.max(v.abs()));
        let d = if finite { most / 127.0 } else { f32::INFINITY };
        let inverse = if d < f32::MIN_POSITIVE { 0.0 } else { 1.0 / d };
        let integer = |&v: &f32| if finite { (v * inverse).round() as i8 } else { 0 };
        let mut bytes = half_bits(f64::from(d)).to_le_bytes().to_vec();
        bytes.extend(x.iter().map(|v| integer(v).cast_unsigned()));
        bytes
    };
    x.chunks_exact(Q8_0_LEN).flat_map(block).collect()
}

/// A cache of these numbers, little endian, each rounded to the nearest, of two to the even one; in q8_0 as [`quantize_q8_0`] does.
pub fn kv_bytes(kv: KvType, x: &[f32]) -> Vec<u8> {
    let halves = |bits: fn(f32) -> u16| x.iter().flat_map(|&x| bits(x).to_le_bytes()).collect();
    match kv {
        KvType::F32 => x.iter().flat_map(|x| x.to_le_bytes()).collect(),
        KvType::F16 => halves(|x| half_bits(f64::from(x.abs())) | u16::from(x.is_sign_negative()) << 15),
        KvType::Bf16 => halves(|x| ((round_to(FloatType::Bf16, f64::from(x)) as f32).to_bits() >> 16) as u16),
        KvType::Q8_0 => quantize_q8_0(x),
    }
}

/// The values of a cache in memory, little endian. A block of q8_0 whose scale is not finite is NaN.
pub fn kv_values(kv: KvType, bytes: &[u8]) -> Vec<f64> {
    let block = |b: &[u8]| -> Vec<f64> {
        let d = half(u16::from_le_bytes([b[0], b[1]]));
        let value = |&q: &u8| {
            if d.is_finite() {
                d * f64::from(q.cast_signed())
            } else {
                f64::NAN
            }
        };
        b[2..].iter().map(value).collect()
    };
    match float(kv) {
        Some(ty) => float_values(ty, bytes),
        None => bytes.chunks_exact(kv.block_bytes()).flat_map(block).collect(),
    }
}

/// What a cache of the type holds of `x`, in f64.
pub fn kv_rounded(kv: KvType, x: &[f32]) -> Vec<f64> {
    match float(kv) {
        Some(ty) => x.iter().map(|&x| round_to(ty, f64::from(x))).collect(),
        None => kv_values(kv, &quantize_q8_0(x)),
    }
}

fn float(kv: KvType) -> Option<FloatType> {
    match kv {
        KvType::F32 => Some(FloatType::F32),
        KvType::F16 => Some(FloatType::F16),
        KvType::Bf16 => Some(FloatType::Bf16),
        KvType::Q8_0 => None,
    }
}

/// The binary16 nearest to a number that is not negative.
fn half_bits(x: f64) -> u16 {
    let x = round_to(FloatType::F16, x);
    // They are in the order of their values.
    let (mut low, mut high) = (0u16, 0x7C00u16);
    while low < high {
        let middle = low.midpoint(high);
        if half(middle) < x {
            low = middle + 1
        } else {
            high = middle
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q8_0_is_within_half_a_step_and_its_largest_value_within_f16() {
        let x: Vec<f32> = (0..64).map(|i| (i as f32 - 20.0) * 0.37).collect();
        for (x, value) in x.chunks(32).zip(kv_rounded(KvType::Q8_0, &x).chunks(32)) {
            let most = x.iter().fold(0f32, |most, v| most.max(v.abs()));
            let limit = f64::from(most) / 127.0 * 0.5 + f64::from(most) / 2048.0;
            assert!(x.iter().zip(value).all(|(&x, v)| (f64::from(x) - v).abs() <= limit));
        }
        // The scale 1, integers as they are; ties away from zero.
        let mut ones = [0.5f32; 32];
        (ones[0], ones[1], ones[2]) = (127.0, -0.5, -126.5);
        let bytes = quantize_q8_0(&ones);
        assert_eq!(bytes[..2], 0x3C00u16.to_le_bytes());
        assert_eq!(bytes[2..6], [127, 255, 129, 1]);
        assert_eq!(half_bits(65_504.0), 0x7BFF);
        assert_eq!(half_bits(f64::INFINITY), 0x7C00);
        assert!(kv_rounded(KvType::Q8_0, &[f32::NAN; 32]).iter().all(|v| v.is_nan()));
    }

    #[test]
    fn bytes_have_the_values_that_the_type_has() {
        let x: Vec<f32> = (0..96).map(|i| (i as f32 - 40.0) * 0.037).collect();
        for kv in KvType::ALL {
            assert_eq!(kv_values(kv, &kv_bytes(kv, &x)), kv_rounded(kv, &x), "{kv:?}");
        }
    }
}
