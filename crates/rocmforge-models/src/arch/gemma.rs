//! Gemma 3, text only.

use rocmforge_ggml::{GluKind, RopeStyle};

use super::llama::{self, Dense, LLAMA_JSON};
use super::{Architecture, WindowRule};
use crate::config::{JsonRules, JsonWindow, gguf_keys, json_rules};
use crate::settings::Known;
use crate::step::NormOffset;

/// Llama with GELU, norms of query and key and after both branches, scaled embeddings, and a window on all but every sixth layer.
pub(super) const GEMMA3: Architecture = Architecture {
    name: "gemma3",
    gguf_rope: RopeStyle::HalfSplit,
    window: WindowRule::AllButEvery { period: 6 },
    window_rope_base: Some(10_000.0),
    wide_scale_layers: Some(62),
    gguf: gguf_keys::WITH_WINDOW,
    json: &[GEMMA3_JSON],
    compose: |t, c, context| {
        let dense = Dense {
            glu: GluKind::Geglu,
            qk_norm: true,
            post_norms: true,
            scaled_embedding: true,
            norm_offset: NormOffset::One,
            ..Dense::PLAIN
        };
        llama::decoder(t, c, context, &dense)
    },
};

const GEMMA3_JSON: JsonRules = JsonRules {
    model_type: "gemma3_text",
    head_dim: Some(256),
    kv_heads: Some(4),
    theta: 1_000_000.0,
    window_theta: Some(10_000.0),
    tied: true,
    score_divisor: Some(256.0),
    window: JsonWindow::Pattern {
        window: 4096,
        period: 6,
    },
    known: Known {
        fixed: &[json_rules::DECODERS, json_rules::GELU_TANH],
        ..json_rules::WINDOW_READ
    },
    ..LLAMA_JSON
};
