//! Backend with hooks before its graphs are compiled and run, to plant faults and devices that do not answer.

use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    CpuBackend, GgmlBackend, GgmlResult, Graph, HostAccess, Launch, Op, Placement, SharedBytes, Strictness, TensorDesc,
    TensorGroup, TensorId,
};
use rocmforge_memory::Subscription;

/// What happens before a graph is compiled or run. It may wait, fail or panic.
pub trait Hook {
    /// Called before a graph is compiled.
    ///
    /// # Errors
    /// The graph is refused.
    fn compile(&mut self) -> GgmlResult<()> {
        Ok(())
    }

    /// Called before a program runs.
    ///
    /// # Errors
    /// The program does not run.
    fn enqueue(&mut self) -> GgmlResult<()> {
        Ok(())
    }
}

/// A backend with a hook: [`HookedBackend::new`] is the CPU, on one thread.
///
/// ```
/// use rocmforge_ggml::{GgmlBackend, GgmlError, GgmlResult, Graph, TensorId};
/// use rocmforge_testkit::{Hook, HookedBackend};
///
/// struct Refuses;
///
/// impl Hook for Refuses {
///     fn compile(&mut self) -> GgmlResult<()> {
///         Err(GgmlError::UnknownTensor(TensorId(0)))
///     }
/// }
///
/// assert!(HookedBackend::new(Refuses).compile(&Graph::new()).is_err());
/// ```
#[derive(Debug)]
pub struct HookedBackend<H, B = CpuBackend> {
    inner: B,
    /// The hook.
    pub hook: H,
}

impl<H: Hook> HookedBackend<H> {
    /// The CPU backend with this hook.
    pub fn new(hook: H) -> Self {
        Self::around(CpuBackend::with_threads(1), hook)
    }
}

impl<H: Hook, B: HostAccess> HookedBackend<H, B> {
    /// Another backend with this hook.
    pub const fn around(inner: B, hook: H) -> Self {
        Self { inner, hook }
    }
}

impl<H: Hook, B: HostAccess> GgmlBackend for HookedBackend<H, B> {
    type Buffer = B::Buffer;
    type Program = B::Program;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.inner.alloc(desc)
    }
    fn bind(&mut self, desc: &TensorDesc, buffer: Self::Buffer) -> GgmlResult<()> {
        self.inner.bind(desc, buffer)
    }
    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.inner.bind_view(desc)
    }
    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.inner.free(id)
    }
    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.inner.tensor_desc(id)
    }
    fn buffer(&self, id: TensorId) -> Option<&Self::Buffer> {
        self.inner.buffer(id)
    }
    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut Self::Buffer> {
        self.inner.buffer_mut(id)
    }
    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        self.inner.execute_op(op, inputs, outputs)
    }
    fn execute_launch(&mut self, launch: &Launch) -> GgmlResult<()> {
        self.inner.execute_launch(launch)
    }
    fn compile(&mut self, graph: &Graph) -> GgmlResult<Self::Program> {
        self.hook.compile()?;
        self.inner.compile(graph)
    }
    fn enqueue(&mut self, program: &mut Self::Program) -> GgmlResult<()> {
        self.hook.enqueue()?;
        self.inner.enqueue(program)
    }
    fn captured_graphs(&self) -> u64 {
        self.inner.captured_graphs()
    }
    fn synchronize(&mut self) -> GgmlResult<()> {
        self.inner.synchronize()
    }
    fn optimizer(&self) -> GraphOptimizer {
        self.inner.optimizer()
    }
    fn strictness(&self) -> Strictness {
        self.inner.strictness()
    }
}

impl<H: Hook, B: HostAccess> HostAccess for HookedBackend<H, B> {
    fn place(&mut self, groups: &[TensorGroup], scratch: usize) -> GgmlResult<()> {
        self.inner.place(groups, scratch)
    }
    fn placement(&self) -> Option<Placement> {
        self.inner.placement()
    }
    fn relieve(&mut self) -> GgmlResult<()> {
        self.inner.relieve()
    }
    fn when_tight(&self, tight: impl Fn() + Send + Sync + Clone + 'static) -> Vec<Subscription> {
        self.inner.when_tight(tight)
    }
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        self.inner.write(id, bytes)
    }
    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.inner.read(id)
    }
    fn read_first(&mut self, id: TensorId, bytes: usize) -> GgmlResult<Vec<u8>> {
        self.inner.read_first(id, bytes)
    }
    fn is_device(&self) -> bool {
        self.inner.is_device()
    }
    fn available_bytes(&self) -> Option<usize> {
        self.inner.available_bytes()
    }
    fn fast_bytes(&self, scratch: usize) -> Option<usize> {
        self.inner.fast_bytes(scratch)
    }
    fn scratch_bytes(&self, graph: &Graph) -> usize {
        self.inner.scratch_bytes(graph)
    }
    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.inner.load(desc, bytes)
    }
    fn load_weight(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.inner.load_weight(desc, bytes)
    }
}
