//! Llama 2 and 3, SmolLM2, Mistral, Mixtral; and the rules that others are compared with.

use rocmforge_ggml::RopeStyle;

use super::dense::Dense;
use super::{Architecture, Compose};
use crate::config::OutputMatrix;
use crate::config::rules::{
    self, ExpertWidth, Experts as ExpertRules, Factors, NormKind, Rotated, Rules, Softcaps, Window, WindowRope,
};
use crate::keys::Known;
use crate::layers::ExpertsNames;
use crate::weights::LinearNames;

/// What the others are compared with. Mixtral is a Llama with experts.
pub(super) const LLAMA: Architecture = Architecture {
    gguf: Rules {
        name: "llama",
        pairs: RopeStyle::Interleaved,
        experts: Some(ExpertRules {
            inner: ExpertWidth::Network,
            ..ExpertRules::GGUF
        }),
        known: Known {
            // llama.cpp takes the width of the network, and normalises the factors, whatever the file says.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "expert_feed_forward_length expert_weights_norm",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[JSON, MISTRAL, MIXTRAL],
    compose: Compose::Dense(&Dense {
        experts: ExpertsNames::MIXTRAL,
        ..Dense::PLAIN
    }),
};

/// Files without experts.
pub(super) const GGUF: Rules = Rules {
    output: OutputMatrix::OwnIfThere,
    known: rules::GGUF,
    ..JSON
};

pub(super) const JSON: Rules = Rules {
    name: "llama",
    // Checkpoints of safetensors are not reordered.
    pairs: RopeStyle::HalfSplit,
    head_dim: None,
    kv_heads: None,
    theta: 10_000.0,
    sections: None,
    window_rope: WindowRope::Same,
    rotated: Rotated::All,
    norm: NormKind::Rms,
    factors: Factors::None,
    recurrent: None,
    output_norm: LinearNames::new("output_norm", "model.norm"),
    predictors: false,
    original_context: None,
    output: OutputMatrix::Own,
    score_divisor: None,
    softcaps: Softcaps::NONE,
    wide_scale_layers: None,
    window: Window::Never,
    experts: None,
    known: Known {
        ignored: &[rules::IGNORED, "max_window_layers"],
        features: &[
            rules::FEATURES,
            rules::NO_EXPERTS,
            &[("a sliding window", "sliding_window use_sliding_window")],
        ],
        ..rules::JSON
    },
};

const MISTRAL: Rules = Rules {
    name: "mistral",
    kv_heads: Some(8),
    window: Window::Every { window: Some(4096) },
    known: Known {
        ignored: JSON.known.ignored,
        features: &[rules::FEATURES, rules::NO_EXPERTS, rules::NO_UPPER_WINDOW],
        ..rules::JSON
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
        ignored: &[rules::IGNORED, rules::ROUTER_TRAINING],
        features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
        ..rules::JSON
    },
    ..MISTRAL
};
