//! HIP backend: a graph's ops as kernels of `rocmforge-kernels`, attention through `rocmforge-attention`, on one stream.
//!
//! Kernels compute on f32 without gaps, and read weights of every type. An operand that lies otherwise (a view with
//! gaps, f16, bf16) is packed into scratch memory first, except where a kernel takes strides:
//! [`HipGgmlBackend::packings`] counts them. What no kernel does is refused before anything is
//! launched ([`HipGgmlBackend::covers`]). The table of ops has a column for it: what kernels take, and their launch (`table`).
//!
//! Everything is enqueued; [`GgmlBackend::synchronize`] waits. Memory comes from the [`HipBackend`], so it counts
//! against the card's budget and a refusal is an error here ([`GgmlError::Backend`], whose source says the figures). An
//! index that is out of range is found by the kernel that reads it and becomes the error of the next
//! [`GgmlBackend::synchronize`]; its results are NaN.

mod attention;
mod copies;
mod elementwise;
mod experts;
mod faults;
mod fused;
mod halves;
mod indexed;
mod latent_kv;
mod lower;
mod operands;
mod products;
mod program;
mod recurrent;
mod refused;
mod rope;
mod rope_kv;
mod rows;
mod table;
mod takes;
mod types;
mod weights;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;
use rocmforge_kernels::{Kernels, Tuning};
use rocmforge_runtime::{Elems, HipBackend, HipBuffer, HipStream, StreamLease};

use crate::backend::{require_f32, resize};
use crate::optimizer::{GraphOptimizer, Pass};
use crate::slots::Slots;
use crate::{
    Activations, DType, GgmlBackend, GgmlError, GgmlResult, Graph, HostAccess, Kernel, Launch, Layout, Op, SharedBytes,
    TensorDesc, TensorId,
};
use faults::FaultLog;
use lower::Shared;
use operands::Scratch;
use program::CapturedGraph;
pub use program::HipProgram;
pub(crate) use program::Unfinished;
pub(crate) use refused::{is_out_of_memory, is_stopped};
use rope::RopeTables;
pub(crate) use weights::LoadedWeight;
use weights::Memory;

const NAME: &str = "hip";

/// Runs graphs on a HIP device, real or simulated.
#[derive(Debug)]
pub struct HipGgmlBackend {
    backend: Arc<HipBackend>,
    kernels: Kernels,
    slots: Slots<Memory>,
    activations: Activations,
    /// Vectors of one value, for norms without weight or bias.
    constants: HashMap<(u32, usize), HipBuffer<f32>>,
    rope_tables: RopeTables,
    faults: FaultLog,
    scratch: Scratch,
    packings: u64,
    launches: u64,
    replays: u64,
    captures: u64,
    captured: Vec<Arc<CapturedGraph>>,
    /// Counts changes of memory that captured graphs may name.
    changes: u64,
    /// `None`: the stream is that of the kernels it was given. Last: the others are gone when it is given back.
    _stream: Option<StreamLease>,
}

/// Wraps an error of a layer below.
fn failed<E>(at: impl Into<String>) -> impl FnOnce(E) -> GgmlError
where
    E: std::error::Error + Send + Sync + 'static,
{
    crate::error::failed(NAME, at)
}

impl HipGgmlBackend {
    /// A backend on a device. It leases the device's stream; if that is leased, it gets another, so engines on one card do not wait for each other's
    /// captures. It loads no kernel yet.
    ///
    /// # Errors
    /// No kernels are embedded for the device's architecture.
    pub fn new(backend: &Arc<HipBackend>) -> GgmlResult<Self> {
        let stream = backend.lease_stream("graphs");
        let kernels = Kernels::load(stream.backend()).map_err(failed("loading kernels"))?;
        Ok(Self {
            _stream: Some(stream),
            ..Self::with_kernels(kernels)
        })
    }

    /// A backend with kernels that are loaded already.
    #[must_use]
    pub fn with_kernels(kernels: Kernels) -> Self {
        Self {
            backend: Arc::clone(kernels.backend()),
            kernels,
            slots: Slots::new(),
            activations: Activations::default(),
            constants: HashMap::new(),
            rope_tables: RopeTables::default(),
            faults: FaultLog::default(),
            scratch: Scratch::default(),
            packings: 0,
            launches: 0,
            replays: 0,
            captures: 0,
            captured: Vec::new(),
            changes: 0,
            _stream: None,
        }
    }

    /// The same backend, whose launches are shared out as a card's tuning says: see [`Kernels::tuned`].
    #[must_use]
    pub fn tuned(self, tuning: Tuning) -> Self {
        Self {
            kernels: self.kernels.tuned(tuning),
            ..self
        }
    }

    /// Its kernels.
    #[must_use]
    pub fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// The device.
    #[must_use]
    pub fn hip(&self) -> &Arc<HipBackend> {
        &self.backend
    }

    /// Kernels enqueued so far, those of replayed graphs included. Copies by the driver are none.
    #[must_use]
    pub const fn launches(&self) -> u64 {
        self.launches
    }

    /// Captured graphs enqueued so far: each is one call of the host for all launches of a program.
    #[must_use]
    pub const fn replays(&self) -> u64 {
        self.replays
    }

    /// Checks a launch and runs it by itself.
    fn run_launch(&mut self, kernel: &Kernel, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        if !self.check_launch(0, kernel, inputs, outputs)? {
            return Ok(());
        }
        self.counted(|backend| backend.launch(kernel, inputs, outputs, Shared::default()))
    }

    /// Runs something and counts the kernels that it enqueues.
    fn counted<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.backend.launches();
        let result = run(self);
        self.launches += self.backend.launches().saturating_sub(before);
        result
    }

    /// Captured graphs name memory that is about to change: they go, and with them what only they kept.
    fn memory_changes(&mut self) {
        self.changes += 1;
        self.captured.clear();
    }

    /// [`Self::memory_changes`] if there is such a tensor with memory of its own: no captured graph names one that is new, or a view.
    fn tensor_changes(&mut self, id: TensorId) {
        if self.slots.buffer(id).is_some() {
            self.memory_changes();
        }
    }

    fn stream(&self) -> &HipStream {
        self.backend.stream()
    }

    /// The bytes that a tensor spans.
    fn bytes(&self, id: TensorId) -> GgmlResult<HipBuffer<u8>> {
        let desc = self.slots.desc(id)?;
        let buffer = self.plain(self.slots.root(id)?)?;
        buffer.view(desc.span()).map_err(failed(format!("tensor {id}")))
    }

    /// Puts bytes into a tensor that has memory of its own.
    pub(crate) fn write_bytes(&self, root: TensorId, span: Range<usize>, bytes: &[u8]) -> GgmlResult<()> {
        let part = self.part(root, span)?;
        part.copy_from_host(self.stream(), bytes)
            .map_err(failed(format!("writing tensor {root}")))
    }

    /// Gets bytes of a tensor that has memory of its own. Waits for what is enqueued.
    pub(crate) fn read_bytes(&self, root: TensorId, span: Range<usize>, bytes: &mut [u8]) -> GgmlResult<()> {
        if let Some(host) = self.host_bytes(root, &span).filter(|host| host.len() == bytes.len()) {
            bytes.copy_from_slice(host);
            return Ok(());
        }
        let part = self.part(root, span)?;
        part.copy_to_host(self.stream(), bytes)
            .map_err(failed(format!("reading tensor {root}")))
    }

    fn part(&self, root: TensorId, span: Range<usize>) -> GgmlResult<HipBuffer<u8>> {
        let buffer = self.plain(root)?;
        buffer.view(span).map_err(failed(format!("tensor {root}")))
    }

    /// A contiguous f32 operand.
    fn f32(&self, op: &Op, id: TensorId) -> GgmlResult<HipBuffer<f32>> {
        self.contiguous(op, id, &[DType::F32])
    }

    /// Contiguous operands in f32.
    fn floats(&self, op: &Op, ids: &[TensorId]) -> GgmlResult<Vec<HipBuffer<f32>>> {
        ids.iter().map(|&id| self.f32(op, id)).collect()
    }

    /// A contiguous operand of indices.
    fn u32(&self, op: &Op, id: TensorId) -> GgmlResult<HipBuffer<u32>> {
        self.contiguous(op, id, &[DType::U32, DType::I32])
    }

    fn contiguous<T: Pod>(&self, op: &Op, id: TensorId, types: &[DType]) -> GgmlResult<HipBuffer<T>> {
        let desc = self.slots.desc(id)?;
        if !types.contains(&desc.dtype) || !desc.is_contiguous() {
            return Err(unimplemented(op, desc.summary()));
        }
        self.bytes(id)?.cast().map_err(failed(op.name()))
    }

    /// A vector of one value.
    fn constant(&mut self, value: f32, len: usize) -> GgmlResult<HipBuffer<f32>> {
        let key = (value.to_bits(), len);
        if let Some(buffer) = self.constants.get(&key) {
            return Ok(buffer.clone());
        }
        let buffer = HipBuffer::from_slice(self.stream(), &vec![value; len], "ggml constant");
        let buffer = buffer.map_err(failed("allocating a constant"))?;
        self.constants.insert(key, buffer.clone());
        Ok(buffer)
    }
}

fn unimplemented(op: &Op, what: impl Into<String>) -> GgmlError {
    GgmlError::Unimplemented {
        backend: NAME,
        op: op.name(),
        what: what.into(),
    }
}

impl GgmlBackend for HipGgmlBackend {
    type Buffer = HipBuffer<u8>;
    type Program = HipProgram;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        desc.check()?;
        self.tensor_changes(desc.id);
        // The old memory goes first: the new may need its room.
        let _ = self.slots.remove(desc.id);
        let label = format!("ggml {} {}", desc.id, desc.summary());
        let buffer = HipBuffer::zeroed(self.stream(), Elems(desc.byte_size()), &label);
        let buffer = buffer.map_err(failed(format!("allocating tensor {} ({})", desc.id, desc.summary())))?;
        self.slots.insert(desc, Memory::Plain(buffer));
        Ok(())
    }

    fn bind(&mut self, desc: &TensorDesc, buffer: HipBuffer<u8>) -> GgmlResult<()> {
        let bytes = buffer.byte_len();
        self.tensor_changes(desc.id);
        self.slots.bind(desc, Memory::Plain(buffer), bytes)
    }

    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.tensor_changes(id);
        self.rope_tables.forget(id);
        self.slots.remove(id)
    }

    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.slots.desc(id).ok()
    }

    /// `None` for packed weights, too.
    fn buffer(&self, id: TensorId) -> Option<&HipBuffer<u8>> {
        self.plain(id).ok()
    }

    /// `None` for packed weights, too.
    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut HipBuffer<u8>> {
        self.tensor_changes(id);
        match self.slots.buffer_mut(id)? {
            Memory::Plain(buffer) => Some(buffer),
            Memory::Packed(_) => None,
        }
    }

    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.slots.bind_view(desc)
    }

    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        self.run_launch(&Kernel::Op(*op), inputs, outputs)
    }

    fn execute_launch(&mut self, launch: &Launch) -> GgmlResult<()> {
        self.run_launch(&launch.kernel, &launch.inputs, &launch.outputs)
    }

    fn compile(&mut self, graph: &Graph) -> GgmlResult<HipProgram> {
        self.program_of(graph.launches().iter())
    }

    fn enqueue(&mut self, program: &mut HipProgram) -> GgmlResult<()> {
        self.enqueue_program(program).map_err(|unfinished| unfinished.error)
    }

    /// All but those whose ops have no kernel here.
    fn optimizer(&self) -> GraphOptimizer {
        let packed: &[Pass] = match self.activations {
            Activations::F32 => fused::FOR_PACKED,
            Activations::Int8 => &[],
        };
        let without = fused::LAUNCHED_AS_PARTS.iter().chain(packed);
        without.fold(GraphOptimizer::new().joining(), |all, &pass| all.without(pass))
    }

    fn captured_graphs(&self) -> u64 {
        self.captures
    }

    fn synchronize(&mut self) -> GgmlResult<()> {
        self.stream().synchronize().map_err(failed("synchronize"))?;
        self.check_faults()
    }
}

impl HostAccess for HipGgmlBackend {
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        self.slots.desc(id)?.check_bytes(bytes.len())?;
        if bytes.is_empty() {
            return Ok(());
        }
        if self.rope_tables.forget(id) {
            self.memory_changes();
        }
        self.unpack(id)?;
        let buffer = self.bytes(id)?;
        buffer
            .copy_from_host(self.stream(), bytes)
            .map_err(failed(format!("writing tensor {id}")))
    }

    fn available_bytes(&self) -> Option<usize> {
        let left = self.backend.card().budget().available;
        Some(left.to_usize().unwrap_or(usize::MAX))
    }

    fn is_device(&self) -> bool {
        true
    }

    fn scratch_bytes(&self, graph: &Graph) -> usize {
        self.scratch_of(graph)
    }

    /// A weight is packed if [`HipGgmlBackend::activations`] says so. The backend keeps `bytes`, too.
    fn load_weight(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        if self.load_packed(desc, Arc::clone(&bytes))? {
            return Ok(());
        }
        self.load(desc, bytes)
    }

    fn read_first_f32_into(&mut self, id: TensorId, elements: usize, values: &mut Vec<f32>) -> GgmlResult<()> {
        let desc = self.slots.desc(id)?;
        require_f32(desc)?;
        let mut span = desc.span();
        span.end = span
            .end
            .min(span.start.saturating_add(elements.saturating_mul(size_of::<f32>())));
        let buffer = self.part(self.slots.root(id)?, span)?;
        resize(values, buffer.len() / size_of::<f32>());
        if buffer.is_empty() {
            return Ok(());
        }
        // Without a copy of the bytes between: logits are read for every token.
        let copied = buffer
            .cast()
            .and_then(|buffer| buffer.copy_to_host(self.stream(), values));
        copied.map_err(failed(format!("reading tensor {id}")))
    }

    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.read_first(id, usize::MAX)
    }

    fn read_first(&mut self, id: TensorId, bytes: usize) -> GgmlResult<Vec<u8>> {
        let mut span = self.slots.desc(id)?.span();
        span.end = span.end.min(span.start.saturating_add(bytes));
        if let Some(host) = self.host_bytes(id, &span) {
            return Ok(host.to_vec());
        }
        let buffer = self.part(self.slots.root(id)?, span)?;
        if buffer.is_empty() {
            return Ok(Vec::new());
        }
        buffer
            .to_vec(self.stream())
            .map_err(failed(format!("reading tensor {id}")))
    }
}

/// Whether the kernels read this as the right operand of a matrix product: `Some(true)` if it is stored as `[n, k]`.
fn matrix_order(desc: &TensorDesc) -> Option<bool> {
    match desc.layout {
        Layout::ColMajor => Some(true),
        _ if desc.is_contiguous() => Some(false),
        _ if desc.is_transposed_matrix() => Some(true),
        _ => None,
    }
}
