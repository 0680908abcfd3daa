//! CPU backend: every op, f32 activations, weights of every type, any strides on f32 inputs, several threads for large ops.

mod attention;
mod buffer;
mod convert;
mod dot;
mod elementwise;
mod flash;
mod gemm;
mod matmul;
mod norm;
mod operand;
mod paged;
mod path;
mod rope;
mod rows;
mod select;
mod softmax;
mod threads;
mod weights;

pub use buffer::{CpuBuffer, SharedBytes};
pub use weights::Activations;

use crate::slots::Slots;
use crate::{DType, GgmlBackend, GgmlError, GgmlResult, HostAccess, Op, TensorDesc, TensorId};
use operand::{Operand, gather, scatter};
use rocmforge_machine::sysfs::Sysfs;
use std::sync::Arc;
use threads::Threads;

pub(crate) const NAME: &str = "cpu";

/// Runs graphs on the CPU.
///
/// Memory starts as zeros. Ops with much to do are split over threads; between ops they sleep.
#[derive(Debug)]
pub struct CpuBackend {
    slots: Slots<CpuBuffer>,
    threads: Threads,
    activations: Activations,
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
            activations: Activations::default(),
        }
    }

    /// The same backend with another way to multiply activations and weights.
    #[must_use]
    pub fn activations(self, activations: Activations) -> Self {
        Self { activations, ..self }
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

    fn check_types(&self, op: &Op, inputs: &[TensorId]) -> GgmlResult<()> {
        for (operand, &id) in inputs.iter().enumerate() {
            let desc = self.slots.desc(id)?;
            if !accepts(op, operand, desc.dtype) {
                return Err(GgmlError::Unimplemented {
                    backend: NAME,
                    op: op.name(),
                    what: desc.summary(),
                });
            }
        }
        Ok(())
    }

    /// Writes rows in place: the only op whose output is too large to be copied.
    fn set_rows(&mut self, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let root = self.slots.root(output)?;
        let target = self.slots.desc(output)?.clone();
        let mut buffer = self.slots.take(root)?;
        let mut run = || {
            let (src, ids) = (self.slots.desc(inputs[0])?, self.slots.desc(inputs[2])?);
            let src = Operand::strided(src, self.bytes(src)?);
            let ids = Operand::strided(ids, self.bytes(ids)?);
            let bytes = buffer.bytes_mut();
            let (start, end) = span(bytes.len(), &target)?;
            rows::set_rows(&src, &ids, &target, &mut bytes[start..end])
        };
        let result = run();
        self.slots.give_back(root, buffer);
        result
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
        let descs = inputs
            .iter()
            .map(|&id| self.slots.desc(id))
            .collect::<GgmlResult<Vec<_>>>()?;
        crate::shape::infer(0, op, &descs)?;
        if *op == Op::SetRows {
            return self.set_rows(inputs, output);
        }

        let target = self.slots.desc(output)?.clone();
        let root = self.slots.root(output)?;
        // An input in the output's own buffer is copied first: the op may overwrite it while it reads.
        let copies = inputs
            .iter()
            .map(|&id| {
                let desc = self.slots.desc(id)?;
                let shared = self.slots.root(id)? == root;
                Ok(if shared {
                    Some(gather(self.bytes(desc)?, desc))
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
                    None => Ok(Operand::strided(desc, self.bytes(desc)?)),
                }
            })
            .collect::<GgmlResult<Vec<_>>>()?;
        let bytes = buffer.bytes_mut();
        let (start, end) = span(bytes.len(), target)?;
        let bytes = &mut bytes[start..end];
        match *op {
            Op::Cast { to } => return convert::cast(&operands[0], to, bytes),
            Op::Concat { axis } => return convert::concat(&operands[0], &operands[1], axis, bytes),
            _ => {}
        }
        let words: &mut [u32] = bytemuck::cast_slice_mut(bytes);
        if target.is_contiguous() {
            return run(
                op,
                &operands,
                bytemuck::cast_slice_mut(words),
                self.activations,
                &self.threads,
            );
        }
        let mut contiguous = vec![0.0; target.element_count()];
        run(op, &operands, &mut contiguous, self.activations, &self.threads)?;
        scatter(bytemuck::cast_slice(&contiguous), target, words);
        Ok(())
    }
}

/// Runs `op` on checked operands into a contiguous output. Types that are not f32 are only ever moved, as words.
fn run(
    op: &Op,
    inputs: &[Operand<'_>],
    out: &mut [f32],
    activations: Activations,
    threads: &Threads,
) -> GgmlResult<()> {
    match *op {
        Op::GetRows => return rows::get_rows(&inputs[0], &inputs[1], out),
        Op::MatMul => return matmul::matmul(&inputs[0], &inputs[1], inputs.get(2), activations, out, threads),
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
