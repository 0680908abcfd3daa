//! Language models: architectures as graphs, weights by name, tokenizers, sampling, generation.

pub mod sampling;
pub mod stop;
