//! Steps: nodes whose operands have been found and checked, as often run as wanted.

use std::ops::Range;

use smallvec::SmallVec;

use super::buffer::CpuBuffer;
use super::operand::Operand;
use super::ops::{self, On};
use super::output::Target;
use super::threads::WORTH_A_THREAD;
use super::{CpuBackend, too_small};
use crate::op::Output;
use crate::slots::Slots;
use crate::{DType, GgmlError, GgmlResult, Kernel, Launch, TensorDesc, TensorId, shape};

/// Operands that need no memory of their own to be listed.
const USUAL_OPERANDS: usize = 7;

/// Outputs of which the same is true.
const USUAL_OUTPUTS: usize = 4;

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
    kernel: Kernel,
    inputs: SmallVec<[Input; USUAL_OPERANDS]>,
    outputs: SmallVec<[Place; USUAL_OUTPUTS]>,
}

/// An operand: where it lies, and how the op comes to its values.
#[derive(Debug)]
struct Input {
    place: Place,
    access: Access,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Read where it lies: no output overlaps it.
    Apart,
    /// Read in the memory of the output with this number, as the op overwrites it.
    InOutput(usize),
    /// Only written: it is an output.
    Written,
    /// Copied before the op runs: the op overwrites parts of it that it still has to read.
    Copied,
}

impl Access {
    fn of(kernel: &Kernel, operand: usize, place: &Place, outputs: &[Place]) -> Self {
        let is_target = operand == 1;
        if is_target && matches!(kernel.output(), Output::Second | Output::SecondIfAny) {
            return Self::Written;
        }
        let overlaps = |output: &&Place| place.overlaps(output);
        if !outputs.iter().any(|output| overlaps(&output)) {
            return Self::Apart;
        }
        let may_be_overwritten =
            operand < kernel.overwrites().operands() || (is_target && kernel.output() == Output::SecondRead);
        match outputs.iter().position(|output| place.is_all_of(output)) {
            Some(output) if may_be_overwritten && outputs.iter().filter(overlaps).count() == 1 => {
                Self::InOutput(output)
            }
            _ => Self::Copied,
        }
    }
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

    /// Whether both are the same elements, contiguous f32.
    fn is_all_of(&self, other: &Self) -> bool {
        let (a, b) = (&self.desc, &other.desc);
        self.root == other.root
            && self.span == other.span
            && (a.dtype, b.dtype) == (DType::F32, DType::F32)
            && a.shape == b.shape
            && a.is_contiguous()
            && b.is_contiguous()
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

/// The memory of a root that outputs lie in, without them.
struct Around<'a> {
    root: TensorId,
    /// What lies before, between and after the outputs, each with its first byte's place in the root's memory.
    gaps: SmallVec<[(usize, &'a [u8]); USUAL_OUTPUTS + 1]>,
    len: usize,
}

impl<'a> Around<'a> {
    /// Cuts the outputs of a step that lie in `root` out of its memory, and puts them into `written`.
    fn new(
        step: &Step,
        root: TensorId,
        memory: &'a mut [u8],
        written: &mut [Option<&'a mut [u8]>],
    ) -> GgmlResult<Self> {
        let len = memory.len();
        let mut here: SmallVec<[usize; USUAL_OUTPUTS]> = (0..step.outputs.len())
            .filter(|&index| step.outputs[index].root == root)
            .collect();
        here.sort_unstable_by_key(|&index| step.outputs[index].span.start);
        let mut gaps = SmallVec::new();
        let (mut rest, mut at) = (memory, 0);
        for index in here {
            let place = &step.outputs[index];
            let Range { start, end } = place.span;
            if end > len || start < at {
                return Err(place.too_small(len));
            }
            let (gap, tail) = rest.split_at_mut(start - at);
            let (out, tail) = tail.split_at_mut(end - start);
            gaps.push((at, &*gap));
            written[index] = Some(out);
            (rest, at) = (tail, end);
        }
        gaps.push((at, &*rest));
        Ok(Self { root, gaps, len })
    }

    /// Bytes that overlap no output.
    fn bytes(&self, place: &Place) -> GgmlResult<&'a [u8]> {
        let Range { start, end } = place.span;
        let part = self.gaps.iter().find_map(|&(first, gap)| {
            let (start, end) = (start.checked_sub(first)?, end.checked_sub(first)?);
            gap.get(start..end)
        });
        part.ok_or_else(|| place.too_small(self.len))
    }
}

impl CpuProgram {
    pub(super) fn of<'a>(slots: &Slots<CpuBuffer>, launches: impl Iterator<Item = &'a Launch>) -> GgmlResult<Self> {
        let steps = launches
            .enumerate()
            .map(|(index, launch)| Step::of(slots, index, &launch.kernel, &launch.inputs, &launch.outputs))
            .collect::<GgmlResult<Vec<Step>>>()?;
        let is_shared_out = steps.iter().any(Step::is_large);
        Ok(Self { steps, is_shared_out })
    }
}

impl Step {
    /// Finds a launch's operands and checks their types and shapes.
    pub(super) fn of(
        slots: &Slots<CpuBuffer>,
        node: usize,
        kernel: &Kernel,
        inputs: &[TensorId],
        outputs: &[TensorId],
    ) -> GgmlResult<Self> {
        let inputs = inputs
            .iter()
            .map(|&id| Place::of(slots, id))
            .collect::<GgmlResult<SmallVec<[Place; USUAL_OPERANDS]>>>()?;
        let outputs = outputs
            .iter()
            .map(|&id| Place::of(slots, id))
            .collect::<GgmlResult<SmallVec<[Place; USUAL_OUTPUTS]>>>()?;
        // A launch of several is made of nodes that have been checked.
        if let Kernel::Op(op) = kernel {
            let descs: SmallVec<[&TensorDesc; USUAL_OPERANDS]> = inputs.iter().map(|place| &place.desc).collect();
            let results: SmallVec<[&TensorDesc; USUAL_OUTPUTS]> = outputs.iter().map(|place| &place.desc).collect();
            shape::check_outputs(node, op, &descs, &results, false)?;
        }
        let inputs = inputs.into_iter().enumerate().map(|(operand, place)| {
            let access = Access::of(kernel, operand, &place, &outputs);
            Input { place, access }
        });
        let inputs = inputs.collect();
        Ok(Self {
            kernel: *kernel,
            outputs,
            inputs,
        })
    }

    /// Whether several threads may share the step: an element of the largest operand is visited eight times at most, attention aside.
    fn is_large(&self) -> bool {
        let mut places = self.inputs.iter().map(|input| &input.place).chain(&self.outputs);
        places.any(|place| 8 * place.desc.element_count() >= WORTH_A_THREAD)
    }
}

impl CpuBackend {
    pub(super) fn run_step(&mut self, step: &Step) -> GgmlResult<()> {
        if step.outputs.iter().all(|place| place.desc.element_count() == 0) {
            return Ok(());
        }
        let copies = step.inputs.iter().filter(|input| input.access == Access::Copied);
        self.operand_copies += copies.count() as u64;
        let mut taken: SmallVec<[(TensorId, CpuBuffer); USUAL_OUTPUTS]> = SmallVec::new();
        let mut result = Ok(());
        for place in &step.outputs {
            if taken.iter().any(|(root, _)| *root == place.root) {
                continue;
            }
            match self.slots.take(place.root) {
                Ok(buffer) => taken.push((place.root, buffer)),
                Err(error) => result = Err(error),
            }
        }
        if result.is_ok() {
            result = self.compute(step, &mut taken);
        }
        for (root, buffer) in taken {
            self.slots.give_back(root, buffer);
        }
        self.scratch.reset();
        result
    }

    /// Runs a step whose outputs lie in `memory`, the rest of which other operands may lie in.
    fn compute(&self, step: &Step, memory: &mut [(TensorId, CpuBuffer)]) -> GgmlResult<()> {
        let copy = |input: &Input| -> GgmlResult<Option<&[u8]>> {
            if input.access != Access::Copied {
                return Ok(None);
            }
            let root = memory.iter().find(|(root, _)| *root == input.place.root);
            let bytes = input.place.bytes(root.map_or(&[][..], |(_, buffer)| buffer.bytes()))?;
            Ok(Some(self.scratch.copied(bytes)))
        };
        let copies: SmallVec<[Option<&[u8]>; USUAL_OPERANDS]> =
            step.inputs.iter().map(copy).collect::<GgmlResult<_>>()?;
        let mut written: SmallVec<[Option<&mut [u8]>; USUAL_OUTPUTS]> = step.outputs.iter().map(|_| None).collect();
        let around: SmallVec<[Around<'_>; USUAL_OUTPUTS]> = memory
            .iter_mut()
            .map(|(root, buffer)| Around::new(step, *root, buffer.bytes_mut(), &mut written))
            .collect::<GgmlResult<_>>()?;
        let operands: SmallVec<[Operand<'_>; USUAL_OPERANDS]> = step
            .inputs
            .iter()
            .zip(&copies)
            .map(|(input, copy)| {
                let desc = &input.place.desc;
                let bytes = match (input.access, *copy) {
                    (Access::InOutput(output), _) => return Ok(Operand::in_output(desc, output, &self.scratch)),
                    (Access::Written, _) => &[],
                    (_, Some(copy)) => copy,
                    (_, None) => self.bytes_of(&input.place, &around)?,
                };
                Ok(Operand::strided(desc, bytes, &self.scratch))
            })
            .collect::<GgmlResult<_>>()?;
        let mut targets: SmallVec<[Target<'_>; USUAL_OUTPUTS]> = step
            .outputs
            .iter()
            .zip(written)
            .map(|(place, bytes)| Target {
                desc: &place.desc,
                bytes: bytes.unwrap_or(&mut []),
            })
            .collect();
        let on = On {
            activations: self.activations,
            threads: &self.threads,
            scratch: &self.scratch,
        };
        ops::run(&step.kernel, &operands, &mut targets, on)
    }

    /// Bytes that no output of the step overlaps; `around` is the rest of the memory that outputs lie in.
    fn bytes_of<'a>(&'a self, place: &Place, around: &[Around<'a>]) -> GgmlResult<&'a [u8]> {
        if let Some(around) = around.iter().find(|around| around.root == place.root) {
            return around.bytes(place);
        }
        let buffer = self.slots.buffer(place.root);
        place.bytes(buffer.ok_or(GgmlError::UnknownTensor(place.root))?.bytes())
    }
}
