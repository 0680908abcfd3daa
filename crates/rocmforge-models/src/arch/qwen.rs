//! Qwen 2 and 3, and Qwen 3 with experts.

use rocmforge_ggml::RopeStyle;

use super::Architecture;
use super::llama::{self, Dense, LLAMA, LLAMA_JSON};
use crate::config::{JsonExperts, JsonRules, JsonWindow, gguf_keys, json_rules};
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

/// Qwen 3 with experts.
pub(super) const QWEN3MOE: Architecture = Architecture {
    name: "qwen3moe",
    gguf: gguf_keys::WITH_EXPERTS,
    json: &[QWEN3MOE_JSON],
    ..QWEN3
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

/// The defaults are those of `Qwen3MoeConfig`.
const QWEN3MOE_JSON: JsonRules = JsonRules {
    model_type: "qwen3_moe",
    head_dim: None,
    kv_heads: Some(4),
    window: JsonWindow::Upper { window: 4096, from: 28 },
    experts: Some(JsonExperts {
        count: 128,
        used: 8,
        inner: 768,
        normalised: false,
    }),
    known: Known {
        ignored: json_rules::IGNORED_AND_ROUTER_TRAINING,
        features: &[
            json_rules::FEATURES,
            &[("use_sliding_window", "a sliding window for some layers")],
        ],
        ..json_rules::WINDOW_READ
    },
    ..QWEN3_JSON
};
