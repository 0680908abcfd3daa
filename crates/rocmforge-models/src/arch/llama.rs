//! Llama 2 and 3, SmolLM2, Mistral, Mixtral; and the rules that others are compared with.

use rocmforge_ggml::RopeStyle;

use super::architecture::Architecture;
use super::dense::Dense;
use crate::config::rules::{
    self, ExpertWidth, Experts as ExpertRules, Factors, Growth, Rotated, Rules, SharedCaches, Softcaps, Window,
    WindowRope,
};
use crate::config::{NormKind, OutputMatrix};
use crate::keys::Known;
use crate::layers::ExpertsNames;
use crate::weights::LinearNames;

/// What the others are compared with. Mixtral is a Llama with experts.
pub(super) const LLAMA: Architecture = Architecture::of_both(
    Rules {
        experts: Some(ExpertRules {
            inner: ExpertWidth::Network,
            ..ExpertRules::GGUF
        }),
        // llama.cpp takes the width of the network, and normalises the factors, whatever the file says.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_weights_norm"),
        ..neighbours("llama")
    },
    &[JSON, MISTRAL, MIXTRAL],
    &Dense {
        experts: ExpertsNames::MIXTRAL,
        ..Dense::PLAIN
    },
);

/// Rules of GGUF files whose pairs of rotary embedding are halves of a head.
pub(super) const fn halves(name: &'static str) -> Rules {
    Rules {
        name,
        output: OutputMatrix::OwnIfThere,
        known: rules::GGUF,
        ..JSON
    }
}

/// Rules of GGUF files whose pairs of rotary embedding are neighbours.
pub(super) const fn neighbours(name: &'static str) -> Rules {
    Rules {
        pairs: RopeStyle::Interleaved,
        ..halves(name)
    }
}

pub(super) const JSON: Rules = Rules {
    name: "llama",
    // Checkpoints of safetensors are not reordered.
    pairs: RopeStyle::HalfSplit,
    head_dim: None,
    global_head_dim: None,
    kv_heads: None,
    theta: 10_000.0,
    partial_rotary: 1.0,
    alpha: false,
    sections: None,
    unused_divisors: false,
    window_rope: WindowRope::Same,
    rotated: Rotated::All,
    growth: Growth::Never,
    unnormed_experts: None,
    norm: NormKind::Rms,
    factors: Factors::None,
    recurrent: None,
    latent: false,
    query_rank: None,
    inner_eps: None,
    output_norm: LinearNames::new("output_norm", "model.norm"),
    predictors: false,
    original_context: None,
    output: OutputMatrix::Own,
    score_divisor: None,
    score_factor: None,
    softcaps: Softcaps::NONE,
    wide_scale_layers: None,
    window: Window::Never,
    ff: "intermediate_size",
    adjusted_ff: false,
    shared_caches: SharedCaches::Never,
    layer_inputs: None,
    streams: None,
    renamed: &[],
    mxfp4: false,
    experts: None,
    texts: None,
    answers: false,
    known: Known {
        features: &[
            rules::FEATURES,
            rules::NO_EXPERTS,
            &[("a sliding window", "sliding_window use_sliding_window")],
        ],
        ..rules::JSON.ignoring("max_window_layers")
    },
};

pub(super) const MISTRAL: Rules = Rules {
    name: "mistral",
    kv_heads: Some(8),
    window: Window::Every { window: Some(4096) },
    known: Known {
        features: &[rules::FEATURES, rules::NO_EXPERTS, rules::NO_UPPER_WINDOW],
        ..JSON.known
    },
    ..JSON
};

/// The defaults are those of `MixtralConfig`.
const MIXTRAL: Rules = Rules {
    name: "mixtral",
    theta: 1_000_000.0,
    window: Window::Every { window: None },
    experts: Some(ExpertRules {
        count: 8,
        used: Some(2),
        inner: ExpertWidth::Network,
        ..ExpertRules::GGUF
    }),
    known: Known {
        features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
        ..rules::JSON.ignoring(rules::ROUTER_TRAINING)
    },
    ..MISTRAL
};
