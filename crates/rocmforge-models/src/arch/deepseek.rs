//! DeepSeek 2 and 3, and models of their form (Kimi K2, GLM 4.7 Flash): latent attention, and experts chosen from groups.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::neighbours;
use super::mixtures::GLM4MOE_EXPERTS;
use crate::config::Presence;
use crate::config::rules::{Experts, Growth, Rules};

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
