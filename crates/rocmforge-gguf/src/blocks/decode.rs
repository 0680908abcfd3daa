//! Decoders of the plain float types and of the formats with blocks of 32.
//!
//! Packed nibbles: element `i` below 16 is the low half of byte `i`, element `16 + i` its high half.

use super::half_float::f16_to_f32;

/// Values of the nibbles of `iq4_nl` and `iq4_xs`.
pub(super) const IQ4_VALUES: [f32; 16] = [
    -127., -104., -83., -65., -49., -35., -22., -10., 1., 13., 25., 38., 53., 69., 89., 113.,
];

/// Twice the values of the nibbles of `mxfp4` (E2M1); number 8 is a positive zero.
const MXFP4_VALUES: [f32; 16] = [0., 1., 2., 3., 4., 6., 8., 12., 0., -1., -2., -3., -4., -6., -8., -12.];

/// The f16 at byte `at` of a block.
#[inline(always)]
pub(super) fn f16_at<const B: usize>(block: &[u8; B], at: usize) -> f32 {
    f16_to_f32(u16::from_le_bytes([block[at], block[at + 1]]))
}

/// The `N` bytes at `at` of a block.
#[inline(always)]
pub(super) fn bytes_at<const B: usize, const N: usize>(block: &[u8; B], at: usize) -> [u8; N] {
    // Not `array::from_fn`: it would be a call, compiled for any CPU, inside code for AVX2.
    let mut bytes = [0; N];
    bytes.copy_from_slice(&block[at..at + N]);
    bytes
}

#[inline(always)]
pub(super) fn f32(bytes: &[u8; 4], out: &mut [f32; 1]) {
    out[0] = f32::from_le_bytes(*bytes);
}

#[inline(always)]
pub(super) fn f16(bytes: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f16_to_f32(u16::from_le_bytes(*bytes));
}

#[inline(always)]
pub(super) fn bf16(bytes: &[u8; 2], out: &mut [f32; 1]) {
    out[0] = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
}

/// `(n - 8) * d`
#[inline(always)]
pub(super) fn q4_0(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let qs: [u8; 16] = bytes_at(block, 2);
    for i in 0..16 {
        out[i] = (i32::from(qs[i] & 15) - 8) as f32 * d;
        out[16 + i] = (i32::from(qs[i] >> 4) - 8) as f32 * d;
    }
}

/// `n * d + m`
#[inline(always)]
pub(super) fn q4_1(block: &[u8; 20], out: &mut [f32; 32]) {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    let qs: [u8; 16] = bytes_at(block, 4);
    for i in 0..16 {
        out[i] = f32::from(qs[i] & 15) * d + m;
        out[16 + i] = f32::from(qs[i] >> 4) * d + m;
    }
}

/// `((n | h << 4) - 16) * d`, `h` the element's bit of the 32 high bits
#[inline(always)]
pub(super) fn q5_0(block: &[u8; 22], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let high = u32::from_le_bytes(bytes_at(block, 2));
    let qs: [u8; 16] = bytes_at(block, 6);
    for i in 0..16 {
        out[i] = ((u32::from(qs[i] & 15) | (high >> i & 1) << 4) as i32 - 16) as f32 * d;
        out[16 + i] = ((u32::from(qs[i] >> 4) | (high >> (16 + i) & 1) << 4) as i32 - 16) as f32 * d;
    }
}

/// `(n | h << 4) * d + m`
#[inline(always)]
pub(super) fn q5_1(block: &[u8; 24], out: &mut [f32; 32]) {
    let (d, m) = (f16_at(block, 0), f16_at(block, 2));
    let high = u32::from_le_bytes(bytes_at(block, 4));
    let qs: [u8; 16] = bytes_at(block, 8);
    for i in 0..16 {
        out[i] = (u32::from(qs[i] & 15) | (high >> i & 1) << 4) as f32 * d + m;
        out[16 + i] = (u32::from(qs[i] >> 4) | (high >> (16 + i) & 1) << 4) as f32 * d + m;
    }
}

/// `q * d`
#[inline(always)]
pub(super) fn q8_0(block: &[u8; 34], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let qs: [u8; 32] = bytes_at(block, 2);
    for i in 0..32 {
        out[i] = f32::from(qs[i].cast_signed()) * d;
    }
}

/// `q * d`; the sum at byte 2 is for products only
#[inline(always)]
pub(super) fn q8_1(block: &[u8; 36], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let qs: [u8; 32] = bytes_at(block, 4);
    for i in 0..32 {
        out[i] = f32::from(qs[i].cast_signed()) * d;
    }
}

/// `d * T[n]`
#[inline(always)]
pub(super) fn iq4_nl(block: &[u8; 18], out: &mut [f32; 32]) {
    let d = f16_at(block, 0);
    let qs: [u8; 16] = bytes_at(block, 2);
    for i in 0..16 {
        out[i] = d * IQ4_VALUES[usize::from(qs[i] & 15)];
        out[16 + i] = d * IQ4_VALUES[usize::from(qs[i] >> 4)];
    }
}

/// `2^(e - 128) * U[n]`, `U` being twice the E2M1 values
#[inline(always)]
pub(super) fn mxfp4(block: &[u8; 17], out: &mut [f32; 32]) {
    let d = match block[0] {
        // 2^-128 and 2^-127 are subnormal: only a bit of the fraction is set.
        e @ (0 | 1) => f32::from_bits(0x0020_0000 << e),
        e => f32::from_bits((u32::from(e) - 1) << 23),
    };
    let qs: [u8; 16] = bytes_at(block, 1);
    for i in 0..16 {
        out[i] = d * MXFP4_VALUES[usize::from(qs[i] & 15)];
        out[16 + i] = d * MXFP4_VALUES[usize::from(qs[i] >> 4)];
    }
}

/// `s * U[n]` in groups of 16: an unsigned E4M3 scale of each (0x7f is 0), halved because `U` is twice the E2M1 values; the low
/// nibbles of eight bytes, then the high ones
#[inline(always)]
pub(super) fn nvfp4(block: &[u8; 36], out: &mut [f32; 64]) {
    let scales: [u8; 4] = bytes_at(block, 0);
    let qs: [u8; 32] = bytes_at(block, 4);
    let (groups, _) = out.as_chunks_mut::<16>();
    for (g, group) in groups.iter_mut().enumerate() {
        let scale = half_of_e4m3(scales[g % 4]);
        for i in 0..8 {
            let q = qs[8 * (g % 4) + i];
            group[i] = scale * MXFP4_VALUES[usize::from(q & 15)];
            group[8 + i] = scale * MXFP4_VALUES[usize::from(q >> 4)];
        }
    }
}

/// Half the value of an E4M3 number whose sign bit is not looked at.
#[inline(always)]
fn half_of_e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 3 & 15), f32::from(bits & 7));
    match (bits, exponent) {
        (0x7f, _) => 0.0,
        (_, 0) => fraction / 1024.0,
        // 2^(exponent - 7), halved.
        _ => (1.0 + fraction / 8.0) * f32::from_bits((exponent + 127 - 8) << 23),
    }
}
