//! A model on the CPU whose steps wait at a gate: a device that does not answer, until the gate opens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use rocmforge_ggml::GgmlResult;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions};
use rocmforge_server::{LoadError, Loaded, Source};
use rocmforge_testkit::{Hook, HookedBackend};

use super::model;

/// Lets steps through while it is open.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub(crate) fn set(&self, is_open: bool) {
        *self.0.0.lock().expect("no panic") = is_open;
        self.0.1.notify_all();
    }
}

impl Hook for Gate {
    fn enqueue(&mut self) -> GgmlResult<()> {
        let is_open = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(is_open, |is_open| !*is_open));
        Ok(())
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
            let engine = Engine::new(HookedBackend::new(gate), &model, EngineOptions::default())?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template,
            ..Loaded::new(server)
        })
    }
}
