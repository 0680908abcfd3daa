//! Philox4x32-10, a counter-based random number generator.
//!
//! J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A number depends on the key and the
//! counter only, not on the numbers drawn before it.

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
/// What the key grows by each round: the golden ratio and sqrt(3) - 1, in 32 bits.
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];
const ROUNDS: usize = 10;

/// The four random words of a counter under a key, least significant words first.
///
/// ```
/// use rocmforge_models::sampling::philox4x32;
/// assert_eq!(philox4x32([0; 4], [0; 2]), [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]);
/// ```
pub fn philox4x32(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let (mut words, mut key) = (counter, key);
    for _ in 0..ROUNDS {
        let [a, b, c, d] = words;
        let (high_a, low_a) = multiply(MULTIPLIERS[0], a);
        let (high_c, low_c) = multiply(MULTIPLIERS[1], c);
        words = [high_c ^ b ^ key[0], low_c, high_a ^ d ^ key[1], low_a];
        key = [key[0].wrapping_add(WEYL[0]), key[1].wrapping_add(WEYL[1])];
    }
    words
}

/// High and low word of a product.
fn multiply(a: u32, b: u32) -> (u32, u32) {
    let product = u64::from(a) * u64::from(b);
    ((product >> 32) as u32, product as u32)
}

/// The two uniform numbers in [0, 1) of a token: the first draws it, the second decides about XTC.
///
/// The key is the seed, the counter is (position, sequence), so a draw does not depend on batching, on other sequences, or on draws
/// that were repeated.
pub(super) fn uniforms(seed: u64, sequence: u64, position: u64) -> [f64; 2] {
    let counter = [
        position as u32,
        (position >> 32) as u32,
        sequence as u32,
        (sequence >> 32) as u32,
    ];
    let [a, b, c, d] = philox4x32(counter, [seed as u32, (seed >> 32) as u32]);
    [unit(a, b), unit(c, d)]
}

/// The upper 53 of 64 bits as a multiple of 2^-53.
fn unit(low: u32, high: u32) -> f64 {
    let bits = u64::from(high) << 32 | u64::from(low);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
