//! A model on the CPU whose steps wait at a gate: a device that does not answer, until the gate opens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{CpuBackend, GgmlBackend, GgmlResult, Graph, HostAccess, Op, SharedBytes, TensorDesc, TensorId};
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions};
use rocmforge_server::{LoadError, Loaded, Source};

use super::model;

/// Lets steps through while it is open.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn set(&self, is_open: bool) {
        *self.0.0.lock().expect("no panic") = is_open;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let is_open = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
    }
}

/// A CPU backend whose programs wait at a gate.
struct Gated {
    cpu: CpuBackend,
    gate: Gate,
}

impl GgmlBackend for Gated {
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
        self.cpu.compile(graph)
    }
    fn enqueue(&mut self, program: &mut Self::Program) -> GgmlResult<()> {
        self.gate.pass();
        self.cpu.enqueue(program)
    }
    fn synchronize(&mut self) -> GgmlResult<()> {
        self.cpu.synchronize()
    }
    fn optimizer(&self) -> GraphOptimizer {
        self.cpu.optimizer()
    }
}

impl HostAccess for Gated {
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

/// The small model behind a gate; it counts how often it is loaded.
#[derive(Clone, Default)]
pub(crate) struct Behind {
    pub(crate) gate: Gate,
    pub(crate) loads: Arc<AtomicUsize>,
    pub(crate) serve: ServeOptions,
}

impl Source for Behind {
    fn load(&self) -> Result<Loaded, LoadError> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let gate = self.gate.clone();
        let model = model();
        let template = model.chat_template()?;
        let server = Server::start(self.serve, move || {
            let backend = Gated {
                cpu: CpuBackend::with_threads(1),
                gate,
            };
            let engine = Engine::new(backend, &model, EngineOptions::default())?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template,
            ..Loaded::new(server)
        })
    }
}
