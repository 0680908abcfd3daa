//! Floats of eight bits as the Open Compute Project has them: FP8 with four bits of exponent, and BF8 with five.

use crate::exec::number::num::{half_to_f32, quieted};

/// FP8: one sign, four exponent (bias 7), three mantissa bits; no infinity, NaN is all ones.
pub(super) fn from_fp8(bits: u8) -> f32 {
    let (exponent, mantissa) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let size = match (exponent, bits & 7) {
        (15, 7) => f32::NAN,
        (0, _) => mantissa * 2f32.powi(-9),
        _ => (8.0 + mantissa) * 2f32.powi(exponent - 10),
    };
    if bits >> 7 != 0 { -size } else { size }
}

/// BF8: one sign, five exponent, two mantissa bits: the upper byte of a half. NaN becomes quiet.
pub(super) fn from_bf8(bits: u8) -> f32 {
    quieted(half_to_f32(u16::from(bits) << 8))
}

/// Rounds `x` to `mantissa` bits with a least exponent of `least`, to nearest even, exactly.
fn round_to(x: f32, mantissa: i32, least: i32) -> f32 {
    let exponent = ((x.to_bits() >> 23 & 0xFF) as i32 - 127).max(least);
    // Powers of two: the division and the product are exact.
    let step = f64::from(exponent - mantissa).exp2();
    ((f64::from(x) / step).round_ties_even() * step) as f32
}

/// To FP8; what does not fit is NaN.
pub(super) fn to_fp8(x: f32) -> u8 {
    let sign = (x.to_bits() >> 24 & 0x80) as u8;
    let size = round_to(x.abs(), 3, -6);
    if x.is_nan() || x.is_infinite() || size > 448.0 {
        return sign | 0x7F;
    }
    let bits = if size < 2f32.powi(-6) {
        (size * 512.0) as u8
    } else {
        // Bias 127 becomes bias 7.
        ((size.to_bits() >> 20) - (120 << 3)) as u8
    };
    sign | bits
}

/// To BF8; what does not fit is infinite.
pub(super) fn to_bf8(x: f32) -> u8 {
    let sign = (x.to_bits() >> 24 & 0x80) as u8;
    if x.is_nan() {
        return sign | 0x7F;
    }
    let size = round_to(x.abs(), 2, -14);
    if x.is_infinite() || size > 57344.0 {
        return sign | 0x7C;
    }
    let bits = if size < 2f32.powi(-14) {
        (size * 65536.0) as u8
    } else {
        // Bias 127 becomes bias 15.
        ((size.to_bits() >> 21) - (112 << 2)) as u8
    };
    sign | bits
}

/// Adds four products to `c`, one after the other.
pub(super) fn dot4(a: u32, b: u32, c: f32, left: fn(u8) -> f32, right: fn(u8) -> f32) -> f32 {
    let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
    let pairs = a.into_iter().zip(b).map(|(a, b)| (left(a), right(b)));
    let sum = pairs.clone().fold(c, |sum, (a, b)| sum + a * b);
    if !sum.is_nan() {
        return sum;
    }
    // Which NaN of several a sum gives is up to the host's compiler: here it is the first.
    let mut operands = std::iter::once(c).chain(pairs.flat_map(|(a, b)| [a, b]));
    operands.find(|x| x.is_nan()).map_or(sum, quieted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_goes_there_and_back() {
        for bits in 0..=255u8 {
            let (fp8, bf8) = (from_fp8(bits), from_bf8(bits));
            assert!(fp8.is_nan() && bits & 0x7F == 0x7F || to_fp8(fp8) == bits, "{bits:#x}");
            assert!(bf8.is_nan() && bits & 0x7C == 0x7C || to_bf8(bf8) == bits, "{bits:#x}");
        }
    }

    #[test]
    fn halfway_goes_to_even_and_too_much_overflows() {
        for bits in 0..0x7Du8 {
            let between = (from_fp8(bits) + from_fp8(bits + 1)) / 2.0;
            assert_eq!(to_fp8(between), bits + (bits & 1), "{between}");
            assert_eq!(to_fp8(between.next_up()), bits + 1, "{between}");
        }
        for bits in 0..0x7Au8 {
            let between = (from_bf8(bits) + from_bf8(bits + 1)) / 2.0;
            assert_eq!(to_bf8(between), bits + (bits & 1), "{between}");
            assert_eq!(to_bf8(between.next_up()), bits + 1, "{between}");
        }
        assert_eq!((to_fp8(464.0), to_fp8(464.1), to_fp8(-1e9)), (0x7E, 0x7F, 0xFF));
        assert_eq!((to_bf8(61439.0), to_bf8(61440.0), to_bf8(-1e9)), (0x7B, 0x7C, 0xFC));
    }
}
