//! Weights of every type.

use half::f16;
use rocmforge_ggml::DType;
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;

/// Types that weights come in, with values that every one of them can hold closely enough to be told apart from a wrong layout.
pub(crate) const WEIGHTS: [DType; 16] = [
    DType::F32,
    DType::F16,
    DType::Bf16,
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2K,
    DType::Q3K,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
    DType::Iq4Nl,
    DType::Iq4Xs,
    DType::Mxfp4,
];

/// Bytes of `rows` rows of a type, and what they decode to. Random bytes with harmless scales where there is no encoder.
pub(crate) fn weight(dtype: DType, rows: usize, cols: usize, seed: u64) -> (Vec<u8>, Vec<f32>) {
    let mut random = rng(seed);
    let ty = dtype.tensor_type().expect("a type of GGUF");
    let bytes = if blocks::can_quantize(ty) {
        blocks::quantize(ty, &random.vec(rows * cols)).expect("whole blocks")
    } else {
        let mut bytes: Vec<u8> = (0..rows * dtype.row_bytes(cols).expect("whole blocks"))
            .map(|_| random.next_u64() as u8)
            .collect();
        // The scale is an f16 (an exponent byte for mxfp4) at the start of a block in all of these.
        for block in bytes.chunks_mut(dtype.block_bytes()) {
            match dtype {
                DType::Mxfp4 => block[0] = 120,
                _ => block[..2].copy_from_slice(&f16::from_f32(0.01).to_bits().to_le_bytes()),
            }
        }
        bytes
    };
    let mut values = vec![0.0; rows * cols];
    blocks::dequantize(ty, &bytes, &mut values).expect("whole blocks");
    (bytes, values)
}
