//! Dense relatives of Llama that differ in a few lines.

use rocmforge_ggml::{RopeStyle, Unary};

use super::dense::{Dense, LayerNorms, Parallel};
use super::llama::{GGUF, LLAMA};
use super::{Architecture, Compose};
use crate::config::rules::{self, Factors, NormKind, Rotated, Rules, Window, WindowRope};
use crate::keys::Known;
use crate::layers::{Bias, NetworkRule, QueryNorm};
use crate::weights::LinearNames;

/// Mistral Small 3 and Ministral 3: Llama, whose queries may grow with the position, which is refused here.
pub(super) const MISTRAL3: Architecture = Architecture {
    gguf: Rules {
        name: "mistral3",
        ..LLAMA.gguf
    },
    json: &[],
    ..LLAMA
};

/// Every fourth layer has no rotary embedding.
pub(super) const SMOLLM3: Architecture = Architecture {
    gguf: Rules {
        name: "smollm3",
        pairs: RopeStyle::Interleaved,
        rotated: Rotated::AllBut(4),
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense::UNSCALED),
};

/// Ernie 4.5 without experts.
pub(super) const ERNIE4_5: Architecture = Architecture {
    gguf: Rules {
        name: "ernie4_5",
        pairs: RopeStyle::Interleaved,
        sections: Some(RopeStyle::Interleaved),
        known: Known {
            // The file may state experts, and no layer has them.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "expert_count expert_used_count",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        // llama.cpp loads it, and does not add it.
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    }),
};

/// Hunyuan without experts: heads of query and key are normalised after rotary embedding.
pub(super) const HUNYUAN: Architecture = Architecture {
    gguf: Rules {
        name: "hunyuan-dense",
        pairs: RopeStyle::HalfSplit,
        sections: Some(RopeStyle::HalfSplit),
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        query_norm: Some(QueryNorm::RotatedHeads),
        ..Dense::UNSCALED
    }),
};

/// Seed-OSS.
pub(super) const SEED_OSS: Architecture = Architecture {
    gguf: Rules {
        name: "seed_oss",
        pairs: RopeStyle::HalfSplit,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norms: LayerNorms::BEFORE_RENAMED,
        ..Dense::UNSCALED
    }),
};

/// OLMo 2 and 3: norms after each branch and over whole queries and keys. OLMo 3 has windows, in which the rule for long contexts does not hold.
pub(super) const OLMO2: Architecture = Architecture {
    gguf: Rules {
        name: "olmo2",
        pairs: RopeStyle::HalfSplit,
        window: Window::Pattern {
            window: None,
            period: 4,
            of: None,
        },
        window_rope: WindowRope::Unscaled,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Whole),
        ..Dense::UNSCALED
    }),
};

/// EXAONE 4: norms after each branch and of heads. That of 64 layers has windows, and rotary embedding only where a layer has one.
pub(super) const EXAONE4: Architecture = Architecture {
    gguf: Rules {
        name: "exaone4",
        pairs: RopeStyle::HalfSplit,
        window: Window::Pattern {
            window: Some(4096),
            period: 4,
            of: Some(64),
        },
        rotated: Rotated::WindowedIfAny,
        known: Known {
            // The file of a model of other sizes may state a window.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "attention.sliding_window",
            ],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Heads),
        ..Dense::UNSCALED
    }),
};

/// GLM 4 without experts: norms around each branch, and gate and up projection in one matrix.
pub(super) const GLM4: Architecture = Architecture {
    gguf: Rules {
        name: "glm4",
        pairs: RopeStyle::Interleaved,
        sections: Some(RopeStyle::HalfSplit),
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norms: LayerNorms::AROUND,
        ..Dense::UNSCALED
    }),
};

/// Command R7B and Command A: layer normalisation, both branches side by side, and rotary embedding only where a layer has a window.
pub(super) const COHERE2: Architecture = Architecture {
    gguf: Rules {
        name: "cohere2",
        pairs: RopeStyle::Interleaved,
        norm: NormKind::Layer,
        factors: Factors::Logits,
        window: Window::Pattern {
            window: None,
            period: 4,
            of: None,
        },
        rotated: Rotated::Windowed,
        known: LAYER_NORMS,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norms: LayerNorms::FIRST,
        parallel: Parallel::Always,
        ..Dense::PLAIN
    }),
};

/// StarCoder 2: layer normalisation, and networks without a gate.
pub(super) const STARCODER2: Architecture = Architecture {
    gguf: Rules {
        name: "starcoder2",
        pairs: RopeStyle::HalfSplit,
        norm: NormKind::Layer,
        known: LAYER_NORMS,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        plain: Some((
            Unary::Gelu,
            [
                LinearNames::new("blk.*.ffn_up", "model.layers.*.mlp.c_fc"),
                LinearNames::new("blk.*.ffn_down", "model.layers.*.mlp.c_proj"),
            ],
        )),
        qkv_bias: true,
        output_bias: Bias::Needed,
        norm_bias: true,
        ..Dense::PLAIN
    }),
};

/// StableLM 2: layer normalisation; that of 12B has norms of heads, and both branches side by side.
pub(super) const STABLELM: Architecture = Architecture {
    gguf: Rules {
        name: "stablelm",
        pairs: RopeStyle::HalfSplit,
        norm: NormKind::Layer,
        known: LAYER_NORMS,
        ..GGUF
    },
    json: &[],
    compose: Compose::Dense(&Dense {
        norm_bias: true,
        query_norm: Some(QueryNorm::OwnOfHeads),
        parallel: Parallel::WithoutNorm,
        network: NetworkRule {
            scaled: false,
            ..Dense::PLAIN.network
        },
        ..Dense::PLAIN
    }),
};

/// Keys of a GGUF whose norms are layer normalisation.
const LAYER_NORMS: Known = Known {
    ignored: &[rules::GGUF_IGNORED, rules::GGUF_WINDOW_LAYERS, rules::GGUF_RMS],
    ..rules::GGUF
};
