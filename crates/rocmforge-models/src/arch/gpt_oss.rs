//! gpt-oss.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::{JSON, halves};
use crate::config::Presence;
use crate::config::rules::{self, ExpertKeys, ExpertWidth, Experts, Rules, Window, WindowRope};
use crate::keys::Known;
use crate::layers::{Bias, ExpertsNames, GatedUnit, MapRule, NetworkRule};

/// Experts whose factors are a softmax over the chosen scores, bounded gates, one more logit for each head, and a window in every second layer.
pub(super) const GPT_OSS: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(2, None),
        window_rope: WindowRope::Base,
        experts: Some(EXPERTS),
        known: rules::GGUF.ignoring("expert_gating_func expert_weights_norm"),
        ..halves("gpt-oss")
    },
    &[Rules {
        name: "gpt_oss",
        head_dim: Some(64),
        kv_heads: Some(8),
        theta: 150_000.0,
        window: Window::pattern(2, Some(128)),
        mxfp4: true,
        experts: Some(Experts {
            count: 128,
            used: Some(4),
            inner: ExpertWidth::Network,
            keys: ExpertKeys::NONE,
            ..EXPERTS
        }),
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[("hidden_act", "silu"), ("swiglu_alpha", "1.702"), ("swiglu_limit", "7")],
            ],
            features: &[rules::FEATURES],
            ..rules::JSON.ignoring(
                "attention_bias initial_context_length output_router_logits router_aux_loss_coef router_jitter_noise",
            )
        },
        ..JSON
    }],
    &Dense {
        network: NetworkRule {
            // `swiglu_limit` of its config.json; GGUF has no key for it.
            unit: GatedUnit::Clamped { bound: 7.0 },
            scaled: false,
            biased: true,
            sparsity: None,
            gate_factor: None,
        },
        norms: LayerNorms::BEFORE_RENAMED,
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        sinks: Presence::Always,
        experts: ExpertsNames::IN_TURN,
        renamed: &[(".mlp.gate.", ".mlp.router.")],
        ..Dense::PLAIN
    },
);

const EXPERTS: Experts = Experts {
    normalised: false,
    gate: RouteGate::SoftMaxOfChosen,
    keys: ExpertKeys::FACTOR,
    ..Experts::GGUF
};
