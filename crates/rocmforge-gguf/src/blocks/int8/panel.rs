//! Panels: the weights of sixteen rows side by side, for products with many rows of activations.

use bytemuck::{Pod, Zeroable};

use super::{Format, Path, Q4_0, Q4_1, Q4K, Q6K, Q8_0, UNIT, Weights, padded};
use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;

/// Rows of a panel: the lanes of a vector of AVX-512.
pub const INT8_LANES: usize = 16;

/// 256 weights of each of sixteen rows: `scale * n + minimum`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Int8Panel {
    /// Of each four depths: four numbers of each row.
    pub n: [[u8; 4 * INT8_LANES]; UNIT / 4],
    /// Of each 16 depths: the scale of each row.
    pub scales: [[f32; INT8_LANES]; 16],
    /// Of each 16 depths: the minimum of each row.
    pub minimums: [[f32; INT8_LANES]; 16],
}

/// Packs the weights of unit `unit`, which are 256 or what is left of the rows: depths beyond keep what they had. `rows` are 1 to 16 rows of
/// `row_bytes` bytes; the last one also takes the place of those that are missing.
///
/// # Errors
/// [`GgufError::NoDecoder`] for a type that [`has_int8_dots`](super::has_int8_dots) does not know; [`GgufError::WrongRows`] where `rows` is not 1 to 16
/// rows of whole blocks that have such a unit.
pub fn pack_int8(ty: TensorType, rows: &[u8], row_bytes: usize, unit: usize, panel: &mut Int8Panel) -> Result<()> {
    pack_by(Path::best(), ty, rows, row_bytes, unit, panel)
}

pub(super) fn pack_by(
    path: Path,
    ty: TensorType,
    rows: &[u8],
    row_bytes: usize,
    unit: usize,
    panel: &mut Int8Panel,
) -> Result<()> {
    let pack = match ty {
        TensorType::Q4_0 => pack::<Q4_0, 144>,
        TensorType::Q4_1 => pack::<Q4_1, 160>,
        TensorType::Q8_0 => pack::<Q8_0, 272>,
        TensorType::Q4K => pack::<Q4K, 144>,
        TensorType::Q6K => pack::<Q6K, 210>,
        _ => return Err(GgufError::NoDecoder { ty }),
    };
    let unit_bytes = UNIT / ty.block_len() * ty.block_bytes();
    let count = rows.len() / row_bytes.max(1);
    let whole = row_bytes.is_multiple_of(ty.block_bytes()) && count * row_bytes == rows.len();
    let start = unit.saturating_mul(unit_bytes);
    if !whole || !(1..=INT8_LANES).contains(&count) || start >= row_bytes {
        return Err(GgufError::WrongRows {
            ty,
            rows: count,
            row_bytes,
            found: rows.len(),
        });
    }
    let blocks = Blocks {
        rows,
        at: std::array::from_fn(|lane| lane.min(count - 1) * row_bytes + start),
        len: unit_bytes.min(row_bytes - start),
    };
    #[cfg(target_arch = "x86_64")]
    if path == Path::Vnni && x86::pack(ty, &blocks, panel) {
        return Ok(());
    }
    let _ = path;
    pack(&blocks, panel);
    Ok(())
}

/// The same unit of sixteen rows: `len` bytes from each place of `at` on, which lie in `rows`.
struct Blocks<'a> {
    rows: &'a [u8],
    at: [usize; INT8_LANES],
    len: usize,
}

fn pack<F: Format<B>, const B: usize>(blocks: &Blocks<'_>, panel: &mut Int8Panel) {
    let depths = blocks.len * UNIT / B;
    let mut weights = Weights::zeroed();
    for (lane, at) in blocks.at.into_iter().enumerate() {
        let bytes = &blocks.rows[at..at + blocks.len];
        match bytes.try_into() {
            Ok(whole) => F::unpack(whole, &mut weights),
            Err(_) => F::unpack(&padded(bytes), &mut weights),
        }
        let fours = weights.n.as_chunks::<4>().0;
        for (line, four) in panel.n.iter_mut().zip(&fours[..depths / 4]) {
            line.as_chunks_mut::<4>().0[lane] = *four;
        }
        for group in 0..depths / 16 {
            panel.scales[group][lane] = weights.scales[group];
            panel.minimums[group][lane] = weights.minimums[group];
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{Blocks, INT8_LANES, Int8Panel};
    use crate::blocks::avx512::scales_and_minimums;
    use crate::tensor_type::TensorType;

    /// Whether there is a way for the type, which then has been taken. Only for [`Path::Vnni`](super::Path::Vnni).
    pub(super) fn pack(ty: TensorType, blocks: &Blocks<'_>, panel: &mut Int8Panel) -> bool {
        assert!(
            blocks.at.iter().all(|at| at + blocks.len <= blocks.rows.len()),
            "rows end before their unit does"
        );
        // SAFETY: every CPU of this target has SSE.
        unsafe { prefetch_next(blocks) };
        match ty {
            // SAFETY: `Path::Vnni` exists only where `has_vnni` holds.
            TensorType::Q4_0 => unsafe { fours::<18, 2, false>(blocks, panel) },
            // SAFETY: as above.
            TensorType::Q4_1 => unsafe { fours::<20, 4, true>(blocks, panel) },
            // SAFETY: as above.
            TensorType::Q8_0 => unsafe { eights(blocks, panel) },
            // SAFETY: as above.
            TensorType::Q4K => unsafe { fours_k(blocks, panel) },
            _ => return false,
        }
        true
    }

    /// Asks for the next sixteen rows, which are likely packed next.
    #[target_feature(enable = "sse")]
    fn prefetch_next(blocks: &Blocks<'_>) {
        for at in blocks.at {
            for line in (0..blocks.len).step_by(64) {
                let ahead = (blocks.rows.as_ptr()).wrapping_add(blocks.rows.len() + at + line);
                _mm_prefetch::<_MM_HINT_T0>(ahead.cast());
            }
        }
    }

    /// Blocks of 32 numbers of 4 bits from byte `N` on, after `d`, and with `MINIMUM` `m`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn fours<const B: usize, const N: usize, const MINIMUM: bool>(blocks: &Blocks<'_>, panel: &mut Int8Panel) {
        for block in 0..blocks.len / B {
            let heads = words(blocks, B * block);
            let d = halves(heads);
            let m = match MINIMUM {
                true => halves(_mm512_srli_epi32::<16>(heads)),
                false => _mm512_mul_ps(d, _mm512_set1_ps(-8.0)),
            };
            group(panel, block, d, m);
            nibbles(panel, 8 * block, 8 * block + 4, lines(blocks, B * block + N));
        }
    }

    /// Blocks of `q8_0`: `d` and 32 signed bytes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn eights(blocks: &Blocks<'_>, panel: &mut Int8Panel) {
        for block in 0..blocks.len / 34 {
            let d = halves(words(blocks, 34 * block));
            group(panel, block, d, _mm512_mul_ps(d, _mm512_set1_ps(-128.0)));
            for half in 0..2 {
                let lines = lines(blocks, 34 * block + 2 + 16 * half);
                for (line, values) in panel.n[8 * block + 4 * half..].iter_mut().zip(lines) {
                    store(line, _mm512_xor_si512(values, _mm512_set1_epi8(-128)));
                }
            }
        }
    }

    /// A block of `q4_K`: `d`, `dmin`, eight scales and minimums of 6 bits, and four times 32 bytes with the numbers of two groups.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn fours_k(blocks: &Blocks<'_>, panel: &mut Int8Panel) {
        let heads = words(blocks, 0);
        let d = halves(heads);
        let dmin = _mm512_sub_ps(_mm512_setzero_ps(), halves(_mm512_srli_epi32::<16>(heads)));
        let mut scales = [0u64; INT8_LANES];
        let mut minimums = [0u64; INT8_LANES];
        for (lane, at) in blocks.at.into_iter().enumerate() {
            if let Some(head) = blocks.rows[at..].first_chunk::<16>() {
                (scales[lane], minimums[lane]) = scales_and_minimums(head);
            }
        }
        for index in 0..8 {
            let scale = _mm512_mul_ps(bytes(&scales, index), d);
            group(panel, index, scale, _mm512_mul_ps(bytes(&minimums, index), dmin));
        }
        for pair in 0..4 {
            for half in 0..2 {
                let first = 16 * pair + 4 * half;
                nibbles(panel, first, first + 8, lines(blocks, 16 + 32 * pair + 16 * half));
            }
        }
    }

    /// Byte `index` of each number.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn bytes(numbers: &[u64; INT8_LANES], index: usize) -> __m512 {
        let shift = _mm_cvtsi64_si128(8 * index as i64);
        let mut eights = [_mm256_setzero_si256(); 2];
        for (eight, numbers) in eights.iter_mut().zip(numbers.as_chunks::<8>().0) {
            // SAFETY: reads the eight numbers of the array; no alignment is asked for.
            let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
            *eight = _mm512_cvtepi64_epi32(_mm512_and_si512(
                _mm512_srl_epi64(numbers, shift),
                _mm512_set1_epi64(255),
            ));
        }
        let both = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(eights[0]), eights[1]);
        _mm512_cvtepi32_ps(both)
    }

    /// The scales and minimums of 32 depths.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn group(panel: &mut Int8Panel, index: usize, scales: __m512, minimums: __m512) {
        for half in 2 * index..2 * index + 2 {
            // SAFETY: writes the sixteen values of the array; no alignment is asked for.
            unsafe { _mm512_storeu_ps(panel.scales[half].as_mut_ptr(), scales) };
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(panel.minimums[half].as_mut_ptr(), minimums) };
        }
    }

    /// The lower nibbles to four lines, the upper ones to four others.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn nibbles(panel: &mut Int8Panel, low: usize, high: usize, lines: [__m512i; 4]) {
        let nibble = _mm512_set1_epi8(15);
        for (index, values) in lines.into_iter().enumerate() {
            store(&mut panel.n[low + index], _mm512_and_si512(values, nibble));
            store(
                &mut panel.n[high + index],
                _mm512_and_si512(_mm512_srli_epi32::<4>(values), nibble),
            );
        }
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn store(line: &mut [u8; 64], values: __m512i) {
        // SAFETY: writes the 64 bytes of the array; no alignment is asked for.
        unsafe { _mm512_storeu_si512(line.as_mut_ptr().cast(), values) };
    }

    /// The f16 in the lower half of each lane.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn halves(words: __m512i) -> __m512 {
        _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words))
    }

    /// The four bytes at `at` of each row's unit.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn words(blocks: &Blocks<'_>, at: usize) -> __m512i {
        let low = _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(four_words(blocks, 0, at)),
            four_words(blocks, 4, at),
        );
        let high = _mm256_inserti128_si256::<1>(
            _mm256_castsi128_si256(four_words(blocks, 8, at)),
            four_words(blocks, 12, at),
        );
        _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
    }

    /// Not by way of an array: a load of numbers that were just stored one by one waits for all of them.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn four_words(blocks: &Blocks<'_>, first: usize, at: usize) -> __m128i {
        let [a, b, c, d] = [first, first + 1, first + 2, first + 3];
        _mm_setr_epi32(
            word(blocks, a, at),
            word(blocks, b, at),
            word(blocks, c, at),
            word(blocks, d, at),
        )
    }

    #[inline(always)]
    fn word(blocks: &Blocks<'_>, lane: usize, at: usize) -> i32 {
        let bytes = &blocks.rows[blocks.at[lane] + at..][..4];
        i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// Sixteen bytes at `at` of each row's unit: line `i` has bytes `4 * i` to `4 * i + 3` of all rows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn lines(blocks: &Blocks<'_>, at: usize) -> [__m512i; 4] {
        let mut quarters = [_mm512_setzero_si512(); 4];
        for (row, v) in quarters.iter_mut().enumerate() {
            // Row `row` of each four rows, so that the lanes of 128 bits are the fours.
            let a = sixteen(blocks, row, at);
            let b = sixteen(blocks, 4 + row, at);
            let c = sixteen(blocks, 8 + row, at);
            let d = sixteen(blocks, 12 + row, at);
            let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(a), b);
            let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(c), d);
            *v = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
        }
        let [a, b, c, d] = quarters;
        let (low_ab, high_ab) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
        let (low_cd, high_cd) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
        [
            _mm512_unpacklo_epi64(low_ab, low_cd),
            _mm512_unpackhi_epi64(low_ab, low_cd),
            _mm512_unpacklo_epi64(high_ab, high_cd),
            _mm512_unpackhi_epi64(high_ab, high_cd),
        ]
    }

    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,f16c")]
    #[inline]
    fn sixteen(blocks: &Blocks<'_>, lane: usize, at: usize) -> __m128i {
        let bytes = &blocks.rows[blocks.at[lane] + at..][..16];
        // SAFETY: reads the sixteen bytes of the slice; no alignment is asked for.
        unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
    }
}
