//! Llama 4 (Scout, Maverick): chunks, layers without rotary embedding, and one expert beside a network for a token.

use rocmforge_ggml::{RopeStyle, RouteGate};

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::{JSON, neighbours};
use crate::config::QueryGrowth;
use crate::config::rules::{
    self, ExpertKeys, ExpertWidth, Experts, Growth, Rotated, Rules, SharedExpert, SharedWidth, Window, WindowRope,
};
use crate::keys::Known;
use crate::layers::{ExpertsNames, QueryNorm};

/// The score of an expert decides; its sigmoid is a factor on what the expert sees.
const EXPERTS: Experts = Experts {
    gate: RouteGate::SoftMaxOfChosen,
    normalised: false,
    on_input: true,
    keys: ExpertKeys {
        step: true,
        ..ExpertKeys::NONE
    },
    shared: Some(SharedExpert {
        inner: SharedWidth::OfExpert,
        gated: false,
    }),
    ..Experts::GGUF
};

/// In a GGUF all lengths are those of llama.cpp.
const GGUF: Rules = Rules {
    window: Window::Chunks {
        length: 8192,
        period: 4,
    },
    window_rope: WindowRope::Base,
    rotated: Rotated::AllBut(4),
    growth: Growth::Unrotated(QueryGrowth {
        scale: 0.1,
        length: 8192,
        offset: 1,
    }),
    unnormed_experts: Some(128),
    experts: Some(EXPERTS),
    // What llama.cpp does not ask the file.
    known: rules::GGUF.ignoring(
        "attention.temperature_length attention.temperature_scale expert_gating_func expert_shared_count \
         expert_shared_feed_forward_length expert_weights_norm expert_weights_scale",
    ),
    ..neighbours("llama4")
};

pub(super) const LLAMA4: Architecture = Architecture::of_both(
    GGUF,
    &[LLAMA4_TEXT],
    &Dense {
        query_norm: Some(QueryNorm::PlainRotatedHeads),
        experts: ExpertsNames::LLAMA4,
        renamed: &[
            (".mlp.gate.weight", ".feed_forward.router.weight"),
            (".mlp.", ".feed_forward."),
        ],
        ..Dense::UNSCALED
    },
);

/// The defaults are those of `Llama4TextConfig`.
const LLAMA4_TEXT: Rules = Rules {
    name: "llama4_text",
    // Checkpoints have neighbours, too.
    pairs: RopeStyle::Interleaved,
    head_dim: Some(128),
    kv_heads: Some(8),
    theta: 500_000.0,
    window: GGUF.window,
    rotated: GGUF.rotated,
    growth: GGUF.growth,
    unnormed_experts: GGUF.unnormed_experts,
    experts: Some(Experts {
        count: 16,
        used: Some(1),
        inner: ExpertWidth::Stated(8192),
        ..EXPERTS
    }),
    // Networks without experts have a key of their own, and experts that of other models' networks.
    renamed: &[
        ("intermediate_size", "moe_intermediate_size"),
        ("intermediate_size_mlp", "intermediate_size"),
        ("interleave_moe_layer_step", "decoder_sparse_step"),
        ("attention_chunk_size", "sliding_window"),
    ],
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[("hidden_act", "silu"), ("for_llm_compressor", "false")],
        ],
        features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
        ..rules::JSON.ignoring(rules::ROUTER_TRAINING)
    },
    ..JSON
};
