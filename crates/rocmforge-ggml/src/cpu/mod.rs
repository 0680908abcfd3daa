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
use operand::Operand;
use output::Target;
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
        match op {
            Op::MulMat | Op::MulMatId | Op::FlashAttnExt(_) => dtype.is_weight(),
            Op::SsmConv | Op::SsmScan | Op::GatedDeltaNet | Op::Route(_) => dtype == DType::F32,
            Op::GetRows => dtype.is_weight() || dtype.is_plain_number(),
            Op::SetRows => dtype.is_encodable(),
            Op::PagedAttention(_) => matches!(dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::Q8_0),
            Op::Pad { .. } => dtype.is_plain_number(),
            Op::Dup | Op::Cont | Op::Cpy { .. } | Op::Concat { .. } | Op::Repeat => true,
            Op::Reshape | Op::View | Op::Permute { .. } | Op::Transpose => true,
            _ => dtype.is_plain_float(),
        }
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

/// Runs a kernel on checked operands into the outputs' memory.
fn run_kernel(
    kernel: &Kernel,
    operands: &[Operand<'_>],
    targets: &mut [Target<'_>],
    activations: Activations,
    threads: &Threads,
    scratch: &Scratch,
) -> GgmlResult<()> {
    let op = match (kernel, &mut *targets) {
        (Kernel::Op(op), _) => op,
        (Kernel::RopeSetRows(rope), [target]) => {
            return fused::rope_set_rows(operands, *rope, target.desc, target.bytes);
        }
        _ => {
            return output::as_words(targets, scratch, |out| {
                fused::run(kernel, operands, activations, out, threads)
            });
        }
    };
    let [Target { desc, bytes }] = targets else {
        return output::as_words(targets, scratch, |out| match (out, op) {
            ([ids, factors], Op::Route(how)) => {
                route::route(operands, *how, bytemuck::cast_slice_mut(ids), factors);
                Ok(())
            }
            ([out, states], _) => recurrent::run(op, operands, out, states, threads),
            // No other op has several outputs.
            _ => Ok(()),
        });
    };
    if *op == Op::SetRows {
        return rows::set_rows(&operands[0], &operands[2], desc, bytes);
    }
    if let Some(units) = moves::run(op, operands, desc)? {
        output::store_units(units, desc, bytes);
        return Ok(());
    }
    if *op == Op::GetRows && desc.dtype != DType::F32 {
        output::store_units(rows::get_plain_rows(&operands[0], &operands[1])?, desc, bytes);
        return Ok(());
    }
    output::as_words(targets, scratch, |out| match out {
        [out] => run(op, operands, out, activations, threads),
        _ => Ok(()),
    })
}

/// Runs `op` on checked operands into a contiguous output of f32, or of indices in as many words.
fn run(
    op: &Op,
    inputs: &[Operand<'_>],
    out: &mut [f32],
    activations: Activations,
    threads: &Threads,
) -> GgmlResult<()> {
    let Some(x) = inputs.first() else {
        if let Op::Arange { start, step, .. } = *op {
            rows::arange([start, step].map(f64::from), out);
        }
        return Ok(());
    };
    match *op {
        Op::GetRows => return rows::get_rows(x, &inputs[1], out),
        Op::MulMat => return products::mul_mat(x, &inputs[1], inputs.get(2), activations, out, threads),
        Op::MulMatId => return products::mul_mat_id(x, &inputs[1], &inputs[2], activations, out, threads),
        Op::AddId => return rows::add_id(x, &inputs[1], &inputs[2], out),
        Op::Add => elementwise::broadcast(x, &inputs[1], out, threads, |a, b| a + b),
        Op::Sub => elementwise::broadcast(x, &inputs[1], out, threads, |a, b| a - b),
        Op::Mul => elementwise::broadcast(x, &inputs[1], out, threads, |a, b| a * b),
        Op::Div => elementwise::broadcast(x, &inputs[1], out, threads, |a, b| a / b),
        Op::Scale { factor } => elementwise::map(x, out, threads, |x| x * factor),
        Op::ScaleBias { factor, bias } => elementwise::map(x, out, threads, |x| x * factor + bias),
        // Not `f32::clamp`, which would panic if it were not checked that min <= max; NaN stays NaN.
        Op::Clamp { min, max } => elementwise::map(x, out, threads, |x| {
            if x < min {
                min
            } else if x > max {
                max
            } else {
                x
            }
        }),
        Op::Fill { value } => out.fill(value),
        Op::Sqr => elementwise::map(x, out, threads, |x| x * x),
        Op::Sqrt => elementwise::map(x, out, threads, f32::sqrt),
        Op::Log => elementwise::map(x, out, threads, f32::ln),
        Op::Sin => elementwise::map(x, out, threads, f32::sin),
        Op::Cos => elementwise::map(x, out, threads, f32::cos),
        Op::Softcap { cap } => elementwise::map(x, out, threads, |x| cap * (x / cap).tanh()),
        Op::Unary(kind) => elementwise::map(x, out, threads, unary::function(kind)),
        Op::Glu { kind, swapped } => elementwise::glu(inputs, kind, swapped, out, threads),
        Op::LayerNorm { eps } => norm::layer_norm(x, inputs.get(1), inputs.get(2), eps, out, threads),
        Op::RmsNorm { eps } => norm::rms_norm(x, inputs.get(1), eps, out, threads),
        Op::L2Norm { eps } => norm::l2_norm(x, eps, out, threads),
        Op::SoftMax(s) => soft_max::soft_max(inputs, s, out, threads),
        Op::DiagMask { n_past, fill } => soft_max::diag_mask(x, n_past, fill, out),
        Op::Rope(rope) => return rope::rope(x, &inputs[1], inputs.get(2), rope, out),
        Op::FlashAttnExt(a) => flash_attn::attention(inputs, a, out, threads),
        Op::Attention(a) => attention::attention(inputs, a, out, threads),
        Op::PagedAttention(a) => return paged::attention(inputs, a, out, threads),
        Op::GroupNorm { n_groups, eps } => planes::group_norm(x, n_groups, eps, out),
        Op::Tri { kind } => planes::tri(x, kind, out),
        Op::SolveTri => planes::solve_tri(x, &inputs[1], out),
        Op::Im2col {
            stride,
            padding,
            dilation,
        } => planes::im2col(x.shape, &inputs[1], [stride, padding, dilation], out),
        Op::Conv2d {
            stride,
            padding,
            dilation,
        } => planes::conv(x, &inputs[1], [stride, padding, dilation], out, threads),
        Op::Pool1d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool(x, kind, [[1, kernel], [1, stride], [0, padding]], true, out),
        Op::Pool2d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool(x, kind, [kernel, stride, padding], false, out),
        Op::Upscale { mode, height, width } => planes::upscale(x, mode, [height, width], out),
        Op::Argmax => select::arg_max(x, bytemuck::cast_slice_mut(out)),
        Op::Argsort { order } => select::arg_sort(x, order, bytemuck::cast_slice_mut(out)),
        Op::TopK { k } => select::top_k(x, k, bytemuck::cast_slice_mut(out)),
        Op::Sum => reduce::total(x, out),
        Op::SumRows => reduce::rows(x, out, |_| 1.0),
        Op::Mean => reduce::rows(x, out, |n| 1.0 / n),
        Op::Cumsum => reduce::running(x, out),
        Op::Accumulate { offset } => {
            inputs[1].values().put(out);
            let src = x.f32();
            for (o, s) in out[offset..offset + src.len()].iter_mut().zip(src.iter()) {
                *o += s;
            }
        }
        Op::MeanPool => rows::mean_pool(x, &inputs[1], out),
        // It has no operand.
        Op::Arange { .. } => {}
        // Done before: elements are moved as they are, the output is changed in place, or there are several.
        Op::SsmConv | Op::SsmScan | Op::GatedDeltaNet | Op::Route(_) => {}
        Op::SetRows | Op::Dup | Op::Cont | Op::Cpy { .. } | Op::Concat { .. } | Op::Repeat | Op::Pad { .. } => {}
        Op::Reshape | Op::View | Op::Permute { .. } | Op::Transpose => {}
    }
    Ok(())
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
