//! Results into the memory of an output: in its type, under its strides.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use rocmforge_gguf::blocks;
use smallvec::SmallVec;

use super::operand::unit_dims;
use super::strides::each_offset;
use crate::{DType, GgmlError, GgmlResult, TensorDesc};

/// An output: its descriptor and the bytes that it spans.
pub(super) struct Target<'a> {
    pub(super) desc: &'a TensorDesc,
    pub(super) bytes: &'a mut [u8],
}

/// Runs `compute` on the outputs as contiguous f32 words: on their own memory where they are that, else on a copy that is stored then.
pub(super) fn as_words(
    targets: &mut [Target<'_>],
    compute: impl FnOnce(&mut [&mut [f32]]) -> GgmlResult<()>,
) -> GgmlResult<()> {
    let is_direct = |target: &Target<'_>| target.desc.dtype.block_bytes() == 4 && target.desc.is_contiguous();
    let mut own: SmallVec<[Vec<f32>; 4]> = targets
        .iter()
        .map(|target| {
            if is_direct(target) {
                0
            } else {
                target.desc.element_count()
            }
        })
        .map(|count| vec![0.0; count])
        .collect();
    let mut words: SmallVec<[&mut [f32]; 4]> = targets
        .iter_mut()
        .zip(&mut own)
        .map(|(target, own)| {
            if is_direct(target) {
                bytemuck::cast_slice_mut(target.bytes)
            } else {
                own.as_mut_slice()
            }
        })
        .collect();
    compute(&mut words)?;
    drop(words);
    let copied = targets.iter_mut().zip(&own).filter(|(target, _)| !is_direct(target));
    for (target, own) in copied {
        store(own, target.desc, target.bytes)?;
    }
    Ok(())
}

/// f32 values in type `to`, a plain float or a block format with an encoder, as bytes.
pub(super) fn encode(to: DType, values: &[f32]) -> GgmlResult<Vec<u8>> {
    match to {
        DType::F32 => Ok(bytemuck::cast_slice(values).to_vec()),
        DType::F16 | DType::Bf16 => {
            let mut bits = vec![0u16; values.len()];
            match to {
                DType::F16 => bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values),
                _ => bits.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(values),
            }
            Ok(bytemuck::cast_slice(&bits).to_vec())
        }
        _ => {
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| GgmlError::Backend {
                backend: super::NAME,
                at: format!("encoding {} values as {to}", values.len()),
                source,
            };
            let ty = to.tensor_type().ok_or_else(|| failed("not a type of GGUF".into()))?;
            blocks::quantize(ty, values).map_err(|source| failed(Box::new(source)))
        }
    }
}

/// Stores results as f32 words: as they are in a type of 4 bytes (indices are words already), else converted.
pub(super) fn store(words: &[f32], target: &TensorDesc, bytes: &mut [u8]) -> GgmlResult<()> {
    if target.dtype.block_bytes() == 4 {
        store_units(bytemuck::cast_slice(words), target, bytes);
    } else {
        store_units(&encode(target.dtype, words)?, target, bytes);
    }
    Ok(())
}

/// Puts stored units (plain elements or blocks), in row-major order, where the target's strides want them.
pub(super) fn store_units(units: &[u8], target: &TensorDesc, bytes: &mut [u8]) {
    if target.is_contiguous() {
        return bytes.copy_from_slice(units);
    }
    let size = target.dtype.block_bytes();
    let (shape, strides) = unit_dims(target.dtype, &target.shape, &target.strides);
    let mut next = units.chunks(size);
    each_offset(&shape, &strides, |at| {
        if let Some(unit) = next.next() {
            bytes[at * size..(at + 1) * size].copy_from_slice(unit);
        }
    });
}
