//! Qwen 3 Next and Qwen 3.5: a gated delta net in three of four layers, and gated attention in the others.

use rocmforge_ggml::RopeStyle;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::{JSON, halves};
use crate::config::rules::{self, ExpertKeys, ExpertWidth, Experts, Recurrent, Rules, SharedExpert, SharedWidth};
use crate::keys::Known;
use crate::layers::{Bias, QueryNorm};
use crate::step::NormOffset;

/// Without experts.
pub(super) const QWEN35: Architecture = Architecture::of_both(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        recurrent: Some(Recurrent::DeltaNet { neighbours: false }),
        predictors: true,
        ..halves("qwen35")
    },
    &[QWEN35_JSON],
    &LAYERS,
);

/// In a checkpoint the value heads of one key head are neighbours.
const QWEN35_JSON: Rules = Rules {
    name: "qwen3_5_text",
    head_dim: Some(256),
    kv_heads: Some(4),
    partial_rotary: 0.25,
    sections: Some(RopeStyle::HalfSplit),
    recurrent: Some(Recurrent::DeltaNet { neighbours: true }),
    known: Known {
        fixed: &[rules::DECODERS, &[("attn_output_gate", "true"), ("hidden_act", "silu")]],
        ..rules::JSON.ignoring(NOTES)
    },
    ..JSON
};

/// Layers that predict further tokens are not used; the types of states do not depend on the file. Without experts no list says which layers have none.
const NOTES: &str = "mamba_ssm_dtype mlp_only_layers mtp_num_hidden_layers mtp_use_dedicated_embeddings output_router_logits \
    router_aux_loss_coef";

const LAYERS: Dense = Dense {
    norms: LayerNorms::BEFORE_RENAMED,
    query_norm: Some(QueryNorm::Heads),
    gated: true,
    norm_offset: NormOffset::One,
    // llama.cpp loads it, and does not add it.
    output_bias: Bias::Unused,
    ..Dense::PLAIN
};

/// With experts, and one that every token is given to.
pub(super) const QWEN35MOE: Architecture = Architecture {
    gguf: Rules {
        name: "qwen35moe",
        experts: Some(Experts {
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNetwork,
                gated: true,
            }),
            keys: ExpertKeys::FACTOR,
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_shared_count expert_weights_norm"),
        ..QWEN35.gguf
    },
    json: &[QWEN35MOE_JSON],
    ..QWEN35
};

const QWEN35MOE_EXPERTS: Experts = Experts {
    count: 256,
    used: Some(8),
    inner: ExpertWidth::Stated(512),
    shared: Some(SharedExpert {
        inner: SharedWidth::Stated(512),
        gated: true,
    }),
    ..Experts::GGUF
};

const QWEN35MOE_JSON: Rules = Rules {
    name: "qwen3_5_moe_text",
    kv_heads: Some(2),
    experts: Some(QWEN35MOE_EXPERTS),
    known: Known {
        features: &[rules::FEATURES],
        ..QWEN35_JSON.known
    },
    ..QWEN35_JSON
};

/// The value heads of a key head are neighbours.
pub(super) const QWEN3NEXT: Architecture = Architecture {
    gguf: Rules {
        name: "qwen3next",
        recurrent: Some(Recurrent::DeltaNet { neighbours: true }),
        ..QWEN35MOE.gguf
    },
    json: &[Rules {
        name: "qwen3_next",
        experts: Some(Experts {
            count: 512,
            used: Some(10),
            ..QWEN35MOE_EXPERTS
        }),
        ..QWEN35MOE_JSON
    }],
    ..QWEN35
};
