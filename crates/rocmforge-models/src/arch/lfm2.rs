//! LFM 2: short convolutions in most layers, attention in the others.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::Dense;
use super::llama::halves;
use crate::config::Presence;
use crate::config::rules::{self, ExpertKeys, Experts, Recurrent, Rules, Window};
use crate::layers::{Bias, QueryNorm};
use crate::weights::LinearNames;

/// Without experts. Layers with attention may have a window.
pub(super) const LFM2: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::Every { window: None },
        recurrent: Some(Recurrent::ShortConv),
        // The file calls it a norm of embeddings.
        output_norm: LinearNames::new("token_embd_norm", ""),
        // Which layers are recurrent follows from their heads.
        known: rules::GGUF.ignoring("attention.recurrent_layers leading_dense_block_count"),
        ..halves("lfm2")
    },
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    },
);

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
    ..LFM2
};
