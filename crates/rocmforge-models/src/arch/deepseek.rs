//! DeepSeek 2 and 3, and models of their form (Kimi K2, GLM 4.7 Flash): latent attention, and experts chosen from groups. Kimi Linear has delta nets beside.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::neighbours;
use super::mixtures::GLM4MOE_EXPERTS;
use crate::config::Presence;
use crate::config::rules::{self, ExpertKeys, Experts, Growth, Recurrent, Rotated, Rules};
use crate::layers::MapRule;

pub(super) const DEEPSEEK2: Architecture = Architecture::of_gguf_only(
    Rules {
        latent: true,
        growth: Growth::OfLength,
        predictors: true,
        experts: Some(Experts {
            gate: RouteGate::SoftMax,
            choice_bias: Presence::IfThere,
            ..GLM4MOE_EXPERTS
        }),
        ..neighbours("deepseek2")
    },
    &Dense::UNSCALED,
);

/// Kimi Linear: a gated delta net that decays column by column in layers without heads of keys, latent attention without rotary embedding in the others.
pub(super) const KIMI_LINEAR: Architecture = Architecture::of_gguf_only(
    Rules {
        latent: true,
        rotated: Rotated::Never,
        recurrent: Some(Recurrent::KimiDelta),
        experts: Some(Experts {
            keys: ExpertKeys {
                gate: true,
                factor: true,
                first_dense: true,
                ..ExpertKeys::NONE
            },
            ..GLM4MOE_EXPERTS
        }),
        // llama.cpp normalises the factors whatever the file says; which layers are recurrent follows from their heads.
        known: rules::GGUF.ignoring("attention.recurrent_layers expert_weights_norm"),
        ..neighbours("kimi-linear")
    },
    &Dense {
        // As in llama.cpp.
        qkv: MapRule {
            scaled: false,
            ..MapRule::PLAIN
        },
        ..Dense::UNSCALED
    },
);
