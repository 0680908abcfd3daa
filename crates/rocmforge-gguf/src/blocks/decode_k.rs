//! Decoders of the formats with blocks of 256: `q2_K` to `q6_K`, `q8_K` and `iq4_xs`.

use super::decode::{IQ4_VALUES, bytes_at, f16_at};

/// The eight pairs of 6-bit scale and minimum of `q4_K` and `q5_K`, packed in 12 bytes.
#[inline(always)]
pub(super) fn scale_min_pairs(s: &[u8; 12]) -> [(u8, u8); 8] {
    std::array::from_fn(|j| {
        if j < 4 {
            (s[j] & 63, s[j + 4] & 63)
        } else {
            (
                (s[j + 4] & 15) | (s[j - 4] >> 6) << 4,
                (s[j + 4] >> 4) | (s[j] >> 6) << 4,
            )
        }
    })
}

/// The sixteen 6-bit scales of `q3_K`, packed in 12 bytes: low halves in the first eight, high quarters in the last
/// four.
#[inline(always)]
pub(super) fn q3_scales(s: &[u8; 12]) -> [u8; 16] {
    std::array::from_fn(|j| (s[j % 8] >> (4 * (j / 8)) & 15) | (s[8 + j % 4] >> (2 * (j / 4)) & 3) << 4)
}

/// `(d * (s & 15)) * q - (dmin * (s >> 4))` in groups of 16
#[inline(always)]
pub(super) fn q2_k(block: &[u8; 84], out: &mut [f32; 256]) {
    let scales: [u8; 16] = bytes_at(block, 0);
    let qs: [u8; 64] = bytes_at(block, 16);
    let (d, dmin) = (f16_at(block, 80), f16_at(block, 82));
    let (groups, _) = out.as_chunks_mut::<16>();
    for (j, group) in groups.iter_mut().enumerate() {
        let (scale, min) = (
            d * f32::from(scales[j % 16] & 15),
            dmin * f32::from(scales[j % 16] >> 4),
        );
        // Group j of 16: half j/8 of the bytes, bits 2*(j/2%4), bytes 16*(j%2) of the half.
        let (at, shift) = (32 * (j / 8 % 2) + 16 * (j % 2), 2 * (j / 2 % 4));
        for i in 0..16 {
            group[i] = scale * f32::from(qs[at + i] >> shift & 3) - min;
        }
    }
}

/// `(d * (scale - 32)) * q` in groups of 16; `q` is 2 bits less 4 where the mask's bit is clear
#[inline(always)]
pub(super) fn q3_k(block: &[u8; 110], out: &mut [f32; 256]) {
    let mask: [u8; 32] = bytes_at(block, 0);
    let qs: [u8; 64] = bytes_at(block, 32);
    let scales = q3_scales(&bytes_at(block, 96));
    let d = f16_at(block, 108);
    let (groups, _) = out.as_chunks_mut::<16>();
    for (j, group) in groups.iter_mut().enumerate() {
        let scale = d * (i32::from(scales[j % 16]) - 32) as f32;
        let (at, shift) = (32 * (j / 8 % 2) + 16 * (j % 2), 2 * (j / 2 % 4));
        for i in 0..16 {
            let high = mask[16 * (j % 2) + i] >> (j / 2 % 8) & 1;
            let q = i32::from(qs[at + i] >> shift & 3 | high << 2) - 4;
            group[i] = scale * q as f32;
        }
    }
}

/// `(d * scale) * n - (dmin * min)` in groups of 32
#[inline(always)]
pub(super) fn q4_k(block: &[u8; 144], out: &mut [f32; 256]) {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    let pairs = scale_min_pairs(&bytes_at(block, 4));
    let qs: [[u8; 32]; 4] = std::array::from_fn(|k| bytes_at(block, 16 + 32 * k));
    let (groups, _) = out.as_chunks_mut::<32>();
    for (j, group) in groups.iter_mut().enumerate() {
        let (scale, min) = pairs[j % 8];
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        let (qs, shift) = (&qs[j / 2 % 4], 4 * (j % 2));
        for i in 0..32 {
            group[i] = scale * f32::from(qs[i] >> shift & 15) - min;
        }
    }
}

/// As `q4_K`, with bit `j` of the high bits above the nibble in group `j`
#[inline(always)]
pub(super) fn q5_k(block: &[u8; 176], out: &mut [f32; 256]) {
    let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
    let pairs = scale_min_pairs(&bytes_at(block, 4));
    let high: [u8; 32] = bytes_at(block, 16);
    let qs: [[u8; 32]; 4] = std::array::from_fn(|k| bytes_at(block, 48 + 32 * k));
    let (groups, _) = out.as_chunks_mut::<32>();
    for (j, group) in groups.iter_mut().enumerate() {
        let (scale, min) = pairs[j % 8];
        let (scale, min) = (d * f32::from(scale), dmin * f32::from(min));
        let (qs, shift) = (&qs[j / 2 % 4], 4 * (j % 2));
        for i in 0..32 {
            group[i] = scale * f32::from(qs[i] >> shift & 15 | (high[i] >> (j % 8) & 1) << 4) - min;
        }
    }
}

/// The 128 numbers of half 0 or 1 of a block of `q6_K`, of 6 bits each.
#[inline(always)]
pub(super) fn q6_k_numbers(block: &[u8; 210], half: usize) -> [u8; 128] {
    let low: [u8; 64] = bytes_at(block, 64 * half);
    let high: [u8; 32] = bytes_at(block, 128 + 32 * half);
    // Quarter k of a half: nibbles of the bytes from 32*(k%2), the lower ones first, and bits 2k of the high bytes.
    let mut n = [0u8; 128];
    for i in 0..32 {
        n[i] = low[i] & 15 | (high[i] & 3) << 4;
    }
    for i in 0..32 {
        n[32 + i] = low[32 + i] & 15 | (high[i] >> 2 & 3) << 4;
    }
    for i in 0..32 {
        n[64 + i] = low[i] >> 4 | (high[i] >> 4 & 3) << 4;
    }
    for i in 0..32 {
        n[96 + i] = low[32 + i] >> 4 | (high[i] >> 6) << 4;
    }
    n
}

/// `(d * scale) * q` with a signed scale for 16 elements and `q` of 6 bits less 32
#[inline(always)]
pub(super) fn q6_k(block: &[u8; 210], out: &mut [f32; 256]) {
    let scales: [u8; 16] = bytes_at(block, 192);
    let d = f16_at(block, 208);
    let (halves, _) = out.as_chunks_mut::<128>();
    for (half, out) in halves.iter_mut().enumerate() {
        let n = q6_k_numbers(block, half % 2);
        let (groups, _) = out.as_chunks_mut::<16>();
        let (numbers, _) = n.as_chunks::<16>();
        for (j, (group, n)) in groups.iter_mut().zip(numbers).enumerate() {
            let scale = d * f32::from(scales[8 * (half % 2) + j % 8].cast_signed());
            for i in 0..16 {
                group[i] = scale * (i32::from(n[i]) - 32) as f32;
            }
        }
    }
}

/// `d * q` with an f32 scale; the sums at byte 260 are for products only
#[inline(always)]
pub(super) fn q8_k(block: &[u8; 292], out: &mut [f32; 256]) {
    let d = f32::from_le_bytes(bytes_at(block, 0));
    let qs: [u8; 256] = bytes_at(block, 4);
    for i in 0..256 {
        out[i] = d * f32::from(qs[i].cast_signed());
    }
}

/// `(d * (scale - 32)) * T[n]` in groups of 32, the nibbles of each group as in the formats with blocks of 32
#[inline(always)]
pub(super) fn iq4_xs(block: &[u8; 136], out: &mut [f32; 256]) {
    let d = f16_at(block, 0);
    let scales_high = u16::from_le_bytes(bytes_at(block, 2));
    let scales_low: [u8; 4] = bytes_at(block, 4);
    let qs: [[u8; 16]; 8] = std::array::from_fn(|g| bytes_at(block, 8 + 16 * g));
    let (groups, _) = out.as_chunks_mut::<32>();
    for (g, group) in groups.iter_mut().enumerate() {
        let low = i32::from(scales_low[g / 2 % 4] >> (4 * (g % 2)) & 15);
        let high = i32::from(scales_high >> (2 * g) & 3);
        let scale = d * ((low | high << 4) - 32) as f32;
        let qs = &qs[g % 8];
        for i in 0..16 {
            group[i] = scale * IQ4_VALUES[usize::from(qs[i] & 15)];
            group[16 + i] = scale * IQ4_VALUES[usize::from(qs[i] >> 4)];
        }
    }
}
