//! Serving: one thread owns an engine, and handles on any thread submit requests to it.
//!
//! A [`Server`] starts the thread. Its [`Handle`]s can be cloned and sent. Each request has a sink, which gets its events as they come; the last
//! one is [`Event::Finished`] or an error. The queue is bounded, and a step that takes longer than its deadline ends all requests with an error:
//! nobody waits for a device that has stopped. Without requests the thread sleeps.
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::generate::{Generator, Request};
//! use rocmforge_models::serve::{ServeOptions, Server};
//! use rocmforge_models::{Engine, EngineOptions, Model};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let model = Model::open("target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let server = Server::start(ServeOptions::default(), move || {
//!     let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
//!     Ok(Generator::new(engine, model.tokenizer()?))
//! })?;
//! let handle = server.handle();
//! for event in handle.submit(Request::new("The capital of France is"))? {
//!     println!("{:?}", event?);
//! }
//! server.drain();
//! # Ok(())
//! # }
//! ```

mod embedding;
mod error;
mod handle;
mod options;
mod shared;
mod threads;
mod worker;

use std::sync::Arc;
use std::sync::mpsc;

use rocmforge_ggml::HostAccess;

use crate::ModelError;
use crate::generate::{Event, Generator};
pub use embedding::{EmbeddingHandle, EmbeddingOptions, EmbeddingServer, EmbeddingTicket, ServedEmbeddings};
pub use error::ServeError;
pub use handle::{Events, Handle, Ticket};
pub use options::ServeOptions;
pub use shared::{Figures, State};
use threads::Threads;

/// The thread that owns an engine. Dropping it ends all requests.
#[derive(Debug)]
pub struct Server {
    handle: Handle,
    threads: Threads<Event>,
}

impl Server {
    /// Starts the thread, which makes its generator with `make`: a backend need not be able to change threads. Returns when it is made.
    ///
    /// # Errors
    /// `make` failed, or the system gives no thread.
    pub fn start<B: HostAccess>(
        options: ServeOptions,
        make: impl FnOnce() -> Result<Generator<B>, ModelError> + Send + 'static,
    ) -> Result<Self, ServeError> {
        let (commands, received) = mpsc::channel();
        let sender = commands.clone();
        let (threads, limits) = Threads::start(options, make, move |generator, shared, made| {
            let limits = handle::Limits::of(&generator);
            worker::run(generator, sender, &received, shared, || drop(made.send(Ok(limits))));
        })?;
        Ok(Self {
            handle: Handle::new(commands, Arc::clone(threads.shared()), limits),
            threads,
        })
    }

    /// A handle that submits requests.
    #[must_use]
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Takes no more requests, and waits until those that it has are done.
    pub fn drain(mut self) {
        self.handle.drain();
        self.threads.join();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.threads.are_there() {
            self.handle.stop();
            self.threads.join();
        }
    }
}
