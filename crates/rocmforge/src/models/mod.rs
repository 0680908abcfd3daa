//! Models as their authors publish them, built as [`crate::ggml`] graphs.

pub mod bert;
mod error;
mod files;

pub use error::ModelError;
