//! Decoders: hyper-parameters, weights by role, and the graph of one step.
//!
//! One builder makes the graph of every architecture; [`Architecture`] has a row for each, with what differs.

mod architecture;
mod config;
mod from_config_json;
mod from_gguf;
mod step;
mod weights;

pub use architecture::{ARCHITECTURES, Activation, Architecture, WindowRule};
pub use config::{DecoderConfig, RopeConfig, RopeFactors};
pub(crate) use step::Parameters;
pub use step::{CacheSpec, CopyRows, InputLayout, Step, StepShape};
pub(crate) use weights::DecoderWeights;
