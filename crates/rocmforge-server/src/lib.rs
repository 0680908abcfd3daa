//! HTTP server for language models: the APIs of OpenAI, Anthropic, ollama and llama.cpp over [`rocmforge_models::serve`], with limits, keys and metrics.
//! It serves models that make texts, and encoders that make embeddings of texts or scores of pairs.
//!
//! A [`Source`] says how a model is loaded. An [`App`] has a table of sources by name, loads each at its first request, and answers HTTP
//! requests; [`App::run`] listens until it is asked to end, and lets the answers that run then come to their end.
//!
//! * [`source`] and `registry` are the models, `generation` is a request on one of them, `answer` one to a conversation.
//! * `embeddings` has what all routes of embeddings and scores share.
//! * `openai` has the routes of the OpenAI API, `anthropic` those of Anthropic's, `ollama` and `llama_cpp` those of these programs, `admin` those
//!   about the server itself, `page` the chat in a browser.
//! * `guard` looks at each request before its route does: host, origin, key. `listen`, `socket`, `tls` and `in_time` bound connections and their
//!   times, `places` the requests that run.
//! * `kv_events`, by a feature, tells routers what is in a model's cache.
//! * `description` is the description of all routes in OpenAPI; each module has the table of its own.
//! * `requests` gives each request an id and a line of the log. `fields` reads requests, `unread` what routes leave of them,
//!   `error` says what is wrong with them in the words of each API.
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::{Engine, EngineOptions, Model, generate::Generator, serve};
//! use rocmforge_server::{App, Facts, Loaded, LoadError, ServerOptions, Source};
//!
//! struct Cpu;
//!
//! impl Source for Cpu {
//!     fn load(&self) -> Result<Loaded, LoadError> {
//!         let model = Model::open("target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
//!         let template = model.chat_template()?;
//!         let server = serve::Server::start(serve::ServeOptions::default(), move || {
//!             let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
//!             Ok(Generator::new(engine, model.tokenizer()?))
//!         })?;
//!         Ok(Loaded { template, facts: Facts::default(), ..Loaded::new(server) })
//!     }
//! }
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = App::new(ServerOptions::default(), [("smollm2".to_owned(), Box::new(Cpu) as Box<dyn Source>)])?;
//! app.run(std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod admin;
mod answer;
mod anthropic;
mod app;
mod description;
mod embeddings;
mod error;
mod fields;
mod files;
mod generation;
mod guard;
mod in_time;
mod keys;
#[cfg(feature = "kv-events")]
pub mod kv_events;
mod listen;
mod llama_cpp;
mod metrics;
mod ollama;
mod openai;
mod options;
#[cfg(feature = "otel")]
pub mod otel;
mod page;
mod places;
mod progress;
mod prompt;
mod registry;
mod requests;
mod sampler;
mod socket;
pub mod source;
mod stream;
mod tls;
mod trace;
mod unread;

pub use app::{App, ChangeError, StartError};
pub use keys::{KeyError, Keys};
pub use options::{Limits, ServerOptions};
pub use source::{CardMemory, Engine, Facts, LoadError, Loaded, ModelKind, Source};
pub use tls::{Tls, TlsError};
