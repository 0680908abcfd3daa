//! Rows of memory: what the lanes of a wave load or store where their addresses lie one behind the other, and where they do not.
//!
//! In memory the words of one lane lie together, in registers those of one number.

use crate::exec::state::wave::Lanes;

/// Whether each lane's value is `step` more than that of the lane before, without passing 32 bits.
#[inline(always)]
pub(crate) fn in_steps(values: &[u32; 32], step: u32) -> bool {
    let first = values[0];
    let inside = first.checked_add(31 * step).is_some();
    #[cfg(target_arch = "x86_64")]
    if super::fast() {
        // SAFETY: `fast` has found that the host has AVX2.
        return inside && unsafe { wide::in_steps(values, step) };
    }
    let mut gap = 0;
    for l in 0..32 {
        gap |= values[l] ^ first.wrapping_add(l as u32 * step);
    }
    inside && gap == 0
}

/// Whether all values are the same.
#[inline(always)]
pub(crate) fn all_equal(values: &[u32; 32]) -> bool {
    in_steps(values, 0)
}

/// The `R` words of each lane, written to as many registers.
#[inline(always)]
pub(crate) fn to_registers<const R: usize>(lanes: &[[[u8; 4]; R]; 32], registers: &mut [Lanes; R]) {
    #[cfg(target_arch = "x86_64")]
    if super::fast()
        && let Some(registers) = registers.first_chunk_mut::<4>()
        && R == 4
        && let Some(bytes) = lanes.as_flattened().as_flattened().first_chunk()
    {
        // SAFETY: `fast` has found that the host has AVX2.
        return unsafe { wide::to_four_registers(bytes, registers) };
    }
    // Into a local, which cannot overlap the source: else each word moves on its own.
    let mut columns = [[0; 32]; R];
    for l in 0..32 {
        for r in 0..R {
            columns[r][l] = u32::from_le_bytes(lanes[l][r]);
        }
    }
    for (register, column) in registers.iter_mut().zip(&columns) {
        register.0 = *column;
    }
}

/// As many registers, written as the `R` words of each lane.
#[inline(always)]
pub(crate) fn from_registers<const R: usize>(registers: &[Lanes; R], lanes: &mut [[[u8; 4]; R]; 32]) {
    #[cfg(target_arch = "x86_64")]
    if super::fast()
        && let Some(registers) = registers.first_chunk::<4>()
        && R == 4
        && let Some(bytes) = lanes.as_flattened_mut().as_flattened_mut().first_chunk_mut()
    {
        // SAFETY: `fast` has found that the host has AVX2.
        return unsafe { wide::from_four_registers(registers, bytes) };
    }
    for l in 0..32 {
        for r in 0..R {
            lanes[l][r] = registers[r].0[l].to_le_bytes();
        }
    }
}

/// Addresses of lanes, as distances from the lowest of them.
pub(crate) struct Distances {
    pub(crate) lowest: u64,
    /// The largest of all.
    pub(crate) largest: u32,
    pub(crate) of: [u32; 32],
}

/// So many bytes may an address lie below that of lane 0, and fewer above it.
const NEAR: u64 = 1 << 30;

/// The distances of the lanes; `None` if one is farther from lane 0 than [`NEAR`] allows.
#[inline(always)]
pub(crate) fn distances(at: &[u64; 32]) -> Option<Distances> {
    #[cfg(target_arch = "x86_64")]
    if super::fast() {
        // SAFETY: `fast` has found that the host has AVX2.
        return unsafe { wide::distances(at) };
    }
    let (mut low, mut high) = (0, 0);
    for address in at {
        let distance = address.wrapping_sub(at[0]) as i64;
        low = distance.min(low);
        high = distance.max(high);
    }
    if low < -(NEAR as i64) || high >= NEAR as i64 {
        return None;
    }
    let lowest = at[0].wrapping_add(low as u64);
    let mut of = [0; 32];
    for l in 0..32 {
        of[l] = at[l].wrapping_sub(lowest) as u32;
    }
    Some(Distances {
        lowest,
        largest: (high - low) as u32,
        of,
    })
}

/// Lets the host fetch as many bytes behind these: most often the next wave accesses them.
#[inline(always)]
pub(crate) fn prefetch_behind<const R: usize>(lanes: &[[[u8; 4]; R]; 32]) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..size_of_val(lanes)).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let behind = lanes.as_ptr_range().end.cast::<i8>().wrapping_add(line);
        // SAFETY: a prefetch accesses nothing, so any address will do; every x86-64 processor has it.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(behind) };
    }
}

#[cfg(target_arch = "x86_64")]
mod wide {
    use super::{Distances, NEAR};
    use crate::exec::state::wave::Lanes;
    use std::arch::x86_64::*;

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn in_steps(values: &[u32; 32], step: u32) -> bool {
        let first = _mm256_set1_epi32(values[0] as i32);
        let lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        let mut gap = _mm256_setzero_si256();
        for (n, eight) in values.as_chunks::<8>().0.iter().enumerate() {
            let lane = _mm256_add_epi32(lane, _mm256_set1_epi32(8 * n as i32));
            let offset = _mm256_mullo_epi32(lane, _mm256_set1_epi32(step as i32));
            // SAFETY: the array has the 32 bytes that are loaded.
            let value = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            gap = _mm256_or_si256(gap, _mm256_xor_si256(value, _mm256_add_epi32(first, offset)));
        }
        _mm256_testz_si256(gap, gap) == 1
    }

    /// The low words of both operands' numbers, in their order.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn low_words(a: __m256i, b: __m256i) -> __m256i {
        let mixed = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
        _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(mixed))
    }

    /// The smallest of eight numbers.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn smallest(eight: __m256i) -> i32 {
        let four = _mm_min_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
        let two = _mm_min_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
        _mm_cvtsi128_si32(_mm_min_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn distances(at: &[u64; 32]) -> Option<Distances> {
        let (first, near) = (_mm256_set1_epi64x(at[0] as i64), _mm256_set1_epi64x(NEAR as i64));
        let zero = _mm256_setzero_si256();
        // From lane 0 on, in words: those of which the rest is not the sign are found by `far`.
        let (mut far, mut low, mut high, mut words) = (zero, zero, zero, [zero; 4]);
        for (n, eight) in at.as_chunks::<8>().0.iter().enumerate() {
            // SAFETY: the array has the 32 bytes that are loaded.
            let a = unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) };
            // SAFETY: as above, behind them.
            let b = unsafe { _mm256_loadu_si256(eight[4..].as_ptr().cast()) };
            let (a, b) = (_mm256_sub_epi64(a, first), _mm256_sub_epi64(b, first));
            let beyond = _mm256_or_si256(_mm256_add_epi64(a, near), _mm256_add_epi64(b, near));
            far = _mm256_or_si256(far, _mm256_srli_epi64::<31>(beyond));
            words[n] = low_words(a, b);
            low = _mm256_min_epi32(low, words[n]);
            high = _mm256_min_epi32(high, _mm256_sub_epi32(zero, words[n]));
        }
        if _mm256_testz_si256(far, far) == 0 {
            return None;
        }
        let (low, high) = (smallest(low), -smallest(high));
        let mut of = [0; 32];
        for (n, eight) in of.as_chunks_mut::<8>().0.iter_mut().enumerate() {
            let distances = _mm256_sub_epi32(words[n], _mm256_set1_epi32(low));
            // SAFETY: the array has the 32 bytes that are stored.
            unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), distances) };
        }
        Some(Distances {
            lowest: at[0].wrapping_add(i64::from(low) as u64),
            largest: (high - low) as u32,
            of,
        })
    }

    /// The words of lanes `n` and `n + 4`, those of one lane in each half.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_pair(lanes: &[[u8; 16]; 8], n: usize) -> __m256i {
        let (one, other) = (&lanes[n], &lanes[n + 4]);
        // SAFETY: the array has the 16 bytes that are loaded.
        let one = unsafe { _mm_loadu_si128(one.as_ptr().cast()) };
        // SAFETY: as above.
        let other = unsafe { _mm_loadu_si128(other.as_ptr().cast()) };
        _mm256_inserti128_si256(_mm256_castsi128_si256(one), other, 1)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn to_four_registers(bytes: &[u8; 512], registers: &mut [Lanes; 4]) {
        for (n, lanes) in bytes.as_chunks::<16>().0.as_chunks::<8>().0.iter().enumerate() {
            // No closures or iterator adapters here: those have bodies of their own, without AVX2.
            let (a, b) = (load_pair(lanes, 0), load_pair(lanes, 1));
            let (c, d) = (load_pair(lanes, 2), load_pair(lanes, 3));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            let columns = [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ];
            for (register, column) in registers.iter_mut().zip(columns) {
                let eight = &mut register.0.as_chunks_mut::<8>().0[n];
                // SAFETY: the array has the 32 bytes that are stored.
                unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), column) };
            }
        }
    }

    /// Lanes `8 * n` and the seven behind it of a register.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn load_eight(registers: &[Lanes; 4], register: usize, n: usize) -> __m256i {
        let eight = &registers[register].0.as_chunks::<8>().0[n];
        // SAFETY: the array has the 32 bytes that are loaded.
        unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) fn from_four_registers(registers: &[Lanes; 4], bytes: &mut [u8; 512]) {
        let lanes = bytes.as_chunks_mut::<16>().0.as_chunks_mut::<8>().0;
        for (n, lanes) in lanes.iter_mut().enumerate() {
            let (a, b) = (load_eight(registers, 0, n), load_eight(registers, 1, n));
            let (c, d) = (load_eight(registers, 2, n), load_eight(registers, 3, n));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            let pairs = [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ];
            for (n, pair) in pairs.into_iter().enumerate() {
                let halves = [_mm256_castsi256_si128(pair), _mm256_extracti128_si256(pair, 1)];
                for (half, lane) in halves.into_iter().zip([n, n + 4]) {
                    // SAFETY: each array has the 16 bytes that are stored.
                    unsafe { _mm_storeu_si128(lanes[lane].as_mut_ptr().cast(), half) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that differ in every byte.
    fn word(n: usize) -> u32 {
        (n as u32).wrapping_mul(0x9E37_79B9)
    }

    fn both_ways<const R: usize>() {
        let lanes: [[[u8; 4]; R]; 32] = std::array::from_fn(|l| std::array::from_fn(|r| word(l * R + r).to_le_bytes()));
        let mut registers = [Lanes([u32::MAX; 32]); R];
        to_registers(&lanes, &mut registers);
        for (r, register) in registers.iter().enumerate() {
            for (l, value) in register.0.iter().enumerate() {
                assert_eq!(*value, word(l * R + r), "{R} registers: {r} of lane {l}");
            }
        }
        let mut back = [[[0xAA; 4]; R]; 32];
        from_registers(&registers, &mut back);
        assert_eq!(back, lanes, "{R} registers");
    }

    #[test]
    fn words_of_lanes_become_registers_and_back() {
        both_ways::<1>();
        both_ways::<2>();
        both_ways::<3>();
        both_ways::<4>();
    }

    #[test]
    fn distances_are_from_the_lowest_lane() {
        let near = |lane: u64| (1 << 40) + lane.wrapping_mul(0x9E37_79B9) % NEAR;
        let at: [u64; 32] = std::array::from_fn(|lane| near(lane as u64));
        let distances = distances(&at).expect("near each other");
        let (low, high) = (at.iter().min().unwrap(), at.iter().max().unwrap());
        assert_eq!(distances.lowest, *low);
        assert_eq!(u64::from(distances.largest), high - low);
        assert_eq!(distances.of.map(u64::from), at.map(|address| address - low));
    }

    #[test]
    fn one_lane_far_away_is_found() {
        for lane in 1..32 {
            for (distance, is_near) in [
                (NEAR - 1, true),
                (NEAR, false),
                (NEAR.wrapping_neg(), true),
                (NEAR.wrapping_neg() - 1, false),
                (1 << 31, false),
                (1 << 32, false),
                (1 << 63, false),
            ] {
                let mut at = [7; 32];
                at[lane] = 7u64.wrapping_add(distance);
                let found = distances(&at);
                assert_eq!(found.is_some(), is_near, "{distance:#x} in lane {lane}");
                if let Some(found) = found {
                    assert_eq!(found.lowest, if distance == NEAR - 1 { 7 } else { at[lane] });
                    assert_eq!(u64::from(found.largest), distance.min(distance.wrapping_neg()));
                }
            }
        }
    }

    #[test]
    fn one_lane_out_of_step_is_found() {
        for step in [0, 4, 16] {
            let values: [u32; 32] = std::array::from_fn(|l| 1000 + l as u32 * step);
            assert!(in_steps(&values, step));
            for lane in 0..32 {
                for bit in [0, 13, 31] {
                    let mut other = values;
                    other[lane] ^= 1 << bit;
                    assert!(!in_steps(&other, step), "step {step}: bit {bit} of lane {lane}");
                }
            }
        }
        let wraps: [u32; 32] = std::array::from_fn(|l| (u32::MAX - 60).wrapping_add(4 * l as u32));
        assert!(!in_steps(&wraps, 4));
    }
}
