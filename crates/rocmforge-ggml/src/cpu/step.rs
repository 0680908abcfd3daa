//! Steps: nodes whose operands have been found and checked, as often run as wanted.

use std::ops::Range;

use smallvec::SmallVec;

use super::buffer::CpuBuffer;
use super::operand::Operand;
use super::threads::WORTH_A_THREAD;
use super::{CpuBackend, run_op, too_small};
use crate::slots::Slots;
use crate::{GgmlError, GgmlResult, Node, Op, TensorDesc, TensorId, shape};

/// Operands that need no memory of their own to be listed.
const USUAL_OPERANDS: usize = 6;

/// A graph's nodes for the CPU: operands found, types and shapes checked.
#[derive(Debug)]
pub struct CpuProgram {
    pub(super) steps: Vec<Step>,
    /// Whether a step has enough to do for several threads.
    pub(super) is_shared_out: bool,
}

/// One node.
#[derive(Debug)]
pub(super) struct Step {
    op: Op,
    inputs: SmallVec<[Place; USUAL_OPERANDS]>,
    output: Place,
}

/// Where a tensor lies.
#[derive(Debug)]
struct Place {
    desc: TensorDesc,
    /// The tensor whose buffer it lies in.
    root: TensorId,
    /// Its bytes there, from its first element to its last.
    span: Range<usize>,
}

impl Place {
    fn of(slots: &Slots<CpuBuffer>, id: TensorId) -> GgmlResult<Self> {
        let desc = slots.desc(id)?.clone();
        let root = slots.root(id)?;
        let span = desc.span();
        Ok(Self { desc, root, span })
    }

    fn overlaps(&self, other: &Self) -> bool {
        self.root == other.root && self.span.start < other.span.end && other.span.start < self.span.end
    }

    /// Its bytes in the root's memory.
    fn bytes<'a>(&self, memory: &'a [u8]) -> GgmlResult<&'a [u8]> {
        memory
            .get(self.span.clone())
            .ok_or_else(|| self.too_small(memory.len()))
    }

    fn too_small(&self, found: usize) -> GgmlError {
        too_small(self.desc.id, &self.span, found)
    }
}

/// The memory of the output's root, around the output.
struct Around<'a> {
    before: &'a [u8],
    /// First byte of `after` in the root's memory.
    end: usize,
    after: &'a [u8],
}

impl<'a> Around<'a> {
    /// Bytes that do not overlap the output.
    fn bytes(&self, place: &Place) -> GgmlResult<&'a [u8]> {
        let Range { start, end } = place.span;
        let found = if end <= self.before.len() {
            self.before.get(start..end)
        } else {
            let part = start.checked_sub(self.end).zip(end.checked_sub(self.end));
            part.and_then(|(start, end)| self.after.get(start..end))
        };
        found.ok_or_else(|| place.too_small(self.end + self.after.len()))
    }
}

impl CpuProgram {
    pub(super) fn of<'a>(slots: &Slots<CpuBuffer>, nodes: impl Iterator<Item = &'a Node>) -> GgmlResult<Self> {
        let steps = nodes
            .enumerate()
            .map(|(index, node)| Step::of(slots, index, &node.op, &node.inputs, &node.outputs))
            .collect::<GgmlResult<Vec<Step>>>()?;
        let is_shared_out = steps.iter().any(Step::is_large);
        Ok(Self { steps, is_shared_out })
    }
}

impl Step {
    /// Finds a node's operands and checks their types and shapes.
    pub(super) fn of(
        slots: &Slots<CpuBuffer>,
        node: usize,
        op: &Op,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> GgmlResult<Self> {
        let &[output] = outputs else {
            return Err(GgmlError::InvalidArity {
                node,
                op: op.name(),
                expected: "1 output",
                inputs: inputs.len(),
                outputs: outputs.len(),
                operands: Default::default(),
            });
        };
        let inputs = inputs
            .iter()
            .map(|&id| Place::of(slots, id))
            .collect::<GgmlResult<SmallVec<[Place; USUAL_OPERANDS]>>>()?;
        let descs: SmallVec<[&TensorDesc; USUAL_OPERANDS]> = inputs.iter().map(|place| &place.desc).collect();
        let output = Place::of(slots, output)?;
        shape::infer(node, op, &descs)?.check_output(node, op, &descs, &output.desc, false)?;
        drop(descs);
        Ok(Self {
            op: *op,
            output,
            inputs,
        })
    }

    /// Whether several threads may share the step: an element of the largest operand is visited eight times at most, attention aside.
    fn is_large(&self) -> bool {
        let mut places = self.inputs.iter().chain([&self.output]);
        places.any(|place| 8 * place.desc.element_count() >= WORTH_A_THREAD)
    }
}

impl CpuBackend {
    pub(super) fn run_step(&mut self, step: &Step) -> GgmlResult<()> {
        if step.output.desc.element_count() == 0 {
            return Ok(());
        }
        let mut buffer = self.slots.take(step.output.root)?;
        let result = self.compute(step, buffer.bytes_mut());
        self.slots.give_back(step.output.root, buffer);
        self.scratch.reset();
        result
    }

    /// Runs a step whose output lies in `memory`, the rest of which other operands may lie in.
    fn compute(&self, step: &Step, memory: &mut [u8]) -> GgmlResult<()> {
        let Range { start, end } = step.output.span;
        if end > memory.len() {
            return Err(step.output.too_small(memory.len()));
        }
        // An input that the op overwrites while it reads is copied first. What is only written is not.
        let copy = |(operand, place): (usize, &Place)| -> GgmlResult<Option<&[u8]>> {
            let written = operand == 1 && matches!(step.op, Op::Cpy { .. } | Op::SetRows);
            if written || !place.overlaps(&step.output) {
                return Ok(None);
            }
            Ok(Some(self.scratch.copied(place.bytes(memory)?)))
        };
        let copies: SmallVec<[Option<&[u8]>; USUAL_OPERANDS]> =
            step.inputs.iter().enumerate().map(copy).collect::<GgmlResult<_>>()?;
        let (before, rest) = memory.split_at_mut(start);
        let (out, after) = rest.split_at_mut(end - start);
        let around = Around { before, end, after };
        let operands: SmallVec<[Operand<'_>; USUAL_OPERANDS]> = step
            .inputs
            .iter()
            .zip(&copies)
            .map(|(place, copy)| {
                let bytes = self.operand_bytes(step, place, *copy, &around)?;
                Ok(Operand::strided(&place.desc, bytes, &self.scratch))
            })
            .collect::<GgmlResult<_>>()?;
        run_op(
            &step.op,
            &operands,
            &step.output.desc,
            out,
            self.activations,
            &self.threads,
            &self.scratch,
        )
    }

    fn operand_bytes<'a>(
        &'a self,
        step: &Step,
        place: &Place,
        copy: Option<&'a [u8]>,
        around: &Around<'a>,
    ) -> GgmlResult<&'a [u8]> {
        if let Some(bytes) = copy {
            return Ok(bytes);
        }
        if place.root != step.output.root {
            let buffer = self.slots.buffer(place.root);
            return place.bytes(buffer.ok_or(GgmlError::UnknownTensor(place.root))?.bytes());
        }
        if place.overlaps(&step.output) {
            // Only written: it is the output.
            return Ok(&[]);
        }
        around.bytes(place)
    }
}
