//! Backend traits: memory for tensors, running of ops and programs, access from the host.

use std::sync::Arc;

use rocmforge_memory::Subscription;

use crate::error::Operands;
use crate::optimizer::GraphOptimizer;
use crate::{DType, GgmlError, GgmlResult, Graph, Kernel, Launch, Node, Op, SharedBytes, TensorDesc, TensorId};

/// How closely a graph is checked before it runs on a backend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strictness {
    /// Structure, numbers of operands, shapes and types: for every backend that computes.
    #[default]
    Strict,
    /// Structure only (tensors exist, nodes are in order, views lie inside their buffers): for backends that count
    /// and do not compute, such as the testkit's `DummyBackend`.
    Lenient,
}

/// Holds tensors' memory and runs operations on it.
///
/// A backend keys its state by [`TensorId`]: use one backend per graph.
pub trait GgmlBackend {
    /// The memory of one tensor.
    type Buffer;

    /// The nodes of one graph in the form in which this backend runs them. [`NodeList`] will do.
    type Program;

    /// Gives a tensor memory. Replaces what it had.
    ///
    /// # Errors
    /// No memory: over budget, or the device refuses.
    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()>;

    /// Gives a tensor memory that exists.
    ///
    /// # Errors
    /// [`GgmlError::BufferSize`].
    fn bind(&mut self, desc: &TensorDesc, buffer: Self::Buffer) -> GgmlResult<()>;

    /// Takes a tensor's memory away.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`].
    fn free(&mut self, id: TensorId) -> GgmlResult<()>;

    /// The descriptor under which a tensor was allocated, bound, or bound as a view.
    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc>;

    /// A tensor's memory; `None` for views.
    fn buffer(&self, id: TensorId) -> Option<&Self::Buffer>;

    /// A tensor's memory, for changes.
    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut Self::Buffer>;

    /// Runs one operation, or enqueues it.
    ///
    /// # Errors
    /// The operation is not possible here, or failed.
    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()>;

    /// [`Self::execute_op`] of a launch, for a backend whose [`Self::optimizer`] makes several nodes one.
    ///
    /// # Errors
    /// As [`Self::execute_op`]; and the launch is of several nodes, for which this backend has no kernel.
    fn execute_launch(&mut self, launch: &Launch) -> GgmlResult<()> {
        match &launch.kernel {
            Kernel::Op(op) => self.execute_op(op, &launch.inputs, &launch.outputs),
            fused => Err(GgmlError::Unimplemented {
                backend: "this",
                op: fused.name(),
                what: "several nodes as one launch".to_owned(),
            }),
        }
    }

    /// Makes a program of a graph's launches, with everything looked up and checked that stays the same from run to run. The graph has been
    /// through [`crate::executor::prepare`].
    ///
    /// # Errors
    /// An operation is not possible here.
    fn compile(&mut self, graph: &Graph) -> GgmlResult<Self::Program>;

    /// Runs a program's nodes in order, or enqueues them.
    ///
    /// # Errors
    /// As [`Self::execute_op`]; and a tensor of the program has been freed or given other memory of another size since.
    fn enqueue(&mut self, program: &mut Self::Program) -> GgmlResult<()>;

    /// Graphs that were captured so far: each is one call of the host from then on. 0 for a backend that captures none.
    fn captured_graphs(&self) -> u64 {
        0
    }

    /// Waits until everything enqueued is done.
    ///
    /// # Errors
    /// The wait failed or took too long.
    fn synchronize(&mut self) -> GgmlResult<()>;

    /// Tells the backend of a tensor that shares another's memory. A backend that computes must remember it.
    ///
    /// # Errors
    /// The view's base is unknown here.
    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        let _ = desc;
        Ok(())
    }

    /// The passes that make a graph quicker here. Of those that make nodes one launch ([`GraphOptimizer::without_fusions`]) a backend names those
    /// that it has kernels for.
    fn optimizer(&self) -> GraphOptimizer {
        GraphOptimizer::new().without_fusions()
    }

    /// How closely graphs are checked before they run here.
    fn strictness(&self) -> Strictness {
        Strictness::Strict
    }
}

/// The nodes of a graph that are more than names of other memory, in order: the program of a backend that has nothing to prepare.
#[derive(Clone, Debug, Default)]
pub struct NodeList(Vec<Node>);

impl NodeList {
    /// The nodes of a graph.
    #[must_use]
    pub fn of(graph: &Graph) -> Self {
        Self(graph.computing_nodes().cloned().collect())
    }

    /// The nodes.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.0
    }
}

/// Tensors that belong in the same memory, such as one layer's weights and its part of the KV cache.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorGroup {
    /// For messages.
    pub name: String,
    /// The tensors. Each has memory of its own.
    pub tensors: Vec<TensorDesc>,
}

/// Where the tensors of all groups lie now, and how often groups have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Bytes on devices.
    pub device_bytes: u64,
    /// Bytes on the host.
    pub host_bytes: u64,
    /// Groups that moved to the host because a device had no room.
    pub spills: u64,
    /// Groups that moved back.
    pub returns: u64,
}

/// A backend whose tensors the host can fill and read.
pub trait HostAccess: GgmlBackend {
    /// Tells which tensors belong together, before any of them has memory, those first that gain most from a device; `scratch` bytes
    /// are what graphs need beside them. A backend with one memory does nothing.
    ///
    /// # Errors
    /// The device cannot be asked how much memory it has.
    fn place(&mut self, groups: &[TensorGroup], scratch: usize) -> GgmlResult<()> {
        let _ = (groups, scratch);
        Ok(())
    }

    /// Where the groups of [`Self::place`] lie now; `None` from a backend with one memory.
    fn placement(&self) -> Option<Placement> {
        None
    }

    /// Moves groups to the host while more is held on a card than its budget allows. A program that is enqueued does so by itself; this is for a backend
    /// that computes nothing now, beside others on the same card that do. A backend with one memory does nothing.
    ///
    /// # Errors
    /// A group cannot be copied.
    fn relieve(&mut self) -> GgmlResult<()> {
        Ok(())
    }

    /// Calls `tight` when more is held on a card than its budget allows, on the thread that notices it, as long as the subscriptions live. A backend that
    /// moves no groups never does.
    fn when_tight(&self, tight: impl Fn() + Send + Sync + Clone + 'static) -> Vec<Subscription>
    where
        Self: Sized,
    {
        drop(tight);
        Vec::new()
    }

    /// Fills a tensor, byte for byte in its own layout, from its first to its last element.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`], [`GgmlError::BufferSize`], or the copy failed.
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()>;

    /// All bytes of a tensor, from its first to its last element. Waits for what is enqueued.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`], or the copy failed.
    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>>;

    /// The first bytes of a tensor, at most all. Waits for what is enqueued.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn read_first(&mut self, id: TensorId, bytes: usize) -> GgmlResult<Vec<u8>> {
        let mut all = self.read(id)?;
        all.truncate(bytes);
        Ok(all)
    }

    /// Whether what the host reads is copied from a device: results should be small then.
    fn is_device(&self) -> bool {
        false
    }

    /// Bytes that tensors can still be given; `None` if the backend knows no limit.
    fn available_bytes(&self) -> Option<usize> {
        None
    }

    /// [`Self::available_bytes`] of the memory in which graphs run quickest, beside `scratch` bytes on each device: what is not needed should
    /// not fill more.
    fn fast_bytes(&self, scratch: usize) -> Option<usize> {
        self.available_bytes().map(|bytes| bytes.saturating_sub(scratch))
    }

    /// Bytes that running a graph takes beside its tensors, for operands of products in another form. They are kept for the next run, and graphs
    /// that run in turns share them.
    fn scratch_bytes(&self, graph: &Graph) -> usize {
        let _ = graph;
        0
    }

    /// Gives a tensor memory that holds `bytes`. A backend on the host may keep the shared bytes instead of a copy.
    ///
    /// # Errors
    /// As [`GgmlBackend::alloc`] and [`Self::write`].
    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.alloc(desc)?;
        self.write(desc.id, bytes.bytes())
    }

    /// Gives a tensor the bytes of a weight, which graphs read and do not write. A backend may keep it in another order, in which its products
    /// are quicker; whatever it does, [`Self::read`] gives the same bytes back, and [`Self::write`] replaces them.
    ///
    /// # Errors
    /// As [`Self::load`].
    fn load_weight(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.load(desc, bytes)
    }

    /// [`Self::write`] of f32.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_f32(&mut self, id: TensorId, values: &[f32]) -> GgmlResult<()> {
        self.write(id, bytemuck::cast_slice(values))
    }

    /// [`Self::write`] of u32.
    ///
    /// # Errors
    /// As [`Self::write`].
    fn write_u32(&mut self, id: TensorId, values: &[u32]) -> GgmlResult<()> {
        self.write(id, bytemuck::cast_slice(values))
    }

    /// [`Self::read`] of an f32 tensor, in memory order.
    ///
    /// # Errors
    /// As [`Self::read`]; also if the tensor is not f32.
    fn read_f32(&mut self, id: TensorId) -> GgmlResult<Vec<f32>> {
        self.read_first_f32(id, usize::MAX)
    }

    /// [`Self::read_first`] of an f32 tensor, in elements.
    ///
    /// # Errors
    /// As [`Self::read_f32`].
    fn read_first_f32(&mut self, id: TensorId, elements: usize) -> GgmlResult<Vec<f32>> {
        let mut values = Vec::new();
        self.read_first_f32_into(id, elements, &mut values)?;
        Ok(values)
    }

    /// [`Self::read_first_f32`] in place of what `values` holds, whose memory is used again: new memory of some megabytes takes longer than the copy.
    ///
    /// # Errors
    /// As [`Self::read_f32`]; what `values` holds then is not said.
    fn read_first_f32_into(&mut self, id: TensorId, elements: usize, values: &mut Vec<f32>) -> GgmlResult<()> {
        require_f32(self.tensor_desc(id).ok_or(GgmlError::UnknownTensor(id))?)?;
        let bytes = self.read_first(id, elements.saturating_mul(size_of::<f32>()))?;
        resize(values, bytes.len() / size_of::<f32>());
        bytemuck::cast_slice_mut(values).copy_from_slice(&bytes);
        Ok(())
    }
}

/// Gives values a length; what they are then is not said. Old ones are not moved to new memory.
pub(crate) fn resize(values: &mut Vec<f32>, len: usize) {
    if len > values.capacity() {
        values.clear();
    }
    values.resize(len, 0.0);
}

/// Refuses to read a tensor of another type as f32.
pub(crate) fn require_f32(desc: &TensorDesc) -> GgmlResult<()> {
    if desc.dtype == DType::F32 {
        return Ok(());
    }
    Err(GgmlError::InvalidDType {
        node: 0,
        op: "read",
        operand: 0,
        expected: "F32",
        found: desc.dtype,
        operands: Operands::default(),
    })
}
