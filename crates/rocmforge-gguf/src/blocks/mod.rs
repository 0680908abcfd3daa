//! Block formats: decoding to f32 and encoding from f32.
//!
//! Decoders exist for `f32`, `f16`, `bf16`, `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`, `q8_1`, `q2_K` to `q6_K`, `q8_K`,
//! `iq4_nl`, `iq4_xs` and `mxfp4`. The other types (integers, `f64`, `iq1_*` to `iq3_*`, `tq*`, `nvfp4`, `q1_0`,
//! `q2_0`) can be stored and read as bytes only.
//!
//! Encoders exist for `f32`, `f16`, `bf16`, `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`, `q8_1`, `q2_K` to `q6_K` and
//! `q8_K`. They give the bytes of ggml's reference quantisers.
//!
//! Values are computed in f32 in the order that the decoder's comment shows, and never with a fused multiply-add, so
//! every decoder gives the same bits on every machine.

mod decode;
mod decode_k;
mod encode;
mod encode_k;
mod fit;
mod half_float;

use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;

/// Decodes whole blocks of one type.
type Decoder = fn(&[u8], &mut [f32]);

/// The decoder of a type.
fn decoder(ty: TensorType) -> Option<Decoder> {
    Some(match ty {
        TensorType::F32 => decode::f32,
        TensorType::F16 => |bytes, out| each_block(bytes, out, decode::f16),
        TensorType::Bf16 => |bytes, out| each_block(bytes, out, decode::bf16),
        TensorType::Q4_0 => |bytes, out| each_block(bytes, out, decode::q4_0),
        TensorType::Q4_1 => |bytes, out| each_block(bytes, out, decode::q4_1),
        TensorType::Q5_0 => |bytes, out| each_block(bytes, out, decode::q5_0),
        TensorType::Q5_1 => |bytes, out| each_block(bytes, out, decode::q5_1),
        TensorType::Q8_0 => |bytes, out| each_block(bytes, out, decode::q8_0),
        TensorType::Q8_1 => |bytes, out| each_block(bytes, out, decode::q8_1),
        TensorType::Q2K => |bytes, out| each_block(bytes, out, decode_k::q2_k),
        TensorType::Q3K => |bytes, out| each_block(bytes, out, decode_k::q3_k),
        TensorType::Q4K => |bytes, out| each_block(bytes, out, decode_k::q4_k),
        TensorType::Q5K => |bytes, out| each_block(bytes, out, decode_k::q5_k),
        TensorType::Q6K => |bytes, out| each_block(bytes, out, decode_k::q6_k),
        TensorType::Q8K => |bytes, out| each_block(bytes, out, decode_k::q8_k),
        TensorType::Iq4Nl => |bytes, out| each_block(bytes, out, decode::iq4_nl),
        TensorType::Iq4Xs => |bytes, out| each_block(bytes, out, decode_k::iq4_xs),
        TensorType::Mxfp4 => |bytes, out| each_block(bytes, out, decode::mxfp4),
        _ => return None,
    })
}

/// Calls `decode` with each block of `B` bytes and its place of `N` values.
fn each_block<const B: usize, const N: usize>(bytes: &[u8], out: &mut [f32], decode: impl Fn(&[u8; B], &mut [f32; N])) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: AVX2 has just been found on this CPU.
        return unsafe { each_block_avx2(bytes, out, decode) };
    }
    each_block_inline(bytes, out, decode);
}

/// The same code, compiled for AVX2: the decoders' loops become vectors of eight. Without FMA, so with the same bits.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn each_block_avx2<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    each_block_inline(bytes, out, decode);
}

#[inline(always)]
fn each_block_inline<const B: usize, const N: usize>(
    bytes: &[u8],
    out: &mut [f32],
    decode: impl Fn(&[u8; B], &mut [f32; N]),
) {
    let (blocks, _) = bytes.as_chunks::<B>();
    let (values, _) = out.as_chunks_mut::<N>();
    for (block, values) in blocks.iter().zip(values) {
        decode(block, values);
    }
}

/// Encodes whole blocks of one type.
type Encoder = fn(&[f32]) -> Vec<u8>;

/// The encoder of a type.
fn encoder(ty: TensorType) -> Option<Encoder> {
    Some(match ty {
        TensorType::F32 => |values| pack_blocks(values, encode::f32),
        TensorType::F16 => |values| pack_blocks(values, encode::f16),
        TensorType::Bf16 => |values| pack_blocks(values, encode::bf16),
        TensorType::Q4_0 => |values| pack_blocks(values, encode::q4_0),
        TensorType::Q4_1 => |values| pack_blocks(values, encode::q4_1),
        TensorType::Q5_0 => |values| pack_blocks(values, encode::q5_0),
        TensorType::Q5_1 => |values| pack_blocks(values, encode::q5_1),
        TensorType::Q8_0 => |values| pack_blocks(values, encode::q8_0),
        TensorType::Q8_1 => |values| pack_blocks(values, encode::q8_1),
        TensorType::Q2K => |values| pack_blocks(values, encode_k::q2_k),
        TensorType::Q3K => |values| pack_blocks(values, encode_k::q3_k),
        TensorType::Q4K => |values| pack_blocks(values, encode_k::q4_k),
        TensorType::Q5K => |values| pack_blocks(values, encode_k::q5_k),
        TensorType::Q6K => |values| pack_blocks(values, encode_k::q6_k),
        TensorType::Q8K => |values| pack_blocks(values, encode_k::q8_k),
        _ => return None,
    })
}

/// Calls `encode` with each `N` values and a zeroed block of `B` bytes.
fn pack_blocks<const N: usize, const B: usize>(values: &[f32], encode: impl Fn(&[f32; N], &mut [u8; B])) -> Vec<u8> {
    let (values, _) = values.as_chunks::<N>();
    let mut bytes = vec![0; values.len() * B];
    let (blocks, _) = bytes.as_chunks_mut::<B>();
    for (values, block) in values.iter().zip(blocks) {
        encode(values, block);
    }
    bytes
}

/// Whether [`dequantize`] knows the type.
pub fn can_dequantize(ty: TensorType) -> bool {
    decoder(ty).is_some()
}

/// Decodes whole blocks to f32. `out` must have exactly one place for every element of `bytes`.
///
/// # Errors
/// [`GgufError::NoDecoder`], [`GgufError::PartialBlock`], [`GgufError::WrongOutputLength`].
pub fn dequantize(ty: TensorType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    let decode = decoder(ty).ok_or(GgufError::NoDecoder { ty })?;
    if !bytes.len().is_multiple_of(ty.block_bytes()) {
        return Err(GgufError::PartialBlock {
            ty,
            len: bytes.len(),
            block_bytes: ty.block_bytes(),
        });
    }
    // No overflow: a block takes at least as many bytes as a quarter of its elements, and slices are below 2^63 bytes.
    let expected = bytes.len() / ty.block_bytes() * ty.block_len();
    if out.len() != expected {
        return Err(GgufError::WrongOutputLength {
            ty,
            expected,
            found: out.len(),
        });
    }
    decode(bytes, out);
    Ok(())
}

/// Whether [`quantize`] knows the type.
pub fn can_quantize(ty: TensorType) -> bool {
    encoder(ty).is_some()
}

/// Encodes f32 values as whole blocks. The values should be finite: a block with a NaN or an infinity has no defined
/// result, except in the plain types.
///
/// # Errors
/// [`GgufError::NoEncoder`], [`GgufError::PartialBlockValues`].
pub fn quantize(ty: TensorType, values: &[f32]) -> Result<Vec<u8>> {
    let encode = encoder(ty).ok_or(GgufError::NoEncoder { ty })?;
    if !values.len().is_multiple_of(ty.block_len()) {
        return Err(GgufError::PartialBlockValues {
            ty,
            len: values.len(),
            block_len: ty.block_len(),
        });
    }
    Ok(encode(values))
}
