//! Declared kernels as operations: their operands become the inputs and the output of a plan.

use crate::inputs::Kind;
use crate::op::Plan;
use crate::table::Work;
use rocmforge_kernels::declared::{Ask, Buffers, Call, Declared, Elements};
use rocmforge_kernels::{KernelResult, Kernels};
use rocmforge_runtime::{HipBuffer, HipStream};
use std::any::Any;

/// What a kernel asks for at these dimensions. `None`: it has another number of them.
pub(crate) fn plan(kernel: &Declared, dims: &[usize], (kernels, stream): (&Kernels, &HipStream)) -> Option<Plan> {
    if kernel.timed[0].len() != dims.len() {
        return None;
    }
    let mut asked = Asked::default();
    let mut call = Call::new(kernels, stream, &mut asked, false);
    // The launcher refuses operands of one element; what it asked for is known by then.
    let _ = (kernel.call)(&mut call, dims);
    let (flops, moved) = (call.flops(), call.moved());
    let bytes = asked.bytes;
    Some(Plan {
        inputs: asked.inputs,
        output: asked.output,
        halves: false,
        work: match flops {
            0 => Work::Bytes(moved.unwrap_or(bytes) as u64),
            flops => Work::Flops(flops),
        },
    })
}

/// Words of the inputs and of all outputs, and bytes of all together.
#[derive(Default)]
struct Asked {
    inputs: Vec<(Kind, usize)>,
    output: usize,
    bytes: usize,
}

impl Buffers for Asked {
    fn buffer(&mut self, stream: &HipStream, ask: &Ask<'_>) -> KernelResult<Box<dyn Any>> {
        let bytes = ask.len * ask.elements.size();
        let words = bytes.div_ceil(4);
        self.bytes += bytes;
        match (ask.written, ask.elements) {
            (true, _) => self.output += words,
            (false, Elements::U32(below)) => self.inputs.push((Kind::Rows(below.max(1)), words)),
            (false, _) => self.inputs.push((Kind::Numbers, words)),
        }
        Ok(match ask.elements {
            Elements::F32 => Box::new(HipBuffer::from_slice(stream, &[0f32], ask.name)?),
            Elements::U32(_) => Box::new(HipBuffer::from_slice(stream, &[0u32], ask.name)?),
            Elements::U8 => Box::new(HipBuffer::from_slice(stream, &[0u8], ask.name)?),
            Elements::U64 => Box::new(HipBuffer::from_slice(stream, &[0u64], ask.name)?),
        })
    }
}

/// Enqueues it. The buffers have the lengths of its [plan].
pub(crate) fn launch(
    kernel: &Declared,
    dims: &[usize],
    (kernels, stream): (&Kernels, &HipStream),
    inputs: &[HipBuffer<f32>],
    y: &HipBuffer<f32>,
) -> KernelResult<()> {
    let mut given = Given {
        inputs,
        y,
        next: 0,
        from: 0,
    };
    (kernel.call)(&mut Call::new(kernels, stream, &mut given, false), dims)
}

/// The inputs of a plan in their order, and parts of its output.
struct Given<'a> {
    inputs: &'a [HipBuffer<f32>],
    y: &'a HipBuffer<f32>,
    next: usize,
    /// Where the next output begins.
    from: usize,
}

impl Buffers for Given<'_> {
    fn buffer(&mut self, _: &HipStream, ask: &Ask<'_>) -> KernelResult<Box<dyn Any>> {
        let buffer = if ask.written {
            let words = (ask.len * ask.elements.size()).div_ceil(4);
            self.from += words;
            self.y.view(self.from - words..self.from)?
        } else {
            self.next += 1;
            self.inputs[self.next - 1].clone()
        };
        Ok(match ask.elements {
            Elements::F32 => Box::new(buffer),
            Elements::U32(_) => Box::new(buffer.cast::<u32>()?),
            Elements::U8 => Box::new(buffer.cast::<u8>()?.view(0..ask.len)?),
            Elements::U64 => Box::new(buffer.cast::<u64>()?),
        })
    }
}
