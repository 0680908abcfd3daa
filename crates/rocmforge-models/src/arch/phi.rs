//! Phi-3.

use rocmforge_ggml::RopeStyle;

use super::dense::Dense;
use super::llama::{GGUF, JSON};
use super::{Architecture, Compose};
use crate::config::rules::{self, Rules, Window};
use crate::keys::Known;

/// Llama with query, key and value in one matrix, and gate and up in one matrix.
pub(super) const PHI3: Architecture = Architecture {
    gguf: Rules {
        name: "phi3",
        pairs: RopeStyle::HalfSplit,
        known: Known {
            // llama.cpp computes Phi-3 without its window, because converters state it in several ways.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "attention.sliding_window",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[Rules {
        name: "phi3",
        original_context: Some(4096),
        window: Window::Every { window: None },
        known: rules::JSON,
        ..JSON
    }],
    compose: Compose::Dense(&Dense::UNSCALED),
};
