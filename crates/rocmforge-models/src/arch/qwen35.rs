//! Qwen 3 Next and Qwen 3.5: a gated delta net in three of four layers, and gated attention in the others.

use rocmforge_ggml::RopeStyle;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::halves;
use crate::config::rules::{self, ExpertKeys, Experts, Recurrent, Rules, SharedExpert, SharedWidth};
use crate::layers::{Bias, QueryNorm};

/// Without experts.
pub(super) const QWEN35: Architecture = Architecture::of_gguf_only(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        recurrent: Some(Recurrent::DeltaNet { neighbours: false }),
        predictors: true,
        ..halves("qwen35")
    },
    &LAYERS,
);

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
            keys: ExpertKeys::FACTOR,
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_shared_count expert_weights_norm"),
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
