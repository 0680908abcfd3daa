//! Masks with a bit for each lane or byte, and the same masks spread over the lanes or bits.

/// Bit of each lane in a mask.
pub(crate) const BIT: [u32; 32] = {
    let mut bits = [0; 32];
    let mut l = 0;
    while l < 32 {
        bits[l] = 1 << l;
        l += 1;
    }
    bits
};

/// The bits of those of a word's bytes that `bytes` has a bit for.
pub(crate) fn bits_of_bytes(bytes: u8) -> u32 {
    (0..4).fold(0, |bits, n| {
        bits | if bytes >> n & 1 != 0 { 0xFF << (8 * n) } else { 0 }
    })
}

/// Packs the highest bits of 32 values into a mask.
#[inline(always)]
pub(crate) fn pack(values: &[u32; 32]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if super::fast() {
        // SAFETY: `fast` has found that the host has AVX2.
        return unsafe { pack_wide(values) };
    }
    let mut mask = 0;
    for l in 0..32 {
        mask |= values[l] >> 31 << l;
    }
    mask
}

/// The same of eight values at a time.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn pack_wide(values: &[u32; 32]) -> u32 {
    use std::arch::x86_64::{__m256, _mm256_loadu_ps};
    let signs = |eight: __m256| {
        let mask: u32;
        // The instruction itself rather than its intrinsic, which the compiler joins with what computed the values, and then packs them
        // lane by lane.
        // SAFETY: the instruction is of AVX, touches no memory, and writes nothing but `mask`.
        unsafe {
            std::arch::asm!("vmovmskps {mask:e}, {eight}", mask = lateout(reg) mask, eight = in(ymm_reg) eight,
                options(pure, nomem, nostack, preserves_flags));
        }
        mask
    };
    let (eights, _) = values.as_chunks::<8>();
    let mut mask = 0;
    for (n, eight) in eights.iter().enumerate() {
        // SAFETY: the array has the 32 bytes that are loaded.
        let eight = unsafe { _mm256_loadu_ps(eight.as_ptr().cast()) };
        mask |= signs(eight) << (8 * n);
    }
    mask
}

/// Spreads a mask: all ones for the lanes that are set.
#[inline(always)]
pub(crate) fn spread(mask: u32) -> [u32; 32] {
    // Known bits would become a different instruction for the first and the last lane.
    let bits = *std::hint::black_box(&BIT);
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = u32::from(mask & bits[l] == bits[l]).wrapping_neg();
    }
    out
}
