//! Dot products of quantised rows with activations rounded to 8 bits: products of integers, added in i32.
//!
//! Activations are `scale * q` with `q` in -127 ..= 127 and a scale for each 32 of them. A weight is `scale * n + minimum` with `n` in
//! 0 ..= 255 and a scale and a minimum for each 16. 256 weights at a time become bytes, then all formats are the same. Sums of products
//! are exact on every path (AVX-512 VNNI, AVX2, any CPU); they are scaled and added in f32.

use bytemuck::{Pod, Zeroable};

use super::decode::{bytes_at, f16_at};
use super::decode_k::{q6_k_numbers, scale_min_pairs};
use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;
use std::sync::OnceLock;

mod panel;

pub use panel::{INT8_LANES, Int8Panel, pack_int8};

/// Weights that are unpacked together, and activations that lie together.
pub const INT8_UNIT: usize = 256;

const UNIT: usize = INT8_UNIT;

/// 1.5 * 2^23: a number to which this is added has no fraction.
const ROUND: f32 = 12_582_912.0;

/// Activations with one scale.
const GROUP: usize = 32;

/// 256 activations of a row rounded to 8 bits, zeros beyond the row's end. An activation differs from what is kept of it by at most 1/254
/// of the largest magnitude of its 32. A group with a NaN or an infinity is NaN.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Int8Unit {
    /// The rounded activations, -127 ..= 127.
    pub q: [i8; INT8_UNIT],
    /// The scale of each 16, twice the same for a group of 32.
    pub scales: [f32; 16],
    /// Sums of the rounded activations of each 16, times their scale.
    pub sums: [f32; 16],
}

/// Rounds a row; `units` has a place for each 256 activations, the last of which may be fewer.
pub fn round_to_int8(x: &[f32], units: &mut [Int8Unit]) {
    #[cfg(target_arch = "x86_64")]
    if x86::has_avx2() {
        return x86::round(x, units);
    }
    round(x, units);
}

#[inline(always)]
fn round(x: &[f32], units: &mut [Int8Unit]) {
    for (x, unit) in x.chunks(UNIT).zip(units) {
        unit.set(x);
    }
}

impl Int8Unit {
    #[inline(always)]
    fn set(&mut self, x: &[f32]) {
        *self = Self::zeroed();
        for (index, (x, q)) in x.chunks(GROUP).zip(self.q.chunks_mut(GROUP)).enumerate() {
            // Magnitudes in the order of their bits: infinity above all numbers, and a NaN above that.
            let largest = x.iter().map(|x| x.to_bits() & 0x7fff_ffff).max();
            let largest = largest.map_or(0.0, f32::from_bits);
            let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
            let scale = if largest.is_finite() { largest / 127.0 } else { f32::NAN };
            for (x, q) in x.iter().zip(&mut *q) {
                // The sum's last bits are the integer. What they are of a NaN does not matter: the group's scale is NaN then.
                *q = (x * inverse + ROUND).to_bits() as i8;
            }
            for (half, q) in q.chunks(16).enumerate() {
                let sum: i32 = q.iter().map(|&q| i32::from(q)).sum();
                self.scales[2 * index + half] = scale;
                self.sums[2 * index + half] = scale * sum as f32;
            }
        }
    }
}

/// 256 weights: `scale * n + minimum`, with a scale and a minimum for each 16.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
struct Weights {
    /// The numbers.
    n: [u8; UNIT],
    /// The scale of each 16.
    scales: [f32; 16],
    /// The minimum of each 16.
    minimums: [f32; 16],
}

/// A format: `B` bytes of blocks hold 256 weights.
trait Format<const B: usize> {
    /// Whether four rows at a time are quicker with AVX-512: blocks that take more of the memory's time than of the core's.
    const FOUR_ROWS: bool = B > 256;

    fn unpack(blocks: &[u8; B], weights: &mut Weights);

    /// The same in registers: 64 numbers each, then scales and minimums.
    ///
    /// # Safety
    /// `x86::has_vnni` holds.
    #[cfg(target_arch = "x86_64")]
    unsafe fn vectors(blocks: &[u8; B]) -> x86::Vectors;
}

macro_rules! formats {
    ($($name:ident: $bytes:literal bytes, $vectors:expr, |$block:ident, $weights:ident| $unpack:block)*) => {$(
        struct $name;
        impl Format<$bytes> for $name {
            #[inline(always)]
            fn unpack($block: &[u8; $bytes], $weights: &mut Weights) $unpack

            #[cfg(target_arch = "x86_64")]
            #[inline(always)]
            unsafe fn vectors(blocks: &[u8; $bytes]) -> x86::Vectors {
                // SAFETY: the caller vouches for `has_vnni`.
                unsafe { $vectors(blocks) }
            }
        }
    )*};
}

formats! {
    Q4_0: 144 bytes, x86::q4_0, |blocks, weights| {
        for j in 0..8 {
            let d = f16_at(blocks, 18 * j);
            nibbles(&bytes_at(blocks, 18 * j + 2), weights, j);
            group(weights, j, d, -8.0 * d);
        }
    }
    Q4_1: 160 bytes, x86::q4_1, |blocks, weights| {
        for j in 0..8 {
            nibbles(&bytes_at(blocks, 20 * j + 4), weights, j);
            group(weights, j, f16_at(blocks, 20 * j), f16_at(blocks, 20 * j + 2));
        }
    }
    Q8_0: 272 bytes, x86::q8_0, |blocks, weights| {
        for j in 0..8 {
            let d = f16_at(blocks, 34 * j);
            let q: [u8; 32] = bytes_at(blocks, 34 * j + 2);
            for (n, q) in weights.n[32 * j..32 * j + 32].iter_mut().zip(q) {
                *n = q ^ 128;
            }
            group(weights, j, d, -128.0 * d);
        }
    }
    Q4K: 144 bytes, x86::q4_k, |block, weights| {
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
    Q6K: 210 bytes, x86::q6_k, |block, weights| {
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

/// The 32 numbers of group `index`, two in a byte.
#[inline(always)]
fn nibbles(q: &[u8; 16], weights: &mut Weights, index: usize) {
    let n = &mut weights.n[32 * index..32 * index + 32];
    for i in 0..16 {
        n[i] = q[i] & 15;
        n[16 + i] = q[i] >> 4;
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

/// The dot products of rows with a row of activations, one for each place.
type Dots = fn(&[u8], &[Int8Unit], &mut [f32]);

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
    /// The quickest way of this CPU.
    fn best() -> Self {
        static BEST: OnceLock<Path> = OnceLock::new();
        *BEST.get_or_init(|| *Self::available().last().unwrap_or(&Self::Plain))
    }

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

fn dots_of(ty: TensorType, path: Path) -> Option<Dots> {
    Some(match ty {
        TensorType::Q4_0 => path_of::<Q4_0, 144>(path),
        TensorType::Q4_1 => path_of::<Q4_1, 160>(path),
        TensorType::Q8_0 => path_of::<Q8_0, 272>(path),
        TensorType::Q4K => path_of::<Q4K, 144>(path),
        TensorType::Q6K => path_of::<Q6K, 210>(path),
        _ => return None,
    })
}

fn path_of<F: Format<B>, const B: usize>(path: Path) -> Dots {
    match path {
        Path::Plain => |rows, x, out| each_row(rows, out, |row| row_dot::<F, B>(row, x, unit_dot)),
        #[cfg(target_arch = "x86_64")]
        Path::Avx2 => x86::dots_avx2::<F, B>,
        #[cfg(target_arch = "x86_64")]
        Path::Vnni => x86::dots_vnni::<F, B>,
    }
}

/// Whether [`int8_dots`] and [`pack_int8`] know the type: `q4_0`, `q4_1`, `q8_0`, `q4_K` and `q6_K`.
#[must_use]
pub fn has_int8_dots(ty: TensorType) -> bool {
    dots_of(ty, Path::Plain).is_some()
}

/// The dot product of each row with the activations `x` of `len` elements, as [`super::dots`] with activations of 8 bits. The order of the
/// sums depends on `len` and on the CPU.
///
/// # Errors
/// [`GgufError::NoDecoder`] for a type without integer products; [`GgufError::PartialBlockValues`] for `len`; [`GgufError::WrongRows`] where
/// `rows` is not one row of blocks for every place of `out`, or `x` is not the units of a row.
pub fn int8_dots(ty: TensorType, rows: &[u8], x: &[Int8Unit], len: usize, out: &mut [f32]) -> Result<()> {
    let dots = dots_of(ty, Path::best()).ok_or(GgufError::NoDecoder { ty })?;
    let row_bytes = super::row_bytes(ty, len, rows.len(), out.len())?;
    if x.len() != len.div_ceil(UNIT) {
        return Err(GgufError::WrongRows {
            ty,
            rows: 1,
            row_bytes: len.div_ceil(UNIT),
            found: x.len(),
        });
    }
    if row_bytes == 0 {
        out.fill(0.0);
        return Ok(());
    }
    dots(rows, x, out);
    Ok(())
}

/// The last blocks of a row, with blocks of zeros after them: their scales are zero.
#[inline]
fn padded<const B: usize>(rest: &[u8]) -> [u8; B] {
    let mut blocks = [0; B];
    blocks[..rest.len()].copy_from_slice(rest);
    blocks
}

/// Calls `dot` with each row.
#[inline(always)]
fn each_row(rows: &[u8], out: &mut [f32], dot: impl Fn(&[u8]) -> f32) {
    let row_bytes = rows.len() / out.len().max(1);
    for (row, out) in rows.chunks_exact(row_bytes.max(1)).zip(out) {
        *out = dot(row);
    }
}

/// A row's units, each multiplied by `unit`, which adds to sixteen sums.
#[inline(always)]
fn row_dot<F: Format<B>, const B: usize>(
    row: &[u8],
    x: &[Int8Unit],
    unit: impl Fn(&Weights, &Int8Unit, &mut [f32; 16]),
) -> f32 {
    let (blocks, rest) = row.as_chunks::<B>();
    let last = (!rest.is_empty()).then(|| padded(rest));
    let mut sums = [0.0; 16];
    for (block, x) in blocks.iter().chain(last.as_ref()).zip(x) {
        let mut weights = Weights::zeroed();
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
fn unit_dot(weights: &Weights, x: &Int8Unit, sums: &mut [f32; 16]) {
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

    use bytemuck::Zeroable;

    use super::{Format, Int8Unit, UNIT, Weights, each_row, padded, row_dot};
    use crate::blocks::avx512::{load, prefetch, quarters, scales_and_minimums, sixteen};

    pub(super) fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }

    pub(super) fn has_vnni() -> bool {
        has_avx2()
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vnni")
            && is_x86_feature_detected!("f16c")
    }

    pub(super) fn round(x: &[f32], units: &mut [Int8Unit]) {
        if has_avx2() {
            // SAFETY: `has_avx2` has just found what it asks for.
            unsafe { round_avx2(x, units) }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn round_avx2(x: &[f32], units: &mut [Int8Unit]) {
        super::round(x, units);
    }

    pub(super) fn dots_avx2<F: Format<B>, const B: usize>(rows: &[u8], x: &[Int8Unit], out: &mut [f32]) {
        // SAFETY: `Path::Avx2` exists only where `has_avx2` holds.
        each_row(rows, out, |row| unsafe { row_avx2::<F, B>(row, x) });
    }

    pub(super) fn dots_vnni<F: Format<B>, const B: usize>(rows: &[u8], x: &[Int8Unit], out: &mut [f32]) {
        let row_bytes = (rows.len() / out.len().max(1)).max(1);
        let row = Row::new::<B>(x, row_bytes);
        for (rows, out) in rows.chunks(4 * row_bytes).zip(out.chunks_mut(4)) {
            if F::FOUR_ROWS
                && let Ok(out) = <&mut [f32; 4]>::try_from(&mut *out)
            {
                let (a, rest) = rows.split_at(row_bytes);
                let (b, rest) = rest.split_at(row_bytes);
                let (c, d) = rest.split_at(row_bytes);
                // SAFETY: `Path::Vnni` exists only where `has_vnni` holds.
                *out = unsafe { rows_vnni::<F, B, 4>([a, b, c, d], &row) };
                continue;
            }
            for (bytes, out) in rows.chunks(row_bytes).zip(out) {
                // SAFETY: as above.
                [*out] = unsafe { rows_vnni::<F, B, 1>([bytes], &row) };
            }
        }
    }

    /// A row of activations as rows of weights meet them.
    struct Row<'a> {
        /// Whole units.
        whole: &'a [Int8Unit],
        rest: Rest<'a>,
    }

    /// Activations after the whole units.
    enum Rest<'a> {
        None,
        /// All there are: the weights' blocks are followed by zeros.
        Only(&'a Int8Unit),
        /// At the end of a unit, which meets the row's last bytes: weights that have met theirs before meet zeros.
        AtEnd(Int8Unit),
        /// The same, in the unit's second half.
        InSecondHalf(Int8Unit),
    }

    impl<'a> Row<'a> {
        /// Of as many activations as `row_bytes` bytes hold weights.
        fn new<const B: usize>(x: &'a [Int8Unit], row_bytes: usize) -> Self {
            let (whole, rest) = x.split_at((row_bytes / B).min(x.len()));
            let count = row_bytes % B * UNIT / B;
            let rest = match rest.first() {
                None => Rest::None,
                Some(unit) if whole.is_empty() => Rest::Only(unit),
                Some(unit) if count > UNIT / 2 => Rest::AtEnd(moved(unit, count)),
                Some(unit) => Rest::InSecondHalf(moved(unit, count)),
            };
            Self { whole, rest }
        }
    }

    /// A unit with its first `count` activations, which are whole groups, at its end, and zeros before.
    fn moved(unit: &Int8Unit, count: usize) -> Int8Unit {
        let mut out = Int8Unit::zeroed();
        out.q[UNIT - count..].copy_from_slice(&unit.q[..count]);
        let halves = count / 16;
        out.scales[16 - halves..].copy_from_slice(&unit.scales[..halves]);
        out.sums[16 - halves..].copy_from_slice(&unit.sums[..halves]);
        out
    }

    #[target_feature(enable = "avx2,fma")]
    fn row_avx2<F: Format<B>, const B: usize>(row: &[u8], x: &[Int8Unit]) -> f32 {
        row_dot::<F, B>(row, x, |weights, x, sums| unit_avx2(weights, x, sums))
    }

    /// A row's sum does not depend on the others.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx2,fma,f16c")]
    fn rows_vnni<F: Format<B>, const B: usize, const N: usize>(rows: [&[u8]; N], x: &Row<'_>) -> [f32; N] {
        let mut sums = [[_mm512_setzero_ps(); 2]; N];
        for (index, x) in x.whole.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(rows) {
                let Some(blocks) = row.as_chunks::<B>().0.get(index) else {
                    continue;
                };
                prefetch(blocks);
                // SAFETY: this function runs where `has_vnni` holds.
                unit_vnni::<0>(&unsafe { F::vectors(blocks) }, x, sums);
            }
        }
        for (sums, row) in sums.iter_mut().zip(rows) {
            match (&x.rest, row.last_chunk::<B>()) {
                (Rest::AtEnd(x), Some(blocks)) => {
                    // SAFETY: as above.
                    unit_vnni::<0>(&unsafe { F::vectors(blocks) }, x, sums);
                }
                (Rest::InSecondHalf(x), Some(blocks)) => {
                    // SAFETY: as above.
                    unit_vnni::<2>(&unsafe { F::vectors(blocks) }, x, sums);
                }
                (Rest::Only(x), _) => {
                    // SAFETY: as above.
                    unit_vnni::<0>(&unsafe { F::vectors(&padded(row)) }, x, sums);
                }
                // Nothing is left; or a row shorter than a unit, whose rest is `Only`.
                _ => {}
            }
        }
        let mut out = [0.0; N];
        for (out, sums) in out.iter_mut().zip(sums) {
            *out = _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]));
        }
        out
    }

    /// The f16 at byte `at`, in every lane.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn factor<const B: usize>(block: &[u8; B], at: usize) -> __m512 {
        _mm512_cvtph_ps(_mm256_set1_epi16(i16::from_le_bytes([block[at], block[at + 1]])))
    }

    /// Eight sums of four products for 32 weights; each half of them has a scale.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    fn unit_avx2(weights: &Weights, x: &Int8Unit, sums: &mut [f32; 16]) {
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

    /// 256 weights.
    #[derive(Clone, Copy)]
    pub(super) struct Vectors {
        /// 64 numbers each.
        n: [__m512i; 4],
        /// Of each 16 weights.
        scales: __m512,
        minimums: __m512,
    }

    /// Sixteen sums of four products for each 64 weights from the `FIRST` ones on; each quarter of them has a scale. Activations before are
    /// zeros.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    fn unit_vnni<const FIRST: usize>(weights: &Vectors, x: &Int8Unit, sums: &mut [__m512; 2]) {
        let scales = _mm512_mul_ps(weights.scales, load(&x.scales));
        sums[0] = _mm512_fmadd_ps(weights.minimums, load(&x.sums), sums[0]);
        let quarter = _mm512_set_epi32(3, 3, 3, 3, 2, 2, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0);
        let products = weights.n.iter().zip(x.q.as_chunks::<64>().0).enumerate();
        for (index, (n, q)) in products.skip(FIRST) {
            // SAFETY: reads the 64 bytes of the array; no alignment is asked for.
            let q = unsafe { _mm512_loadu_si512(q.as_ptr().cast()) };
            let products = _mm512_cvtepi32_ps(_mm512_dpbusd_epi32(_mm512_setzero_si512(), *n, q));
            let at = _mm512_add_epi32(quarter, _mm512_set1_epi32(4 * index as i32));
            let sum = &mut sums[(index + 1) % 2];
            *sum = _mm512_fmadd_ps(_mm512_permutexvar_ps(at, scales), products, *sum);
        }
    }

    /// The numbers of two blocks whose nibbles are at `first` and `second`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    fn nibbles<const B: usize>(blocks: &[u8; B], first: usize, second: usize) -> __m512i {
        let both = _mm512_inserti64x4::<1>(
            _mm512_castsi256_si512(_mm256_broadcastsi128_si256(sixteen(blocks, first))),
            _mm256_broadcastsi128_si256(sixteen(blocks, second)),
        );
        let shifts = _mm512_set_epi64(4, 4, 0, 0, 4, 4, 0, 0);
        _mm512_and_si512(_mm512_srlv_epi64(both, shifts), _mm512_set1_epi8(15))
    }

    /// The 32 bytes at `at`.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn thirty_two<const B: usize>(block: &[u8; B], at: usize) -> __m256i {
        let bytes = &block[at..at + 32];
        // SAFETY: reads the 32 bytes of the slice; no alignment is asked for.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    /// 32 lower nibbles, then as many upper ones.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn nibble_pairs<const B: usize>(block: &[u8; B], at: usize) -> __m512i {
        let bytes = thirty_two(block, at);
        let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(bytes), _mm256_srli_epi16::<4>(bytes));
        _mm512_and_si512(both, _mm512_set1_epi8(15))
    }

    /// The signed bytes of two blocks at `first` and `second`, plus 128.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn signed<const B: usize>(blocks: &[u8; B], first: usize, second: usize) -> __m512i {
        let first = _mm512_castsi256_si512(thirty_two(blocks, first));
        let both = _mm512_inserti64x4::<1>(first, thirty_two(blocks, second));
        _mm512_xor_si512(both, _mm512_set1_epi8(-128))
    }

    /// The same vector. The compiler does not see that: it would make the loads of single blocks, which overlap this one, many shuffles
    /// of it.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn opaque(mut v: __m512i) -> __m512i {
        // SAFETY: no instruction.
        unsafe { std::arch::asm!("/* {0} */", inout(zmm_reg) v, options(pure, nomem, nostack, preserves_flags)) };
        v
    }

    /// Sixteen f16: those at the words `at` of the 64 bytes from `first` and from `second` on (32 and more).
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    fn halves<const B: usize>(blocks: &[u8; B], [first, second]: [usize; 2], at: [i16; 8]) -> __m512 {
        let words = |at: usize| {
            let bytes = &blocks[at..at + 64];
            // SAFETY: reads the 64 bytes of the slice; no alignment is asked for.
            unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
        };
        let [a, b, c, d, e, f, g, h] = at;
        let at = _mm256_setr_epi16(a, a, b, b, c, c, d, d, e, e, f, f, g, g, h, h);
        let (first, second) = (opaque(words(first)), opaque(words(second)));
        let picked = _mm512_permutex2var_epi16(first, _mm512_castsi256_si512(at), second);
        _mm512_cvtph_ps(_mm512_castsi512_si256(picked))
    }

    /// # Safety
    /// [`has_vnni`] holds; so for the functions below.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn q4_0(blocks: &[u8; 144]) -> Vectors {
        // Block i begins at word 9 * i.
        let scales = halves(blocks, [0, 64], [0, 9, 18, 27, 36, 45, 54, 63]);
        let n = [
            nibbles(blocks, 2, 20),
            nibbles(blocks, 38, 56),
            nibbles(blocks, 74, 92),
            nibbles(blocks, 110, 128),
        ];
        let minimums = _mm512_mul_ps(scales, _mm512_set1_ps(-8.0));
        Vectors { n, scales, minimums }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn q4_1(blocks: &[u8; 160]) -> Vectors {
        // Block i begins at word 10 * i: the first four in the first 64 bytes, the others from byte 80 on.
        let scales = halves(blocks, [0, 80], [0, 10, 20, 30, 32, 42, 52, 62]);
        let minimums = halves(blocks, [0, 80], [1, 11, 21, 31, 33, 43, 53, 63]);
        let n = [
            nibbles(blocks, 4, 24),
            nibbles(blocks, 44, 64),
            nibbles(blocks, 84, 104),
            nibbles(blocks, 124, 144),
        ];
        Vectors { n, scales, minimums }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn q8_0(blocks: &[u8; 272]) -> Vectors {
        // Block i begins at byte 34 * i.
        let d = |i: usize| i16::from_le_bytes([blocks[34 * i], blocks[34 * i + 1]]);
        let [a, b, c, d, e, f, g, h] = [d(0), d(1), d(2), d(3), d(4), d(5), d(6), d(7)];
        let eight = _mm_setr_epi16(a, b, c, d, e, f, g, h);
        let (low, high) = (_mm_unpacklo_epi16(eight, eight), _mm_unpackhi_epi16(eight, eight));
        let scales = _mm512_cvtph_ps(_mm256_set_m128i(high, low));
        let n = [
            signed(blocks, 2, 36),
            signed(blocks, 70, 104),
            signed(blocks, 138, 172),
            signed(blocks, 206, 240),
        ];
        let minimums = _mm512_mul_ps(scales, _mm512_set1_ps(-128.0));
        Vectors { n, scales, minimums }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn q4_k(block: &[u8; 144]) -> Vectors {
        let (scales, minimums) = scales_and_minimums(block);
        let twice = |eight: u64| {
            let eight = _mm_cvtsi64_si128(eight.cast_signed());
            let n = _mm512_cvtepu8_epi32(_mm_unpacklo_epi8(eight, eight));
            _mm512_cvtepi32_ps(n)
        };
        let scales = _mm512_mul_ps(twice(scales), factor(block, 0));
        let negative = _mm512_sub_ps(_mm512_setzero_ps(), twice(minimums));
        let minimums = _mm512_mul_ps(negative, factor(block, 2));
        let n = [
            nibble_pairs(block, 16),
            nibble_pairs(block, 48),
            nibble_pairs(block, 80),
            nibble_pairs(block, 112),
        ];
        Vectors { n, scales, minimums }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    #[inline]
    pub(super) fn q6_k(block: &[u8; 210]) -> Vectors {
        let scales = _mm512_mul_ps(
            factor(block, 208),
            _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(sixteen(block, 192))),
        );
        let halves = [q6_k_half(block, 0), q6_k_half(block, 1)];
        Vectors {
            n: [halves[0][0], halves[0][1], halves[1][0], halves[1][1]],
            scales,
            minimums: _mm512_mul_ps(scales, _mm512_set1_ps(-32.0)),
        }
    }

    /// 128 numbers of `q6_K`, 0 ..= 63.
    #[target_feature(enable = "avx512f,avx512bw")]
    #[inline]
    fn q6_k_half(block: &[u8; 210], half: usize) -> [__m512i; 2] {
        let (nibble, top) = (_mm512_set1_epi8(15), _mm512_set1_epi8(0x30));
        let low = &block[64 * half..64 * half + 64];
        // SAFETY: reads the 64 bytes of the slice; no alignment is asked for.
        let low = unsafe { _mm512_loadu_si512(low.as_ptr().cast()) };
        let high = &block[128 + 32 * half..160 + 32 * half];
        // SAFETY: reads the 32 bytes of the slice; no alignment is asked for.
        let high = _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(high.as_ptr().cast()) });
        // Quarters 0 and 1 take bits 0 and 1, 2 and 3 of the high bytes, quarters 2 and 3 the next four.
        let left = _mm512_sllv_epi16(high, quarters(4, 2));
        let right = _mm512_srlv_epi16(high, quarters(0, 2));
        let upper = _mm512_and_si512(_mm512_srli_epi16::<4>(low), nibble);
        [
            _mm512_or_si512(_mm512_and_si512(low, nibble), _mm512_and_si512(left, top)),
            _mm512_or_si512(upper, _mm512_and_si512(right, top)),
        ]
    }
}

#[cfg(test)]
mod tests;
