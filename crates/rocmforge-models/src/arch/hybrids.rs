//! Decoders with selective scans (Mamba 2): alone, in place of attention in most layers, or beside it in all.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::find::GRANITE_WITHOUT_EXPERTS;
use super::llama::{JSON, halves};
use super::mixtures::{GRANITE, GRANITE_JSON, GRANITE_MOE_LAYERS, GRANITE_MOE_SHARED_JSON};
use crate::config::Presence;
use crate::config::rules::{
    self, ExpertKeys, ExpertWidth, Experts, Factors, Recurrent, Rotated, Rules, ScanLayers, SharedExpert, SharedWidth,
};
use crate::keys::Known;
use crate::layers::{Activation, Bias, MapRule};
use crate::weights::LinearNames;

/// Which layers are recurrent follows from the architecture, or from their heads.
const KNOWN: Known = rules::GGUF.ignoring("attention.recurrent_layers");

/// The same of a config.json: how scans were trained and are cut into parts, and biases, which are added where the file has them.
const NOTES: &str = "chunk_size hidden_dropout mamba_chunk_size mamba_conv_bias mamba_ssm_cache_dtype mamba_ssm_dtype mamba_use_mlp \
    mlp_expansion_factor moe_shared_expert_overlap mtp_hybrid_override_pattern mtp_layers_block_type n_shared_experts \
    num_logits_to_keep output_router_logits rescale_prenorm_residual residual_in_fp32 router_aux_loss_coef time_step_floor \
    time_step_max time_step_min time_step_rank use_conv_bias use_mamba_kernels";

/// Settings of selective scans with the only values that are supported.
const SCANS: &[(&str, &str)] = &[
    ("hidden_act", "silu"),
    ("mamba_hidden_act", "silu"),
    ("mamba_proj_bias", "false"),
    ("mlp_hidden_act", "relu2"),
    ("projectors_bias", "false"),
    ("use_bias", "false"),
];

const KNOWN_JSON: Known = Known {
    fixed: &[rules::DECODERS, SCANS],
    ..rules::JSON.ignoring(NOTES)
};

/// The names of checkpoints that call layers a backbone, and what stands for attention in them a mixer.
const BACKBONE: [(&str, &str); 4] = [
    ("model.layers.", "backbone.layers."),
    ("model.embed_tokens.", "backbone.embeddings."),
    (".input_layernorm.", ".norm."),
    (".mamba.", ".mixer."),
];
const BACKBONE_NORM: LinearNames = LinearNames::new("output_norm", "backbone.norm_f");

/// Mamba 2: nothing else.
pub(super) const MAMBA2: Architecture = Architecture::of_both(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::All)),
        rotated: Rotated::Never,
        known: KNOWN,
        ..halves("mamba2")
    },
    &[Rules {
        name: "mamba2",
        recurrent: Some(Recurrent::Mamba2(ScanLayers::All)),
        rotated: Rotated::Never,
        output_norm: BACKBONE_NORM,
        renamed: &[("head_dim", "mamba_d_head")],
        known: KNOWN_JSON,
        ..JSON
    }],
    &Dense {
        renamed: &BACKBONE,
        ..Dense::UNSCALED
    },
);

/// Granite 4: attention in the layers that have heads.
pub(super) const GRANITE_HYBRID: Architecture = Architecture {
    gguf: Rules {
        name: "granitehybrid",
        recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutHeads)),
        known: rules::GGUF
            .ignoring("attention.recurrent_layers expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..GRANITE.gguf
    },
    json: &[
        GRANITE_HYBRID_JSON,
        // One network, whose width the setting of the one beside experts states.
        Rules {
            name: GRANITE_WITHOUT_EXPERTS,
            ff: "shared_intermediate_size",
            experts: None,
            known: Known {
                features: &[rules::FEATURES],
                ..KNOWN_JSON.ignoring(GRANITE_NOTES)
            },
            ..GRANITE_HYBRID_JSON
        },
    ],
    layers: &GRANITE_MOE_LAYERS,
};

const GRANITE_NOTES: &str = "attention_bias intermediate_size mamba_chunk_size mamba_conv_bias num_experts_per_tok num_local_experts \
    output_router_logits router_aux_loss_coef";

const GRANITE_HYBRID_JSON: Rules = Rules {
    name: "granitemoehybrid",
    rotated: Rotated::Finetuned,
    recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutHeads)),
    experts: GRANITE_MOE_SHARED_JSON.experts,
    known: Known {
        features: &[rules::FEATURES],
        ..KNOWN_JSON.ignoring(GRANITE_NOTES)
    },
    ..GRANITE_JSON
};

/// Falcon H1: attention and a scan in each layer, whose results are added.
pub(super) const FALCON_H1: Architecture = Architecture::of_both(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::Beside)),
        unused_divisors: true,
        known: KNOWN,
        ..halves("falcon-h1")
    },
    &[Rules {
        name: "falcon_h1",
        kv_heads: Some(8),
        factors: Factors::FalconH1,
        recurrent: Some(Recurrent::Mamba2(ScanLayers::Beside)),
        output_norm: LinearNames::new("output_norm", "model.final_layernorm"),
        known: KNOWN_JSON,
        ..JSON
    }],
    &Dense {
        norms: LayerNorms {
            // Its name has no end.
            network: [
                Some(LinearNames::whole(
                    "blk.*.ffn_norm",
                    "model.layers.*.pre_ff_layernorm.weight",
                )),
                None,
            ],
            ..LayerNorms::BEFORE
        },
        output_bias: Bias::Unused,
        renamed: &[(".mlp.", ".feed_forward.")],
        ..Dense::UNSCALED
    },
);

/// Nemotron H: each layer has a scan, attention without rotary embedding, or a network without a gate.
pub(super) const NEMOTRON_H: Architecture = Architecture::of_gguf_only(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutNetwork)),
        rotated: Rotated::Never,
        known: KNOWN,
        ..halves("nemotron_h")
    },
    &Dense {
        renamed: &[
            BACKBONE[0],
            BACKBONE[1],
            BACKBONE[2],
            BACKBONE[3],
            (".self_attn.", ".mixer."),
            (".mlp.shared_expert.", ".mixer.shared_experts."),
            (".mlp.", ".mixer."),
        ],
        norms: LayerNorms::SAME,
        plain: Some((Activation::ReluSquared, UP_AND_DOWN, MapRule::PLAIN)),
        ..Dense::PLAIN
    },
);

/// With experts without gates in place of the network.
pub(super) const NEMOTRON_H_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "nemotron_h_moe",
        experts: Some(Experts {
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::Always,
            keys: ExpertKeys {
                normalised: true,
                factor: true,
                ..ExpertKeys::NONE
            },
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("attention.recurrent_layers expert_gating_func expert_shared_count"),
        ..NEMOTRON_H.gguf
    },
    json: &[Rules {
        name: "nemotron_h",
        head_dim: Some(128),
        kv_heads: Some(8),
        recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutNetwork)),
        rotated: Rotated::Never,
        output_norm: BACKBONE_NORM,
        experts: Some(Experts {
            count: 8,
            used: Some(2),
            inner: ExpertWidth::Stated(7688),
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::Always,
            keys: ExpertKeys::FACTOR,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: Known {
            features: &[
                rules::FEATURES,
                &[
                    ("a latent vector of experts", "moe_latent_size"),
                    ("layers that predict further tokens", "num_nextn_predict_layers"),
                    ("a sliding window", "sliding_window"),
                ],
            ],
            ..KNOWN_JSON
        },
        ..JSON
    }],
    ..NEMOTRON_H
};

const UP_AND_DOWN: [LinearNames; 2] = [
    LinearNames::new("blk.*.ffn_up", "model.layers.*.mlp.up_proj"),
    LinearNames::new("blk.*.ffn_down", "model.layers.*.mlp.down_proj"),
];
