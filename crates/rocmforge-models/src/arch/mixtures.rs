//! Mixtures of experts whose layers are otherwise those of a dense decoder.

use rocmforge_ggml::{RopeStyle, RouteGate};

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms, Mixture};
use super::llama::{JSON, halves, neighbours};
use super::relatives::{ERNIE4_5, ERNIE4_5_JSON, HUNYUAN, HUNYUAN_JSON, HUNYUAN_LAYERS, HUNYUAN_NORMS, HUNYUAN_NOTES};
use crate::config::Presence;
use crate::config::rules::{
    self, ExpertKeys, ExpertWidth, Experts, Factors, Rotated, Rules, SharedExpert, SharedWidth, Window, WindowRope,
};
use crate::keys::Known;
use crate::layers::{Bias, ExpertsNames, MapRule, QueryNorm};

/// Keys of a config.json of a mixture without windows.
pub(super) const KNOWN: Known = Known {
    features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
    ..rules::JSON.ignoring(ROUTER)
};
/// What only the training of a router uses, biases, which are added where the file has them, and copies of other settings.
const ROUTER: &str =
    "attention_bias aux_loss_alpha ep_size output_router_logits router_aux_loss_coef router_jitter_noise seq_aux";
/// Names of the network beside the experts.
pub(super) const SHARED_EXPERTS: (&str, &str) = (".mlp.shared_expert.", ".mlp.shared_experts.");

/// Sigmoids with a bias for the choice, and shared experts.
pub(super) const GLM4MOE_EXPERTS: Experts = Experts {
    gate: RouteGate::Sigmoid,
    choice_bias: Presence::Always,
    keys: ExpertKeys {
        gate: true,
        normalised: true,
        factor: true,
        first_dense: true,
        ..ExpertKeys::NONE
    },
    shared: Some(SharedExpert {
        inner: SharedWidth::OfCount,
        gated: false,
    }),
    ..Experts::GGUF
};

/// GLM 4.5 and later: sigmoids with a bias for the choice, a shared expert, and layers behind the others that predict further tokens.
pub(super) const GLM4MOE: Architecture = Architecture::of_both(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        predictors: true,
        experts: Some(GLM4MOE_EXPERTS),
        ..halves("glm4moe")
    },
    &[Rules {
        name: "glm4_moe",
        kv_heads: Some(8),
        partial_rotary: 0.5,
        predictors: true,
        experts: Some(Experts {
            count: 128,
            used: Some(8),
            inner: ExpertWidth::Stated(1408),
            first_dense: 1,
            groups: [1, 1],
            ..GLM4MOE_EXPERTS
        }),
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[
                    ("hidden_act", "silu"),
                    ("moe_router_dtype", "float32"),
                    ("topk_method", "noaux_tc"),
                ],
            ],
            ..KNOWN.ignoring(GLM4MOE_IGNORED)
        },
        ..JSON
    }],
    &Dense {
        renamed: &[SHARED_EXPERTS],
        norms: LayerNorms::BEFORE_RENAMED,
        query_norm: Some(QueryNorm::HeadsIfAny),
        ..Dense::UNSCALED
    },
);

/// Norms of queries and keys are there or not, whatever `use_qk_norm` says.
const GLM4MOE_IGNORED: &str = "attention_bias output_router_logits router_aux_loss_coef use_qk_norm";

/// Ling and Ring 2: experts chosen from groups, and a shared one beside them.
pub(super) const BAILINGMOE2: Architecture = Architecture::of_gguf_only(
    Rules {
        predictors: true,
        experts: Some(Experts {
            choice_bias: Presence::IfThere,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOfCount,
                gated: false,
            }),
            ..GLM4MOE_EXPERTS
        }),
        ..halves("bailingmoe2")
    },
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        ..Dense::UNSCALED
    },
);

/// MiniMax M2: sigmoids with a bias for the choice, and norms over whole queries and keys.
pub(super) const MINIMAX_M2: Architecture = Architecture::of_both(
    Rules {
        experts: Some(MINIMAX_M2_EXPERTS),
        // llama.cpp takes the width of the network.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_weights_norm"),
        ..halves("minimax-m2")
    },
    &[Rules {
        name: "minimax_m2",
        head_dim: Some(128),
        kv_heads: Some(8),
        theta: 5_000_000.0,
        experts: Some(Experts {
            count: 256,
            used: Some(8),
            keys: ExpertKeys::NONE,
            ..MINIMAX_M2_EXPERTS
        }),
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[
                    ("hidden_act", "silu"),
                    ("qk_norm_type", "per_layer"),
                    ("scoring_func", "sigmoid"),
                    ("shared_intermediate_size", "0"),
                    ("use_qk_norm", "true"),
                    ("use_routing_bias", "true"),
                ],
            ],
            // The list says that all layers have attention; the published files have no tensors of further predictors.
            ..KNOWN.ignoring(
                "attn_type_list mtp_transformer_layers num_mtp_modules output_router_logits router_aux_loss_coef \
                 router_jitter_noise use_mtp",
            )
        },
        ..JSON
    }],
    &Dense {
        experts: ExpertsNames::MIXTRAL,
        renamed: &[(
            ".mlp.gate.e_score_correction_bias",
            ".block_sparse_moe.e_score_correction_bias",
        )],
        query_norm: Some(QueryNorm::Whole),
        ..Dense::UNSCALED
    },
);

const MINIMAX_M2_EXPERTS: Experts = Experts {
    inner: ExpertWidth::Network,
    gate: RouteGate::Sigmoid,
    choice_bias: Presence::Always,
    keys: ExpertKeys {
        gate: true,
        factor: true,
        ..ExpertKeys::NONE
    },
    ..Experts::GGUF
};

/// MiMo V2: values shorter than keys and with a factor, windows, sinks where the file has them, and experts in the layers whose router it has.
pub(super) const MIMO2: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::pattern(6, None),
        window_rope: WindowRope::Base,
        factors: Factors::Values,
        predictors: true,
        experts: Some(Experts {
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::IfThere,
            keys: ExpertKeys::FACTOR,
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_gating_func expert_weights_norm"),
        ..halves("mimo2")
    },
    &Dense {
        // As in llama.cpp.
        qkv: MapRule {
            bias: Bias::Unused,
            scaled: false,
        },
        sinks: Presence::IfThere,
        mixture: Mixture::WithRouter,
        ..Dense::UNSCALED
    },
);

/// Ernie 4.5 with experts: the first layers, and all but every so many, have none.
pub(super) const ERNIE4_5_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "ernie4_5-moe",
        experts: Some(Experts {
            choice_bias: Presence::IfThere,
            keys: ExpertKeys {
                factor: true,
                first_dense: true,
                step: true,
                ..ExpertKeys::NONE
            },
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_shared_count expert_weights_norm"),
        ..ERNIE4_5.gguf
    },
    json: &[Rules {
        name: "ernie4_5_moe",
        head_dim: None,
        kv_heads: Some(4),
        experts: Some(Experts {
            count: 64,
            used: Some(6),
            inner: ExpertWidth::Stated(1536),
            choice_bias: Presence::Always,
            keys: ExpertKeys {
                first_dense: true,
                step: true,
                ..ExpertKeys::NONE
            },
            shared: Some(SharedExpert {
                inner: SharedWidth::OfCount,
                gated: false,
            }),
            first_dense: 1,
            ..Experts::GGUF
        }),
        known: Known {
            fixed: ERNIE4_5_JSON.known.fixed,
            ..KNOWN.ignoring(ERNIE4_5_IGNORED)
        },
        ..ERNIE4_5_JSON
    }],
    layers: &Dense {
        renamed: &[
            SHARED_EXPERTS,
            (
                ".mlp.gate.e_score_correction_bias",
                ".mlp.moe_statics.e_score_correction_bias",
            ),
        ],
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    },
};

/// The sum of factors is never as small as `moe_norm_min`; the others only training uses.
const ERNIE4_5_IGNORED: &str = "moe_aux_loss_lambda moe_capacity moe_gate moe_norm_min moe_use_aux_free output_router_logits \
    router_aux_loss_coef";

/// Hunyuan A13B: all layers have experts and a network beside them.
pub(super) const HUNYUAN_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "hunyuan-moe",
        sections: None,
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            keys: ExpertKeys::FACTOR,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNetwork,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network, and adds one network, whatever the file says.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..HUNYUAN.gguf
    },
    json: &[Rules {
        name: "hunyuan_v1_moe",
        experts: Some(Experts {
            count: 1,
            used: Some(1),
            inner: ExpertWidth::Network,
            shared: Some(SharedExpert {
                inner: SharedWidth::Network,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: Known {
            fixed: HUNYUAN_JSON.known.fixed,
            ignored: &[rules::IGNORED, HUNYUAN_NOTES],
            features: &[rules::FEATURES, &[("groups of experts", "group_limited_greedy")]],
            // The width of experts is that of the network, and one network stands beside them, whatever else is noted.
            ..KNOWN.ignoring(
                "capacity_factor moe_drop_tokens moe_intermediate_size moe_layer_num_skipped \
                 moe_random_routing_dropped_token num_shared_expert output_router_logits use_mixed_mlp_moe",
            )
        },
        ..HUNYUAN_JSON
    }],
    layers: &Dense {
        renamed: &[
            HUNYUAN_NORMS[0],
            HUNYUAN_NORMS[1],
            (".mlp.gate.", ".mlp.gate.wg."),
            (".mlp.shared_expert.", ".mlp.shared_mlp."),
        ],
        ..HUNYUAN_LAYERS
    },
};

/// Granite 3 and 4: factors on embeddings, branches and logits.
pub(super) const GRANITE: Architecture = Architecture::of_both(
    Rules {
        factors: Factors::Granite,
        rotated: Rotated::Finetuned,
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            keys: ExpertKeys::FACTOR,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network, and normalises the factors, whatever the file says.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..neighbours("granite")
    },
    &[GRANITE_JSON],
    &Dense::UNSCALED,
);

pub(super) const GRANITE_JSON: Rules = Rules {
    name: "granite",
    factors: Factors::Granite,
    known: rules::JSON.ignoring("attention_bias mlp_bias"),
    ..JSON
};

/// The same under the name that converters give to those with experts. llama.cpp does not ask whether it was trained with rotary embedding.
pub(super) const GRANITE_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "granitemoe",
        rotated: Rotated::All,
        ..GRANITE.gguf
    },
    json: &[GRANITE_MOE_JSON, GRANITE_MOE_SHARED_JSON],
    layers: &GRANITE_MOE_LAYERS,
};

pub(super) const GRANITE_MOE_LAYERS: Dense = Dense {
    renamed: &[
        (".mlp.experts.gate_up_proj", ".block_sparse_moe.input_linear.weight"),
        (".mlp.experts.down_proj", ".block_sparse_moe.output_linear.weight"),
        (".mlp.gate.", ".block_sparse_moe.router.layer."),
        (".mlp.shared_expert.gate_up_proj.", ".shared_mlp.input_linear."),
        (".mlp.shared_expert.down_proj.", ".shared_mlp.output_linear."),
        (".mlp.gate_up_proj.", ".shared_mlp.input_linear."),
        (".mlp.down_proj.", ".shared_mlp.output_linear."),
    ],
    ..Dense::UNSCALED
};

const GRANITE_MOE_JSON: Rules = Rules {
    name: "granitemoe",
    experts: Some(Experts {
        count: 8,
        used: Some(2),
        inner: ExpertWidth::Network,
        ..Experts::GGUF
    }),
    known: KNOWN,
    ..GRANITE_JSON
};

pub(super) const GRANITE_MOE_SHARED_JSON: Rules = Rules {
    name: "granitemoeshared",
    experts: Some(Experts {
        count: 8,
        used: Some(2),
        inner: ExpertWidth::Network,
        shared: Some(SharedExpert {
            inner: SharedWidth::StatedOrNone,
            gated: false,
        }),
        ..Experts::GGUF
    }),
    ..GRANITE_MOE_JSON
};
