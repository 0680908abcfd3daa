//! Decoders and encoders against vectors of two other implementations, bit for bit.
//!
//! `tests/vectors/make_vectors.py` makes the files and says what is in them. `ROCMFORGE_GGUF_VECTORS` names another
//! folder, for a longer run.

use std::path::PathBuf;

use rocmforge_gguf::TensorType;
use rocmforge_gguf::blocks::{can_dequantize, can_quantize, dequantize, quantize};

fn vector(name: &str) -> Vec<u8> {
    let folder = std::env::var_os("ROCMFORGE_GGUF_VECTORS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors")),
        PathBuf::from,
    );
    let path = folder.join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// Types whose decoder is tested elsewhere: `f32` copies, and no oracle decodes the others.
const NOT_DECODED_HERE: [TensorType; 5] = [
    TensorType::F32,
    TensorType::Q8_1,
    TensorType::Q8K,
    TensorType::Q1_0,
    TensorType::Q2_0,
];

#[test]
fn decoders_give_the_oracles_bits() {
    let mut types = 0;
    for &ty in TensorType::ALL
        .iter()
        .filter(|ty| can_dequantize(**ty) && !NOT_DECODED_HERE.contains(ty))
    {
        let file = vector(&format!("decode_{ty}.bin"));
        let blocks = file.len() / (ty.block_bytes() + 4 * ty.block_len());
        assert!(blocks >= 3, "{ty}");
        let (bytes, expected) = file.split_at(blocks * ty.block_bytes());
        let expected = floats(expected);
        let mut out = vec![f32::NAN; blocks * ty.block_len()];
        dequantize(ty, bytes, &mut out).unwrap();
        assert_eq!(out.len(), expected.len(), "{ty}");
        for (i, (out, expected)) in out.iter().zip(&expected).enumerate() {
            assert_eq!(
                out.to_bits(),
                expected.to_bits(),
                "{ty}: value {i} is {out}, not {expected}"
            );
        }
        types += 1;
    }
    assert_eq!(types, 25);
}

#[test]
fn encoders_give_the_oracles_bytes() {
    let values = floats(&vector("values.bin"));
    assert!(values.len() >= 8 * 256);
    let mut types = 0;
    for &ty in TensorType::ALL
        .iter()
        .filter(|ty| can_quantize(**ty) && **ty != TensorType::F32)
    {
        let expected = vector(&format!("encode_{ty}.bin"));
        let bytes = quantize(ty, &values).unwrap();
        assert_eq!(bytes.len(), expected.len(), "{ty}");
        let unequal: Vec<usize> = bytes
            .chunks_exact(ty.block_bytes())
            .zip(expected.chunks_exact(ty.block_bytes()))
            .enumerate()
            .filter_map(|(i, (ours, theirs))| (ours != theirs).then_some(i))
            .collect();
        if let Some(&i) = unequal.first() {
            let at = i * ty.block_bytes()..(i + 1) * ty.block_bytes();
            panic!(
                "{ty}: {} of {} blocks differ; block {i} is\n{:?}, not\n{:?}",
                unequal.len(),
                bytes.len() / ty.block_bytes(),
                &bytes[at.clone()],
                &expected[at]
            );
        }
        types += 1;
    }
    assert_eq!(types, 14);
}
