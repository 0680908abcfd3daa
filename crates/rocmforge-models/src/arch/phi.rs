//! Phi-3.

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::{JSON, halves};
use crate::config::rules::{self, Rules, Window};

/// Llama with query, key and value in one matrix, and gate and up in one matrix.
pub(super) const PHI3: Architecture = Architecture::of_both(
    Rules {
        // llama.cpp computes Phi-3 without its window, because converters state it in several ways.
        known: rules::GGUF.ignoring("attention.sliding_window"),
        ..halves("phi3")
    },
    &[Rules {
        name: "phi3",
        original_context: Some(4096),
        window: Window::Every { window: None },
        known: rules::JSON,
        ..JSON
    }],
    &Dense::UNSCALED,
);
