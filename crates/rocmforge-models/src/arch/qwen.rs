//! Qwen 2 and 3, and Qwen 3 with experts.

use rocmforge_ggml::RopeStyle;

use super::llama::{self, Dense, JSON, LLAMA};
use super::{Architecture, Compose};
use crate::config::rules::{self, Experts, Rules, Window};
use crate::keys::Known;

/// Llama with biases of query, key and value.
pub(super) const QWEN2: Architecture = Architecture {
    gguf: Rules {
        name: "qwen2",
        pairs: RopeStyle::HalfSplit,
        ..LLAMA.gguf
    },
    json: &[QWEN2_JSON],
    compose: Compose::Decoder(|t, c, context| {
        llama::decoder(
            t,
            c,
            context,
            &Dense {
                qkv_bias: true,
                ..Dense::PLAIN
            },
        )
    }),
};

const QWEN2_JSON: Rules = Rules {
    name: "qwen2",
    kv_heads: Some(32),
    window: Window::Upper { window: 4096, from: 28 },
    // The biases of query, key and value are there whatever the key says.
    known: Known {
        ignored: &[rules::IGNORED, "attention_bias"],
        ..rules::JSON
    },
    ..JSON
};

/// Llama with norms of each head of query and key.
pub(super) const QWEN3: Architecture = Architecture {
    gguf: Rules {
        name: "qwen3",
        ..QWEN2.gguf
    },
    json: &[QWEN3_JSON],
    compose: Compose::Decoder(|t, c, context| {
        llama::decoder(
            t,
            c,
            context,
            &Dense {
                qk_norm: true,
                ..Dense::PLAIN
            },
        )
    }),
};

const QWEN3_JSON: Rules = Rules {
    name: "qwen3",
    head_dim: Some(128),
    known: rules::JSON,
    ..QWEN2_JSON
};

/// Qwen 3 with experts.
pub(super) const QWEN3MOE: Architecture = Architecture {
    gguf: Rules {
        name: "qwen3moe",
        experts: Some(Experts {
            count: 0,
            used: None,
            inner: None,
            normalised: true,
        }),
        known: Known {
            // llama.cpp normalises the factors whatever the file says.
            ignored: &[rules::GGUF_IGNORED, rules::GGUF_WINDOW_LAYERS, "expert_weights_norm"],
            features: &[rules::GGUF_FEATURES, rules::GGUF_WINDOW],
            ..rules::GGUF
        },
        ..QWEN2.gguf
    },
    // The defaults are those of `Qwen3MoeConfig`.
    json: &[Rules {
        name: "qwen3_moe",
        kv_heads: Some(4),
        experts: Some(Experts {
            count: 128,
            used: Some(8),
            inner: Some(768),
            normalised: false,
        }),
        known: Known {
            // Routers in training.
            ignored: &[rules::IGNORED, "output_router_logits router_aux_loss_coef"],
            features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
            ..rules::JSON
        },
        ..QWEN2_JSON
    }],
    ..QWEN3
};
