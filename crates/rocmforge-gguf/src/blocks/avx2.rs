//! Dot products of f16 and of the formats with blocks of 32, for x86-64 with AVX2, FMA and F16C.
//!
//! An element is `n * d + m`: the products of a block are summed over `n` first, then multiplied by `d`, and `m` by the sum of x.

use std::arch::x86_64::*;

use super::half_float::f16_to_f32;
use crate::tensor_type::TensorType;

/// A dot product of whole blocks with as many values.
pub(super) type Dot = fn(&[u8], &[f32]) -> f32;

/// The dot product of a type. `None`: the CPU cannot, or the type has none here.
pub(super) fn dot_of(ty: TensorType) -> Option<Dot> {
    if !is_available() {
        return None;
    }
    // Each of these asks for the CPU just found; nothing else can name them.
    Some(match ty {
        TensorType::Q4_0 => of_numbers::<Q4_0, 18>,
        TensorType::Q4_1 => of_numbers::<Q4_1, 20>,
        TensorType::Q5_0 => of_numbers::<Q5_0, 22>,
        TensorType::Q5_1 => of_numbers::<Q5_1, 24>,
        TensorType::Q8_0 => of_numbers::<Q8_0, 34>,
        TensorType::F16 => of_f16,
        _ => return None,
    })
}

fn of_numbers<F: Numbers<B>, const B: usize>(bytes: &[u8], x: &[f32]) -> f32 {
    // SAFETY: `dot_of` gives this function away only where `is_available` has found AVX2, FMA and F16C.
    unsafe { dot::<F, B>(bytes, x) }
}

fn of_f16(bytes: &[u8], x: &[f32]) -> f32 {
    // SAFETY: `dot_of` gives this function away only where `is_available` has found AVX2, FMA and F16C.
    unsafe { dot_f16(bytes, x) }
}

/// Whether the CPU has AVX2, FMA and F16C.
pub(super) fn is_available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c")
}

/// A format whose blocks of `B` bytes hold 32 numbers of at most 8 bits, and a scale at byte 0.
trait Numbers<const B: usize> {
    /// Byte of the minimum `m`, if the format has one.
    const MINIMUM: Option<usize>;

    /// The numbers `n`, signed, in the order of the elements.
    fn numbers(block: &[u8; B]) -> __m256i;
}

struct Q4_0;
struct Q4_1;
struct Q5_0;
struct Q5_1;
struct Q8_0;

macro_rules! numbers {
    ($name:ident, $bytes:literal, $minimum:expr, |$block:ident| $numbers:expr) => {
        impl Numbers<$bytes> for $name {
            const MINIMUM: Option<usize> = $minimum;

            #[inline(always)]
            fn numbers($block: &[u8; $bytes]) -> __m256i {
                // SAFETY: the only caller is `dot`, which runs where `is_available` has found AVX2.
                unsafe { $numbers }
            }
        }
    };
}

numbers!(Q4_0, 18, None, |block| less(nibbles(block, 2), 8));
numbers!(Q4_1, 20, Some(2), |block| nibbles(block, 4));
numbers!(Q5_0, 22, None, |block| less(nibbles_and_bits(block, 6, 2), 16));
numbers!(Q5_1, 24, Some(2), |block| nibbles_and_bits(block, 8, 4));
numbers!(Q8_0, 34, None, |block| {
    let (low, high) = (sixteen(block, 2), sixteen(block, 18));
    _mm256_set_m128i(high, low)
});

/// The sum of `n * d + m` times x over all blocks.
#[target_feature(enable = "avx2,fma,f16c")]
fn dot<F: Numbers<B>, const B: usize>(bytes: &[u8], x: &[f32]) -> f32 {
    let (blocks, _) = bytes.as_chunks::<B>();
    let (x, _) = x.as_chunks::<32>();
    let (mut scaled, mut minimums) = (_mm256_setzero_ps(), _mm256_setzero_ps());
    for (block, x) in blocks.iter().zip(x) {
        let n = F::numbers(block);
        let (low, high) = (_mm256_castsi256_si128(n), _mm256_extracti128_si256::<1>(n));
        let n = [low, _mm_srli_si128::<8>(low), high, _mm_srli_si128::<8>(high)]
            .map(|eight| _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eight)));
        let (x, _) = x.as_chunks::<8>();
        let x = [eight(&x[0]), eight(&x[1]), eight(&x[2]), eight(&x[3])];
        let a = _mm256_fmadd_ps(n[1], x[1], _mm256_mul_ps(n[0], x[0]));
        let b = _mm256_fmadd_ps(n[3], x[3], _mm256_mul_ps(n[2], x[2]));
        scaled = _mm256_fmadd_ps(half(block, 0), _mm256_add_ps(a, b), scaled);
        if let Some(at) = F::MINIMUM {
            let sum = _mm256_add_ps(_mm256_add_ps(x[0], x[1]), _mm256_add_ps(x[2], x[3]));
            minimums = _mm256_fmadd_ps(half(block, at), sum, minimums);
        }
    }
    total(_mm256_add_ps(scaled, minimums))
}

/// The sum of f16 values times x.
#[target_feature(enable = "avx2,fma,f16c")]
fn dot_f16(bytes: &[u8], x: &[f32]) -> f32 {
    let (halves, rest) = bytes.as_chunks::<32>();
    let (values, last) = x.as_chunks::<16>();
    let mut sums = [_mm256_setzero_ps(); 2];
    for (halves, values) in halves.iter().zip(values) {
        let (x, _) = values.as_chunks::<8>();
        sums[0] = _mm256_fmadd_ps(_mm256_cvtph_ps(sixteen(halves, 0)), eight(&x[0]), sums[0]);
        sums[1] = _mm256_fmadd_ps(_mm256_cvtph_ps(sixteen(halves, 16)), eight(&x[1]), sums[1]);
    }
    let (rest, _) = rest.as_chunks::<2>();
    rest.iter()
        .zip(last)
        .fold(total(_mm256_add_ps(sums[0], sums[1])), |sum, (half, &x)| {
            f16_to_f32(u16::from_le_bytes(*half)).mul_add(x, sum)
        })
}

/// The sum of the eight.
#[target_feature(enable = "avx2")]
#[inline]
fn total(sum: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(sum), _mm256_extractf128_ps::<1>(sum));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)))
}

#[target_feature(enable = "avx")]
#[inline]
fn eight(x: &[f32; 8]) -> __m256 {
    // SAFETY: reads the eight values of the array; no alignment is asked for.
    unsafe { _mm256_loadu_ps(x.as_ptr()) }
}

/// The f16 at byte `at`, eight times.
#[target_feature(enable = "avx2,f16c")]
#[inline]
fn half<const B: usize>(block: &[u8; B], at: usize) -> __m256 {
    let bits = u16::from_le_bytes([block[at], block[at + 1]]);
    _mm256_broadcastss_ps(_mm_cvtph_ps(_mm_cvtsi32_si128(i32::from(bits))))
}

/// The sixteen bytes at `at`.
#[target_feature(enable = "sse2")]
#[inline]
fn sixteen<const B: usize>(block: &[u8; B], at: usize) -> __m128i {
    let bytes = &block[at..at + 16];
    // SAFETY: reads the sixteen bytes of the slice; no alignment is asked for.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

/// The lower nibbles of the sixteen bytes at `at`, then the upper ones.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles<const B: usize>(block: &[u8; B], at: usize) -> __m256i {
    let bytes = sixteen(block, at);
    let both = _mm256_set_m128i(_mm_srli_epi16::<4>(bytes), bytes);
    _mm256_and_si256(both, _mm256_set1_epi8(15))
}

/// The nibbles at `at`, each with its bit of the 32 at `bits` above it.
#[target_feature(enable = "avx2")]
#[inline]
fn nibbles_and_bits<const B: usize>(block: &[u8; B], at: usize, bits: usize) -> __m256i {
    let bits = i32::from_le_bytes([block[bits], block[bits + 1], block[bits + 2], block[bits + 3]]);
    // Byte i of the result takes byte i / 8 of the bits, and of that keeps bit i % 8.
    let source = _mm256_set_epi64x(0x0303_0303_0303_0303, 0x0202_0202_0202_0202, 0x0101_0101_0101_0101, 0);
    let spread = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), source);
    let own = _mm256_set1_epi64x(0x8040_2010_0804_0201_u64.cast_signed());
    let set = _mm256_cmpeq_epi8(_mm256_and_si256(spread, own), own);
    _mm256_or_si256(nibbles(block, at), _mm256_and_si256(set, _mm256_set1_epi8(16)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn less(n: __m256i, offset: i8) -> __m256i {
    _mm256_sub_epi8(n, _mm256_set1_epi8(offset))
}
