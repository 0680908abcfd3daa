//! gpt-oss.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::halves;
use crate::config::Presence;
use crate::config::rules::{self, ExpertKeys, Experts, Rules, Window, WindowRope};
use crate::layers::{Bias, GatedUnit, MapRule, NetworkRule};

/// Experts whose factors are a softmax over the chosen scores, bounded gates, one more logit for each head, and a window in every second layer.
pub(super) const GPT_OSS: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::pattern(2, None),
        window_rope: WindowRope::Base,
        experts: Some(Experts {
            normalised: false,
            gate: RouteGate::SoftMaxOfChosen,
            keys: ExpertKeys::FACTOR,
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_gating_func expert_weights_norm"),
        ..halves("gpt-oss")
    },
    &Dense {
        network: NetworkRule {
            // `swiglu_limit` of its config.json; GGUF has no key for it.
            unit: GatedUnit::Clamped { bound: 7.0 },
            scaled: false,
            biased: true,
            sparsity: None,
        },
        norms: LayerNorms::BEFORE_RENAMED,
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        sinks: Presence::Always,
        ..Dense::PLAIN
    },
);
