//! gpt-oss.

use rocmforge_ggml::RopeStyle;

use super::dense::{Dense, LayerNorms};
use super::llama::GGUF;
use super::{Architecture, Compose};
use crate::config::ExpertGate;
use crate::config::rules::{self, ExpertKeys, Experts, Rules, Window, WindowRope};
use crate::keys::Known;
use crate::layers::{Bias, GatedUnit, NetworkRule};

/// Experts whose factors are a softmax over the chosen scores, bounded gates, one more logit for each head, and a window in every second layer.
pub(super) const GPT_OSS: Architecture = Architecture {
    gguf: Rules {
        name: "gpt-oss",
        pairs: RopeStyle::HalfSplit,
        window: Window::Pattern {
            window: None,
            period: 2,
            of: None,
        },
        window_rope: WindowRope::Base,
        experts: Some(Experts {
            normalised: false,
            gate: ExpertGate::SoftMaxOfChosen,
            keys: ExpertKeys {
                factor: true,
                ..ExpertKeys::NONE
            },
            ..Experts::GGUF
        }),
        known: Known {
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "expert_gating_func expert_weights_norm",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        network: NetworkRule {
            // `swiglu_limit` of its config.json; GGUF has no key for it.
            unit: GatedUnit::Clamped { bound: 7.0 },
            scaled: false,
            biased: true,
        },
        norms: LayerNorms::BEFORE_RENAMED,
        qkv_bias: true,
        output_bias: Bias::Needed,
        sinks: true,
        ..Dense::PLAIN
    }),
};
