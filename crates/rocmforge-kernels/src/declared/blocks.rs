//! Blocks of weights with any bits, whose values are finite and of moderate size.

use crate::WeightType;

/// Where a type keeps its f16 numbers.
const fn halves(ty: WeightType) -> &'static [usize] {
    match ty {
        WeightType::Q4_0 | WeightType::Q5_0 | WeightType::Q8_0 | WeightType::Iq4Nl | WeightType::Iq4Xs => &[0],
        WeightType::Iq2Xxs | WeightType::Iq2Xs | WeightType::Iq2S | WeightType::Iq3Xxs | WeightType::Iq3S => &[0],
        WeightType::Iq1S | WeightType::Q1_0 | WeightType::Q2_0 => &[0],
        WeightType::Tq1_0 => &[52],
        WeightType::Tq2_0 => &[64],
        WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4K | WeightType::Q5K => &[0, 2],
        WeightType::Q2K => &[80, 82],
        WeightType::Q3K => &[108],
        WeightType::Q6K => &[208],
        _ => &[],
    }
}

/// `n` blocks of the bits that `bits` gives; scales are moderate, of either sign, and some of them denormal. Floats are -1 to 1.
pub fn blocks(ty: WeightType, n: usize, mut bits: impl FnMut() -> u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..n * ty.block_bytes()).map(|_| bits() as u8).collect();
    for block in bytes.chunks_mut(ty.block_bytes()) {
        // The largest weights of a block are about 2^9 (K-quants: 2^12) times its scale.
        let below = if ty.block_len() == 256 { 0x0800 } else { 0x1800 };
        let mut scale = || (bits() as u16 % below) | (bits() as u16 & 0x8000);
        for &at in halves(ty) {
            block[at..at + 2].copy_from_slice(&scale().to_le_bytes());
        }
        if ty == WeightType::Iq1M {
            // In the highest nibbles of the last four numbers of 16 bits.
            let scale = scale();
            for (n, high) in block[49..].iter_mut().step_by(2).enumerate() {
                *high = *high & 15 | ((scale >> (4 * n) & 15) as u8) << 4;
            }
        }
        let float = (bits() as u32 >> 8) as f32 / (1 << 23) as f32 - 1.0;
        match ty {
            WeightType::F32 => block.copy_from_slice(&float.to_le_bytes()),
            WeightType::F16 => {
                let number = (bits() as u16 % below + 0x1800) | (bits() as u16 & 0x8000);
                block.copy_from_slice(&number.to_le_bytes());
            }
            WeightType::Bf16 => block.copy_from_slice(&float.to_le_bytes()[2..]),
            WeightType::Mxfp4 => block[0] = block[0] % 8 + 118,
            // Up to 1.9, in half the value; the sign does not count.
            WeightType::Nvfp4 => block[..4].iter_mut().for_each(|scale| *scale &= 0xBF),
            _ => {}
        }
    }
    bytes
}
