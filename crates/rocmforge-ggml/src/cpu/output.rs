//! Results into the memory of an output: in its type, under its strides.

use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use rocmforge_gguf::blocks;
use smallvec::SmallVec;

use super::scratch::Scratch;
use super::strides::{each_offset, unit_dims};
use crate::{DType, GgmlError, GgmlResult, TensorDesc};

/// Outputs that need no memory of their own to be listed.
const USUAL_OUTPUTS: usize = 4;

/// An output: its descriptor and the bytes that it spans.
pub(super) struct Target<'a> {
    pub(super) desc: &'a TensorDesc,
    pub(super) bytes: &'a mut [u8],
}

impl Target<'_> {
    /// Whether its memory is contiguous words.
    fn is_words(&self) -> bool {
        self.desc.dtype.block_bytes() == 4 && self.desc.is_contiguous()
    }
}

/// The outputs of a step, as ops write them: as f32 words, as stored units, or in place.
pub(super) struct Results<'t, 'a> {
    targets: &'t mut [Target<'a>],
    /// For each output the words of one whose memory is not contiguous words, once they are asked for.
    copies: SmallVec<[&'t mut [f32]; USUAL_OUTPUTS]>,
    scratch: &'t Scratch,
}

impl<'t, 'a> Results<'t, 'a> {
    pub(super) fn new(targets: &'t mut [Target<'a>], scratch: &'t Scratch) -> Self {
        Self {
            targets,
            copies: SmallVec::new(),
            scratch,
        }
    }

    /// Each output as contiguous f32 words, of indices as many words: its own memory if it is that, else a copy that [`Self::store`] stores.
    pub(super) fn all(&mut self) -> SmallVec<[&mut [f32]; USUAL_OUTPUTS]> {
        let scratch = self.scratch;
        let copy = |target: &Target<'_>| match target.is_words() {
            true => scratch.take(0),
            false => scratch.filled(target.desc.element_count(), 0.0),
        };
        self.copies = self.targets.iter().map(copy).collect();
        let words = self.targets.iter_mut().zip(&mut self.copies);
        words
            .map(|(target, copy)| match target.is_words() {
                true => bytemuck::cast_slice_mut(target.bytes),
                false => &mut **copy,
            })
            .collect()
    }

    /// [`Self::all`] of an op with so many outputs.
    pub(super) fn words<const N: usize>(&mut self) -> [&mut [f32]; N] {
        let mut all = self.all().into_iter();
        std::array::from_fn(|_| all.next().unwrap_or_default())
    }

    /// [`Self::words`] of an op with one output.
    pub(super) fn one(&mut self) -> &mut [f32] {
        let [words] = self.words();
        words
    }

    /// [`Self::one`] of indices.
    pub(super) fn indices(&mut self) -> &mut [u32] {
        bytemuck::cast_slice_mut(self.one())
    }

    /// The first output as it is.
    pub(super) fn first(&mut self) -> &mut Target<'a> {
        &mut self.targets[0]
    }

    /// Puts stored units into the only output.
    pub(super) fn put(&mut self, units: &[u8]) {
        let Target { desc, bytes } = self.first();
        store_units(units, desc, bytes);
    }

    /// Stores the words of outputs that are not contiguous words.
    pub(super) fn store(self) -> GgmlResult<()> {
        for (target, copy) in self
            .targets
            .iter_mut()
            .zip(&self.copies)
            .filter(|(target, _)| !target.is_words())
        {
            store(copy, target.desc, target.bytes, self.scratch)?;
        }
        Ok(())
    }
}

/// Halves that are converted together.
const ENCODED: usize = 256;

/// f32 values in type `to`, a plain float or a block format with an encoder, as bytes; there are as many as the values take.
pub(super) fn encode_into(to: DType, values: &[f32], bytes: &mut [u8]) -> GgmlResult<()> {
    match to {
        DType::F32 => bytes.copy_from_slice(bytemuck::cast_slice(values)),
        DType::F16 | DType::Bf16 => {
            // Bytes may begin anywhere.
            for (bytes, values) in bytes.chunks_mut(2 * ENCODED).zip(values.chunks(ENCODED)) {
                let mut bits = [0u16; ENCODED];
                let bits = &mut bits[..values.len()];
                match to {
                    DType::F16 => bits.reinterpret_cast_mut::<f16>().convert_from_f32_slice(values),
                    _ => bits.reinterpret_cast_mut::<bf16>().convert_from_f32_slice(values),
                }
                bytes.copy_from_slice(bytemuck::cast_slice(bits));
            }
        }
        _ => {
            let failed = |source: Box<dyn std::error::Error + Send + Sync>| GgmlError::Backend {
                backend: super::NAME,
                at: format!("encoding {} values as {to}", values.len()),
                source,
            };
            let ty = to.tensor_type().ok_or_else(|| failed("not a type of GGUF".into()))?;
            blocks::quantize_into(ty, values, bytes).map_err(|source| failed(Box::new(source)))?;
        }
    }
    Ok(())
}

/// [`encode_into`] memory of the op.
pub(super) fn encode<'a>(to: DType, values: &[f32], scratch: &'a Scratch) -> GgmlResult<&'a [u8]> {
    let bytes = scratch.take(values.len() / to.block_len() * to.block_bytes());
    encode_into(to, values, bytes)?;
    Ok(bytes)
}

/// Stores results as f32 words: as they are in a type of 4 bytes (indices are words already), else converted.
fn store(words: &[f32], target: &TensorDesc, bytes: &mut [u8], scratch: &Scratch) -> GgmlResult<()> {
    if target.dtype.block_bytes() == 4 {
        store_units(bytemuck::cast_slice(words), target, bytes);
    } else if target.is_contiguous() {
        encode_into(target.dtype, words, bytes)?;
    } else {
        store_units(encode(target.dtype, words, scratch)?, target, bytes);
    }
    Ok(())
}

/// Puts stored units (plain elements or blocks), in row-major order, where the target's strides want them.
fn store_units(units: &[u8], target: &TensorDesc, bytes: &mut [u8]) {
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
