//! CPU backend: every op, activations of every plain float, weights of every type, any strides, several threads for large ops.

mod attention;
mod buffer;
mod columns;
mod convert;
mod dot;
mod elementwise;
mod flash;
mod flash_attn;
mod fused;
mod gemm;
#[cfg(target_arch = "x86_64")]
mod int8_gemm;
mod matmul;
mod moves;
mod norm;
mod online;
mod operand;
mod ops;
mod output;
mod paged;
mod path;
mod planes;
mod products;
mod recurrent;
mod reduce;
mod rope;
mod route;
mod rows;
mod scratch;
mod select;
mod soft_max;
mod step;
mod strides;
mod threads;
mod unary;
mod weights;

pub use buffer::{CpuBuffer, SharedBytes};
pub use step::CpuProgram;
pub use weights::Activations;

use crate::error::failed;
use crate::optimizer::GraphOptimizer;
use crate::slots::Slots;
use crate::{DType, GgmlBackend, GgmlError, GgmlResult, Graph, HostAccess, Kernel, Launch, Op, TensorDesc, TensorId};
use rocmforge_machine::sysfs::Sysfs;
use scratch::Scratch;
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
    activations: Activations,
    scratch: Scratch,
    operand_copies: u64,
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
            scratch: Scratch::new(),
            operand_copies: 0,
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

    /// Operands copied so far because an op's result overlaps them in a way that it cannot overwrite as it reads: not element by element, or
    /// not row by row, or with other strides.
    #[must_use]
    pub const fn operand_copies(&self) -> u64 {
        self.operand_copies
    }

    /// Whether an op can run with an operand of this type, as the one operand that may be of several types: the weight of a product, the
    /// table of `GetRows`, keys of attention, what `SetRows` writes to, what is moved or converted; else the first.
    #[must_use]
    pub fn can_execute(&self, op: &Op, dtype: DType) -> bool {
        op.facts().types.contain(dtype)
    }
}

impl CpuBackend {
    /// A program of some nodes whose tensors are all here.
    pub(crate) fn program_of<'a>(&self, launches: impl Iterator<Item = &'a Launch>) -> GgmlResult<CpuProgram> {
        CpuProgram::of(&self.slots, launches)
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

impl GgmlBackend for CpuBackend {
    type Buffer = CpuBuffer;
    type Program = CpuProgram;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        desc.check()?;
        let at = format!("allocating tensor {} ({})", desc.id, desc.summary());
        let buffer = CpuBuffer::try_zeroed(desc.byte_size()).map_err(failed(NAME, at))?;
        self.slots.insert(desc, buffer);
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
        let step = Step::of(&self.slots, 0, &Kernel::Op(*op), inputs, outputs)?;
        self.run_step(&step)
    }

    fn execute_launch(&mut self, launch: &Launch) -> GgmlResult<()> {
        let step = Step::of(&self.slots, 0, &launch.kernel, &launch.inputs, &launch.outputs)?;
        self.run_step(&step)
    }

    fn optimizer(&self) -> GraphOptimizer {
        GraphOptimizer::new()
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<CpuProgram> {
        self.program_of(graph.launches().iter())
    }

    fn enqueue(&mut self, program: &mut CpuProgram) -> GgmlResult<()> {
        let threads = self.threads.clone();
        let mut run = || program.steps.iter().try_for_each(|step| self.run_step(step));
        if program.is_shared_out {
            threads.enter(run)
        } else {
            run()
        }
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        Ok(())
    }
}

impl HostAccess for CpuBackend {
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        let desc = self.slots.desc(id)?;
        desc.check_bytes(bytes.len())?;
        let (root, span) = (self.slots.root(id)?, desc.span());
        self.root_bytes_mut(root, span)?.copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.read_first(id, usize::MAX)
    }

    fn read_first(&mut self, id: TensorId, bytes: usize) -> GgmlResult<Vec<u8>> {
        let span = self.slots.desc(id)?.span();
        let end = span.end.min(span.start.saturating_add(bytes));
        Ok(self.root_bytes(self.slots.root(id)?, span.start..end)?.to_vec())
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
