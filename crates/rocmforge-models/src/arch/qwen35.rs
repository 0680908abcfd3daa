//! Qwen 3 Next and Qwen 3.5: a gated delta net in three of four layers, and gated attention in the others.

use rocmforge_ggml::RopeStyle;

use super::dense::{Dense, LayerNorms};
use super::llama::GGUF;
use super::{Architecture, Compose};
use crate::config::rules::{self, ExpertKeys, Experts, Recurrent, Rules, SharedExpert, SharedWidth};
use crate::keys::Known;
use crate::layers::{Bias, QueryNorm};

/// Without experts.
pub(super) const QWEN35: Architecture = Architecture {
    gguf: Rules {
        name: "qwen35",
        pairs: RopeStyle::HalfSplit,
        sections: Some(RopeStyle::HalfSplit),
        recurrent: Some(Recurrent::DeltaNet { neighbours: false }),
        predictors: true,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&LAYERS),
};

const LAYERS: Dense = Dense {
    norms: LayerNorms::BEFORE_RENAMED,
    query_norm: Some(QueryNorm::Heads),
    gated: true,
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
                "expert_shared_count expert_weights_norm",
            ],
            ..rules::GGUF
        },
        ..QWEN35.gguf
    },
    ..QWEN35
};

/// The value heads of a key head are neighbours.
pub(super) const QWEN3NEXT: Architecture = Architecture {
    gguf: Rules {
        name: "qwen3next",
        recurrent: Some(Recurrent::DeltaNet { neighbours: true }),
        ..QWEN35MOE.gguf
    },
    ..QWEN35
};
