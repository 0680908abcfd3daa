//! Gemma 3, text only.

use rocmforge_ggml::{GluKind, RopeStyle};

use super::llama::{self, Dense, GGUF, JSON};
use super::{Architecture, Compose};
use crate::config::OutputMatrix;
use crate::config::rules::{self, Rules, Softcaps, Window};
use crate::keys::Known;
use crate::layers::NetworkRule;
use crate::step::NormOffset;

/// Llama with GELU, norms of query and key and after both branches, scaled embeddings, and a window on all but every sixth layer.
pub(super) const GEMMA3: Architecture = Architecture {
    gguf: Rules {
        name: "gemma3",
        pairs: RopeStyle::HalfSplit,
        window: Window::Pattern {
            window: None,
            period: 6,
        },
        window_theta: Some(10_000.0),
        wide_scale_layers: Some(62),
        softcaps: Softcaps {
            attention: false,
            logits: true,
        },
        known: Known {
            ignored: &[rules::GGUF_IGNORED],
            features: &[rules::GGUF_FEATURES, rules::GGUF_EXPERTS, rules::GGUF_SHARED_EXPERT],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[Rules {
        name: "gemma3_text",
        head_dim: Some(256),
        kv_heads: Some(4),
        theta: 1_000_000.0,
        window_theta: Some(10_000.0),
        output: OutputMatrix::Embedding,
        score_divisor: Some(256.0),
        softcaps: Softcaps {
            attention: true,
            logits: true,
        },
        window: Window::Pattern {
            window: Some(4096),
            period: 6,
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
    compose: Compose::Decoder(|t, c, context| {
        let dense = Dense {
            network: NetworkRule {
                glu: GluKind::Geglu,
                ..llama::UNSCALED
            },
            qk_norm: true,
            post_norms: true,
            scaled_embedding: true,
            norm_offset: NormOffset::One,
            ..Dense::PLAIN
        };
        llama::decoder(t, c, context, &dense)
    }),
};
