//! The CPU backend: f32, correct for every op, any strides on inputs, several threads for large ops.

mod attention;
mod elementwise;
mod matmul;
mod norm;
mod operand;
mod rope;
mod rows;
mod threads;

use crate::slots::Slots;
use crate::{DType, GgmlBackend, GgmlError, GgmlResult, HostAccess, Op, TensorDesc, TensorId};
use operand::{Operand, gather, scatter};

pub(crate) const NAME: &str = "cpu";

/// Memory of one tensor: whole 32-bit words, so that f32 and u32 are always aligned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CpuBuffer {
    words: Vec<u32>,
}

impl CpuBuffer {
    /// `bytes` zero bytes.
    #[must_use]
    pub fn zeroed(bytes: usize) -> Self {
        Self {
            words: vec![0; bytes.div_ceil(4)],
        }
    }

    /// A copy of f32 values.
    #[must_use]
    pub fn from_f32(values: &[f32]) -> Self {
        Self {
            words: bytemuck::cast_slice(values).to_vec(),
        }
    }

    /// All bytes; the length is a multiple of 4.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.words)
    }

    /// All bytes, for changes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.words)
    }
}

/// Runs graphs on the CPU.
///
/// Memory starts as zeros. Ops with much to do are split over threads that end with the op: nobody waits by spinning.
#[derive(Debug)]
pub struct CpuBackend {
    slots: Slots<CpuBuffer>,
    threads: usize,
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
            threads: threads.max(1),
        }
    }

    /// The backend's name in messages.
    #[must_use]
    pub const fn backend_id(&self) -> &'static str {
        NAME
    }

    /// Whether an op can run on tensors of this type.
    #[must_use]
    pub fn can_execute(&self, op: &Op, dtype: DType) -> bool {
        match op {
            Op::Reshape | Op::View | Op::Copy | Op::Transpose => matches!(dtype, DType::F32 | DType::U32 | DType::I32),
            _ => dtype == DType::F32,
        }
    }

    /// The words that a tensor spans: from its first element to its last.
    fn words<'a>(&'a self, desc: &TensorDesc) -> GgmlResult<&'a [u32]> {
        let root = self.slots.root(desc.id)?;
        let buffer = self.slots.buffer(root).ok_or(GgmlError::UnknownTensor(root))?;
        span(&buffer.words, desc)
    }

    fn check_types(&self, op: &Op, ids: &[TensorId]) -> GgmlResult<()> {
        for &id in ids {
            let desc = self.slots.desc(id)?;
            let index = matches!(desc.dtype, DType::U32 | DType::I32);
            if desc.dtype != DType::F32 && !index {
                return Err(GgmlError::Unimplemented {
                    backend: NAME,
                    op: op.name(),
                    what: desc.summary(),
                });
            }
        }
        Ok(())
    }
}

fn span<'a>(words: &'a [u32], desc: &TensorDesc) -> GgmlResult<&'a [u32]> {
    let start = desc.byte_offset / 4;
    let end = start.saturating_add(desc.byte_size() / 4);
    words.get(start..end).ok_or(GgmlError::BufferSize {
        tensor: desc.id,
        expected: end.saturating_mul(4),
        found: words.len() * 4,
    })
}

impl GgmlBackend for CpuBackend {
    type Buffer = CpuBuffer;

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
        let &[output] = outputs else {
            return Err(GgmlError::InvalidArity {
                node: 0,
                op: op.name(),
                expected: "1 output",
                inputs: inputs.len(),
                outputs: outputs.len(),
            });
        };
        self.check_types(op, inputs)?;
        self.check_types(op, outputs)?;
        let descs = inputs
            .iter()
            .map(|&id| self.slots.desc(id))
            .collect::<GgmlResult<Vec<_>>>()?;
        crate::shape::infer(0, op, &descs)?;

        let target = self.slots.desc(output)?.clone();
        let root = self.slots.root(output)?;
        // An input in the output's own buffer is copied first: the op may overwrite it while it reads.
        let copies = inputs
            .iter()
            .map(|&id| {
                let desc = self.slots.desc(id)?;
                let shared = self.slots.root(id)? == root;
                Ok(if shared {
                    Some(gather(self.words(desc)?, desc))
                } else {
                    None
                })
            })
            .collect::<GgmlResult<Vec<_>>>()?;
        let mut buffer = self.slots.take(root)?;
        let result = self.compute(op, inputs, &copies, &target, &mut buffer);
        self.slots.give_back(root, buffer);
        result
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        Ok(())
    }
}

impl CpuBackend {
    fn compute(
        &self,
        op: &Op,
        inputs: &[TensorId],
        copies: &[Option<Vec<u32>>],
        target: &TensorDesc,
        buffer: &mut CpuBuffer,
    ) -> GgmlResult<()> {
        let operands = inputs
            .iter()
            .zip(copies)
            .map(|(&id, copy)| {
                let desc = self.slots.desc(id)?;
                match copy {
                    Some(words) => Ok(Operand::contiguous(desc, words)),
                    None => Ok(Operand::strided(desc, self.words(desc)?)),
                }
            })
            .collect::<GgmlResult<Vec<_>>>()?;
        span(&buffer.words, target)?;
        let start = target.byte_offset / 4;
        let words = &mut buffer.words[start..start + target.byte_size() / 4];
        if target.is_contiguous() {
            return run(op, &operands, bytemuck::cast_slice_mut(words), self.threads);
        }
        let mut contiguous = vec![0.0; target.element_count()];
        run(op, &operands, &mut contiguous, self.threads)?;
        scatter(bytemuck::cast_slice(&contiguous), target, words);
        Ok(())
    }
}

/// Runs `op` on checked operands into a contiguous output. Types that are not f32 are only ever moved, as words.
fn run(op: &Op, inputs: &[Operand<'_>], out: &mut [f32], threads: usize) -> GgmlResult<()> {
    match *op {
        Op::GetRows => return rows::get_rows(&inputs[0], &inputs[1], out),
        Op::MatMul => matmul::matmul(&inputs[0], &inputs[1], inputs.get(2), out, threads),
        Op::Add | Op::Mask => elementwise::broadcast(&inputs[0], &inputs[1], out, |a, b| a + b),
        Op::Mul => elementwise::broadcast(&inputs[0], &inputs[1], out, |a, b| a * b),
        Op::Scale { factor } => elementwise::map(&inputs[0], out, threads, |x| x * factor),
        Op::LayerNorm { eps } => norm::layer_norm(&inputs[0], inputs.get(1), inputs.get(2), eps, out, threads),
        Op::RmsNorm { eps } => norm::rms_norm(&inputs[0], inputs.get(1), eps, out, threads),
        Op::Rope(rope) => return rope::rope(&inputs[0], &inputs[1], rope, out),
        Op::Softmax => norm::softmax(&inputs[0], out, threads),
        Op::Attention(a) => attention::attention(inputs, a, out, threads),
        Op::SwiGlu => elementwise::broadcast(&inputs[0], &inputs[1], out, |g, u| g / (1.0 + (-g).exp()) * u),
        Op::Gelu(kind) => elementwise::gelu(&inputs[0], out, kind, threads),
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
        let desc = self.slots.desc(id)?;
        let root = self.slots.root(id)?;
        let buffer = self.buffer(root).ok_or(GgmlError::UnknownTensor(root))?;
        let (start, len) = (desc.byte_offset, desc.byte_size());
        let found = buffer.bytes().len();
        let bytes = buffer.bytes().get(start..start + len);
        Ok(bytes
            .ok_or(GgmlError::BufferSize {
                tensor: id,
                expected: start + len,
                found,
            })?
            .to_vec())
    }
}
