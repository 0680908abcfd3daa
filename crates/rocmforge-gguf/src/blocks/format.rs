//! Table of the formats that can be decoded, and what is done with a row of their blocks.
//!
//! On x86-64 each row function exists twice: for any CPU, and for one with AVX2 and FMA, where the decoders' loops become
//! vectors of eight. Decoded values have the same bits in both.

#[cfg(target_arch = "x86_64")]
use super::avx2;
use super::{decode, decode_few_bits, decode_iq, decode_k};
use crate::tensor_type::TensorType;

/// What can be done with whole blocks of one type.
#[derive(Clone, Copy)]
pub(super) struct Format {
    /// Decodes to as many values.
    pub(super) decode: fn(&[u8], &mut [f32]),
    /// Sum of the products with as many values.
    pub(super) dot: fn(&[u8], &[f32]) -> f32,
}

/// A block: `B` bytes hold `N` values. The decoder is inlined into each row function and compiled for that function's CPU.
trait Block<const B: usize, const N: usize> {
    fn decode(block: &[u8; B], out: &mut [f32; N]);
}

macro_rules! blocks {
    ($($name:ident: $bytes:literal bytes, $values:literal values, $decode:path;)*) => {$(
        struct $name;
        impl Block<$bytes, $values> for $name {
            #[inline(always)]
            fn decode(block: &[u8; $bytes], out: &mut [f32; $values]) {
                $decode(block, out);
            }
        }
    )*};
}

blocks! {
    F32: 4 bytes, 1 values, decode::f32;
    F16: 2 bytes, 1 values, decode::f16;
    Bf16: 2 bytes, 1 values, decode::bf16;
    Q4_0: 18 bytes, 32 values, decode::q4_0;
    Q4_1: 20 bytes, 32 values, decode::q4_1;
    Q5_0: 22 bytes, 32 values, decode::q5_0;
    Q5_1: 24 bytes, 32 values, decode::q5_1;
    Q8_0: 34 bytes, 32 values, decode::q8_0;
    Q8_1: 36 bytes, 32 values, decode::q8_1;
    Q2K: 84 bytes, 256 values, decode_k::q2_k;
    Q3K: 110 bytes, 256 values, decode_k::q3_k;
    Q4K: 144 bytes, 256 values, decode_k::q4_k;
    Q5K: 176 bytes, 256 values, decode_k::q5_k;
    Q6K: 210 bytes, 256 values, decode_k::q6_k;
    Q8K: 292 bytes, 256 values, decode_k::q8_k;
    Iq4Nl: 18 bytes, 32 values, decode::iq4_nl;
    Iq4Xs: 136 bytes, 256 values, decode_k::iq4_xs;
    Mxfp4: 17 bytes, 32 values, decode::mxfp4;
    Iq2Xxs: 66 bytes, 256 values, decode_iq::iq2_xxs;
    Iq2Xs: 74 bytes, 256 values, decode_iq::iq2_xs;
    Iq2S: 82 bytes, 256 values, decode_iq::iq2_s;
    Iq3Xxs: 98 bytes, 256 values, decode_iq::iq3_xxs;
    Iq3S: 110 bytes, 256 values, decode_iq::iq3_s;
    Iq1S: 50 bytes, 256 values, decode_iq::iq1_s;
    Iq1M: 56 bytes, 256 values, decode_iq::iq1_m;
    Tq1_0: 54 bytes, 256 values, decode_few_bits::tq1_0;
    Tq2_0: 66 bytes, 256 values, decode_few_bits::tq2_0;
    Nvfp4: 36 bytes, 64 values, decode::nvfp4;
    Q1_0: 18 bytes, 128 values, decode_few_bits::q1_0;
    Q2_0: 18 bytes, 64 values, decode_few_bits::q2_0;
}

/// The format of a type; `None` if it cannot be decoded.
pub(super) fn format_of(ty: TensorType) -> Option<Format> {
    Some(match ty {
        TensorType::F32 => format::<F32, 4, 1>(),
        TensorType::F16 => format::<F16, 2, 1>(),
        TensorType::Bf16 => format::<Bf16, 2, 1>(),
        TensorType::Q4_0 => format::<Q4_0, 18, 32>(),
        TensorType::Q4_1 => format::<Q4_1, 20, 32>(),
        TensorType::Q5_0 => format::<Q5_0, 22, 32>(),
        TensorType::Q5_1 => format::<Q5_1, 24, 32>(),
        TensorType::Q8_0 => format::<Q8_0, 34, 32>(),
        TensorType::Q8_1 => format::<Q8_1, 36, 32>(),
        TensorType::Q2K => format::<Q2K, 84, 256>(),
        TensorType::Q3K => format::<Q3K, 110, 256>(),
        TensorType::Q4K => format::<Q4K, 144, 256>(),
        TensorType::Q5K => format::<Q5K, 176, 256>(),
        TensorType::Q6K => format::<Q6K, 210, 256>(),
        TensorType::Q8K => format::<Q8K, 292, 256>(),
        TensorType::Iq4Nl => format::<Iq4Nl, 18, 32>(),
        TensorType::Iq4Xs => format::<Iq4Xs, 136, 256>(),
        TensorType::Mxfp4 => format::<Mxfp4, 17, 32>(),
        TensorType::Iq2Xxs => format::<Iq2Xxs, 66, 256>(),
        TensorType::Iq2Xs => format::<Iq2Xs, 74, 256>(),
        TensorType::Iq2S => format::<Iq2S, 82, 256>(),
        TensorType::Iq3Xxs => format::<Iq3Xxs, 98, 256>(),
        TensorType::Iq3S => format::<Iq3S, 110, 256>(),
        TensorType::Iq1S => format::<Iq1S, 50, 256>(),
        TensorType::Iq1M => format::<Iq1M, 56, 256>(),
        TensorType::Tq1_0 => format::<Tq1_0, 54, 256>(),
        TensorType::Tq2_0 => format::<Tq2_0, 66, 256>(),
        TensorType::Nvfp4 => format::<Nvfp4, 36, 64>(),
        TensorType::Q1_0 => format::<Q1_0, 18, 128>(),
        TensorType::Q2_0 => format::<Q2_0, 18, 64>(),
        _ => return None,
    })
}

fn format<F: Block<B, N>, const B: usize, const N: usize>() -> Format {
    Format {
        decode: |bytes, out| {
            #[cfg(target_arch = "x86_64")]
            if avx2::is_available() {
                // SAFETY: AVX2 and FMA have just been found on this CPU.
                return unsafe { decode_fma::<F, B, N>(bytes, out) };
            }
            decode_rows::<F, B, N>(bytes, out);
        },
        dot: |bytes, x| {
            #[cfg(target_arch = "x86_64")]
            if avx2::is_available() {
                // SAFETY: AVX2 and FMA have just been found on this CPU.
                return unsafe { dot_fma::<F, B, N>(bytes, x) };
            }
            dot_rows::<F, B, N>(bytes, x, |a, b, sum| sum + a * b)
        },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn decode_fma<F: Block<B, N>, const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32]) {
    // The compiler never fuses the decoders' products and sums by itself: the bits are the same.
    decode_rows::<F, B, N>(bytes, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_fma<F: Block<B, N>, const B: usize, const N: usize>(bytes: &[u8], x: &[f32]) -> f32 {
    dot_rows::<F, B, N>(bytes, x, f32::mul_add)
}

#[inline(always)]
fn decode_rows<F: Block<B, N>, const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32]) {
    let (blocks, _) = bytes.as_chunks::<B>();
    let (values, _) = out.as_chunks_mut::<N>();
    for (block, values) in blocks.iter().zip(values) {
        F::decode(block, values);
    }
}

/// Sums that run side by side, so that the additions of one do not wait for those of another.
const LANES: usize = 32;

/// Values decoded at a time: a multiple of every block's length.
const DECODED: usize = 256;

#[inline(always)]
fn dot_rows<F: Block<B, N>, const B: usize, const N: usize>(
    bytes: &[u8],
    x: &[f32],
    multiply_add: impl Fn(f32, f32, f32) -> f32,
) -> f32 {
    // Decoding goes through memory: loops that only decode and loops that only multiply become vectors, mixed ones do not.
    let mut decoded = [0.0f32; DECODED];
    let mut sums = [0.0f32; LANES];
    for (bytes, x) in bytes.chunks(DECODED / N * B).zip(x.chunks(DECODED)) {
        let decoded = &mut decoded[..x.len()];
        decode_rows::<F, B, N>(bytes, decoded);
        let (a, a_rest) = decoded.as_chunks::<LANES>();
        let (b, b_rest) = x.as_chunks::<LANES>();
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                sums[lane] = multiply_add(a[lane], b[lane], sums[lane]);
            }
        }
        for ((sum, a), b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
            *sum = multiply_add(*a, *b, *sum);
        }
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks;

    const TYPES: [TensorType; 30] = [
        TensorType::F32,
        TensorType::F16,
        TensorType::Bf16,
        TensorType::Q4_0,
        TensorType::Q4_1,
        TensorType::Q5_0,
        TensorType::Q5_1,
        TensorType::Q8_0,
        TensorType::Q8_1,
        TensorType::Q2K,
        TensorType::Q3K,
        TensorType::Q4K,
        TensorType::Q5K,
        TensorType::Q6K,
        TensorType::Q8K,
        TensorType::Iq4Nl,
        TensorType::Iq4Xs,
        TensorType::Mxfp4,
        TensorType::Iq2Xxs,
        TensorType::Iq2Xs,
        TensorType::Iq2S,
        TensorType::Iq3Xxs,
        TensorType::Iq3S,
        TensorType::Iq1S,
        TensorType::Iq1M,
        TensorType::Tq1_0,
        TensorType::Tq2_0,
        TensorType::Nvfp4,
        TensorType::Q1_0,
        TensorType::Q2_0,
    ];

    /// Blocks of any bytes, but with scales that are finite: f16 and f32 exponents are kept small.
    fn bytes(ty: TensorType, blocks: usize) -> Vec<u8> {
        let mut state = 0x2545_f491_4f6c_dd1du64;
        (0..blocks * ty.block_bytes())
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 33) as u8 & 0x3b
            })
            .collect()
    }

    #[test]
    fn dot_products_are_near_the_exact_sum_of_decoded_values() {
        for ty in TYPES {
            for blocks in [0usize, 1, 2, 5, 33, 67] {
                let bytes = bytes(ty, blocks);
                let n = blocks * ty.block_len();
                let x: Vec<f32> = (0..n).map(|i| ((i * 53 % 97) as f32 - 48.0) / 48.0).collect();
                let mut decoded = vec![f32::NAN; n];
                blocks::dequantize(ty, &bytes, &mut decoded).expect("whole blocks");
                let products = decoded.iter().zip(&x).map(|(&a, &b)| f64::from(a) * f64::from(b));
                let exact: f64 = products.clone().sum();
                let size: f64 = products.map(f64::abs).sum();
                let format = format_of(ty).expect("in the table");
                // The row twice: every row has its own product.
                let mut products = [f32::NAN; 2];
                blocks::dots(ty, &[&bytes[..], &bytes].concat(), &x, &mut products).expect("two rows");
                let mut all = vec![(format.dot)(&bytes, &x), products[0], products[1]];
                // What this CPU does not choose, because it has better.
                let multiply_add = |a: f32, b: f32, sum: f32| sum + a * b;
                all.extend(match ty {
                    TensorType::Q4_1 => Some(dot_rows::<Q4_1, 20, 32>(&bytes, &x, multiply_add)),
                    TensorType::Q6K => Some(dot_rows::<Q6K, 210, 256>(&bytes, &x, multiply_add)),
                    _ => None,
                });
                #[cfg(target_arch = "x86_64")]
                all.extend(avx2::dot_of(ty).map(|dot| dot(&bytes, &x)));
                for found in all {
                    let difference = (f64::from(found) - exact).abs();
                    assert!(difference <= 1e-6 * size, "{ty:?} {blocks}: {found} for {exact}");
                }
            }
        }
    }

    #[test]
    fn both_builds_decode_to_the_same_bits() {
        for ty in [TensorType::Q4_1, TensorType::Q6K] {
            let bytes = bytes(ty, 7);
            let n = 7 * ty.block_len();
            let (mut a, mut b) = (vec![0.0; n], vec![0.0; n]);
            blocks::dequantize(ty, &bytes, &mut a).expect("whole blocks");
            match ty {
                TensorType::Q4_1 => decode_rows::<Q4_1, 20, 32>(&bytes, &mut b),
                _ => decode_rows::<Q6K, 210, 256>(&bytes, &mut b),
            }
            assert!(a.iter().zip(&b).all(|(a, b)| a.to_bits() == b.to_bits()), "{ty:?}");
        }
    }

    #[test]
    fn a_wrong_length_is_refused() {
        let dots = |rows: &[u8], x: &[f32], out: &mut [f32]| blocks::dots(TensorType::Q4_0, rows, x, out);
        assert!(dots(&[0; 18], &[0.0; 31], &mut [0.0]).is_err(), "x is not whole blocks");
        assert!(dots(&[0; 17], &[0.0; 32], &mut [0.0]).is_err(), "less than a row");
        assert!(dots(&[0; 36], &[0.0; 32], &mut [0.0]).is_err(), "a row without a place");
        assert!(
            dots(&[0; 18], &[0.0; 32], &mut [0.0; 2]).is_err(),
            "a place without a row"
        );
        let mut out = [f32::NAN; 2];
        assert!(dots(&[], &[], &mut out).is_ok());
        assert_eq!(out, [0.0; 2], "rows without elements");
    }
}
