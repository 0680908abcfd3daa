//! Decoders of the formats with one or two bits a weight and no codebook: `q1_0`, `q2_0`, `tq1_0`, `tq2_0`.

use super::decode::{bytes_at, f16_at};

/// `d` where the bit is set, else `-d`
#[inline(always)]
pub(super) fn q1_0(block: &[u8; 18], out: &mut [f32; 128]) {
    let d = f16_at(block, 0);
    let bits: [u8; 16] = bytes_at(block, 2);
    for (i, value) in out.iter_mut().enumerate() {
        *value = if bits[i / 8] >> (i % 8) & 1 == 1 { d } else { -d };
    }
}

/// `(q - 1) * d`, four values in a byte one after the other
#[inline(always)]
pub(super) fn q2_0(block: &[u8; 18], out: &mut [f32; 64]) {
    let d = f16_at(block, 0);
    let qs: [u8; 16] = bytes_at(block, 2);
    for (i, value) in out.iter_mut().enumerate() {
        *value = (i32::from(qs[i / 4] >> (2 * (i % 4)) & 3) - 1) as f32 * d;
    }
}

/// `d * (t - 1)`: five digits of base 3 in a byte, as a fraction of 256: the next digit is what leaves the byte when it is
/// multiplied by 3. Digit `n` of the first 32 bytes is values `32 n` to `32 n + 31`, and so on for the next 16 bytes; the last four
/// hold four digits
#[inline(always)]
pub(super) fn tq1_0(block: &[u8; 54], out: &mut [f32; 256]) {
    const POWERS: [u8; 5] = [1, 3, 9, 27, 81];
    let d = f16_at(block, 52);
    let qs: [u8; 52] = bytes_at(block, 0);
    let mut at = 0;
    for (bytes, digits) in [(0..32, 5), (32..48, 5), (48..52, 4)] {
        for power in &POWERS[..digits] {
            for q in &qs[bytes.clone()] {
                let digit = (u32::from(q.wrapping_mul(*power)) * 3) >> 8;
                out[at] = d * (digit as f32 - 1.0);
                at += 1;
            }
        }
    }
}

/// `d * (q - 1)`: bits `2 n` of 32 bytes are values `32 n` to `32 n + 31`
#[inline(always)]
pub(super) fn tq2_0(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = f16_at(block, 64);
    let qs: [u8; 64] = bytes_at(block, 0);
    for (g, group) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        for (i, value) in group.iter_mut().enumerate() {
            let q = qs[g / 4 * 32 + i] >> (2 * (g % 4)) & 3;
            *value = d * (f32::from(q) - 1.0);
        }
    }
}
