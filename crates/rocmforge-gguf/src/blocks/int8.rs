//! Dot products of quantised rows with activations rounded to 8 bits: products of integers, added in i32.
//!
//! Activations are `scale * q` with `q` in -127 ..= 127 and a scale for each 32 of them. A weight is `scale * n + minimum` with `n` in
//! 0 ..= 255 and a scale and a minimum for each 16. 256 weights at a time become bytes, then all formats are the same. Sums of products
//! are exact on every path (AVX-512 VNNI, AVX2, any CPU); they are scaled and added in f32.

use super::decode::{bytes_at, f16_at};
use super::decode_k::{q6_k_numbers, scale_min_pairs};
use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;

/// Weights that are unpacked together.
const UNIT: usize = 256;

/// 1.5 * 2^23: a number to which this is added has no fraction.
const ROUND: f32 = 12_582_912.0;

/// Activations with one scale.
const GROUP: usize = 32;

/// Activations rounded to 8 bits. An activation differs from what is kept of it by at most 1/254 of the largest magnitude of its 32.
/// A group with a NaN or an infinity is NaN.
#[derive(Clone, Debug)]
pub struct Int8Row {
    len: usize,
    units: Vec<Unit>,
}

/// 256 activations, zeros beyond the row's end.
#[derive(Clone, Debug)]
struct Unit {
    q: [i8; UNIT],
    /// Of each 16, twice the same for a group.
    scales: [f32; 16],
    /// Sums of the rounded activations, of each 16.
    sums: [f32; 16],
}

impl Int8Row {
    /// Rounds a row.
    #[must_use]
    pub fn new(x: &[f32]) -> Self {
        let units = x.chunks(UNIT).map(Unit::new).collect();
        Self { len: x.len(), units }
    }
}

impl Unit {
    fn new(x: &[f32]) -> Self {
        let mut unit = Self {
            q: [0; UNIT],
            scales: [0.0; 16],
            sums: [0.0; 16],
        };
        for (index, (x, q)) in x.chunks(GROUP).zip(unit.q.chunks_mut(GROUP)).enumerate() {
            // Magnitudes in the order of their bits: infinity above all numbers, and a NaN above that.
            let largest = x
                .iter()
                .map(|x| x.to_bits() & 0x7fff_ffff)
                .max()
                .map_or(0.0, f32::from_bits);
            let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let scale = if largest.is_finite() { largest / 127.0 } else { f32::NAN };
            for (x, q) in x.iter().zip(&mut *q) {
                // The cast saturates, and makes a NaN zero: the group's scale is NaN then.
                *q = (x * inverse + ROUND - ROUND) as i8;
            }
            for (half, q) in q.chunks(16).enumerate() {
                let sum: i32 = q.iter().map(|&q| i32::from(q)).sum();
                unit.scales[2 * index + half] = scale;
                unit.sums[2 * index + half] = scale * sum as f32;
            }
        }
        unit
    }
}

/// 256 weights: bytes, and a scale and a minimum for each 16.
struct Weights {
    n: [u8; UNIT],
    scales: [f32; 16],
    minimums: [f32; 16],
}

/// A format: a block of `B` bytes holds 256 weights.
trait Format<const B: usize> {
    fn unpack(block: &[u8; B], weights: &mut Weights);
}

macro_rules! formats {
    ($($name:ident: $bytes:literal bytes, |$block:ident, $weights:ident| $unpack:block)*) => {$(
        struct $name;
        impl Format<$bytes> for $name {
            #[inline(always)]
            fn unpack($block: &[u8; $bytes], $weights: &mut Weights) $unpack
        }
    )*};
}

formats! {
    Q4K: 144 bytes, |block, weights| {
        let (d, dmin) = (f16_at(block, 0), f16_at(block, 2));
        for (j, (scale, min)) in scale_min_pairs(&bytes_at(block, 4)).into_iter().enumerate() {
            group(weights, j, d * f32::from(scale), -dmin * f32::from(min));
        }
        for pair in 0..4 {
            let q: [u8; 32] = bytes_at(block, 16 + 32 * pair);
            let n = &mut weights.n[64 * pair..64 * pair + 64];
            for i in 0..32 {
                n[i] = q[i] & 15;
                n[32 + i] = q[i] >> 4;
            }
        }
    }
    Q6K: 210 bytes, |block, weights| {
        let d = f16_at(block, 208);
        let scales: [u8; 16] = bytes_at(block, 192);
        for (j, scale) in scales.into_iter().enumerate() {
            weights.scales[j] = d * f32::from(scale.cast_signed());
            weights.minimums[j] = -32.0 * weights.scales[j];
        }
        for half in 0..2 {
            weights.n[128 * half..128 * half + 128].copy_from_slice(&q6_k_numbers(block, half));
        }
    }
}

/// The scale and the minimum of group `index`.
#[inline(always)]
fn group(weights: &mut Weights, index: usize, scale: f32, minimum: f32) {
    for j in 2 * index..2 * index + 2 {
        weights.scales[j] = scale;
        weights.minimums[j] = minimum;
    }
}

/// A dot product of whole blocks with as many activations.
type Dot = fn(&[u8], &[Unit]) -> f32;

/// The ways to multiply; each value is one that this CPU has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Path {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Vnni,
}

impl Path {
    /// All ways of this CPU, the quickest last.
    fn available() -> Vec<Self> {
        #[allow(unused_mut)] // other targets have one path
        let mut paths = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        {
            if x86::has_avx2() {
                paths.push(Self::Avx2);
            }
            if x86::has_vnni() {
                paths.push(Self::Vnni);
            }
        }
        paths
    }
}

fn dot_of(ty: TensorType, path: Path) -> Option<Dot> {
    Some(match ty {
        TensorType::Q4K => path_of::<Q4K, 144>(path),
        TensorType::Q6K => path_of::<Q6K, 210>(path),
        _ => return None,
    })
}

fn path_of<F: Format<B>, const B: usize>(path: Path) -> Dot {
    match path {
        Path::Plain => |row, x| row_dot::<F, B>(row, x, unit_dot),
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => x86::dot_avx2::<F, B>,
        #[cfg(target_arch = "x86_64")]
        Path::Vnni => x86::dot_vnni::<F, B>,
    }
}

/// Whether [`int8_dots`] knows the type: `q4_K` and `q6_K`. Formats with blocks of 32 are quicker with activations in f32.
#[must_use]
pub fn has_int8_dots(ty: TensorType) -> bool {
    dot_of(ty, Path::Plain).is_some()
}

/// The dot product of each row with `x`, as [`super::dots`] with activations of 8 bits. The order of the sums depends on the length of `x`
/// and on the CPU.
///
/// # Errors
/// [`GgufError::NoDecoder`] for a type without integer products; [`GgufError::PartialBlockValues`] for `x`; [`GgufError::WrongRows`] where
/// `rows` is not one row of blocks for every place of `out`.
pub fn int8_dots(ty: TensorType, rows: &[u8], x: &Int8Row, out: &mut [f32]) -> Result<()> {
    let path = *Path::available().last().unwrap_or(&Path::Plain);
    let dot = dot_of(ty, path).ok_or(GgufError::NoDecoder { ty })?;
    let row_bytes = super::row_bytes(ty, x.len, rows.len(), out.len())?;
    if row_bytes == 0 {
        out.fill(0.0);
        return Ok(());
    }
    for (row, out) in rows.chunks_exact(row_bytes).zip(out) {
        *out = dot(row, &x.units);
    }
    Ok(())
}

/// A row's units, each multiplied by `unit`, which adds to sixteen sums.
#[inline(always)]
fn row_dot<F: Format<B>, const B: usize>(
    row: &[u8],
    x: &[Unit],
    unit: impl Fn(&Weights, &Unit, &mut [f32; 16]),
) -> f32 {
    let (blocks, _) = row.as_chunks::<B>();
    let mut sums = [0.0; 16];
    for (block, x) in blocks.iter().zip(x) {
        let mut weights = Weights {
            n: [0; UNIT],
            scales: [0.0; 16],
            minimums: [0.0; 16],
        };
        F::unpack(block, &mut weights);
        unit(&weights, x, &mut sums);
    }
    let mut width = 8;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// `sums[j]` takes the products of sixteen weights.
fn unit_dot(weights: &Weights, x: &Unit, sums: &mut [f32; 16]) {
    for (j, sum) in sums.iter_mut().enumerate() {
        let at = 16 * j..16 * j + 16;
        let products = weights.n[at.clone()].iter().zip(&x.q[at]);
        let product: i32 = products.map(|(&n, &q)| i32::from(n) * i32::from(q)).sum();
        *sum += weights.scales[j] * x.scales[j] * product as f32 + weights.minimums[j] * x.sums[j];
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Format, UNIT, Unit, Weights, row_dot};

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    pub(super) fn has_vnni() -> bool {
        has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
    }

    pub(super) fn dot_avx2<F: Format<B>, const B: usize>(row: &[u8], x: &[Unit]) -> f32 {
        // SAFETY: `Path::Avx2` exists only where `has_avx2` holds.
        unsafe { row_avx2::<F, B>(row, x) }
    }

    pub(super) fn dot_vnni<F: Format<B>, const B: usize>(row: &[u8], x: &[Unit]) -> f32 {
        // SAFETY: `Path::Vnni` exists only where `has_vnni` holds.
        unsafe { row_vnni::<F, B>(row, x) }
    }

    #[target_feature(enable = "avx2,fma")]
    fn row_avx2<F: Format<B>, const B: usize>(row: &[u8], x: &[Unit]) -> f32 {
        row_dot::<F, B>(row, x, |weights, x, sums| unit_avx2(weights, x, sums))
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni,avx2,fma")]
    fn row_vnni<F: Format<B>, const B: usize>(row: &[u8], x: &[Unit]) -> f32 {
        row_dot::<F, B>(row, x, |weights, x, sums| unit_vnni(weights, x, sums))
    }

    /// Eight sums of four products for 32 weights; each half of them has a scale.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn unit_avx2(weights: &Weights, x: &Unit, sums: &mut [f32; 16]) {
        let mut scales = [0.0f32; 16];
        for (j, scale) in scales.iter_mut().enumerate() {
            *scale = weights.scales[j] * x.scales[j];
            sums[8 + j / 2] += weights.minimums[j] * x.sums[j];
        }
        // SAFETY: reads the first eight values of the array; no alignment is asked for.
        let mut total = unsafe { _mm256_loadu_ps(sums.as_ptr()) };
        let (n, _) = weights.n.as_chunks::<32>();
        let (q, _) = x.q.as_chunks::<32>();
        for (index, (n, q)) in n.iter().zip(q).enumerate() {
            // SAFETY: reads the 32 bytes of the array; no alignment is asked for.
            let n = unsafe { _mm256_loadu_si256(n.as_ptr().cast()) };
            // SAFETY: as above.
            let q = unsafe { _mm256_loadu_si256(q.as_ptr().cast()) };
            // Two products of 8 bits may pass 16: those of even and odd places are added as 32 bits.
            let low = _mm256_and_si256(n, _mm256_set1_epi16(0x00ff));
            let even = _mm256_madd_epi16(low, _mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(q)));
            let odd = _mm256_madd_epi16(_mm256_srli_epi16::<8>(n), _mm256_srai_epi16::<8>(q));
            let products = _mm256_cvtepi32_ps(_mm256_add_epi32(even, odd));
            let [a, b] = [scales[2 * index % 16], scales[(2 * index + 1) % 16]];
            let scale = _mm256_set_m128(_mm_set1_ps(b), _mm_set1_ps(a));
            total = _mm256_fmadd_ps(scale, products, total);
        }
        // SAFETY: writes the first eight values of the array; no alignment is asked for.
        unsafe { _mm256_storeu_ps(sums.as_mut_ptr(), total) };
    }

    /// Sixteen sums of four products for 64 weights; each quarter of them has a scale.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    fn unit_vnni(weights: &Weights, x: &Unit, sums: &mut [f32; 16]) {
        let mut total = load(sums);
        let scales = _mm512_mul_ps(load(&weights.scales), load(&x.scales));
        total = _mm512_fmadd_ps(load(&weights.minimums), load(&x.sums), total);
        for index in 0..UNIT / 64 {
            let at = 64 * index..64 * index + 64;
            let (n, q) = (&weights.n[at.clone()], &x.q[at]);
            // SAFETY: reads the 64 bytes of the slice; no alignment is asked for.
            let n = unsafe { _mm512_loadu_si512(n.as_ptr().cast()) };
            // SAFETY: as above.
            let q = unsafe { _mm512_loadu_si512(q.as_ptr().cast()) };
            let products = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), n, q));
            let first = 4 * index as i32;
            let quarter = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
            let scale = _mm512_permutexvar_ps(_mm512_add_epi32(quarter, _mm512_set1_epi32(first)), scales);
            total = _mm512_fmadd_ps(scale, products, total);
        }
        // SAFETY: writes the sixteen values of the array; no alignment is asked for.
        unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), total) };
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn load(values: &[f32; 16]) -> __m512 {
        // SAFETY: reads the sixteen values of the array; no alignment is asked for.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks;

    const TYPES: [TensorType; 2] = [TensorType::Q4K, TensorType::Q6K];

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32)
            .map(|i| ((i + seed).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
            .collect()
    }

    /// What the rounded activations stand for.
    fn rounded(x: &Int8Row) -> Vec<f64> {
        let values = x.units.iter().flat_map(|unit| {
            let scaled = |i: usize| f64::from(unit.scales[i / 16]) * f64::from(unit.q[i]);
            (0..UNIT).map(scaled).collect::<Vec<_>>()
        });
        values.take(x.len).collect()
    }

    #[test]
    fn every_path_multiplies_the_rounded_activations() {
        for ty in TYPES {
            for blocks in [1usize, 2, 7, 9, 33] {
                let n = blocks * ty.block_len();
                let row = blocks::quantize(ty, &noise(n, 7)).expect("whole blocks");
                let mut decoded = vec![0.0; n];
                blocks::dequantize(ty, &row, &mut decoded).expect("whole blocks");
                let values = noise(n, 1000);
                let x = Int8Row::new(&values);
                let products = || decoded.iter().zip(rounded(&x)).map(|(&w, x)| f64::from(w) * x);
                let (exact, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                for path in Path::available() {
                    let found = dot_of(ty, path).expect("in the table")(&row, &x.units);
                    let difference = (f64::from(found) - exact).abs();
                    // A minimum takes back up to 128 times the scale: cancellation beside the sum of magnitudes.
                    assert!(
                        difference <= 2e-5 * size,
                        "{ty:?} {blocks} {path:?}: {found} for {exact}"
                    );
                }
            }
        }
    }

    #[test]
    fn rounding_costs_less_than_ggml_allows() {
        for ty in TYPES {
            let (k, count) = (2048, 64);
            let rows = blocks::quantize(ty, &noise(k * count, 3)).expect("whole blocks");
            let mut decoded = vec![0.0; k * count];
            blocks::dequantize(ty, &rows, &mut decoded).expect("whole blocks");
            let x = noise(k, 99);
            let mut found = vec![f32::NAN; count];
            int8_dots(ty, &rows, &Int8Row::new(&x), &mut found).expect("whole rows");
            let (mut error, mut size) = (0.0, 0.0);
            for (row, found) in decoded.chunks(k).zip(found) {
                let exact: f64 = row.iter().zip(&x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
                error += (f64::from(found) - exact).powi(2);
                size += exact * exact;
            }
            assert!(error <= 5e-4 * size, "{ty:?}: {}", error / size);
        }
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        // Every number of q6_K is 63 - 32 or 0 - 32, times a scale of 127 or -128 and 1; activations at the end of their range.
        for (byte, number) in [(0xffu8, 31.0), (0, -32.0)] {
            for scale in [127i8, -128] {
                let mut row = vec![byte; 210];
                row[192..208].fill(scale.cast_unsigned());
                row[208..].copy_from_slice(&0x3c00u16.to_le_bytes());
                for sign in [-1.0f32, 1.0] {
                    let x = Int8Row::new(&[127.0 * sign; UNIT]);
                    let exact = number * f64::from(scale) * 127.0 * f64::from(sign) * UNIT as f64;
                    for path in Path::available() {
                        let found = dot_of(TensorType::Q6K, path).expect("in the table")(&row, &x.units);
                        assert!(
                            (f64::from(found) - exact).abs() <= 1e-5 * exact.abs(),
                            "{path:?}: {found} for {exact}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_not_finite_is_a_nan() {
        for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = vec![1.0; UNIT];
            x[40] = odd;
            let row = blocks::quantize(TensorType::Q4K, &noise(UNIT, 1)).expect("whole blocks");
            let mut out = [0.0];
            int8_dots(TensorType::Q4K, &row, &Int8Row::new(&x), &mut out).expect("one row");
            assert!(out[0].is_nan(), "{odd}: {}", out[0]);
        }
    }
}
