//! Operands of CPU ops: bytes with a type and strides, read as f32, as words, or as they are.

use std::borrow::Cow;

use bytemuck::Pod;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use rocmforge_gguf::blocks;

use super::scratch::Scratch;
use super::strides::{Dims, each_offset, each_pair, row_major, unit_dims};
use crate::{DType, GgmlResult, TensorDesc, indices};

/// Halves of type `dtype` as f32, to as many places.
pub(super) fn halves_to_f32(dtype: DType, bits: &[u16], out: &mut [f32]) {
    match dtype {
        DType::Bf16 => bits.reinterpret_cast::<bf16>().convert_to_f32_slice(out),
        _ => bits.reinterpret_cast::<f16>().convert_to_f32_slice(out),
    }
}

/// Where the values of an operand lie that the op may overwrite.
#[derive(Clone, Copy)]
pub(super) enum Values<'a> {
    /// In memory of their own, in row-major order.
    Apart(&'a [f32]),
    /// In the memory of the output with this number, each where the result's element goes.
    InOutput(usize),
}

impl<'a> Values<'a> {
    /// From element `first` on.
    pub(super) fn from(self, first: usize) -> Self {
        match self {
            Self::Apart(values) => Self::Apart(&values[first..]),
            in_output @ Self::InOutput(_) => in_output,
        }
    }

    /// Gives `out`, the only output, the first of these values: copies them, unless they are there.
    pub(super) fn put(self, out: &mut [f32]) {
        if let Self::Apart(values) = self {
            out.copy_from_slice(&values[..out.len()]);
        }
    }
}

/// One input: the bytes it spans, and where its elements lie in them.
#[derive(Clone, Copy)]
pub(super) struct Operand<'a> {
    pub(super) shape: &'a [usize],
    pub(super) dtype: DType,
    strides: &'a [usize],
    bytes: &'a [u8],
    /// The dimension along which the blocks of a block format lie.
    block_dim: Option<usize>,
    /// The output whose memory holds the operand's elements: `bytes` has none then.
    output: Option<usize>,
    /// Where values go that cannot be borrowed.
    scratch: &'a Scratch,
}

impl<'a> Operand<'a> {
    /// `bytes` is the span of `desc`, aligned to 4 for types of 4 bytes.
    pub(super) fn strided(desc: &'a TensorDesc, bytes: &'a [u8], scratch: &'a Scratch) -> Self {
        Self {
            shape: &desc.shape,
            dtype: desc.dtype,
            strides: &desc.strides,
            bytes,
            block_dim: desc.block_dim(),
            output: None,
            scratch,
        }
    }

    /// Contiguous f32 in the memory of an output with the same descriptor.
    pub(super) fn in_output(desc: &'a TensorDesc, output: usize, scratch: &'a Scratch) -> Self {
        Self {
            output: Some(output),
            ..Self::strided(desc, &[], scratch)
        }
    }

    /// Values of the op itself.
    pub(super) fn of_f32(shape: &'a [usize], strides: &'a [usize], values: &'a [f32], scratch: &'a Scratch) -> Self {
        Self {
            shape,
            dtype: DType::F32,
            strides,
            bytes: bytemuck::cast_slice(values),
            block_dim: None,
            output: None,
            scratch,
        }
    }

    /// Part `index` along the first dimension, which is left out.
    pub(super) fn part(&self, index: usize) -> Self {
        let (shape, strides) = (&self.shape[1..], &self.strides[1..]);
        let [block_len, block_bytes] = [self.dtype.block_len(), self.dtype.block_bytes()];
        let start = index * self.strides[0] / block_len * block_bytes;
        let last: usize = shape.iter().zip(strides).map(|(dim, stride)| (dim - 1) * stride).sum();
        let bytes = &self.bytes[start..start + (last + 1).div_ceil(block_len) * block_bytes];
        Self {
            shape,
            dtype: self.dtype,
            strides,
            bytes,
            block_dim: self.block_dim.and_then(|dim| dim.checked_sub(1)),
            output: None,
            scratch: self.scratch,
        }
    }

    /// Memory for the op that the operand belongs to.
    pub(super) fn scratch(&self) -> &'a Scratch {
        self.scratch
    }

    pub(super) fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        let mut dims = self.shape.iter().zip(self.strides).rev();
        self.shape.contains(&0)
            || dims.all(|(&dim, &stride)| {
                let fits = dim <= 1 || stride == expected;
                expected *= dim;
                fits
            })
    }

    /// Whether the elements of each row, along the last dimension, are adjacent: of a block format, whole blocks.
    pub(super) fn rows_are_adjacent(&self) -> bool {
        let Some(last) = self.shape.len().checked_sub(1) else {
            return false;
        };
        match self.dtype.is_quantized() {
            true => self.block_dim == Some(last),
            false => self.shape[last] <= 1 || self.strides[last] == 1,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.shape.iter().product()
    }

    /// The span as it is, for types that are not 4 bytes wide.
    pub(super) fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    /// Elements of a type of 4 bytes in row-major order; borrowed if they lie so.
    pub(super) fn words(&self) -> &'a [u32] {
        let words: &'a [u32] = bytemuck::cast_slice(self.bytes);
        if self.is_contiguous() {
            return words;
        }
        let out = self.scratch.take(self.count());
        let mut places = out.iter_mut();
        each_offset(self.shape, self.strides, |at| put(&mut places, words[at]));
        out
    }

    /// Indices that have been checked in row-major order, those of 64 bits narrowed; borrowed if they lie so.
    pub(super) fn indices(&self) -> &'a [u32] {
        match self.dtype {
            DType::I64 => self.numbers(|b| i64::from_ne_bytes(b) as u32),
            _ => self.words(),
        }
    }

    /// Elements of any type as f32 in row-major order; borrowed if they lie so.
    pub(super) fn f32(&self) -> &'a [f32] {
        match self.dtype {
            DType::F32 => bytemuck::cast_slice(self.words()),
            DType::F16 | DType::Bf16 if self.is_contiguous() => {
                let bits: &[u16] = bytemuck::cast_slice(self.bytes);
                let out = self.scratch.take(bits.len());
                halves_to_f32(self.dtype, bits, out);
                out
            }
            DType::F16 => self.numbers(|b: [u8; 2]| f16::from_bits(u16::from_ne_bytes(b)).to_f32()),
            DType::Bf16 => self.numbers(|b: [u8; 2]| bf16::from_bits(u16::from_ne_bytes(b)).to_f32()),
            DType::F64 => self.numbers(|b: [u8; 8]| f64::from_ne_bytes(b) as f32),
            DType::I8 => self.numbers(|b: [u8; 1]| f32::from(i8::from_ne_bytes(b))),
            DType::I16 => self.numbers(|b: [u8; 2]| f32::from(i16::from_ne_bytes(b))),
            DType::I32 => self.numbers(|b: [u8; 4]| i32::from_ne_bytes(b) as f32),
            DType::U32 => self.numbers(|b: [u8; 4]| u32::from_ne_bytes(b) as f32),
            DType::I64 => self.numbers(|b: [u8; 8]| i64::from_ne_bytes(b) as f32),
            _ => self.decoded(),
        }
    }

    /// [`Self::f32`] of an operand that may lie in an output.
    pub(super) fn values(&self) -> Values<'a> {
        match self.output {
            Some(output) => Values::InOutput(output),
            None => Values::Apart(self.f32()),
        }
    }

    /// Elements of a plain type, each as `convert` reads its bytes, in row-major order.
    pub(super) fn numbers<const N: usize, T: Pod>(&self, convert: impl Fn([u8; N]) -> T) -> &'a [T] {
        let elements = self.bytes.as_chunks::<N>().0;
        let out = self.scratch.take(self.count());
        if self.is_contiguous() {
            out.iter_mut().zip(elements).for_each(|(out, &b)| *out = convert(b));
            return out;
        }
        let mut places = out.iter_mut();
        each_offset(self.shape, self.strides, |at| put(&mut places, convert(elements[at])));
        out
    }

    /// Elements of a block format in row-major order. Zeros where the format has no decoder: shape rules admit none of those.
    fn decoded(&self) -> &'a [f32] {
        let out = self.scratch.filled(self.count(), 0.0);
        let (Some(run), Some(ty)) = (self.block_dim, self.dtype.tensor_type()) else {
            return out;
        };
        let [block_len, block_bytes] = [self.dtype.block_len(), self.dtype.block_bytes()];
        let mut outer = Dims::from_slice(self.shape);
        outer[run] = outer[run].min(1);
        let to = row_major(self.shape);
        let blocks_of = self.shape[run] / block_len * block_bytes;
        let row = self.scratch.take(self.shape[run]);
        each_pair(&outer, self.strides, &to, |from, at| {
            let start = from / block_len * block_bytes;
            if blocks::dequantize(ty, &self.bytes[start..start + blocks_of], row).is_err() {
                return;
            }
            for (i, &value) in row.iter().enumerate() {
                out[at + i * to[run]] = value;
            }
        });
        out
    }

    /// The raw span as f32, for ops that follow the strides themselves.
    pub(super) fn span_f32(&self) -> &'a [f32] {
        bytemuck::cast_slice(self.bytes)
    }

    pub(super) fn strides(&self) -> &[usize] {
        self.strides
    }

    /// The stored units (plain elements, or blocks along the last dimension) in row-major order, as bytes; borrowed if they lie so.
    pub(super) fn units(&self) -> &'a [u8] {
        self.units_in(self.shape, self.strides)
    }

    /// [`Self::units`] of the same memory under another shape and other strides.
    pub(super) fn units_in(&self, shape: &[usize], strides: &[usize]) -> &'a [u8] {
        if self.is_contiguous() && shape == self.shape && strides == self.strides {
            return self.bytes;
        }
        let size = self.dtype.block_bytes();
        let (shape, strides) = unit_dims(self.dtype, shape, strides);
        let out = self.scratch.take(shape.iter().product::<usize>() * size);
        let mut places = out.chunks_exact_mut(size);
        each_offset(&shape, &strides, |at| {
            if let Some(place) = places.next() {
                place.copy_from_slice(&self.bytes[at * size..(at + 1) * size]);
            }
        });
        out
    }
}

impl indices::Operands for [Operand<'_>] {
    fn shape(&self, operand: usize) -> GgmlResult<&[usize]> {
        Ok(self[operand].shape)
    }

    fn narrow(&self, operand: usize) -> GgmlResult<Cow<'_, [u32]>> {
        Ok(self[operand].words().into())
    }

    fn wide(&self, operand: usize) -> GgmlResult<Option<Cow<'_, [i64]>>> {
        let operand = &self[operand];
        Ok((operand.dtype == DType::I64).then(|| operand.numbers(i64::from_ne_bytes).into()))
    }
}

/// Writes the next place.
fn put<'a, T: 'a>(places: &mut impl Iterator<Item = &'a mut T>, value: T) {
    if let Some(place) = places.next() {
        *place = value;
    }
}
