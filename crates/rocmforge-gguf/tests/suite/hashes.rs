//! Decoders against hashes of their output on fixed blocks.

use rocmforge_gguf::TensorType;
use rocmforge_gguf::blocks::dequantize;
use sha2::{Digest, Sha256};

/// f16 0x2E66 (about 0.1), written over every scale, and 0x251F (about 0.02), written over every minimum.
const SCALE: [u8; 2] = 0x2E66_u16.to_le_bytes();
const MIN: [u8; 2] = 0x251F_u16.to_le_bytes();

/// Type, where its scale and minimum stand, first half of the SHA-256 of four decoded blocks as little-endian f32.
const CASES: &[(TensorType, Option<usize>, Option<usize>, &str)] = &[
    (TensorType::Q4_0, Some(0), None, "632a9e9e9d18"),
    (TensorType::Q4_1, Some(0), Some(2), "03df3760ffe1"),
    (TensorType::Q5_0, Some(0), None, "a5adb62859a3"),
    (TensorType::Q5_1, Some(0), Some(2), "15cd9eac025a"),
    (TensorType::Q8_0, Some(0), None, "d8bdb76b9e56"),
    (TensorType::Q2K, Some(80), Some(82), "89079b37bfce"),
    (TensorType::Q3K, Some(108), None, "34ef3425a80a"),
    (TensorType::Q4K, Some(0), Some(2), "d776f537a3d4"),
    (TensorType::Q5K, Some(0), Some(2), "7a435c3125d1"),
    (TensorType::Q6K, Some(208), None, "5a04fc315aef"),
    (TensorType::Iq4Nl, Some(0), None, "5627c11d8177"),
    (TensorType::Iq4Xs, Some(0), None, "5c8d7dc2abb7"),
    (TensorType::Mxfp4, None, None, "a32e12850df3"),
];

#[test]
fn decoded_blocks_have_their_hash() {
    for &(ty, scale, min, expected) in CASES {
        // Byte k of the four blocks is the top byte of k times Knuth's multiplier.
        let mut bytes: Vec<u8> = (0..4 * ty.block_bytes())
            .map(|k| ((k as u32).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for (number, block) in bytes.chunks_exact_mut(ty.block_bytes()).enumerate() {
            if let Some(at) = scale {
                block[at..at + 2].copy_from_slice(&SCALE);
            }
            if let Some(at) = min {
                block[at..at + 2].copy_from_slice(&MIN);
            }
            if ty == TensorType::Mxfp4 {
                block[0] = 120 + number as u8;
            }
        }
        let mut out = vec![f32::NAN; 4 * ty.block_len()];
        dequantize(ty, &bytes, &mut out).unwrap();
        let mut hash = Sha256::new();
        out.iter().for_each(|value| hash.update(value.to_le_bytes()));
        let hex: String = hash
            .finalize()
            .iter()
            .take(6)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        assert_eq!(hex, expected, "{ty}");
    }
}
