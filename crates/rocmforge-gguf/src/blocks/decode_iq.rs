//! Decoders of the formats with codebooks ([`super::grids`]): `iq2_*`, `iq3_*` and `iq1_*`, in blocks of 256.

use super::decode::{bytes_at, f16_at};
use super::grids;
use super::half_float::f16_to_f32;

/// `(scale * grid) * sign`: bit `i` of `signs` negates value `i`.
#[inline(always)]
fn signed<const N: usize>(scale: f32, grid: &[i8; N], signs: u8, out: &mut [f32]) {
    for i in 0..N {
        let sign = if signs >> i & 1 == 0 { 1.0 } else { -1.0 };
        out[i] = scale * f32::from(grid[i]) * sign;
    }
}

/// Eight signs of which seven are stored: the number of negative ones is even.
#[inline(always)]
fn even_signs(seven: u32) -> u8 {
    let seven = (seven & 127) as u8;
    seven | ((seven.count_ones() & 1) as u8) << 7
}

/// `d * (0.5 + scale) * 0.25`, the scale of a group of `iq2_*`
#[inline(always)]
fn scale_2(d: f32, scale: u32) -> f32 {
    d * (0.5 + scale as f32) * 0.25
}

/// Nibble `i` of `bytes`.
#[inline(always)]
fn nibble(bytes: &[u8], i: usize) -> u32 {
    u32::from(bytes[i / 2] >> (4 * (i % 2)) & 15)
}

/// In groups of 32: four bytes name rows of the codebook, then 28 bits of signs and four bits of the scale
#[inline(always)]
pub(super) fn iq2_xxs(block: &[u8; 66], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    for (g, group) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let rows: [u8; 4] = bytes_at(block, 2 + 8 * g);
        let signs = u32::from_le_bytes(bytes_at(block, 6 + 8 * g));
        let scale = scale_2(d, signs >> 28);
        for (j, eight) in group.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let grid = &grids::IQ2_XXS[usize::from(rows[j])];
            signed(scale, grid, even_signs(signs >> (7 * j)), eight);
        }
    }
}

/// 16 bits for eight values: 9 name the row, 7 are signs; a nibble of scale for 16 values
#[inline(always)]
pub(super) fn iq2_xs(block: &[u8; 74], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    let scales: [u8; 8] = bytes_at(block, 66);
    for (j, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let q = u16::from_le_bytes(bytes_at(block, 2 + 2 * j));
        let grid = &grids::IQ2_XS[usize::from(q & 511)];
        signed(
            scale_2(d, nibble(&scales, j / 2)),
            grid,
            even_signs(u32::from(q >> 9)),
            eight,
        );
    }
}

/// 32 bytes are the low bits of the rows, 32 the signs, 8 the rows' two high bits, 8 the scales of 16 values each
#[inline(always)]
pub(super) fn iq2_s(block: &[u8; 82], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    let (low, signs): ([u8; 32], [u8; 32]) = (bytes_at(block, 2), bytes_at(block, 34));
    let (high, scales): ([u8; 8], [u8; 8]) = (bytes_at(block, 66), bytes_at(block, 74));
    for (j, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let row = usize::from(low[j]) | usize::from(high[j / 4] >> (2 * (j % 4)) & 3) << 8;
        signed(scale_2(d, nibble(&scales, j / 2)), &grids::IQ2_S[row], signs[j], eight);
    }
}

/// 64 bytes name rows of four values; then for each group of 32 values 28 bits of signs and four bits of the scale, which is
/// `d * (0.5 + scale) * 0.5`
#[inline(always)]
pub(super) fn iq3_xxs(block: &[u8; 98], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    for (g, group) in out.as_chunks_mut::<32>().0.iter_mut().enumerate() {
        let rows: [u8; 8] = bytes_at(block, 2 + 8 * g);
        let signs = u32::from_le_bytes(bytes_at(block, 66 + 4 * g));
        let scale = d * (0.5 + (signs >> 28) as f32) * 0.5;
        for (j, four) in group.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let eight = even_signs(signs >> (7 * (j / 2)));
            let grid = &grids::IQ3_XXS[usize::from(rows[j])];
            signed(scale, grid, eight >> (4 * (j % 2)), four);
        }
    }
}

/// 64 bytes are the low bits of the rows, 8 their ninth bits, 32 the signs, 4 the scales of 32 values each: `d * (1 + 2 scale)`
#[inline(always)]
pub(super) fn iq3_s(block: &[u8; 110], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    let (low, high): ([u8; 64], [u8; 8]) = (bytes_at(block, 2), bytes_at(block, 66));
    let (signs, scales): ([u8; 32], [u8; 4]) = (bytes_at(block, 74), bytes_at(block, 106));
    for (j, four) in out.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let row = usize::from(low[j]) | usize::from(high[j / 8] >> (j % 8) & 1) << 8;
        let scale = d * (1 + 2 * nibble(&scales, j / 8)) as f32;
        signed(scale, &grids::IQ3_S[row], signs[j / 2] >> (4 * (j % 2)), four);
    }
}

/// `scale * (grid + shift)`: an eighth up or down
#[inline(always)]
fn shifted(scale: f32, row: usize, down: bool, out: &mut [f32; 8]) {
    let shift = if down { -0.125 } else { 0.125 };
    for (value, grid) in out.iter_mut().zip(&grids::IQ1[row]) {
        *value = scale * (f32::from(*grid) + shift);
    }
}

/// 32 bytes are the low bits of the rows; for each group of 32 values 16 bits: the rows' three high bits, three bits of the
/// scale `d * (2 scale + 1)`, and one that says where the group is shifted
#[inline(always)]
pub(super) fn iq1_s(block: &[u8; 50], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    let low: [u8; 32] = bytes_at(block, 2);
    for (j, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let high = u16::from_le_bytes(bytes_at(block, 34 + 2 * (j / 4)));
        let scale = d * f32::from(2 * (high >> 12 & 7) + 1);
        let row = usize::from(low[j]) | usize::from(high >> (3 * (j % 4)) & 7) << 8;
        shifted(scale, row, high & 0x8000 != 0, eight);
    }
}

/// 32 bytes are the low bits of the rows; a nibble for eight values has the row's three high bits and the shift; of the four last
/// 16-bit numbers the highest nibbles are the f16 scale of the block and the rest the scales of 16 values each, three bits
#[inline(always)]
pub(super) fn iq1_m(block: &[u8; 56], out: &mut [f32; 256]) {
    let (low, high): ([u8; 32], [u8; 16]) = (bytes_at(block, 0), bytes_at(block, 32));
    let words = [0, 1, 2, 3].map(|i| u16::from_le_bytes(bytes_at(block, 48 + 2 * i)));
    let d = f16_to_f32(words[0] >> 12 | words[1] >> 12 << 4 | words[2] >> 12 << 8 | words[3] >> 12 << 12);
    for (j, eight) in out.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let scale = d * f32::from(2 * (words[j / 8] >> (3 * (j / 2 % 4)) & 7) + 1);
        let nibble = nibble(&high, j);
        let row = usize::from(low[j]) | (nibble as usize & 7) << 8;
        shifted(scale, row, nibble & 8 != 0, eight);
    }
}
