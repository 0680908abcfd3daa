//! Operands as the kernels take them: f32 without gaps. Others are packed into scratch memory first.

use rocmforge_runtime::{Elems, HipBuffer};

use super::copies::packed;
use super::{HipGgmlBackend, failed, unimplemented};
use crate::{DType, GgmlError, GgmlResult, Op, TensorDesc, TensorId};

// Places of scratch memory. The first eight are those of an op's inputs.

/// An op's packed result.
const RESULT: usize = 8;
/// What an op computes on the way.
pub(super) const BETWEEN: usize = 9;
/// Activations of 8 bits that products of one matrix share: a place for each group of rows.
pub(super) const ROUNDED: [usize; 4] = [10, 13, 15, 16];
/// Activations of 16 bits.
pub(super) const HALVES: usize = 11;
/// Rows of weights as f16, with the sums of parts.
pub(super) const SLAB: usize = 12;
/// Rounded activations of experts.
pub(super) const ROUNDED_OF_EXPERTS: usize = 14;
/// The experts' tiles.
pub(super) const TILES: usize = 17;

/// Rows and columns of a tensor: all dimensions but the last, and the last.
pub(super) fn rows_and_cols(shape: &[usize]) -> [usize; 2] {
    let cols = shape.last().copied().unwrap_or(1);
    [shape.iter().product::<usize>() / cols.max(1), cols]
}

/// Scratch memory of a stream's ops, a buffer for each place of an operand. It grows to what the largest needs and is
/// used again by the next op, which runs after it.
#[derive(Debug, Default)]
pub(super) struct Scratch(Vec<Option<HipBuffer<u8>>>);

impl HipGgmlBackend {
    /// Copies into scratch memory enqueued so far, of operands and results that no kernel takes as they lie (gaps, f16,
    /// bf16). Each reads and writes the operand once more.
    #[must_use]
    pub const fn packings(&self) -> u64 {
        self.packings
    }

    /// Scratch memory for an operand at place `place`.
    pub(super) fn scratch(&mut self, place: usize, bytes: usize) -> GgmlResult<HipBuffer<u8>> {
        if self.scratch.0.len() <= place {
            self.scratch.0.resize(place + 1, None);
        }
        let large = self.scratch.0[place].take().filter(|buffer| buffer.len() >= bytes);
        let buffer = match large {
            Some(buffer) => buffer,
            None => {
                let buffer = HipBuffer::zeroed(self.stream(), Elems(bytes), "ggml scratch");
                buffer.map_err(failed("allocating scratch memory"))?
            }
        };
        let part = buffer.view(0..bytes).map_err(failed("scratch memory"));
        self.scratch.0[place] = Some(buffer);
        part
    }

    /// A tensor as f32 without gaps: where it lies if it does so, else packed at `place`.
    pub(super) fn input(&mut self, op: &Op, id: TensorId, place: usize) -> GgmlResult<HipBuffer<f32>> {
        let desc = self.slots.desc(id)?;
        if desc.dtype == DType::F32 && desc.is_contiguous() {
            return self.f32(op, id);
        }
        let (desc, x) = (desc.clone(), self.bytes(id)?);
        self.pack(op, (&desc, &x), place)
    }

    /// Elements in the order of a descriptor as f32, packed at `place`.
    pub(super) fn pack(
        &mut self,
        op: &Op,
        (desc, x): (&TensorDesc, &HipBuffer<u8>),
        place: usize,
    ) -> GgmlResult<HipBuffer<f32>> {
        let target = packed(&desc.shape, DType::F32);
        let y = self.scratch(place, target.byte_size())?;
        self.copy(op, (desc, x), (&target, &y), false)?;
        self.packings += 1;
        y.cast().map_err(failed(op.name()))
    }

    /// Where an op's f32 result goes: the output itself, or scratch memory from which [`Self::store`] takes it.
    pub(super) fn result(&mut self, op: &Op, id: TensorId) -> GgmlResult<HipBuffer<f32>> {
        let desc = self.slots.desc(id)?;
        if desc.dtype == DType::F32 && desc.is_contiguous() {
            return self.f32(op, id);
        }
        let bytes = packed(&desc.shape, DType::F32).byte_size();
        self.scratch(RESULT, bytes)?.cast().map_err(failed(op.name()))
    }

    /// Brings a result that is in scratch memory into the output.
    pub(super) fn store(&mut self, op: &Op, id: TensorId, result: &HipBuffer<f32>) -> GgmlResult<()> {
        let desc = self.slots.desc(id)?;
        if desc.dtype == DType::F32 && desc.is_contiguous() {
            return Ok(());
        }
        let from = packed(&desc.shape, DType::F32);
        let x = result.cast().map_err(failed(op.name()))?;
        self.copy(op, (&from, &x), (desc, &self.bytes(id)?), false)?;
        self.packings += 1;
        Ok(())
    }

    /// What is left of a launch: its error, or the result's way into the output.
    pub(super) fn stored(
        &mut self,
        op: &Op,
        launched: rocmforge_kernels::KernelResult<()>,
        output: TensorId,
        result: &HipBuffer<f32>,
    ) -> GgmlResult<()> {
        self.done(op, launched)?;
        self.store(op, output, result)
    }

    pub(super) fn done(&self, op: &Op, result: rocmforge_kernels::KernelResult<()>) -> GgmlResult<()> {
        result.map_err(failed(op.name()))
    }

    pub(super) fn cannot(&self, op: &Op, id: TensorId) -> GgmlError {
        unimplemented(op, self.slots.desc(id).map_or_else(|_| id.to_string(), |d| d.summary()))
    }
}
