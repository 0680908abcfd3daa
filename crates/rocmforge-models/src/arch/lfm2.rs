//! LFM 2: short convolutions in most layers, attention in the others.

use rocmforge_ggml::RopeStyle;

use super::dense::Dense;
use super::llama::GGUF;
use super::{Architecture, Compose};
use crate::config::rules::{self, ExpertKeys, Experts, Recurrent, Rules, Window};
use crate::config::{ChoiceBias, ExpertGate};
use crate::keys::Known;
use crate::layers::{Bias, QueryNorm};
use crate::weights::LinearNames;

/// Without experts. Layers with attention may have a window.
pub(super) const LFM2: Architecture = Architecture {
    gguf: Rules {
        name: "lfm2",
        pairs: RopeStyle::HalfSplit,
        window: Window::Every { window: None },
        recurrent: Some(Recurrent::ShortConv),
        // The file calls it a norm of embeddings.
        output_norm: LinearNames::new("token_embd_norm", ""),
        known: Known {
            // Which layers are recurrent follows from their heads.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "attention.recurrent_layers leading_dense_block_count",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        query_norm: Some(QueryNorm::Heads),
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    }),
};

/// With experts behind the first layers.
pub(super) const LFM2MOE: Architecture = Architecture {
    gguf: Rules {
        name: "lfm2moe",
        window: Window::Never,
        experts: Some(Experts {
            gate: ExpertGate::Sigmoid,
            choice_bias: ChoiceBias::Always,
            keys: ExpertKeys {
                gate: true,
                factor: true,
                first_dense: true,
                ..ExpertKeys::NONE
            },
            ..Experts::GGUF
        }),
        known: Known {
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "attention.recurrent_layers expert_weights_norm",
            ],
            ..rules::GGUF
        },
        ..LFM2.gguf
    },
    ..LFM2
};
