//! Qwen 2 and 3, with and without experts.

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::{JSON, halves};
use crate::config::rules::{self, ExpertWidth, Experts, Rules, SharedExpert, SharedWidth, Window};
use crate::keys::Known;
use crate::layers::{MapRule, QueryNorm};

/// Llama with biases of query, key and value.
pub(super) const QWEN2: Architecture = Architecture::of_both(
    halves("qwen2"),
    &[QWEN2_JSON],
    &Dense {
        qkv: MapRule::BIASED,
        ..Dense::UNSCALED
    },
);

const QWEN2_JSON: Rules = Rules {
    name: "qwen2",
    kv_heads: Some(32),
    window: Window::Upper { window: 4096, from: 28 },
    // The biases of query, key and value are there whatever the key says.
    known: rules::JSON.ignoring("attention_bias"),
    ..JSON
};

/// Qwen 2 with experts, and a network beside them that every token is given to.
pub(super) const QWEN2MOE: Architecture = Architecture {
    gguf: Rules {
        name: "qwen2moe",
        experts: Some(Experts {
            normalised: false,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNetwork,
                gated: true,
            }),
            ..Experts::GGUF
        }),
        // llama.cpp does not normalise the factors, and adds one network, whatever the file says.
        known: rules::GGUF.ignoring("expert_shared_count expert_weights_norm"),
        ..QWEN2.gguf
    },
    // The defaults are those of `Qwen2MoeConfig`.
    json: &[Rules {
        name: "qwen2_moe",
        kv_heads: Some(16),
        experts: Some(Experts {
            count: 60,
            used: Some(4),
            inner: ExpertWidth::Stated(1408),
            normalised: false,
            shared: Some(SharedExpert {
                inner: SharedWidth::Stated(5632),
                gated: true,
            }),
            ..Experts::GGUF
        }),
        known: Known {
            fixed: &[rules::DECODERS, &[("hidden_act", "silu"), ("qkv_bias", "true")]],
            features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
            ..rules::JSON.ignoring(rules::ROUTER_TRAINING)
        },
        ..QWEN2_JSON
    }],
    ..QWEN2
};

/// Llama with norms of each head of query and key.
pub(super) const QWEN3: Architecture = Architecture::of_both(
    Rules {
        name: "qwen3",
        answers: true,
        ..QWEN2.gguf
    },
    &[QWEN3_JSON],
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        ..Dense::PLAIN
    },
);

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
        experts: Some(Experts::GGUF),
        // llama.cpp normalises the factors whatever the file says.
        known: rules::GGUF.ignoring("expert_weights_norm"),
        ..QWEN2.gguf
    },
    // The defaults are those of `Qwen3MoeConfig`.
    json: &[Rules {
        name: "qwen3_moe",
        kv_heads: Some(4),
        experts: Some(Experts {
            count: 128,
            used: Some(8),
            inner: ExpertWidth::Stated(768),
            normalised: false,
            ..Experts::GGUF
        }),
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[("hidden_act", "silu"), ("qkv_bias", "false"), ("use_qk_norm", "true")],
            ],
            features: &[rules::FEATURES, rules::NO_UPPER_WINDOW, NO_SHARED_EXPERT],
            ..rules::JSON.ignoring(rules::ROUTER_TRAINING)
        },
        ..QWEN2_JSON
    }],
    ..QWEN3
};

/// Qwen 3 Coder states a width of 0.
const NO_SHARED_EXPERT: &[(&str, &str)] = &[("a network beside the experts", "shared_expert_intermediate_size")];
