//! CPU backend: every op, f32 activations, weights of every type, any strides on f32 inputs, several threads for large ops.

mod attention;
mod buffer;
mod convert;
mod dot;
mod elementwise;
mod matmul;
mod norm;
mod operand;
mod paged;
mod rope;
mod rows;
mod select;
mod step;
mod threads;
mod weights;

pub use buffer::{CpuBuffer, SharedBytes};
pub use step::CpuProgram;

use crate::slots::Slots;
use crate::{DType, GgmlBackend, GgmlError, GgmlResult, Graph, HostAccess, Node, Op, TensorDesc, TensorId};
use operand::{Operand, scatter};
use rocmforge_machine::sysfs::Sysfs;
use std::ops::Range;
use std::sync::Arc;
use step::Step;
use threads::Threads;

pub(crate) const NAME: &str = "cpu";

/// Runs graphs on the CPU.
///
/// Memory starts as zeros. Ops with much to do are split over threads; between ops they sleep.
#[derive(Debug)]
pub struct CpuBackend {
    slots: Slots<CpuBuffer>,
    threads: Threads,
}

impl Default for CpuBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl CpuBackend {
    /// As many threads as the machine offers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_threads(std::thread::available_parallelism().map_or(1, usize::from))
    }

    /// At most `threads` threads; 0 counts as 1.
    #[must_use]
    pub fn with_threads(threads: usize) -> Self {
        Self {
            slots: Slots::new(),
            threads: Threads::new(threads),
        }
    }

    /// The backend's name in messages.
    #[must_use]
    pub const fn backend_id(&self) -> &'static str {
        NAME
    }

    /// Whether an op can run with an operand of this type, as the one operand that may be of several types: the weight of `MatMul`, the
    /// table of `GetRows`, the cache of `PagedAttention` and `SetRows`, what is moved or cast; else the first.
    #[must_use]
    pub fn can_execute(&self, op: &Op, dtype: DType) -> bool {
        let operand = match op {
            Op::MatMul | Op::PagedAttention(_) | Op::SetRows => 1,
            _ => 0,
        };
        accepts(op, operand, dtype)
    }

    /// The bytes that a tensor spans: from its first element to its last.
    fn bytes<'a>(&'a self, desc: &TensorDesc) -> GgmlResult<&'a [u8]> {
        let root = self.slots.root(desc.id)?;
        let buffer = self.slots.buffer(root).ok_or(GgmlError::UnknownTensor(root))?;
        let (start, end) = span(buffer.bytes().len(), desc)?;
        Ok(&buffer.bytes()[start..end])
    }
}

impl CpuBackend {
    /// A program of some nodes whose tensors are all here.
    pub(crate) fn program_of<'a>(&self, nodes: impl Iterator<Item = &'a Node>) -> GgmlResult<CpuProgram> {
        CpuProgram::of(&self.slots, nodes)
    }

    /// Bytes of a tensor that has memory of its own.
    pub(crate) fn root_bytes(&self, root: TensorId, span: Range<usize>) -> GgmlResult<&[u8]> {
        let bytes = self.slots.buffer(root).ok_or(GgmlError::UnknownTensor(root))?.bytes();
        let found = bytes.len();
        bytes.get(span.clone()).ok_or(too_small(root, &span, found))
    }

    /// [`Self::root_bytes`], for changes.
    pub(crate) fn root_bytes_mut(&mut self, root: TensorId, span: Range<usize>) -> GgmlResult<&mut [u8]> {
        let buffer = self.slots.buffer_mut(root).ok_or(GgmlError::UnknownTensor(root))?;
        let bytes = buffer.bytes_mut();
        let found = bytes.len();
        bytes.get_mut(span.clone()).ok_or(too_small(root, &span, found))
    }
}

fn too_small(tensor: TensorId, span: &Range<usize>, found: usize) -> GgmlError {
    GgmlError::BufferSize {
        tensor,
        expected: span.end,
        found,
    }
}

/// Which types an op takes at one of its inputs.
fn accepts(op: &Op, operand: usize, dtype: DType) -> bool {
    let word = matches!(dtype, DType::F32 | DType::U32 | DType::I32);
    match (op, operand) {
        (Op::GetRows, 0) | (Op::MatMul, 1) => dtype.is_weight(),
        (Op::PagedAttention(_), 1 | 2) | (Op::SetRows, 1) => matches!(dtype, DType::F32 | DType::F16),
        (Op::Cast { .. }, _) => matches!(dtype, DType::F32 | DType::F16 | DType::Bf16),
        (Op::Concat { .. }, _) => word || matches!(dtype, DType::F16 | DType::Bf16),
        (Op::Reshape | Op::View | Op::Copy | Op::Transpose, _) => word,
        (Op::GetRows, 1) | (Op::SetRows, 2) | (Op::PagedAttention(_), 3..) | (Op::Rope(_), 1) => {
            matches!(dtype, DType::U32 | DType::I32)
        }
        _ => dtype == DType::F32,
    }
}

/// First byte and end of a tensor in a buffer of `len` bytes.
fn span(len: usize, desc: &TensorDesc) -> GgmlResult<(usize, usize)> {
    let end = desc.byte_offset.saturating_add(desc.byte_size());
    if end > len {
        return Err(GgmlError::BufferSize {
            tensor: desc.id,
            expected: end,
            found: len,
        });
    }
    Ok((desc.byte_offset, end))
}

impl GgmlBackend for CpuBackend {
    type Buffer = CpuBuffer;
    type Program = CpuProgram;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        desc.check()?;
        self.slots.insert(desc, CpuBuffer::zeroed(desc.byte_size()));
        Ok(())
    }

    fn bind(&mut self, desc: &TensorDesc, buffer: CpuBuffer) -> GgmlResult<()> {
        let bytes = buffer.bytes().len();
        self.slots.bind(desc, buffer, bytes)
    }

    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.slots.remove(id)
    }

    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.slots.desc(id).ok()
    }

    fn buffer(&self, id: TensorId) -> Option<&CpuBuffer> {
        self.slots.buffer(id)
    }

    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut CpuBuffer> {
        self.slots.buffer_mut(id)
    }

    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.slots.bind_view(desc)
    }

    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        let step = Step::of(&self.slots, 0, op, inputs, outputs)?;
        self.run_step(&step)
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<CpuProgram> {
        self.program_of(graph.computing_nodes())
    }

    fn enqueue(&mut self, program: &mut CpuProgram) -> GgmlResult<()> {
        program.steps.iter().try_for_each(|step| self.run_step(step))
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        Ok(())
    }
}

/// Runs `op` on checked operands into the bytes that `target` spans.
fn run_op(
    op: &Op,
    operands: &[Operand<'_>],
    target: &TensorDesc,
    bytes: &mut [u8],
    threads: &Threads,
) -> GgmlResult<()> {
    match *op {
        Op::SetRows => return rows::set_rows(&operands[0], &operands[2], target, bytes),
        Op::Cast { to } => return convert::cast(&operands[0], to, bytes),
        Op::Concat { axis } => return convert::concat(&operands[0], &operands[1], axis, bytes),
        _ => {}
    }
    let words: &mut [u32] = bytemuck::cast_slice_mut(bytes);
    if target.is_contiguous() {
        return run(op, operands, bytemuck::cast_slice_mut(words), threads);
    }
    let mut contiguous = vec![0.0; target.element_count()];
    run(op, operands, &mut contiguous, threads)?;
    scatter(bytemuck::cast_slice(&contiguous), target, words);
    Ok(())
}

/// Runs `op` on checked operands into a contiguous output. Types that are not f32 are only ever moved, as words.
fn run(op: &Op, inputs: &[Operand<'_>], out: &mut [f32], threads: &Threads) -> GgmlResult<()> {
    match *op {
        Op::GetRows => return rows::get_rows(&inputs[0], &inputs[1], out),
        Op::MatMul => return matmul::matmul(&inputs[0], &inputs[1], inputs.get(2), out, threads),
        Op::Add | Op::Mask => elementwise::broadcast(&inputs[0], &inputs[1], out, |a, b| a + b),
        Op::Mul => elementwise::broadcast(&inputs[0], &inputs[1], out, |a, b| a * b),
        Op::Scale { factor } => elementwise::map(&inputs[0], out, threads, |x| x * factor),
        Op::LayerNorm { eps } => norm::layer_norm(&inputs[0], inputs.get(1), inputs.get(2), eps, out, threads),
        Op::RmsNorm { eps } => norm::rms_norm(&inputs[0], inputs.get(1), eps, out, threads),
        Op::Rope(rope) => return rope::rope(&inputs[0], &inputs[1], inputs.get(2), rope, out),
        Op::Softmax => norm::softmax(&inputs[0], out, threads),
        Op::Attention(a) => attention::attention(inputs, a, out, threads),
        Op::PagedAttention(a) => return paged::attention(inputs, a, out, threads),
        Op::SwiGlu => elementwise::zip(&inputs[0], &inputs[1], out, threads, |g, u| elementwise::silu(g) * u),
        Op::GeGlu => elementwise::zip(&inputs[0], &inputs[1], out, threads, |g, u| {
            elementwise::gelu_tanh(g) * u
        }),
        Op::Silu => elementwise::map(&inputs[0], out, threads, elementwise::silu),
        Op::Softcap { cap } => elementwise::map(&inputs[0], out, threads, |x| cap * (x / cap).tanh()),
        Op::Gelu(kind) => elementwise::gelu(&inputs[0], out, kind, threads),
        Op::ArgMax => select::arg_max(&inputs[0], bytemuck::cast_slice_mut(out)),
        Op::TopK { k } => select::top_k(&inputs[0], k, bytemuck::cast_slice_mut(out)),
        Op::Reshape | Op::View | Op::Copy => out.copy_from_slice(&inputs[0].f32()),
        Op::Transpose => {
            let transposed = inputs[0].transposed();
            out.copy_from_slice(bytemuck::cast_slice(&transposed));
        }
        Op::Accumulate { offset } => {
            // The second operand is the output itself, copied before.
            out.copy_from_slice(&inputs[1].f32());
            let src = inputs[0].f32();
            for (o, s) in out[offset..offset + src.len()].iter_mut().zip(src.iter()) {
                *o += s;
            }
        }
        Op::MeanPool => rows::mean_pool(&inputs[0], &inputs[1], out),
        Op::L2Normalize { eps } => norm::l2_normalize(&inputs[0], eps, out, threads),
        // Handled before: their operands are not words, or the output is changed in place.
        Op::Cast { .. } | Op::Concat { .. } | Op::SetRows => {}
    }
    Ok(())
}

impl HostAccess for CpuBackend {
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        let expected = self.slots.desc(id)?.byte_size();
        if bytes.len() != expected {
            return Err(GgmlError::BufferSize {
                tensor: id,
                expected,
                found: bytes.len(),
            });
        }
        let buffer = self.buffer_mut(id).ok_or(GgmlError::UnknownTensor(id))?;
        buffer.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        Ok(self.bytes(self.slots.desc(id)?)?.to_vec())
    }

    /// Three quarters of what programs can still have without swapping: the rest stays for everybody else. Only where the system is
    /// Linux.
    fn available_bytes(&self) -> Option<usize> {
        let available = Sysfs::host().memory().available?;
        usize::try_from(available.0 / 4 * 3).ok()
    }

    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.bind(desc, CpuBuffer::shared(bytes))
    }
}
