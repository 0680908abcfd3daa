//! Conversions between float types in f64.

use super::weights::half;
use crate::FloatType;

/// The value of the type that is nearest to x, of two the even one. Beyond the largest by half a unit in the last place: infinite.
pub fn round_to(ty: FloatType, x: f64) -> f64 {
    // Digits after the point, the exponents of the smallest normal number and of the first that is too large.
    let (digits, least, over) = match ty {
        FloatType::F32 => (23, -126, 128),
        FloatType::F16 => (10, -14, 16),
        FloatType::Bf16 => (7, -126, 128),
    };
    if x == 0.0 || !x.is_finite() {
        return x;
    }
    let mut exponent = least;
    while 2f64.powi(exponent + 1) <= x.abs() {
        exponent += 1;
    }
    let unit = 2f64.powi(exponent - digits);
    let rounded = (x / unit).round_ties_even() * unit;
    if rounded.abs() >= 2f64.powi(over) {
        f64::INFINITY.copysign(x)
    } else {
        rounded
    }
}

/// The values of elements in memory, little endian.
pub fn float_values(ty: FloatType, bytes: &[u8]) -> Vec<f64> {
    let value = |b: &[u8]| match ty {
        FloatType::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        FloatType::F16 => half(u16::from_le_bytes([b[0], b[1]])),
        FloatType::Bf16 => f64::from(f32::from_le_bytes([0, 0, b[0], b[1]])),
    };
    bytes.chunks_exact(ty.bytes()).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_keeps_what_the_type_has_and_ties_go_to_even() {
        for bits in 0..0x7C00u16 {
            assert_eq!(round_to(FloatType::F16, half(bits)), half(bits), "{bits:#x}");
            let between = f64::midpoint(half(bits), half(bits + 1));
            let even = half(bits + bits % 2);
            if bits < 0x7BFF {
                assert_eq!(round_to(FloatType::F16, between), even, "above {bits:#x}");
            }
        }
        assert_eq!(round_to(FloatType::F16, 65_519.0), 65_504.0);
        assert_eq!(round_to(FloatType::F16, -65_520.0), f64::NEG_INFINITY);
        assert_eq!(round_to(FloatType::Bf16, 1.0 + 3.0 / 256.0), 1.0 + 1.0 / 64.0);
        assert_eq!(round_to(FloatType::F32, 0.1), f64::from(0.1f32));
    }
}
