//! Weights of every type decoded to f64, and products with them.

use crate::WeightType;
use rocmforge_gguf::{TensorType, blocks};

/// The weights of whole blocks, each at its place and from its own bits: the formats of ggml.
///
/// Nothing but the bytes of whole blocks is used; a partial block at the end is left out.
pub fn dequantize(ty: WeightType, bytes: &[u8]) -> Vec<f64> {
    let len = ty.block_len();
    let blocks = bytes.chunks_exact(ty.block_bytes());
    if let Some(ty) = decoded_on_the_cpu(ty) {
        let mut values = vec![0.0; blocks.len() * len];
        let whole = bytes.len() - blocks.remainder().len();
        // It can only refuse another number of values.
        return match blocks::dequantize(ty, &bytes[..whole], &mut values) {
            Ok(()) => super::wide(&values),
            Err(_) => Vec::new(),
        };
    }
    blocks.flat_map(|b| (0..len).map(move |i| weight(ty, b, i))).collect()
}

/// x w^T (+ bias) for `x` `[m, k]` and weights `[n, k]`.
pub fn matmul_weight(ty: WeightType, w: &[u8], x: &[f32], bias: Option<&[f32]>, k: usize) -> Vec<f64> {
    let weights = dequantize(ty, w);
    let dot = |x: &[f32], w: &[f64]| -> f64 { x.iter().zip(w).map(|(&x, w)| f64::from(x) * w).sum() };
    let add = |row: usize| bias.map_or(0.0, |bias| f64::from(bias[row]));
    x.chunks(k)
        .flat_map(|x| (weights.chunks(k).enumerate()).map(move |(row, w)| dot(x, w) + add(row)))
        .collect()
}

/// `table[ids[r], :]`; NaN for an id beyond the table.
pub fn get_rows_weight(ty: WeightType, table: &[u8], ids: &[u32], cols: usize) -> Vec<f64> {
    let rows: Vec<Vec<f64>> = dequantize(ty, table).chunks(cols).map(<[f64]>::to_vec).collect();
    let row = |&id: &u32| rows.get(id as usize).cloned().unwrap_or(vec![f64::NAN; cols]);
    ids.iter().flat_map(row).collect()
}

/// `w[ids[p]] x[p / share]` for matrices `w` `[experts, n, k]`; NaN for an id beyond them.
pub fn matmul_id(
    ty: WeightType,
    w: &[u8],
    x: &[f32],
    ids: &[u32],
    [experts, n, k]: [usize; 3],
    share: usize,
) -> Vec<f64> {
    let expert = w.len() / experts;
    let pair = |(p, &id): (usize, &u32)| match w.chunks(expert).nth(id as usize) {
        Some(w) => matmul_weight(ty, w, &x[p / share * k..][..k], None, k),
        None => vec![f64::NAN; n],
    };
    ids.iter().enumerate().flat_map(pair).collect()
}

/// The types whose decoders on the CPU are the definition here, too: those with codebooks, which are data, and of one or two bits. Each weight of them has
/// at most 24 bits, so it is exact in f32.
const fn decoded_on_the_cpu(ty: WeightType) -> Option<TensorType> {
    Some(match ty {
        WeightType::Iq2Xxs => TensorType::Iq2Xxs,
        WeightType::Iq2Xs => TensorType::Iq2Xs,
        WeightType::Iq2S => TensorType::Iq2S,
        WeightType::Iq3Xxs => TensorType::Iq3Xxs,
        WeightType::Iq3S => TensorType::Iq3S,
        WeightType::Iq1S => TensorType::Iq1S,
        WeightType::Iq1M => TensorType::Iq1M,
        WeightType::Tq1_0 => TensorType::Tq1_0,
        WeightType::Tq2_0 => TensorType::Tq2_0,
        WeightType::Q1_0 => TensorType::Q1_0,
        WeightType::Q2_0 => TensorType::Q2_0,
        WeightType::Nvfp4 => TensorType::Nvfp4,
        _ => return None,
    })
}

/// Weight `i` of the block `b`.
fn weight(ty: WeightType, b: &[u8], i: usize) -> f64 {
    let half_at = |at: usize| half(u16::from_le_bytes([b[at], b[at + 1]]));
    let int = |byte: u32| f64::from(byte);
    // Blocks of 32: nibble i of 16 bytes, the low ones first.
    let nibble = |at: usize, i: usize| u32::from(b[at + i % 16] >> (4 * (i / 16)) & 15);
    // A fifth bit, from 32 of them.
    let fifth = |at: usize| u32::from(b[at + i / 8] >> (i % 8) & 1) << 4;
    // Blocks of 256 with 2 bits: 128 weights to 32 bytes.
    let two = |at: usize| u32::from(b[at + 32 * (i / 128) + i % 32] >> (2 * (i % 128 / 32)) & 3);
    // Blocks of 256 with 4 bits: 64 weights to 32 bytes.
    let four = |at: usize| u32::from(b[at + 32 * (i / 64) + i % 32] >> (4 * (i / 32 % 2)) & 15);
    match ty {
        WeightType::F32 => f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])),
        WeightType::F16 => half_at(0),
        WeightType::Bf16 => f64::from(f32::from_le_bytes([0, 0, b[0], b[1]])),
        WeightType::Q4_0 => (int(nibble(2, i)) - 8.0) * half_at(0),
        WeightType::Q4_1 => int(nibble(4, i)) * half_at(0) + half_at(2),
        WeightType::Q5_0 => (int(nibble(6, i) | fifth(2)) - 16.0) * half_at(0),
        WeightType::Q5_1 => int(nibble(8, i) | fifth(4)) * half_at(0) + half_at(2),
        WeightType::Q8_0 => f64::from(b[2 + i].cast_signed()) * half_at(0),
        WeightType::Q2K => {
            let scale = u32::from(b[i / 16]);
            half_at(80) * int(scale & 15) * int(two(16)) - half_at(82) * int(scale >> 4)
        }
        WeightType::Q3K => {
            let j = i / 16;
            let low = b[96 + j % 8] >> (4 * (j / 8)) & 15;
            let high = b[104 + j % 4] >> (2 * (j / 4)) & 3;
            let less = if b[i % 32] >> (i / 32) & 1 == 1 { 0.0 } else { 4.0 };
            half_at(108) * (f64::from(low | high << 4) - 32.0) * (int(two(32)) - less)
        }
        WeightType::Q4K => {
            let [scale, min] = six_bits(&b[4..16], i / 32);
            half_at(0) * scale * int(four(16)) - half_at(2) * min
        }
        WeightType::Q5K => {
            let [scale, min] = six_bits(&b[4..16], i / 32);
            let q = four(48) | u32::from(b[16 + i % 32] >> (i / 32) & 1) << 4;
            half_at(0) * scale * int(q) - half_at(2) * min
        }
        WeightType::Q6K => {
            let (h, g, l) = (i / 128, i % 128 / 32, i % 32);
            let low = b[64 * h + 32 * (g % 2) + l] >> (4 * (g / 2)) & 15;
            let high = b[128 + 32 * h + l] >> (2 * g) & 3;
            half_at(208) * f64::from(b[192 + i / 16].cast_signed()) * (f64::from(low | high << 4) - 32.0)
        }
        WeightType::Iq4Nl => f64::from(IQ4[nibble(2, i) as usize]) * half_at(0),
        WeightType::Iq4Xs => {
            let g = i / 32;
            let high = u16::from_le_bytes([b[2], b[3]]) >> (2 * g) & 3;
            let scale = u16::from(b[4 + g / 2] >> (4 * (g % 2)) & 15) | high << 4;
            half_at(0) * (f64::from(scale) - 32.0) * f64::from(IQ4[nibble(8 + 16 * g, i % 32) as usize])
        }
        WeightType::Mxfp4 => 2f64.powi(i32::from(b[0]) - 128) * f64::from(E2M1[nibble(1, i) as usize]),
        // Those of `decoded_on_the_cpu`.
        _ => f64::NAN,
    }
}

/// The 16 values of IQ4_NL and IQ4_XS.
const IQ4: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];
/// Twice the values of a float of 4 bits: sign, two bits of exponent, one of fraction.
const E2M1: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

/// Scale and minimum `j` of the eight that Q4_K and Q5_K keep in 12 bytes.
fn six_bits(s: &[u8], j: usize) -> [f64; 2] {
    let [scale, min] = if j < 4 {
        [s[j] & 63, s[j + 4] & 63]
    } else {
        [s[j + 4] & 15 | (s[j - 4] >> 6) << 4, s[j + 4] >> 4 | (s[j] >> 6) << 4]
    };
    [f64::from(scale), f64::from(min)]
}

/// The value of an IEEE 754 binary16.
pub(super) fn half(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3FF) / 1024.0);
    sign * match exponent {
        0 => fraction * 2f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2f64.powi(exponent - 15),
    }
}
