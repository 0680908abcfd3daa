//! Decoders: hyper-parameters, weights by role, and the graph of one step.
//!
//! One builder makes the graph of every architecture; [`Architecture`] has a row for each, with what differs.

mod architecture;
mod config;
mod from_config_json;
mod from_gguf;
mod gguf_keys;
mod json_rope;
mod json_rules;
mod step;
mod weights;

pub use architecture::{ARCHITECTURES, Activation, Architecture, WindowRule};
pub use config::{DecoderConfig, OutputMatrix, RopeConfig, RopeFactors};
pub(crate) use json_rules::{DROPOUT, FEATURES, GENERATION, OF_THE_FILE, TASKS};
pub(crate) use step::Parameters;
pub use step::{CacheSpec, CopyRows, InputLayout, Step, StepShape};
pub(crate) use weights::DecoderWeights;
