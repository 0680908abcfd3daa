//! Dot products of f16, bf16 and the common block formats, for x86-64 with AVX-512.
//!
//! An element is `n * d + m`, with `d` and `m` of its group of 32 or 16: the numbers `n` are multiplied with x in f32, `d` with the sum of a
//! group's products, and `m` with the group's sum of x, which all rows share. Nothing is rounded to fewer bits than f32 has.

use std::arch::x86_64::*;

use super::half_float::f16_to_f32;
use crate::tensor_type::TensorType;

/// Rows of one type times `x`, with as many sums of x as there are groups of 32; one output for each row.
pub(super) type Dots = fn(&[u8], &[f32], &[f32], &mut [f32]);

/// The dot products of a type. `None`: the CPU cannot, or the type has none here.
pub(super) fn dots_of(ty: TensorType) -> Option<Dots> {
    if !is_available() {
        return None;
    }
    // Each of these asks for the CPU just found; nothing else can name them.
    Some(match ty {
        TensorType::F16 => rows_f16,
        TensorType::Bf16 => rows_bf16,
        TensorType::Q4_0 => rows::<Q4_0>,
        TensorType::Q4_1 => rows::<Q4_1>,
        TensorType::Q5_0 => rows::<Q5_0>,
        TensorType::Q5_1 => rows::<Q5_1>,
        TensorType::Q8_0 => rows::<Q8_0>,
        TensorType::Q4K => rows::<Q4K>,
        TensorType::Q5K => rows::<Q5K>,
        TensorType::Q6K => rows::<Q6K>,
        _ => return None,
    })
}

/// Whether the CPU has AVX-512 F, BW, DQ and VL, and FMA and F16C.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
}

/// One row of a type.
trait Row {
    /// # Safety
    /// [`is_available`] holds.
    unsafe fn dot(row: &[u8], x: &[f32], sums: &[f32]) -> f32;
}

fn rows<R: Row>(rows: &[u8], x: &[f32], sums: &[f32], out: &mut [f32]) {
    let row_bytes = rows.len() / out.len().max(1);
    for (row, out) in rows.chunks_exact(row_bytes.max(1)).zip(out) {
        // SAFETY: `dots_of` gives this function away only where `is_available` has found what it asks for.
        *out = unsafe { R::dot(row, x, sums) };
    }
}

macro_rules! row {
    ($($name:ident => $dot:expr;)*) => {$(
        struct $name;
        impl Row for $name {
            unsafe fn dot(row: &[u8], x: &[f32], sums: &[f32]) -> f32 {
                // SAFETY: the caller vouches for `is_available`.
                unsafe { $dot(row, x, sums) }
            }
        }
    )*};
}

row! {
    Q4_0 => dot_32::<18, 4, false, false>;
    Q4_1 => dot_32::<20, 4, true, false>;
    Q5_0 => dot_32::<22, 4, false, true>;
    Q5_1 => dot_32::<24, 4, true, true>;
    Q8_0 => dot_32::<34, 8, false, false>;
    Q4K => dot_k::<144, false>;
    Q5K => dot_k::<176, true>;
    Q6K => dot_q6_k;
}

/// Blocks of 32 numbers of `BITS` bits, a bit more with `FIFTH`; with `MINIMUM` a block has an `m` after its `d`. Numbers without a
/// minimum are signed.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
fn dot_32<const B: usize, const BITS: usize, const MINIMUM: bool, const FIFTH: bool>(
    row: &[u8],
    x: &[f32],
    sums: &[f32],
) -> f32 {
    let (blocks, _) = row.as_chunks::<B>();
    let (x, _) = x.as_chunks::<32>();
    let table = table(match (MINIMUM, FIFTH) {
        (false, false) => -8.0,
        (false, true) => -16.0,
        _ => 0.0,
    });
    let mut scaled = _mm512_setzero_ps();
    let mut minimums = _mm_setzero_ps();
    let start = if MINIMUM { 4 } else { 2 } + if FIFTH { 4 } else { 0 };
    for ((block, x), sum) in blocks.iter().zip(x).zip(sums) {
        // `d`, then `m` where there is one.
        let halves = i32::from_le_bytes([block[0], block[1], block[2], block[3]]);
        let halves = _mm_cvtph_ps(_mm_cvtsi32_si128(halves));
        if MINIMUM {
            minimums = _mm_fmadd_ps(halves, _mm_set1_ps(*sum), minimums);
        }
        let (low, high) = if BITS == 8 {
            (signed(sixteen(block, start)), signed(sixteen(block, start + 16)))
        } else {
            let bytes = _mm512_cvtepu8_epi32(sixteen(block, start));
            let low = _mm512_permutexvar_ps(bytes, table);
            let high = _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(bytes), table);
            if FIFTH {
                let at = start - 4;
                let bits = u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
                (sixteen_more(low, bits as u16), sixteen_more(high, (bits >> 16) as u16))
            } else {
                (low, high)
            }
        };
        let (x, _) = x.as_chunks::<16>();
        let products = _mm512_fmadd_ps(high, load(&x[1]), _mm512_mul_ps(low, load(&x[0])));
        scaled = _mm512_fmadd_ps(_mm512_broadcastss_ps(halves), products, scaled);
    }
    let sum = _mm512_reduce_add_ps(scaled);
    if MINIMUM {
        sum + _mm_cvtss_f32(_mm_movehdup_ps(minimums))
    } else {
        sum
    }
}

/// `q4_K`, and with `FIFTH` `q5_K`: `(d * scale) * n - dmin * min` in groups of 32.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
fn dot_k<const B: usize, const FIFTH: bool>(row: &[u8], x: &[f32], sums: &[f32]) -> f32 {
    let (blocks, _) = row.as_chunks::<B>();
    let ((x, _), (sums, _)) = (x.as_chunks::<256>(), sums.as_chunks::<8>());
    let table = table(0.0);
    let mut scaled = [_mm512_setzero_ps(); 2];
    let mut minimums = _mm256_setzero_ps();
    for ((block, x), sums) in blocks.iter().zip(x).zip(sums) {
        let (scales, mins) = scales_and_minimums(block);
        let d = f16_to_f32(u16::from_le_bytes([block[0], block[1]]));
        let dmin = f16_to_f32(u16::from_le_bytes([block[2], block[3]]));
        let scales = eight_scales(scales, d);
        // SAFETY: reads the eight values of the array; no alignment is asked for.
        let sums = unsafe { _mm256_loadu_ps(sums.as_ptr()) };
        let mins = eight_scales(mins, dmin);
        // SAFETY: as above.
        let mins = unsafe { _mm256_loadu_ps(mins.as_ptr()) };
        minimums = _mm256_fmadd_ps(mins, sums, minimums);
        let (groups, _) = x.as_chunks::<64>();
        for (pair, x) in groups.iter().enumerate() {
            // 32 bytes: the lower nibbles are one group, the upper ones the next.
            let at = B - 128 + 32 * pair;
            let bytes = [sixteen(block, at), sixteen(block, at + 16)].map(|bytes| _mm512_cvtepu8_epi32(bytes));
            let mut low = bytes.map(|bytes| _mm512_permutexvar_ps(bytes, table));
            let mut high = bytes.map(|bytes| _mm512_permutexvar_ps(_mm512_srli_epi32::<4>(bytes), table));
            if FIFTH {
                for half in 0..2 {
                    let bits = sixteen(block, 16 + 16 * half);
                    let of = |group: usize| _mm_test_epi8_mask(bits, _mm_set1_epi8((1u8 << (group & 7)).cast_signed()));
                    low[half] = sixteen_more(low[half], of(2 * pair));
                    high[half] = sixteen_more(high[half], of(2 * pair + 1));
                }
            }
            let (x, _) = x.as_chunks::<16>();
            let products = [
                _mm512_fmadd_ps(low[1], load(&x[1]), _mm512_mul_ps(low[0], load(&x[0]))),
                _mm512_fmadd_ps(high[1], load(&x[3]), _mm512_mul_ps(high[0], load(&x[2]))),
            ];
            for (i, products) in products.into_iter().enumerate() {
                scaled[i] = _mm512_fmadd_ps(_mm512_set1_ps(scales[(2 * pair + i) % 8]), products, scaled[i]);
            }
        }
    }
    let four = _mm_add_ps(_mm256_castps256_ps128(minimums), _mm256_extractf128_ps::<1>(minimums));
    let minimums = _mm512_reduce_add_ps(_mm512_zextps128_ps512(four));
    _mm512_reduce_add_ps(_mm512_add_ps(scaled[0], scaled[1])) - minimums
}

/// `q6_K`: `(d * scale) * (n - 32)` in groups of 16.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
fn dot_q6_k(row: &[u8], x: &[f32], _: &[f32]) -> f32 {
    let (blocks, _) = row.as_chunks::<210>();
    let (x, _) = x.as_chunks::<256>();
    let mut scaled = [_mm512_setzero_ps(); 2];
    let (nibble, top, offset) = (_mm512_set1_epi8(15), _mm512_set1_epi8(0x30), _mm512_set1_epi8(32));
    for (block, x) in blocks.iter().zip(x) {
        let d = _mm512_set1_ps(f16_to_f32(u16::from_le_bytes([block[208], block[209]])));
        let mut scales = [0.0; 16];
        let sixteen_scales = _mm512_mul_ps(d, signed(sixteen(block, 192)));
        // SAFETY: writes the sixteen values of the array; no alignment is asked for.
        unsafe { _mm512_storeu_ps(scales.as_mut_ptr(), sixteen_scales) };
        let mut numbers = [0i8; 256];
        let (halves, _) = numbers.as_chunks_mut::<128>();
        for (half, numbers) in halves.iter_mut().enumerate() {
            let low = &block[64 * half..64 * half + 64];
            // SAFETY: reads the 64 bytes of the slice; no alignment is asked for.
            let low = unsafe { _mm512_loadu_si512(low.as_ptr().cast()) };
            let high = &block[128 + 32 * half..160 + 32 * half];
            // SAFETY: reads the 32 bytes of the slice; no alignment is asked for.
            let high = _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(high.as_ptr().cast()) });
            // Quarters 0 and 1 take bits 0 and 1, 2 and 3 of the high bytes, quarters 2 and 3 the next four.
            let left = _mm512_sllv_epi16(high, quarters(4, 2));
            let right = _mm512_srlv_epi16(high, quarters(0, 2));
            let first = _mm512_or_si512(_mm512_and_si512(low, nibble), _mm512_and_si512(left, top));
            let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(low), nibble);
            let second = _mm512_or_si512(upper, _mm512_and_si512(right, top));
            let (parts, _) = numbers.as_chunks_mut::<64>();
            for (part, n) in parts.iter_mut().zip([first, second]) {
                let n = _mm512_sub_epi8(n, offset);
                // SAFETY: writes the 64 bytes of the array; no alignment is asked for.
                unsafe { _mm512_storeu_si512(part.as_mut_ptr().cast(), n) };
            }
        }
        let ((numbers, _), (x, _)) = (numbers.as_chunks::<16>(), x.as_chunks::<16>());
        for (index, (n, x)) in numbers.iter().zip(x).enumerate() {
            // SAFETY: reads the sixteen bytes of the array; no alignment is asked for.
            let n = signed(unsafe { _mm_loadu_si128(n.as_ptr().cast()) });
            let products = _mm512_mul_ps(n, load(x));
            let scale = _mm512_set1_ps(scales[index % 16]);
            scaled[index % 2] = _mm512_fmadd_ps(scale, products, scaled[index % 2]);
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(scaled[0], scaled[1]))
}

/// Rows of values of two bytes that are multiplied together: x, which is longer than a core's first cache, is read once for all.
const ROWS: usize = 4;

fn rows_f16(rows: &[u8], x: &[f32], _: &[f32], out: &mut [f32]) {
    // SAFETY: `dots_of` gives this function away only where `is_available` has found what it asks for.
    unsafe { dots_f16(rows, x, out) }
}

fn rows_bf16(rows: &[u8], x: &[f32], _: &[f32], out: &mut [f32]) {
    // SAFETY: as above.
    unsafe { dots_bf16(rows, x, out) }
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
fn dots_f16(rows: &[u8], x: &[f32], out: &mut [f32]) {
    rows_of_halves(rows, x, out, |bits| _mm512_cvtph_ps(bits), f16_to_f32);
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
fn dots_bf16(rows: &[u8], x: &[f32], out: &mut [f32]) {
    let widen = |bits| _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits)));
    rows_of_halves(rows, x, out, widen, |bits| f32::from_bits(u32::from(bits) << 16));
}

#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
#[inline]
fn rows_of_halves(
    rows: &[u8],
    x: &[f32],
    out: &mut [f32],
    widen: impl Fn(__m256i) -> __m512 + Copy,
    one: impl Fn(u16) -> f32 + Copy,
) {
    let length = 2 * x.len().max(1);
    for (rows, out) in rows.chunks(ROWS * length).zip(out.chunks_mut(ROWS)) {
        if let Ok(out) = <&mut [f32; ROWS]>::try_from(&mut *out) {
            let (a, rest) = rows.split_at(length);
            let (b, rest) = rest.split_at(length);
            let (c, d) = rest.split_at(length);
            *out = dot_halves([a, b, c, d], x, widen, one);
            continue;
        }
        for (row, out) in rows.chunks(length).zip(out) {
            [*out] = dot_halves([row], x, widen, one);
        }
    }
}

/// The sums of values of two bytes times x. A row's sum does not depend on the others.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")]
#[inline]
fn dot_halves<const N: usize>(
    rows: [&[u8]; N],
    x: &[f32],
    widen: impl Fn(__m256i) -> __m512,
    one: impl Fn(u16) -> f32,
) -> [f32; N] {
    let (values, last) = x.as_chunks::<64>();
    let mut sums = [[_mm512_setzero_ps(); 4]; N];
    for (index, x) in values.iter().enumerate() {
        let (x, _) = x.as_chunks::<16>();
        for (sums, row) in sums.iter_mut().zip(rows) {
            let halves: &[u8; 128] = row[128 * index..].first_chunk().unwrap_or(&[0; 128]);
            prefetch(halves);
            let (halves, _) = halves.as_chunks::<32>();
            for ((sum, halves), x) in sums.iter_mut().zip(halves).zip(x) {
                // SAFETY: reads the 32 bytes of the array; no alignment is asked for.
                let bits = unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) };
                *sum = _mm512_fmadd_ps(widen(bits), load(x), *sum);
            }
        }
    }
    let mut out = [0.0; N];
    for ((out, sums), row) in out.iter_mut().zip(sums).zip(rows) {
        let sum = _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
        let rest = row[128 * values.len()..].as_chunks::<2>().0.iter().zip(last);
        *out = rest.fold(_mm512_reduce_add_ps(sum), |sum, (half, x)| {
            one(u16::from_le_bytes(*half)).mul_add(*x, sum)
        });
    }
    out
}

/// Sixteen numbers from `first` on, each one more than the one before.
#[target_feature(enable = "avx512f")]
#[inline]
fn table(first: f32) -> __m512 {
    let steps = _mm512_set_ps(
        15.0, 14.0, 13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0,
    );
    _mm512_add_ps(steps, _mm512_set1_ps(first))
}

/// Sixteen more where a bit is set.
#[target_feature(enable = "avx512f")]
#[inline]
fn sixteen_more(n: __m512, bits: u16) -> __m512 {
    _mm512_mask_add_ps(n, bits, n, _mm512_set1_ps(16.0))
}

/// How many bytes ahead of what is read memory is asked for. The CPU's own prefetching ends at pages; this goes on in the next.
const AHEAD: usize = 2048;

/// Asks for the lines that are [`AHEAD`] bytes after a block's.
#[target_feature(enable = "sse")]
#[inline]
pub(super) fn prefetch<const B: usize>(block: &[u8; B]) {
    let ahead = block.as_ptr().wrapping_add(AHEAD);
    for line in (0..B).step_by(64) {
        _mm_prefetch::<_MM_HINT_T0>(ahead.wrapping_add(line).cast());
    }
}

/// Sums of x in groups of 32.
pub(super) fn group_sums(x: &[f32], out: &mut [f32]) {
    let (groups, rest) = x.as_chunks::<32>();
    if is_available() {
        // SAFETY: `is_available` has just found what it asks for.
        unsafe { sums_of_32(groups, out) };
    }
    if let Some(out) = out.get_mut(groups.len()).filter(|_| !rest.is_empty()) {
        *out = rest.iter().sum();
    }
}

#[target_feature(enable = "avx512f")]
fn sums_of_32(groups: &[[f32; 32]], out: &mut [f32]) {
    for (group, out) in groups.iter().zip(out) {
        let (halves, _) = group.as_chunks::<16>();
        *out = _mm512_reduce_add_ps(_mm512_add_ps(load(&halves[0]), load(&halves[1])));
    }
}

/// The eight scales and the eight minimums of `q4_K` and `q5_K` as bytes: four at a time what [`super::decode_k::scale_min_pairs`] does.
#[inline(always)]
pub(super) fn scales_and_minimums<const B: usize>(block: &[u8; B]) -> (u64, u64) {
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    let [a, b, c] = [word(4), word(8), word(12)];
    let (six, four, two) = (0x3f3f_3f3f, 0x0f0f_0f0f, 0x0303_0303);
    let scales = (c & four) | (a >> 6 & two) << 4;
    let minimums = (c >> 4 & four) | (b >> 6 & two) << 4;
    let eight = |low: u32, high: u32| u64::from(low & six) | u64::from(high) << 32;
    (eight(a, scales), eight(b, minimums))
}

/// Eight scales times `d`.
#[target_feature(enable = "avx512f,avx512vl,avx2")]
#[inline]
fn eight_scales(scales: u64, d: f32) -> [f32; 8] {
    let n = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(scales.cast_signed()));
    let scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(n), _mm256_set1_ps(d));
    let mut values = [0.0; 8];
    // SAFETY: writes the eight values of the array; no alignment is asked for.
    unsafe { _mm256_storeu_ps(values.as_mut_ptr(), scaled) };
    values
}

/// One number in the 16-bit lanes of the lower half, another in those of the upper half.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn quarters(lower: i16, upper: i16) -> __m512i {
    _mm512_inserti64x4::<1>(_mm512_set1_epi16(lower), _mm256_set1_epi16(upper))
}

/// Sixteen signed bytes as f32.
#[target_feature(enable = "avx512f")]
#[inline]
fn signed(bytes: __m128i) -> __m512 {
    _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))
}

/// The sixteen bytes at `at`.
#[target_feature(enable = "sse2")]
#[inline]
pub(super) fn sixteen<const B: usize>(block: &[u8; B], at: usize) -> __m128i {
    let bytes = &block[at..at + 16];
    // SAFETY: reads the sixteen bytes of the slice; no alignment is asked for.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn load(x: &[f32; 16]) -> __m512 {
    // SAFETY: reads the sixteen values of the array; no alignment is asked for.
    unsafe { _mm512_loadu_ps(x.as_ptr()) }
}
