//! Tests of the facade without a device: its examples, its encoder, and its model files.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod dummy_backend;
mod examples;
mod minilm;
mod model_files;
