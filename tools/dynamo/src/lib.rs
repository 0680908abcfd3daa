//! A worker of NVIDIA Dynamo: a model of ours behind Dynamo's frontend and router.
//!
//! [`ModelEngine`] implements `LLMEngine`, the trait of `dynamo-backend-common`, over [`rocmforge_models::serve`]. Dynamo's frontend makes tokens of
//! texts and texts of tokens; the worker computes tokens. What a request asks for and the engine does not have is refused by its name.

mod engine;
mod request;

pub use engine::{ModelEngine, Options};
