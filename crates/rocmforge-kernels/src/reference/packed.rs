//! Packed matrices from the definition: which bit of ggml's blocks each of their bits is.
//!
//! A packed matrix has the bits of its blocks in arrays, one after another: one for each [`Part`] of a block. No bit is lost, and no bit is there twice.

use crate::WeightType;

/// An array of a packed matrix: what it has of each 32 weights, or of each whole block.
struct Part {
    /// Whether it has an entry for each 32 weights of a block; one for a block otherwise.
    by_weights: bool,
    /// The bits of entry `j` of a block, the lowest first: each is a bit of the block.
    bits: Box<dyn Fn(usize) -> Vec<usize>>,
}

/// The bytes of a matrix in ggml's blocks, as the packed matrix of it has them.
pub fn packed(ty: WeightType, blocks: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(blocks.len());
    for part in parts(ty) {
        let entries = if part.by_weights { ty.block_len() / 32 } else { 1 };
        for block in blocks.chunks_exact(ty.block_bytes()) {
            for bits in (0..entries).map(|j| (part.bits)(j)) {
                let bit = |&at: &usize| block[at / 8] >> (at % 8) & 1;
                let byte = |bits: &[usize]| bits.iter().rev().fold(0, |byte, at| byte << 1 | bit(at));
                out.extend(bits.chunks(8).map(byte));
            }
        }
    }
    out
}

/// An array with an entry for each 32 weights.
fn each(bits: impl Fn(usize) -> Vec<usize> + 'static) -> Part {
    Part {
        by_weights: true,
        bits: Box::new(bits),
    }
}

/// An array with these bits of each block.
fn of_block(bits: Vec<usize>) -> Part {
    Part {
        by_weights: false,
        bits: Box::new(move |_| bits.clone()),
    }
}

/// The bits of `len` bytes from `at` on.
fn bytes(at: usize, len: usize) -> Vec<usize> {
    (8 * at..8 * (at + len)).collect()
}

/// The arrays of a packed matrix in their order.
fn parts(ty: WeightType) -> Vec<Part> {
    let nibbles = || each(move |j| nibbles(ty, j));
    let one = |bit| each(move |j| one_of(ty, j, bit));
    let pairs = |low| each(move |j| pairs_of(ty, j, low));
    let whole = |at, len| of_block(bytes(at, len));
    let pieces = |at: usize| each(move |j| bytes(at + 2 * j, 2));
    match ty {
        WeightType::Q4_0 | WeightType::Iq4Nl => vec![nibbles(), whole(0, 2)],
        WeightType::Q4_1 => vec![nibbles(), whole(0, 4)],
        WeightType::Q5_0 => vec![nibbles(), one(4), whole(0, 2)],
        WeightType::Q5_1 => vec![nibbles(), one(4), whole(0, 4)],
        WeightType::Q8_0 => vec![whole(2, 16), whole(18, 16), whole(0, 2)],
        WeightType::Q4K => vec![nibbles(), of_block(k_scales())],
        WeightType::Q5K => vec![nibbles(), of_block(k_scales()), one(4)],
        WeightType::Q6K => vec![nibbles(), pairs(4), pieces(192), whole(208, 2)],
        WeightType::Q2K => vec![pairs(0), pieces(0), whole(80, 4)],
        WeightType::Q3K => vec![pairs(0), one(2), of_block(q3_scales()), whole(108, 2)],
        WeightType::Iq4Xs => vec![nibbles(), whole(0, 8)],
        WeightType::Mxfp4 => vec![nibbles(), whole(0, 1)],
        // Not packable.
        _ => Vec::new(),
    }
}

/// Where a block has bit `bit` of weight `i`.
fn weight_bit(ty: WeightType, i: usize, bit: usize) -> usize {
    // Nibble i of 16 bytes for 32 weights, the low ones first.
    let nibble = |at: usize, i: usize| 8 * (at + i % 16) + 4 * (i / 16) + bit;
    // Blocks of 256: 32 bytes hold 64 weights of 4 bits, or 128 of 2.
    let four = |at: usize| 8 * (at + 32 * (i / 64) + i % 32) + 4 * (i / 32 % 2) + bit;
    let two = |at: usize| 8 * (at + 32 * (i / 128) + i % 32) + 2 * (i % 128 / 32) + bit;
    // One more bit: 32 bytes for 256 weights.
    let one = |at: usize| 8 * (at + i % 32) + i / 32;
    match (ty, bit) {
        (WeightType::Q5_0, 4) => 8 * 2 + i,
        (WeightType::Q5_1, 4) => 8 * 4 + i,
        (WeightType::Q5K, 4) => one(16),
        (WeightType::Q3K, 2) => one(0),
        (WeightType::Q6K, 4..) => 8 * (128 + 32 * (i / 128) + i % 32) + 2 * (i % 128 / 32) + bit - 4,
        (WeightType::Q6K, _) => 8 * (64 * (i / 128) + i % 64) + 4 * (i % 128 / 64) + bit,
        (WeightType::Q4_0 | WeightType::Iq4Nl, _) => nibble(2, i),
        (WeightType::Q4_1, _) => nibble(4, i),
        (WeightType::Q5_0, _) => nibble(6, i),
        (WeightType::Q5_1, _) => nibble(8, i),
        (WeightType::Mxfp4, _) => nibble(1, i),
        (WeightType::Iq4Xs, _) => nibble(8 + 16 * (i / 32), i % 32),
        (WeightType::Q4K, _) => four(16),
        (WeightType::Q5K, _) => four(48),
        (WeightType::Q2K, _) => two(16),
        (WeightType::Q3K, _) => two(32),
        _ => unreachable!("{ty}: whole bytes, or not packable"),
    }
}

/// The low four bits of 32 weights in 16 bytes: weights t and t + 16 in byte t.
fn nibbles(ty: WeightType, j: usize) -> Vec<usize> {
    let bit = |at: usize| weight_bit(ty, 32 * j + at / 8 + 16 * (at % 8 / 4), at % 4);
    (0..128).map(bit).collect()
}

/// One bit of 32 weights in a word: bit t of byte m is that of weight 4 t + m.
fn one_of(ty: WeightType, j: usize, bit: usize) -> Vec<usize> {
    let place = |at: usize| weight_bit(ty, 32 * j + 4 * (at % 8) + at / 8, bit);
    (0..32).map(place).collect()
}

/// Two bits, from `low` on, of 32 weights in two words of 16: byte m has weights m, 4 + m, 8 + m and 12 + m.
fn pairs_of(ty: WeightType, j: usize, low: usize) -> Vec<usize> {
    let place = |at: usize| {
        let (word, byte, pair) = (at / 32, at % 32 / 8, at % 8 / 2);
        weight_bit(ty, 32 * j + 16 * word + 4 * pair + byte, low + at % 2)
    };
    (0..64).map(place).collect()
}

/// Q4_K's and Q5_K's factors, then the low four bits of the eight scales, of the eight minima, and the upper two of each.
fn k_scales() -> Vec<usize> {
    let scale = |j: usize, bit: usize| match (j, bit) {
        (..4, _) => 8 * (4 + j) + bit,
        (_, ..4) => 8 * (8 + j) + bit,
        _ => 8 * j + 6 + bit - 4,
    };
    let min = |j: usize, bit: usize| match (j, bit) {
        (..4, _) => 8 * (8 + j) + bit,
        (_, ..4) => 8 * (8 + j) + 4 + bit,
        _ => 8 * (4 + j) + 6 + bit - 4,
    };
    let low = |at: usize| (at / 4, at % 4);
    let high = |at: usize| (at / 2, 4 + at % 2);
    let all = |place: &dyn Fn(usize, usize) -> usize, n: usize, of: &dyn Fn(usize) -> (usize, usize)| -> Vec<usize> {
        (0..n)
            .map(|at| {
                let (j, bit) = of(at);
                place(j, bit)
            })
            .collect()
    };
    [
        (0..32).collect(),
        all(&scale, 32, &low),
        all(&min, 32, &low),
        all(&scale, 16, &high),
        all(&min, 16, &high),
    ]
    .concat()
}

/// The low four bits of Q3_K's even scales, of its odd ones, and the upper two of all sixteen.
fn q3_scales() -> Vec<usize> {
    let low = |j: usize| 8 * (96 + j % 8) + 4 * (j / 8);
    let high = |j: usize| 8 * (104 + j % 4) + 2 * (j / 4);
    let four = |j: usize| (0..4).map(move |bit| low(j) + bit);
    let even = (0..16).step_by(2).flat_map(four);
    let odd = (1..16).step_by(2).flat_map(four);
    let two = (0..16).flat_map(|j| (0..2).map(move |bit| high(j) + bit));
    even.chain(odd).chain(two).collect()
}

#[cfg(test)]
mod tests {
    use super::packed;
    use crate::WeightType;

    #[test]
    fn each_bit_of_a_block_stands_in_one_place() {
        for ty in WeightType::ALL.into_iter().filter(|ty| ty.is_packable()) {
            let bits = 8 * ty.block_bytes();
            let mut seen = vec![false; bits];
            for bit in 0..bits {
                let mut block = vec![0; ty.block_bytes()];
                block[bit / 8] = 1 << (bit % 8);
                let packed = packed(ty, &block);
                assert_eq!(packed.len(), block.len(), "{ty}");
                let ones: Vec<usize> = (0..bits).filter(|at| packed[at / 8] >> (at % 8) & 1 == 1).collect();
                assert_eq!(ones.len(), 1, "{ty}: bit {bit}");
                assert!(!std::mem::replace(&mut seen[ones[0]], true), "{ty}: bit {bit}");
            }
        }
    }
}
