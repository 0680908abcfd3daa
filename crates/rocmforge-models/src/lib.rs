//! Language models: architectures as graphs, weights by name, tokenizers, sampling, generation.

pub mod chat;
pub mod tokenizer;
