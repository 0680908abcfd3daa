//! Gemma 2, 3, 3n and 4, and EmbeddingGemma: text only.

use rocmforge_ggml::{GluKind, Unary};

use super::architecture::Architecture;
use super::bert;
use super::dense::{Dense, LayerNorms, Mixture};
use super::find::BIDIRECTIONAL;
use super::llama::{JSON, halves};
use crate::config::rules::{
    self, Experts, Positions, Rules, SharedCaches, Softcaps, Streams, TextRules, Window, WindowRope,
};
use crate::config::{OutputMatrix, PoolingMode, Presence};
use crate::keys::Known;
use crate::layers::{ExpertsNames, GatedUnit, NetworkRule, QueryNorm};
use crate::step::NormOffset;

/// Llama with GELU, norms of query and key and after both branches, scaled embeddings, and a window on all but every sixth layer.
pub(super) const GEMMA3: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(6, None),
        window_rope: WindowRope::Own(10_000.0),
        wide_scale_layers: Some(62),
        softcaps: Softcaps::LOGITS,
        known: Known {
            ignored: &[rules::GGUF_IGNORED],
            ..rules::GGUF
        },
        ..halves("gemma3")
    },
    &[Rules {
        name: "gemma3_text",
        head_dim: Some(256),
        kv_heads: Some(4),
        theta: 1_000_000.0,
        window_rope: WindowRope::Own(10_000.0),
        output: OutputMatrix::Embedding,
        score_divisor: Some(256.0),
        softcaps: Softcaps::BOTH,
        window: Window::pattern(6, Some(4096)),
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
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        ..GEMMA
    },
);

/// Gemma 3 whose tokens see all others, or those of a window around them.
pub(super) const GEMMA_EMBEDDING: Architecture = Architecture::of_both(
    Rules {
        name: "gemma-embedding",
        wide_scale_layers: None,
        softcaps: Softcaps::NONE,
        texts: Some(TEXTS),
        known: bert::KNOWN_GGUF,
        ..GEMMA3.gguf
    },
    &[BIDIRECTIONAL_JSON],
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        renamed: &[("model.", "")],
        ..GEMMA
    },
);

const BIDIRECTIONAL_JSON: Rules = Rules {
    name: BIDIRECTIONAL,
    softcaps: Softcaps::NONE,
    texts: Some(TEXTS),
    known: Known {
        fixed: &[rules::DECODERS, &[("use_bidirectional_attention", "true")]],
        features: &[
            rules::FEATURES,
            rules::NO_EXPERTS,
            &[("a bound of scores", "attn_logit_softcapping")],
        ],
        ..rules::JSON.ignoring("final_logit_softcapping")
    },
    ..GEMMA3.json[0]
};

const TEXTS: TextRules = TextRules {
    types: None,
    positions: Positions::None,
    embedding_norm: false,
    alibi: 0.0,
    activation: Unary::Gelu,
    classifies: Some(PoolingMode::Cls),
    eps: None,
};

/// Bounds of scores, and a window in every second layer.
pub(super) const GEMMA2: Architecture = Architecture::of_both(
    Rules {
        name: "gemma2",
        window: Window::pattern(2, Some(4096)),
        window_rope: WindowRope::Base,
        wide_scale_layers: Some(46),
        softcaps: Softcaps::BOTH,
        ..GEMMA3.gguf
    },
    &[GEMMA2_JSON],
    &GEMMA,
);

const GEMMA2_JSON: Rules = Rules {
    name: "gemma2",
    theta: 10_000.0,
    window: Window::pattern(2, Some(4096)),
    window_rope: WindowRope::Same,
    softcaps: Softcaps {
        absent: [Some(50.0), Some(30.0)],
        ..Softcaps::BOTH
    },
    ..GEMMA3.json[0]
};

/// Heads of two lengths, values with a norm, layers that read the keys and values of earlier ones, an input of each layer beside the residual stream, and
/// experts beside the network.
pub(super) const GEMMA4: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(6, None),
        window_rope: WindowRope::Own(10_000.0),
        // Norms of queries and keys stand for the factor.
        score_factor: Some(1.0),
        softcaps: Softcaps::LOGITS,
        shared_caches: SharedCaches::Stated(0),
        layer_inputs: Some(0),
        experts: Some(Experts::GGUF),
        known: Known {
            ignored: &[rules::GGUF_IGNORED],
            ..rules::GGUF
        },
        ..halves("gemma4")
    },
    &[GEMMA4_JSON],
    &Dense {
        experts: ExpertsNames::WITH_FACTORS,
        renamed: &[(".mlp.gate.", ".router.proj."), (".mlp.experts.", ".experts.")],
        norm_offset: NormOffset::None,
        network: NetworkRule {
            scaled: true,
            ..GEMMA.network
        },
        query_norm: Some(QueryNorm::Heads),
        mixture: Mixture::Beside,
        value_norm: true,
        values_of_keys: true,
        end_factor: Presence::IfThere,
        ..GEMMA
    },
);

/// Several residual streams, of which a layer computes with the first; a map of low rank beside attention, gates that are mostly zero in the first layers, an
/// input of each layer, values with a norm, and layers that read the keys and values of earlier ones.
pub(super) const GEMMA3N: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(5, None),
        window_rope: WindowRope::Own(10_000.0),
        score_factor: Some(1.0),
        softcaps: STREAMS_BOUND,
        shared_caches: SharedCaches::AllBut(20),
        layer_inputs: Some(256),
        streams: Some(Streams { dense: 0, sample: true }),
        known: Known {
            ignored: &[rules::GGUF_IGNORED],
            fixed: &[rules::GGUF_FIXED, &[("altup.active_idx", "0")]],
            ..rules::GGUF
        },
        ..halves("gemma3n")
    },
    &[STREAMS_JSON],
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        value_norm: true,
        norm_offset: NormOffset::None,
        ..GEMMA
    },
);

const STREAMS_JSON: Rules = Rules {
    name: "gemma3n_text",
    head_dim: Some(256),
    kv_heads: Some(2),
    window: Window::pattern(5, Some(512)),
    score_divisor: None,
    score_factor: Some(1.0),
    softcaps: STREAMS_BOUND,
    shared_caches: SharedCaches::Stated(15),
    layer_inputs: Some(256),
    streams: Some(Streams {
        dense: 10,
        sample: false,
    }),
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_act", "gelu_pytorch_tanh"),
                ("hidden_activation", "gelu_pytorch_tanh"),
                ("altup_active_idx", "0"),
                ("altup_correct_scale", "true"),
            ],
        ],
        // The norms of queries and keys stand for the first; the others are for training.
        ..rules::JSON.ignoring("query_pre_attn_scalar altup_coef_clip altup_lr_multiplier")
    },
    ..GEMMA3.json[0]
};

const STREAMS_BOUND: Softcaps = Softcaps {
    absent: [None, Some(30.0)],
    ..Softcaps::LOGITS
};

const GEMMA4_JSON: Rules = Rules {
    name: "gemma4_text",
    head_dim: Some(256),
    global_head_dim: Some(512),
    kv_heads: Some(4),
    theta: 1_000_000.0,
    window: Window::pattern(6, Some(512)),
    window_rope: WindowRope::Own(10_000.0),
    score_divisor: Some(1.0),
    softcaps: Softcaps::LOGITS,
    shared_caches: SharedCaches::Stated(0),
    layer_inputs: Some(256),
    experts: Some(Experts::GGUF),
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_activation", "gelu_pytorch_tanh"),
                // Of a model with images, whose tokens see each other.
                ("use_bidirectional_attention", "vision false"),
            ],
        ],
        features: &[rules::FEATURES],
        // Which layers have experts the router says.
        ..rules::JSON.ignoring("enable_moe_block")
    },
    ..GEMMA3.json[0]
};

/// Llama with GELU, norms around both branches, and scaled embeddings.
const GEMMA: Dense = Dense {
    network: NetworkRule {
        unit: GatedUnit::Plain(GluKind::Geglu),
        scaled: false,
        biased: false,
        sparsity: None,
        gate_factor: None,
    },
    norms: LayerNorms::AROUND,
    scaled_embedding: true,
    norm_offset: NormOffset::One,
    ..Dense::PLAIN
};
