//! Gemma 3, text only.

use rocmforge_ggml::{GluKind, RopeStyle};

use super::dense::{Dense, LayerNorms};
use super::llama::{GGUF, JSON};
use super::{Architecture, Compose};
use crate::config::OutputMatrix;
use crate::config::rules::{self, Rules, Softcaps, Window, WindowRope};
use crate::keys::Known;
use crate::layers::{GatedUnit, NetworkRule, QueryNorm};
use crate::step::NormOffset;

/// Llama with GELU, norms of query and key and after both branches, scaled embeddings, and a window on all but every sixth layer.
pub(super) const GEMMA3: Architecture = Architecture {
    gguf: Rules {
        name: "gemma3",
        pairs: RopeStyle::HalfSplit,
        window: Window::Pattern {
            window: None,
            period: 6,
            of: None,
        },
        window_rope: WindowRope::Own(10_000.0),
        wide_scale_layers: Some(62),
        softcaps: Softcaps {
            attention: false,
            logits: true,
        },
        known: Known {
            ignored: &[rules::GGUF_IGNORED],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[Rules {
        name: "gemma3_text",
        head_dim: Some(256),
        kv_heads: Some(4),
        theta: 1_000_000.0,
        window_rope: WindowRope::Own(10_000.0),
        output: OutputMatrix::Embedding,
        score_divisor: Some(256.0),
        softcaps: Softcaps {
            attention: true,
            logits: true,
        },
        window: Window::Pattern {
            window: Some(4096),
            period: 6,
            of: None,
        },
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[
                    ("hidden_act", "gelu_pytorch_tanh"),
                    ("hidden_activation", "gelu_pytorch_tanh"),
                    ("use_bidirectional_attention", "false"),
                ],
            ],
            ..rules::JSON
        },
        ..JSON
    }],
    compose: Compose::Dense(&Dense {
        query_norm: Some(QueryNorm::Heads),
        ..GEMMA
    }),
};

/// Bounds of scores, and a window in every second layer.
pub(super) const GEMMA2: Architecture = Architecture {
    gguf: Rules {
        name: "gemma2",
        window: Window::Pattern {
            window: Some(4096),
            period: 2,
            of: None,
        },
        window_rope: WindowRope::Base,
        wide_scale_layers: Some(46),
        softcaps: Softcaps {
            attention: true,
            logits: true,
        },
        ..GEMMA3.gguf
    },
    json: &[],
    compose: Compose::Dense(&GEMMA),
};

/// Llama with GELU, norms around both branches, and scaled embeddings.
const GEMMA: Dense = Dense {
    network: NetworkRule {
        unit: GatedUnit::Plain(GluKind::Geglu),
        scaled: false,
        biased: false,
    },
    norms: LayerNorms::AROUND,
    scaled_embedding: true,
    norm_offset: NormOffset::One,
    ..Dense::PLAIN
};
