//! Block formats: decoding to f32 and encoding from f32.
//!
//! Decoders exist for every type but the integers and `f64`, which can be stored and read as bytes only.
//!
//! Encoders exist for `f32`, `f16`, `bf16`, `q4_0`, `q4_1`, `q5_0`, `q5_1`, `q8_0`, `q8_1`, `q2_K` to `q6_K` and
//! `q8_K`. They give the bytes of ggml's reference quantisers.
//!
//! Values are computed in f32 in the order that the decoder's comment shows, and never with a fused multiply-add, so
//! every decoder gives the same bits on every machine.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod decode;
mod decode_few_bits;
mod decode_iq;
mod decode_k;
mod encode;
mod encode_k;
mod fit;
mod format;
mod grids;
mod half_float;
mod int8;

use crate::error::{GgufError, Result};
use crate::tensor_type::TensorType;
use format::format_of;

pub use int8::{INT8_LANES, INT8_UNIT, Int8Panel, Int8Unit, has_int8_dots, int8_dots, pack_int8, round_to_int8};

/// Encodes whole blocks of one type, to as many places.
type Encoder = fn(&[f32], &mut [u8]);

/// The encoder of a type.
fn encoder(ty: TensorType) -> Option<Encoder> {
    Some(match ty {
        TensorType::F32 => |values, bytes| pack_blocks(values, bytes, encode::f32),
        TensorType::F16 => |values, bytes| pack_blocks(values, bytes, encode::f16),
        TensorType::Bf16 => |values, bytes| pack_blocks(values, bytes, encode::bf16),
        TensorType::Q4_0 => |values, bytes| pack_blocks(values, bytes, encode::q4_0),
        TensorType::Q4_1 => |values, bytes| pack_blocks(values, bytes, encode::q4_1),
        TensorType::Q5_0 => |values, bytes| pack_blocks(values, bytes, encode::q5_0),
        TensorType::Q5_1 => |values, bytes| pack_blocks(values, bytes, encode::q5_1),
        TensorType::Q8_0 => |values, bytes| pack_blocks(values, bytes, encode::q8_0),
        TensorType::Q8_1 => |values, bytes| pack_blocks(values, bytes, encode::q8_1),
        TensorType::Q2K => |values, bytes| pack_blocks(values, bytes, encode_k::q2_k),
        TensorType::Q3K => |values, bytes| pack_blocks(values, bytes, encode_k::q3_k),
        TensorType::Q4K => |values, bytes| pack_blocks(values, bytes, encode_k::q4_k),
        TensorType::Q5K => |values, bytes| pack_blocks(values, bytes, encode_k::q5_k),
        TensorType::Q6K => |values, bytes| pack_blocks(values, bytes, encode_k::q6_k),
        TensorType::Q8K => |values, bytes| pack_blocks(values, bytes, encode_k::q8_k),
        _ => return None,
    })
}

/// Calls `encode` with each `N` values and a zeroed block of `B` bytes.
fn pack_blocks<const N: usize, const B: usize>(
    values: &[f32],
    bytes: &mut [u8],
    encode: impl Fn(&[f32; N], &mut [u8; B]),
) {
    let (values, _) = values.as_chunks::<N>();
    let (blocks, _) = bytes.as_chunks_mut::<B>();
    for (values, block) in values.iter().zip(blocks) {
        *block = [0; B];
        encode(values, block);
    }
}

/// Whether [`dequantize`] knows the type.
pub fn can_dequantize(ty: TensorType) -> bool {
    format_of(ty).is_some()
}

/// Decodes whole blocks to f32. `out` must have exactly one place for every element of `bytes`.
///
/// # Errors
/// [`GgufError::NoDecoder`], [`GgufError::PartialBlock`], [`GgufError::WrongOutputLength`].
pub fn dequantize(ty: TensorType, bytes: &[u8], out: &mut [f32]) -> Result<()> {
    let format = format_of(ty).ok_or(GgufError::NoDecoder { ty })?;
    check(ty, bytes, out.len())?;
    (format.decode)(bytes, out);
    Ok(())
}

/// The dot product of each row with `x`: `out[r] = rows[r] . x`. A row is whole blocks with exactly one element for every value
/// of `x`; decoded values are those of [`dequantize`], products and sums are f32. The order of the sums depends on the length of
/// `x` only; where the CPU has FMA the products are not rounded.
///
/// # Errors
/// [`GgufError::NoDecoder`]; [`GgufError::PartialBlockValues`] for `x`; [`GgufError::WrongRows`] where `rows` is not one row of
/// blocks for every place of `out`.
pub fn dots(ty: TensorType, rows: &[u8], x: &[f32], out: &mut [f32]) -> Result<()> {
    let mut sums = vec![0.0; x.len().div_ceil(SUMMED)];
    group_sums(x, &mut sums);
    dots_with_sums(ty, rows, x, &sums, out)
}

/// Values of which [`group_sums`] makes one.
pub const SUMMED: usize = 32;

/// The sums of x that products of some formats need: `out[i]` is that of the 32 from `32 * i` on.
pub fn group_sums(x: &[f32], out: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if avx512::is_available() {
        return avx512::group_sums(x, out);
    }
    for (out, x) in out.iter_mut().zip(x.chunks(SUMMED)) {
        *out = x.iter().sum();
    }
}

/// [`dots`] with x's [`group_sums`], which all rows share.
///
/// # Errors
/// Those of [`dots`].
pub fn dots_with_sums(ty: TensorType, rows: &[u8], x: &[f32], sums: &[f32], out: &mut [f32]) -> Result<()> {
    let format = format_of(ty).ok_or(GgufError::NoDecoder { ty })?;
    let row_bytes = row_bytes(ty, x.len(), rows.len(), out.len())?;
    if row_bytes == 0 {
        out.fill(0.0);
        return Ok(());
    }
    #[cfg(target_arch = "x86_64")]
    if let Some(dots) = avx512::dots_of(ty) {
        dots(rows, x, sums, out);
        return Ok(());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = sums;
    #[cfg(target_arch = "x86_64")]
    let dot = avx2::dot_of(ty).unwrap_or(format.dot);
    #[cfg(not(target_arch = "x86_64"))]
    let dot = format.dot;
    for (row, out) in rows.chunks_exact(row_bytes).zip(out) {
        *out = dot(row, x);
    }
    Ok(())
}

/// Bytes of a row of `len` elements, where `found` bytes are `rows` of them.
fn row_bytes(ty: TensorType, len: usize, found: usize, rows: usize) -> Result<usize> {
    whole_blocks(ty, len)?;
    let row_bytes = len / ty.block_len() * ty.block_bytes();
    if rows.checked_mul(row_bytes) != Some(found) {
        return Err(GgufError::WrongRows {
            ty,
            rows,
            row_bytes,
            found,
        });
    }
    Ok(row_bytes)
}

/// Whether `bytes` are whole blocks of `len` elements together.
fn check(ty: TensorType, bytes: &[u8], len: usize) -> Result<()> {
    if !bytes.len().is_multiple_of(ty.block_bytes()) {
        return Err(GgufError::PartialBlock {
            ty,
            len: bytes.len(),
            block_bytes: ty.block_bytes(),
        });
    }
    // No overflow: a block takes at least as many bytes as a quarter of its elements, and slices are below 2^63 bytes.
    let expected = bytes.len() / ty.block_bytes() * ty.block_len();
    if len != expected {
        return Err(GgufError::WrongOutputLength {
            ty,
            expected,
            found: len,
        });
    }
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
    encoder(ty).ok_or(GgufError::NoEncoder { ty })?;
    whole_blocks(ty, values.len())?;
    let mut bytes = vec![0; values.len() / ty.block_len() * ty.block_bytes()];
    quantize_into(ty, values, &mut bytes)?;
    Ok(bytes)
}

/// [`quantize`] to memory of the caller's: exactly as many bytes as the blocks take.
///
/// # Errors
/// Those of [`quantize`], and [`GgufError::WrongRows`] for another number of bytes.
pub fn quantize_into(ty: TensorType, values: &[f32], bytes: &mut [u8]) -> Result<()> {
    let encode = encoder(ty).ok_or(GgufError::NoEncoder { ty })?;
    row_bytes(ty, values.len(), bytes.len(), 1)?;
    encode(values, bytes);
    Ok(())
}

/// Whether so many values are whole blocks.
fn whole_blocks(ty: TensorType, len: usize) -> Result<()> {
    let block_len = ty.block_len();
    if !len.is_multiple_of(block_len) {
        return Err(GgufError::PartialBlockValues { ty, len, block_len });
    }
    Ok(())
}
