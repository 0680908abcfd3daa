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
mod handle;
mod shared;
mod threads;
mod worker;

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use rocmforge_ggml::HostAccess;

use crate::ModelError;
use crate::generate::{Event, GenerateError, Generator};
pub use embedding::{EmbeddingHandle, EmbeddingOptions, EmbeddingServer, EmbeddingTicket, ServedEmbeddings};
pub use handle::{Events, Handle, Ticket};
pub use shared::{Figures, State};
use threads::Threads;

/// Limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Most requests that have not ended, running ones among them.
    pub queue: usize,
    /// Longest time of one step. A step of a large chunk on a CPU takes seconds.
    pub step_deadline: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self {
            queue: 256,
            step_deadline: Duration::from_secs(120),
        }
    }
}

/// Why a request is refused, or has ended without a last event.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The request makes no sense, or does not fit.
    #[error(transparent)]
    Refused(#[from] Arc<GenerateError>),
    /// The queue has as many requests as it may have.
    #[error("{open} requests are open, {limit} may be: try again later")]
    QueueFull {
        /// Requests that have not ended.
        open: usize,
        /// Most that may be.
        limit: usize,
    },
    /// Open requests have as many texts as they may have.
    #[error("{texts} texts are open, {limit} may be: try again later, or send fewer at a time")]
    TextsFull {
        /// Texts of open requests, with those of the one that is refused.
        texts: usize,
        /// Most that may be.
        limit: usize,
    },
    /// There is no text, or one without tokens.
    #[error("there is no text, or one without tokens")]
    EmptyText,
    /// A text is longer than the model takes.
    #[error("a text has {tokens} tokens, the model takes {most}: shorten it or split it")]
    TextTooLong {
        /// Its tokens.
        tokens: usize,
        /// Most that the model takes.
        most: usize,
    },
    /// No more requests are taken; those that were taken go on.
    #[error("the server takes no more requests: it ends when those that it has are done")]
    Draining,
    /// The step that the request took part in failed. Other requests go on.
    #[error("a step failed: {0}")]
    StepFailed(Arc<GenerateError>),
    /// A step took longer than its deadline. The server has stopped.
    #[error("a step took longer than {} s: the device does not answer, and the server has stopped", deadline.as_secs_f64())]
    StepDeadline {
        /// The deadline.
        deadline: Duration,
    },
    /// The server has stopped.
    #[error("the server has stopped")]
    Stopped,
    /// The engine could not be made.
    #[error(transparent)]
    Start(Arc<ModelError>),
    /// The system gives no thread.
    #[error("no thread: {0}")]
    Thread(Arc<std::io::Error>),
}

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
