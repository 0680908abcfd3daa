//! Products of a few f32 rows with many rows of f16, each of which is read once (AVX-512).

use std::arch::x86_64::*;

use super::KEYS;
use crate::cpu::dot::lane_sums;
use crate::cpu::path::Avx512;

/// Rows of f16 that are multiplied together.
const ROWS: usize = 4;

/// Queries that are multiplied together: 4 times 4 sums in registers.
const QUERIES: usize = 4;

/// Vectors of a row whose sums are in registers together.
const VECTORS: usize = 4;

/// `scores[q][r] = queries[q] * rows[r]`. Meanwhile memory is asked for the rows `next`, as many or fewer.
///
/// # Panics
/// If a row is shorter than a query, or there are more than [`KEYS`] rows.
pub(super) fn dots(_: Avx512, queries: &[&[f32]], rows: &[&[u16]], scores: &mut [[f32; KEYS]], next: &[&[u16]]) {
    let mut next = next;
    for (queries, scores) in queries.chunks(QUERIES).zip(scores.chunks_mut(QUERIES)) {
        let kernel = match queries.len() {
            1 => dots_512::<1>,
            2 => dots_512::<2>,
            3 => dots_512::<3>,
            _ => dots_512::<QUERIES>,
        };
        // SAFETY: the `Avx512` value exists only where the CPU has AVX-512 F, BW and VL.
        unsafe { kernel(queries, rows, scores, next) };
        next = &[];
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,fma")]
fn dots_512<const N: usize>(queries: &[&[f32]], rows: &[&[u16]], scores: &mut [[f32; KEYS]], next: &[&[u16]]) {
    let dim = queries[0].len();
    let queries: [&[f32]; N] = std::array::from_fn(|i| &queries[i][..dim]);
    for (at, some) in (0..).step_by(ROWS).zip(rows.chunks(ROWS)) {
        // Where fewer are left, the last one again.
        let four: [&[u16]; ROWS] = std::array::from_fn(|i| &some[i.min(some.len() - 1)][..dim]);
        for row in next.iter().skip(at).take(ROWS) {
            prefetch(row);
        }
        let mut sums = [[_mm512_setzero_ps(); ROWS]; N];
        for start in (0..dim).step_by(16) {
            let values = four.map(|row| part_of_halves(&row[start..]));
            for (query, sums) in queries.iter().zip(&mut sums) {
                let query = part_of_floats(&query[start..]);
                for (value, sum) in values.iter().zip(sums) {
                    *sum = _mm512_fmadd_ps(query, *value, *sum);
                }
            }
        }
        for (sums, scores) in sums.iter().zip(&mut *scores) {
            let (mut four, sums) = ([0.0; ROWS], lane_sums(*sums));
            // SAFETY: writes the four values of the array; no alignment is asked for.
            unsafe { _mm_storeu_ps(four.as_mut_ptr(), sums) };
            scores[at..at + some.len()].copy_from_slice(&four[..some.len()]);
        }
    }
}

/// `sums[q] += sum of weights[q][r] * rows[r]`, where `sums` has `dim` values for each query; rows without weight may hold
/// anything. Meanwhile memory is asked for the rows `next`, as many or fewer.
///
/// # Panics
/// If a row is shorter than `dim`, or there are more than [`KEYS`] rows.
pub(super) fn add_rows(
    _: Avx512,
    weights: &[[f32; KEYS]],
    rows: &[&[u16]],
    dim: usize,
    sums: &mut [f32],
    next: &[&[u16]],
) {
    let mut next = next;
    let several = weights.chunks(QUERIES).zip(sums.chunks_mut(QUERIES * dim));
    for (weights, sums) in several {
        let kernel = match weights.len() {
            1 => add_rows_512::<1>,
            2 => add_rows_512::<2>,
            3 => add_rows_512::<3>,
            _ => add_rows_512::<QUERIES>,
        };
        // SAFETY: the `Avx512` value exists only where the CPU has AVX-512 F, BW and VL.
        unsafe { kernel(weights, rows, dim, sums, next) };
        next = &[];
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,fma")]
fn add_rows_512<const N: usize>(
    weights: &[[f32; KEYS]],
    rows: &[&[u16]],
    dim: usize,
    sums: &mut [f32],
    next: &[&[u16]],
) {
    let mut next = next;
    let weights: [&[f32]; N] = std::array::from_fn(|i| &weights[i][..rows.len()]);
    for start in (0..dim).step_by(16 * VECTORS) {
        let width = (16 * VECTORS).min(dim - start);
        let columns = match width.div_ceil(16) {
            1 => columns_512::<N, 1>,
            2 => columns_512::<N, 2>,
            3 => columns_512::<N, 3>,
            _ => columns_512::<N, VECTORS>,
        };
        let found = columns(weights, rows, start..start + width, next);
        next = &[];
        for ((found, sums), weights) in found.iter().zip(sums.chunks_exact_mut(dim)).zip(weights) {
            let found = &found.as_flattened()[..width];
            let sums = &mut sums[start..start + width];
            if found.iter().all(|value| value.is_finite()) {
                sums.iter_mut().zip(found).for_each(|(sum, value)| *sum += value);
                continue;
            }
            for (weight, row) in weights.iter().zip(rows).filter(|(weight, _)| **weight != 0.0) {
                for (sum, half) in sums.iter_mut().zip(&row[start..]) {
                    *sum += weight * half::f16::from_bits(*half).to_f32();
                }
            }
        }
    }
}

/// The sums of `V` vectors of columns; what lies beyond the columns is zero.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,fma")]
fn columns_512<const N: usize, const V: usize>(
    weights: [&[f32]; N],
    rows: &[&[u16]],
    columns: std::ops::Range<usize>,
    next: &[&[u16]],
) -> [[[f32; 16]; VECTORS]; N] {
    let mut sums = [[_mm512_setzero_ps(); V]; N];
    for (index, row) in rows.iter().enumerate() {
        let row = &row[columns.clone()];
        if let Some(next) = next.get(index) {
            prefetch(next);
        }
        let values: [__m512; V] = std::array::from_fn(|v| part_of_halves(&row[16 * v..]));
        for (weights, sums) in weights.iter().zip(&mut sums) {
            let weight = _mm512_set1_ps(weights[index]);
            for (value, sum) in values.iter().zip(sums) {
                *sum = _mm512_fmadd_ps(weight, *value, *sum);
            }
        }
    }
    let mut out = [[[0.0; 16]; VECTORS]; N];
    for (sums, out) in sums.iter().zip(&mut out) {
        for (sum, out) in sums.iter().zip(out) {
            // SAFETY: writes the sixteen values of the array; no alignment is asked for.
            unsafe { _mm512_storeu_ps(out.as_mut_ptr(), *sum) };
        }
    }
    out
}

/// Asks for a row's cache lines, so that they are in the second cache when they are read.
#[target_feature(enable = "sse")]
#[inline]
fn prefetch(row: &[u16]) {
    /// Halves of a cache line.
    const LINE: usize = 32;
    for line in row.chunks(LINE) {
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
}

/// The first sixteen values; zeros where there are fewer.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn part_of_halves(halves: &[u16]) -> __m512 {
    let halves = match halves.first_chunk::<16>() {
        // SAFETY: reads the 32 bytes of the array; no alignment is asked for.
        Some(halves) => unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) },
        // SAFETY: reads as many values as the slice has.
        None => unsafe { _mm256_maskz_loadu_epi16(first(halves.len()), halves.as_ptr().cast()) },
    };
    _mm512_cvtph_ps(halves)
}

/// The same of f32.
#[target_feature(enable = "avx512f")]
#[inline]
fn part_of_floats(values: &[f32]) -> __m512 {
    match values.first_chunk::<16>() {
        // SAFETY: reads the sixteen values of the array; no alignment is asked for.
        Some(values) => unsafe { _mm512_loadu_ps(values.as_ptr()) },
        // SAFETY: reads as many values as the slice has.
        None => unsafe { _mm512_maskz_loadu_ps(first(values.len()), values.as_ptr()) },
    }
}

/// The first `count` of sixteen lanes.
fn first(count: usize) -> __mmask16 {
    ((1u32 << count.min(16)) - 1) as __mmask16
}
