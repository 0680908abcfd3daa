//! DeepSeek 2 and 3, and models of their form (Kimi K2, GLM 4.7 Flash): latent attention, and experts chosen from groups. Kimi Linear has delta nets beside.

use rocmforge_ggml::{RopeStyle, RouteGate};

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::{JSON, neighbours};
use super::mixtures::{GLM4MOE_EXPERTS, KNOWN, SHARED_EXPERTS};
use crate::config::Presence;
use crate::config::rules::{self, ExpertKeys, ExpertWidth, Experts, Growth, Recurrent, Rotated, Rules};
use crate::keys::Known;
use crate::layers::{ExpertsNames, MapRule};

pub(super) const DEEPSEEK2: Architecture = Architecture::of_both(
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
    &[DEEPSEEK_V2, DEEPSEEK_V3],
    &Dense {
        renamed: &[SHARED_EXPERTS],
        ..Dense::UNSCALED
    },
);

/// What the norms within latent attention add to the mean square in the checkpoints' own code, whatever `rms_norm_eps` is. llama.cpp has one number for all.
const INNER_EPS: Option<f32> = Some(1e-6);

const DEEPSEEK_V3: Rules = Rules {
    name: "deepseek_v3",
    pairs: RopeStyle::Interleaved,
    latent: true,
    query_rank: Some(1536),
    inner_eps: INNER_EPS,
    predictors: true,
    experts: Some(Experts {
        count: 256,
        used: Some(8),
        inner: ExpertWidth::Stated(2048),
        first_dense: 3,
        factor: Some(2.5),
        groups: [8, 4],
        ..GLM4MOE_EXPERTS
    }),
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_act", "silu"),
                ("moe_layer_freq", "1"),
                ("rope_interleave", "true"),
                ("scoring_func", "sigmoid"),
                ("topk_method", "noaux_tc"),
            ],
        ],
        ..KNOWN
    },
    ..JSON
};

/// Its groups of experts are chosen by their best, which is not supported.
const DEEPSEEK_V2: Rules = Rules {
    name: "deepseek_v2",
    predictors: false,
    experts: Some(Experts {
        count: 64,
        used: None,
        inner: ExpertWidth::Stated(1407),
        normalised: false,
        gate: RouteGate::SoftMax,
        choice_bias: Presence::Never,
        ..GLM4MOE_EXPERTS
    }),
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_act", "silu"),
                ("moe_layer_freq", "1"),
                ("scoring_func", "softmax"),
                ("topk_method", "greedy"),
            ],
        ],
        ..KNOWN
    },
    ..DEEPSEEK_V3
};

/// Kimi Linear: a gated delta net that decays column by column in layers without heads of keys, latent attention without rotary embedding in the others.
pub(super) const KIMI_LINEAR: Architecture = Architecture::of_both(
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
    &[KIMI_LINEAR_JSON],
    &Dense {
        experts: ExpertsNames::MIXTRAL,
        renamed: &[
            (".mlp.shared_expert.", ".block_sparse_moe.shared_experts."),
            (".mlp.gate.", ".block_sparse_moe.gate."),
        ],
        // As in llama.cpp.
        qkv: MapRule {
            scaled: false,
            ..MapRule::PLAIN
        },
        ..Dense::UNSCALED
    },
);

const KIMI_LINEAR_JSON: Rules = Rules {
    name: "kimi_linear",
    latent: true,
    inner_eps: INNER_EPS,
    rotated: Rotated::Never,
    recurrent: Some(Recurrent::KimiDelta),
    renamed: &[
        ("model_max_length", "max_position_embeddings"),
        ("moe_renormalize", "norm_topk_prob"),
        ("num_expert_group", "n_group"),
        ("num_experts_per_token", "num_experts_per_tok"),
        ("num_shared_experts", "n_shared_experts"),
    ],
    experts: Some(Experts {
        count: 256,
        used: Some(8),
        inner: ExpertWidth::Stated(1024),
        first_dense: 1,
        factor: Some(2.446),
        groups: [1, 1],
        ..GLM4MOE_EXPERTS
    }),
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_act", "silu"),
                ("mla_use_nope", "true"),
                ("moe_layer_freq", "1"),
                ("moe_router_activation_func", "sigmoid"),
                ("num_nextn_predict_layers", "0"),
                ("use_grouped_topk", "true"),
            ],
        ],
        ..KNOWN
    },
    ..JSON
};
