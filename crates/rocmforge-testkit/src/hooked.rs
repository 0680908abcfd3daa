//! CPU backend with hooks before its graphs are compiled and run, to plant faults and devices that do not answer.

use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{CpuBackend, GgmlBackend, GgmlResult, Graph, HostAccess, Op, SharedBytes, TensorDesc, TensorId};

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

/// The CPU backend, on one thread, with a hook.
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
pub struct HookedBackend<H> {
    cpu: CpuBackend,
    /// The hook.
    pub hook: H,
}

impl<H: Hook> HookedBackend<H> {
    /// A backend with this hook.
    pub fn new(hook: H) -> Self {
        let cpu = CpuBackend::with_threads(1);
        Self { cpu, hook }
    }
}

impl<H: Hook> GgmlBackend for HookedBackend<H> {
    type Buffer = <CpuBackend as GgmlBackend>::Buffer;
    type Program = <CpuBackend as GgmlBackend>::Program;

    fn alloc(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.cpu.alloc(desc)
    }
    fn bind(&mut self, desc: &TensorDesc, buffer: Self::Buffer) -> GgmlResult<()> {
        self.cpu.bind(desc, buffer)
    }
    fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        self.cpu.bind_view(desc)
    }
    fn free(&mut self, id: TensorId) -> GgmlResult<()> {
        self.cpu.free(id)
    }
    fn tensor_desc(&self, id: TensorId) -> Option<&TensorDesc> {
        self.cpu.tensor_desc(id)
    }
    fn buffer(&self, id: TensorId) -> Option<&Self::Buffer> {
        self.cpu.buffer(id)
    }
    fn buffer_mut(&mut self, id: TensorId) -> Option<&mut Self::Buffer> {
        self.cpu.buffer_mut(id)
    }
    fn execute_op(&mut self, op: &Op, inputs: &[TensorId], outputs: &[TensorId]) -> GgmlResult<()> {
        self.cpu.execute_op(op, inputs, outputs)
    }
    fn compile(&mut self, graph: &Graph) -> GgmlResult<Self::Program> {
        self.hook.compile()?;
        self.cpu.compile(graph)
    }
    fn enqueue(&mut self, program: &mut Self::Program) -> GgmlResult<()> {
        self.hook.enqueue()?;
        self.cpu.enqueue(program)
    }
    fn synchronize(&mut self) -> GgmlResult<()> {
        self.cpu.synchronize()
    }
    fn optimizer(&self) -> GraphOptimizer {
        self.cpu.optimizer()
    }
}

impl<H: Hook> HostAccess for HookedBackend<H> {
    fn write(&mut self, id: TensorId, bytes: &[u8]) -> GgmlResult<()> {
        self.cpu.write(id, bytes)
    }
    fn read(&mut self, id: TensorId) -> GgmlResult<Vec<u8>> {
        self.cpu.read(id)
    }
    fn load(&mut self, desc: &TensorDesc, bytes: Arc<dyn SharedBytes>) -> GgmlResult<()> {
        self.cpu.load(desc, bytes)
    }
}
