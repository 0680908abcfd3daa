//! Encoders of the plain float types and of the formats with blocks of 32.
//!
//! Each gives the bytes of ggml's reference quantiser, computed in f32 without fused multiply-adds.

use half::{bf16, f16};

pub(super) fn f32(&[value]: &[f32; 1], block: &mut [u8; 4]) {
    *block = value.to_le_bytes();
}

/// Rounds to nearest, ties to even.
pub(super) fn f16(&[value]: &[f32; 1], block: &mut [u8; 2]) {
    *block = f16::from_f32(value).to_le_bytes();
}

/// Rounds to nearest, ties to even.
pub(super) fn bf16(&[value]: &[f32; 1], block: &mut [u8; 2]) {
    *block = bf16::from_f32(value).to_le_bytes();
}

/// Writes an f16 at byte `at` of a block.
pub(super) fn put_f16(block: &mut [u8], at: usize, value: f32) {
    block[at..at + 2].copy_from_slice(&f16::from_f32(value).to_le_bytes());
}

/// The reciprocal, or 0 of 0: a block of zeros has scale 0.
fn reciprocal(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// The value of largest magnitude, with its sign; the first of several.
pub(super) fn signed_extreme(values: &[f32]) -> f32 {
    values.iter().fold(
        0.0,
        |extreme: f32, &value| if value.abs() > extreme.abs() { value } else { extreme },
    )
}

/// Smallest and largest value; the first of several, which decides the sign of a zero.
fn range(values: &[f32; 32]) -> (f32, f32) {
    values.iter().fold((values[0], values[0]), |(min, max), &value| {
        (
            if value < min { value } else { min },
            if value > max { value } else { max },
        )
    })
}

/// Packs the low halves of 32 numbers as nibbles.
fn put_nibbles(out: &mut [u8], q: &[u8; 32]) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = q[i] & 15 | q[16 + i] << 4;
    }
}

/// The fifth bits of 32 numbers.
fn high_bits(q: &[u8; 32]) -> [u8; 4] {
    let bits = q.iter().enumerate().map(|(i, &q)| u32::from(q >> 4 & 1) << i);
    bits.sum::<u32>().to_le_bytes()
}

/// Numbers around zero, of 0 to `2 * half - 1`, and their unit: the signed extreme over `-half`, so the extreme itself becomes exactly 0.
fn around_zero(values: &[f32; 32], half: u8) -> (f32, [u8; 32]) {
    let d = signed_extreme(values) / -f32::from(half);
    let inverse = reciprocal(d);
    let zero = f32::from(half) + 0.5;
    // The conversion truncates, and takes what is below 0 as 0.
    (
        d,
        values.map(|value| ((value * inverse + zero) as u8).min(2 * half - 1)),
    )
}

/// Numbers from 0 to `most` above a minimum, with their unit and the minimum.
fn from_minimum(values: &[f32; 32], most: u8) -> (f32, f32, [u8; 32]) {
    let (min, max) = range(values);
    let d = (max - min) / f32::from(most);
    let inverse = reciprocal(d);
    let q = values.map(|value| (((value - min) * inverse + 0.5) as u8).min(most));
    (d, min, q)
}

pub(super) fn q4_0(values: &[f32; 32], block: &mut [u8; 18]) {
    let (d, q) = around_zero(values, 8);
    put_f16(block, 0, d);
    put_nibbles(&mut block[2..], &q);
}

pub(super) fn q4_1(values: &[f32; 32], block: &mut [u8; 20]) {
    let (d, min, q) = from_minimum(values, 15);
    put_f16(block, 0, d);
    put_f16(block, 2, min);
    put_nibbles(&mut block[4..], &q);
}

pub(super) fn q5_0(values: &[f32; 32], block: &mut [u8; 22]) {
    let (d, q) = around_zero(values, 16);
    put_f16(block, 0, d);
    block[2..6].copy_from_slice(&high_bits(&q));
    put_nibbles(&mut block[6..], &q);
}

pub(super) fn q5_1(values: &[f32; 32], block: &mut [u8; 24]) {
    let (d, min, q) = from_minimum(values, 31);
    put_f16(block, 0, d);
    put_f16(block, 2, min);
    block[4..8].copy_from_slice(&high_bits(&q));
    put_nibbles(&mut block[8..], &q);
}

/// Nearest integer, ties away from zero, at most 127 in magnitude. As `f32::round`, but in instructions that take
/// several values at a time.
fn round_away(value: f32) -> i8 {
    let magnitude = value.abs().min(127.0);
    let whole = magnitude as i32;
    let rounded = whole + i32::from(magnitude - whole as f32 >= 0.5);
    (if value < 0.0 { -rounded } else { rounded }) as i8
}

/// Scale and numbers of `q8_0` and `q8_1`: the extreme over 127, ties away from zero.
fn eight_bits(values: &[f32; 32]) -> (f32, [i8; 32]) {
    // Magnitudes compare as their bits do, and integers several at a time.
    let most = values
        .iter()
        .fold(0, |most, value| (value.abs().to_bits() as i32).max(most));
    let d = f32::from_bits(most as u32) / 127.0;
    let inverse = reciprocal(d);
    (d, values.map(|value| round_away(value * inverse)))
}

pub(super) fn q8_0(values: &[f32; 32], block: &mut [u8; 34]) {
    let (d, q) = eight_bits(values);
    put_f16(block, 0, d);
    block[2..].copy_from_slice(&q.map(i8::cast_unsigned));
}

/// As `q8_0`, with the sum of the decoded values beside the scale.
pub(super) fn q8_1(values: &[f32; 32], block: &mut [u8; 36]) {
    let (d, q) = eight_bits(values);
    let sum: i32 = q.iter().map(|&q| i32::from(q)).sum();
    put_f16(block, 0, d);
    put_f16(block, 2, sum as f32 * d);
    block[4..].copy_from_slice(&q.map(i8::cast_unsigned));
}

#[cfg(test)]
mod tests {
    use super::round_away;

    #[test]
    fn rounding_is_that_of_the_standard_library() {
        // Every f32 of magnitude up to 127.5 has one of these bit patterns or lies between two of them.
        for bits in (0..=127.49_f32.to_bits()).step_by(509) {
            for value in [f32::from_bits(bits), -f32::from_bits(bits)] {
                assert_eq!(round_away(value), value.round() as i8, "{value:e}");
            }
        }
        for whole in 0..126 {
            let tie = whole as f32 + 0.5;
            for value in [
                tie,
                tie.next_down(),
                tie.next_up(),
                -tie,
                -tie.next_down(),
                -tie.next_up(),
            ] {
                assert_eq!(round_away(value), value.round() as i8, "{value:e}");
            }
        }
    }
}
