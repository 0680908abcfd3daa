//! Phi-3.

use rocmforge_ggml::RopeStyle;

use super::Architecture;
use super::llama::{LLAMA, LLAMA_JSON};
use crate::config::{JsonRules, JsonWindow, gguf_keys, json_rules};

/// Llama with query, key and value in one matrix, and gate and up in one matrix.
pub(super) const PHI3: Architecture = Architecture {
    name: "phi3",
    gguf_rope: RopeStyle::HalfSplit,
    gguf: gguf_keys::WINDOW_NOT_APPLIED,
    json: &[JsonRules {
        model_type: "phi3",
        original_context: Some(4096),
        window: JsonWindow::Every { window: None },
        known: json_rules::WINDOW_READ,
        ..LLAMA_JSON
    }],
    ..LLAMA
};
