//! f16 to f32, inlined: block decoders convert one or two scales per block.

/// The value of an IEEE binary16. Exact; a signalling NaN stays one.
#[inline(always)]
pub(crate) fn f16_to_f32(bits: u16) -> f32 {
    /// Moves an f16's exponent, read as an f32's, to its place: 2^(127 - 15).
    const REBIAS: f32 = f32::from_bits((127 + 112) << 23);
    let magnitude = u32::from(bits & 0x7fff) << 13;
    // Exact, for subnormals too: a product with a power of two that stays in range.
    let finite = (f32::from_bits(magnitude) * REBIAS).to_bits();
    let value = if bits & 0x7c00 == 0x7c00 {
        magnitude | 0x7f80_0000
    } else {
        finite
    };
    f32::from_bits(value | u32::from(bits & 0x8000) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_equals_the_half_crate() {
        for bits in 0..=u16::MAX {
            let (ours, theirs) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert_eq!(ours.is_nan(), theirs.is_nan(), "{bits:#06x}");
            if !ours.is_nan() {
                assert_eq!(ours.to_bits(), theirs.to_bits(), "{bits:#06x}");
            }
        }
    }
}
