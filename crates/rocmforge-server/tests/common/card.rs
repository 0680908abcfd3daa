//! Models on a simulated card, and what unloading gives back of its memory.

use std::sync::Arc;

use rocmforge::backend::HipBackend;
use rocmforge::device::Device;
use rocmforge::memory::Bytes;
use rocmforge_models::serve::ServeError;
use rocmforge_server::source::Engine;
use rocmforge_server::{App, Facts, LoadError, Loaded, ServerOptions, Source};

/// Starts a model's engine on a card.
pub(crate) type Start = fn(&Arc<HipBackend>) -> Result<Engine, ServeError>;

/// A model on a card.
pub(crate) struct OnCard {
    pub(crate) device: Device,
    pub(crate) start: Start,
    pub(crate) facts: Facts,
}

impl Source for OnCard {
    fn load(&self) -> Result<Loaded, LoadError> {
        let engine = (self.start)(self.device.backend())?;
        Ok(Loaded {
            facts: self.facts.clone(),
            ..Loaded::new(engine)
        })
    }

    fn unloaded(&self) {
        // What queued work uses goes when that is done.
        self.device.backend().synchronize().expect("it answers");
        self.device.backend().trim_memory(Bytes(0)).expect("a pool");
    }
}

/// A server of this model, `a`.
pub(crate) fn app_on_card(device: Device, start: Start, facts: Facts) -> App {
    let source = OnCard { device, start, facts };
    let sources = [("a".to_owned(), Box::new(source) as Box<dyn Source>)];
    App::new(ServerOptions::default(), sources).expect("a server")
}

/// Loads and unloads a model many times: each time all of the card's memory comes back.
pub(crate) async fn check_memory_comes_back(start: Start, cycles: usize, ask: impl AsyncFn(&App)) {
    let device = rocmforge::device::open("sim").expect("a simulated card");
    let card = Arc::clone(device.backend());
    let app = app_on_card(device, start, Facts::default());
    let committed = || card.card().budget().committed;
    let mut unloaded = None;
    for cycle in 0..cycles {
        app.load("a").await.expect("it fits");
        assert!(
            committed() > unloaded.unwrap_or_default(),
            "a loaded model holds memory"
        );
        // The first cycles also compute, which fills the pool of temporaries.
        if cycle < 2 {
            ask(&app).await;
        }
        assert!(app.unload("a").await, "nobody uses it");
        let left = committed();
        assert_eq!(*unloaded.get_or_insert(left), left, "cycle {cycle}");
    }
}
