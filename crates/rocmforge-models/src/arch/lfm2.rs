//! LFM 2: short convolutions in most layers, attention in the others.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::{JSON, halves};
use crate::config::rules::{self, ExpertKeys, ExpertWidth, Experts, Recurrent, Rules, Window};
use crate::config::{OutputMatrix, Presence};
use crate::keys::Known;
use crate::layers::{Bias, QueryNorm};
use crate::weights::LinearNames;

/// Without experts. Layers with attention may have a window.
pub(super) const LFM2: Architecture = Architecture::of_both(
    Rules {
        window: Window::Every { window: None },
        recurrent: Some(Recurrent::ShortConv),
        // The file calls it a norm of embeddings.
        output_norm: OUTPUT_NORM,
        // Which layers are recurrent follows from their heads.
        known: rules::GGUF.ignoring("attention.recurrent_layers leading_dense_block_count"),
        ..halves("lfm2")
    },
    &[LFM2_JSON],
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        output_bias: Bias::Unused,
        renamed: &[
            (".mlp.", ".feed_forward."),
            (".gate_proj", ".w1"),
            (".up_proj", ".w3"),
            (".down_proj.", ".w2."),
            (".gate.e_score_correction_bias", ".expert_bias"),
            (".input_layernorm.", ".operator_norm."),
            (".post_attention_layernorm.", ".ffn_norm."),
            (".self_attn.q_norm.", ".self_attn.q_layernorm."),
            (".self_attn.k_norm.", ".self_attn.k_layernorm."),
            (".self_attn.o_proj.", ".self_attn.out_proj."),
        ],
        ..Dense::UNSCALED
    },
);

const OUTPUT_NORM: LinearNames = LinearNames::new("token_embd_norm", "model.embedding_norm");

const LFM2_JSON: Rules = Rules {
    name: "lfm2",
    kv_heads: Some(8),
    theta: 1_000_000.0,
    output: OutputMatrix::Embedding,
    recurrent: Some(Recurrent::ShortConv),
    output_norm: OUTPUT_NORM,
    ff: "block_ff_dim intermediate_size",
    adjusted_ff: true,
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("block_use_swiglu", "true"),
                ("conv_bias", "false"),
                ("use_pos_enc", "true"),
            ],
        ],
        ..rules::JSON.ignoring(
            "block_dim block_mlp_init_scale block_norm_eps block_out_init_scale block_use_xavier_init conv_dim conv_dim_out \
             conv_use_xavier_init num_heads",
        )
    },
    ..JSON
};

/// With experts behind the first layers.
pub(super) const LFM2MOE: Architecture = Architecture {
    gguf: Rules {
        name: "lfm2moe",
        window: Window::Never,
        experts: Some(Experts {
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::Always,
            keys: ExpertKeys {
                gate: true,
                factor: true,
                first_dense: true,
                ..ExpertKeys::NONE
            },
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("attention.recurrent_layers expert_weights_norm"),
        ..LFM2.gguf
    },
    json: &[Rules {
        name: "lfm2_moe",
        adjusted_ff: false,
        experts: Some(Experts {
            count: 32,
            used: Some(4),
            inner: ExpertWidth::Stated(1792),
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::IfThere,
            keys: ExpertKeys {
                factor: true,
                first_dense: true,
                ..ExpertKeys::NONE
            },
            first_dense: 2,
            ..Experts::GGUF
        }),
        known: Known {
            features: &[rules::FEATURES],
            // The bias of the choice is there or not.
            ..LFM2_JSON.known.ignoring("output_router_logits use_expert_bias")
        },
        ..LFM2_JSON
    }],
    ..LFM2
};
