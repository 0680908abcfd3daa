//! Language models: architectures as graphs, weights by name, tokenizers, sampling, generation.
//!
//! * [`Model`] is an opened model: a GGUF file, or a directory as Hugging Face lays it out. Weights are mapped, not read.
//! * [`Engine`] runs it on a backend of `rocmforge-ggml`: the CPU, a GPU or a simulated one, with a paged KV cache.
//! * [`generate`] runs requests on an engine, many at a time, and gives text as it is made.
//! * [`serve`] gives an engine a thread of its own, with handles for any number of others.
//! * [`arch`] has a file for each family of architectures, [`config`] reads their hyper-parameters, [`mod@weights`] their tensors.
//! * [`tokenizer`], [`chat`], [`sampling`] and [`stop`] turn text into tokens and logits into text.
//! * [`bert`] runs sentence encoders.
//!
//! ```no_run
//! use rocmforge_ggml::CpuBackend;
//! use rocmforge_models::{Engine, EngineOptions, Model};
//!
//! # fn main() -> Result<(), rocmforge_models::ModelError> {
//! let model = Model::open("target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")?;
//! let mut engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
//! let prompt = [504, 3575, 282, 4649, 314]; // "The capital of France is"
//! let sequence = engine.add_sequence(&prompt)?;
//! let logits = engine.prefill(sequence, &prompt)?;
//! assert_eq!(logits.len(), model.config().vocab);
//! # Ok(())
//! # }
//! ```

pub mod arch;
pub mod bert;
mod cache;
pub mod chat;
pub mod config;
mod engine;
mod error;
mod file_kind;
mod files;
pub mod generate;
mod input;
mod keys;
mod layers;
mod model;
mod per_layer;
pub mod sampling;
pub mod serve;
pub mod step;
pub mod stop;
mod text;
pub mod tokenizer;
mod tokenizer_config;
mod unoptimised;
pub mod weights;

pub use engine::{
    Chunk, Engine, EngineOptions, Forecast, ForecastPart, GraphCounts, Limit, Logits, MemoryPlan, Outputs, ReadCounts,
    TopRows,
};
pub use error::ModelError;
pub use file_kind::FileKind;
pub use files::FileError;
pub use input::{AsInputs, EmbeddingRow, Input};
pub use model::Model;
pub use rocmforge_attention::paged::{BlockHash, CacheCounts, CacheEvent, PrefixKey, SequenceId};
pub use rocmforge_ggml::{KvType, Placement};
