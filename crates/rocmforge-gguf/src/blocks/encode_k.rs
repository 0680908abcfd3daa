//! Encoders of the formats with blocks of 256: `q2_K` to `q6_K` and `q8_K`.
//!
//! Each gives the bytes of ggml's reference quantiser. That fixes the order of every sum, because a candidate scale is
//! kept or dropped by comparing two errors; so all is f32, without fused multiply-adds.

use super::decode::f16_at;
use super::decode_k::{q3_scales, scale_min_pairs};
use super::encode::{put_f16, signed_extreme};
use super::fit::{fit_scale, fit_scale_and_min, fit_scale_by_steps, round};

/// Scale and minimum of every group of a block, and their maxima.
struct Groups<const G: usize> {
    scales: [f32; G],
    mins: [f32; G],
    max_scale: f32,
    max_min: f32,
}

/// Fits each group of `N`; the numbers go to `q`.
fn fit_groups<const G: usize, const N: usize>(
    values: &[f32; 256],
    q: &mut [u8; 256],
    fit: impl Fn(&[f32; N], &mut [u8; N]) -> (f32, f32),
) -> Groups<G> {
    let mut groups = Groups {
        scales: [0.0; G],
        mins: [0.0; G],
        max_scale: 0.0,
        max_min: 0.0,
    };
    let (values, _) = values.as_chunks::<N>();
    let (q, _) = q.as_chunks_mut::<N>();
    for (j, (values, q)) in values.iter().zip(q).take(G).enumerate() {
        let (scale, min) = fit(values, q);
        (groups.scales[j], groups.mins[j]) = (scale, min);
        groups.max_scale = if scale > groups.max_scale {
            scale
        } else {
            groups.max_scale
        };
        groups.max_min = if min > groups.max_min { min } else { groups.max_min };
    }
    groups
}

/// The values once more by the scale and minimum as they are stored. A group whose stored scale is 0 keeps its numbers.
fn requantise(values: &[f32], q: &mut [u8], scale: f32, min: f32, most: i32) {
    if scale != 0.0 {
        for (q, &value) in q.iter_mut().zip(values) {
            *q = round((value + min) / scale).clamp(0, most) as u8;
        }
    }
}

/// The same for formats without a minimum: numbers from `-least` to `least - 1`, stored plus `least`.
fn requantise_signed(values: &[f32], q: &mut [u8], scale: f32, least: i32) {
    if scale != 0.0 {
        for (q, &value) in q.iter_mut().zip(values) {
            *q = (round(value / scale).clamp(-least, least - 1) + least) as u8;
        }
    }
}

/// Four 2-bit numbers in each byte: elements `l`, `32 + l`, `64 + l` and `96 + l` of each half.
fn put_crumbs(out: &mut [u8], q: &[u8; 256]) {
    for (k, out) in out.iter_mut().enumerate() {
        let at = 128 * (k / 32) + k % 32;
        *out = q[at] | q[at + 32] << 2 | q[at + 64] << 4 | q[at + 96] << 6;
    }
}

pub(super) fn q2_k(values: &[f32; 256], block: &mut [u8; 84]) {
    let mut q = [0; 256];
    let groups: Groups<16> = fit_groups(values, &mut q, |values: &[f32; 16], q| {
        fit_scale_and_min(values, &values.map(f32::abs), q, 3, -0.5, 15, f32::abs)
    });
    let (mut d, mut dmin) = (0.0, 0.0);
    if groups.max_scale > 0.0 {
        let inverse = 15.0 / groups.max_scale;
        for (byte, scale) in block.iter_mut().zip(groups.scales) {
            *byte = round(inverse * scale) as u8;
        }
        d = groups.max_scale / 15.0;
    }
    if groups.max_min > 0.0 {
        let inverse = 15.0 / groups.max_min;
        for (byte, min) in block.iter_mut().zip(groups.mins) {
            *byte |= (round(inverse * min) << 4) as u8;
        }
        dmin = groups.max_min / 15.0;
    }
    put_f16(block, 80, d);
    put_f16(block, 82, dmin);
    let (d, dmin) = (f16_at(block, 80), f16_at(block, 82));
    for (j, (values, q)) in values.chunks_exact(16).zip(q.chunks_exact_mut(16)).enumerate() {
        requantise(
            values,
            q,
            d * f32::from(block[j] & 15),
            dmin * f32::from(block[j] >> 4),
            3,
        );
    }
    put_crumbs(&mut block[16..80], &q);
}

pub(super) fn q3_k(values: &[f32; 256], block: &mut [u8; 110]) {
    let mut q = [0; 256];
    let groups: Groups<16> = fit_groups(values, &mut q, |values: &[f32; 16], q| {
        (fit_scale_by_steps(values, q, 4), 0.0)
    });
    let mut scales = [0_u8; 12];
    let mut d = 0.0;
    let extreme = signed_extreme(&groups.scales);
    if extreme != 0.0 {
        let inverse = -32.0 / extreme;
        for (j, &scale) in groups.scales.iter().enumerate() {
            let scale = (round(inverse * scale).clamp(-32, 31) + 32) as u8;
            scales[j % 8] |= (scale & 15) << (4 * (j / 8));
            scales[8 + j % 4] |= (scale >> 4) << (2 * (j / 4));
        }
        d = 1.0 / inverse;
    }
    block[96..108].copy_from_slice(&scales);
    put_f16(block, 108, d);
    let d = f16_at(block, 108);
    let scales = q3_scales(&scales);
    for (j, (values, q)) in values.chunks_exact(16).zip(q.chunks_exact_mut(16)).enumerate() {
        requantise_signed(values, q, d * (i32::from(scales[j]) - 32) as f32, 4);
    }
    for (i, q) in q.iter_mut().enumerate() {
        block[i % 32] |= (*q >> 2) << (i / 32);
        *q &= 3;
    }
    put_crumbs(&mut block[32..96], &q);
}

/// What `q4_K` and `q5_K` share: the numbers, up to `most`, and the first 16 bytes of the block.
fn scales_and_mins(values: &[f32; 256], block: &mut [u8], most: u8, first_step: f32, steps: u8) -> [u8; 256] {
    let mut q = [0; 256];
    let groups: Groups<8> = fit_groups(values, &mut q, |values: &[f32; 32], q| {
        let sum: f32 = values.iter().fold(0.0, |sum, &value| sum + value * value);
        let mean = (sum / 32.0).sqrt();
        let weights = values.map(|value| mean + value.abs());
        fit_scale_and_min(values, &weights, q, most, first_step, steps, |error| error * error)
    });
    let inverse = |max: f32| if max > 0.0 { 63.0 / max } else { 0.0 };
    let (scale_inverse, min_inverse) = (inverse(groups.max_scale), inverse(groups.max_min));
    let mut packed = [0_u8; 12];
    for j in 0..8 {
        let scale = (round(scale_inverse * groups.scales[j]) as u8).min(63);
        let min = (round(min_inverse * groups.mins[j]) as u8).min(63);
        if j < 4 {
            (packed[j], packed[j + 4]) = (scale, min);
        } else {
            packed[j + 4] = scale & 15 | (min & 15) << 4;
            packed[j - 4] |= scale >> 4 << 6;
            packed[j] |= min >> 4 << 6;
        }
    }
    let mut head = [0_u8; 16];
    put_f16(&mut head, 0, groups.max_scale / 63.0);
    put_f16(&mut head, 2, groups.max_min / 63.0);
    head[4..].copy_from_slice(&packed);
    block[..16].copy_from_slice(&head);
    let (d, dmin) = (f16_at(&head, 0), f16_at(&head, 2));
    let pairs = scale_min_pairs(&packed);
    for ((values, q), (scale, min)) in values.chunks_exact(32).zip(q.chunks_exact_mut(32)).zip(pairs) {
        requantise(values, q, d * f32::from(scale), dmin * f32::from(min), i32::from(most));
    }
    q
}

/// The low nibbles: elements `l` and `32 + l` of each 64 in one byte.
fn put_pairs(out: &mut [u8], q: &[u8; 256]) {
    for (k, out) in out.iter_mut().enumerate() {
        let at = 64 * (k / 32) + k % 32;
        *out = q[at] & 15 | q[at + 32] << 4;
    }
}

pub(super) fn q4_k(values: &[f32; 256], block: &mut [u8; 144]) {
    let q = scales_and_mins(values, block, 15, -1.0, 20);
    put_pairs(&mut block[16..], &q);
}

pub(super) fn q5_k(values: &[f32; 256], block: &mut [u8; 176]) {
    let q = scales_and_mins(values, block, 31, -0.5, 15);
    for (i, &q) in q.iter().enumerate() {
        block[16 + i % 32] |= (q >> 4) << (i / 32);
    }
    put_pairs(&mut block[48..], &q);
}

pub(super) fn q6_k(values: &[f32; 256], block: &mut [u8; 210]) {
    let mut q = [0; 256];
    let groups: Groups<16> = fit_groups(values, &mut q, |values: &[f32; 16], q| (fit_scale(values, q, 32), 0.0));
    let extreme = signed_extreme(&groups.scales);
    if extreme.abs() < super::fit::LEAST_EXTREME {
        // The block stays all zeros: scale 0.
        return;
    }
    let inverse = -128.0 / extreme;
    put_f16(block, 208, 1.0 / inverse);
    let d = f16_at(block, 208);
    for (j, (values, q)) in values.chunks_exact(16).zip(q.chunks_exact_mut(16)).enumerate() {
        let scale = round(inverse * groups.scales[j]).min(127) as i8;
        block[192 + j] = scale.cast_unsigned();
        requantise_signed(values, q, d * f32::from(scale), 32);
    }
    for half in 0..2 {
        for l in 0..32 {
            let [a, b, c, e]: [u8; 4] = std::array::from_fn(|k| q[128 * half + 32 * k + l]);
            block[64 * half + l] = a & 15 | c << 4;
            block[64 * half + 32 + l] = b & 15 | e << 4;
            block[128 + 32 * half + l] = a >> 4 | b >> 4 << 2 | c >> 4 << 4 | e >> 4 << 6;
        }
    }
}

/// `d` is the signed extreme over -127; the sums of each 16 numbers follow them.
pub(super) fn q8_k(values: &[f32; 256], block: &mut [u8; 292]) {
    let extreme = signed_extreme(values);
    if extreme == 0.0 {
        return;
    }
    let inverse = -127.0 / extreme;
    let q = values.map(|value| round(inverse * value).min(127) as i8);
    block[..4].copy_from_slice(&(1.0 / inverse).to_le_bytes());
    block[4..260].copy_from_slice(&q.map(i8::cast_unsigned));
    for (j, group) in q.chunks_exact(16).enumerate() {
        let sum: i16 = group.iter().map(|&q| i16::from(q)).sum();
        block[260 + 2 * j..262 + 2 * j].copy_from_slice(&sum.to_le_bytes());
    }
}
