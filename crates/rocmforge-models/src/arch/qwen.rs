//! Qwen 2 and 3.

use rocmforge_ggml::RopeStyle;

use super::Architecture;
use super::llama::{self, Dense, LLAMA, LLAMA_JSON};
use crate::config::{JsonRules, JsonWindow, json_rules};
use crate::settings::Known;

/// Llama with biases of query, key and value.
pub(super) const QWEN2: Architecture = Architecture {
    name: "qwen2",
    gguf_rope: RopeStyle::HalfSplit,
    json: &[QWEN2_JSON],
    compose: |t, c, context| {
        let dense = Dense {
            qkv_bias: true,
            ..Dense::PLAIN
        };
        llama::decoder(t, c, context, &dense)
    },
    ..LLAMA
};

/// Llama with norms of each head of query and key.
pub(super) const QWEN3: Architecture = Architecture {
    name: "qwen3",
    gguf_rope: RopeStyle::HalfSplit,
    json: &[QWEN3_JSON],
    compose: |t, c, context| {
        let dense = Dense {
            qk_norm: true,
            ..Dense::PLAIN
        };
        llama::decoder(t, c, context, &dense)
    },
    ..LLAMA
};

const QWEN2_JSON: JsonRules = JsonRules {
    model_type: "qwen2",
    kv_heads: Some(32),
    window: JsonWindow::Upper { window: 4096, from: 28 },
    known: Known {
        // The biases of query, key and value are there whatever the key says.
        ignored: json_rules::IGNORED_AND_ATTENTION_BIAS,
        ..json_rules::WINDOW_READ
    },
    ..LLAMA_JSON
};

const QWEN3_JSON: JsonRules = JsonRules {
    model_type: "qwen3",
    head_dim: Some(128),
    kv_heads: Some(32),
    window: JsonWindow::Upper { window: 4096, from: 28 },
    known: json_rules::WINDOW_READ,
    ..LLAMA_JSON
};
