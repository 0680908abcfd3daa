//! Weights of every type.

use half::f16;
use rocmforge_ggml::DType;
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;

/// Types that weights come in, with values that every one of them can hold closely enough that a wrong layout is detected.
pub(crate) const WEIGHTS: [DType; 28] = [
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
    DType::Iq1S,
    DType::Iq1M,
    DType::Iq2Xxs,
    DType::Iq2Xs,
    DType::Iq2S,
    DType::Iq3Xxs,
    DType::Iq3S,
    DType::Tq1_0,
    DType::Tq2_0,
    DType::Q1_0,
    DType::Q2_0,
    DType::Nvfp4,
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
        // 0.01 in most, 1/128 where the scale is an exponent, 1/16 in nvfp4.
        let scale = f16::from_f32(0.01).to_bits();
        for block in bytes.chunks_mut(dtype.block_bytes()) {
            match dtype {
                DType::Mxfp4 => block[0] = 120,
                DType::Nvfp4 => block[..4].fill(0x20),
                // A nibble of the scale in each of the last four words.
                DType::Iq1M => (0..4).for_each(|word| {
                    let high = &mut block[49 + 2 * word];
                    *high = *high & 15 | ((scale >> (4 * word) & 15) as u8) << 4;
                }),
                _ => {
                    let at = match dtype {
                        DType::Tq1_0 => 52,
                        DType::Tq2_0 => 64,
                        _ => 0,
                    };
                    block[at..at + 2].copy_from_slice(&scale.to_le_bytes());
                }
            }
        }
        bytes
    };
    let mut values = vec![0.0; rows * cols];
    blocks::dequantize(ty, &bytes, &mut values).expect("whole blocks");
    (bytes, values)
}
