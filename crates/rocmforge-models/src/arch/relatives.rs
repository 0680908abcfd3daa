//! Dense relatives of Llama that differ in a few lines.

use rocmforge_ggml::{RopeStyle, Unary};

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms, Parallel};
use super::llama::{LLAMA, MISTRAL, halves, neighbours};
use crate::config::NormKind;
use crate::config::rules::{self, Factors, Growth, Rotated, Rules, Window, WindowRope};
use crate::layers::{Activation, Bias, MapRule, QueryNorm};
use crate::weights::LinearNames;

/// Mistral Small 3 and Ministral 3: Llama, whose queries may grow with the position.
pub(super) const MISTRAL3: Architecture = Architecture {
    gguf: Rules {
        name: "mistral3",
        growth: Growth::OfContext,
        // llama.cpp takes the context of the training, the width of the network, and normalises the factors, whatever the file says.
        known: rules::GGUF.ignoring("attention.temperature_length expert_feed_forward_length expert_weights_norm"),
        ..LLAMA.gguf
    },
    json: &[MINISTRAL3],
    ..LLAMA
};

/// The defaults are those of `Ministral3Config`.
const MINISTRAL3: Rules = Rules {
    name: "ministral3",
    head_dim: Some(128),
    theta: 1_000_000.0,
    window: Window::Every { window: None },
    growth: Growth::OfContext,
    ..MISTRAL
};

/// Every fourth layer has no rotary embedding.
pub(super) const SMOLLM3: Architecture = Architecture::of_gguf_only(
    Rules {
        rotated: Rotated::AllBut(4),
        ..neighbours("smollm3")
    },
    &Dense::UNSCALED,
);

/// Ernie 4.5 without experts. The file may state experts, and no layer has them; llama.cpp loads the bias of the output, and does not add it.
pub(super) const ERNIE4_5: Architecture = Architecture::of_gguf_only(
    Rules {
        sections: Some(RopeStyle::Interleaved),
        known: rules::GGUF.ignoring("expert_count expert_used_count"),
        ..neighbours("ernie4_5")
    },
    &Dense {
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    },
);

/// Hunyuan without experts: heads of query and key are normalised after rotary embedding.
pub(super) const HUNYUAN: Architecture = Architecture::of_gguf_only(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        ..halves("hunyuan-dense")
    },
    &Dense {
        query_norm: Some(QueryNorm::RotatedHeads),
        ..Dense::UNSCALED
    },
);

/// Seed-OSS.
pub(super) const SEED_OSS: Architecture = Architecture::of_gguf_only(
    halves("seed_oss"),
    &Dense {
        norms: LayerNorms::BEFORE_RENAMED,
        ..Dense::UNSCALED
    },
);

/// OLMo 2 and 3: norms after each branch and over whole queries and keys. OLMo 3 has windows, in which the rule for long contexts does not hold.
pub(super) const OLMO2: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::pattern(4, None),
        window_rope: WindowRope::Unscaled,
        ..halves("olmo2")
    },
    &Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Whole),
        ..Dense::UNSCALED
    },
);

/// EXAONE 4: norms after each branch and of heads. That of 64 layers has windows, and rotary embedding only where a layer has one. The file of a model of
/// other sizes may state a window.
pub(super) const EXAONE4: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::pattern(4, Some(4096)).in_models_of(64),
        rotated: Rotated::WindowedIfAny,
        known: rules::GGUF.ignoring("attention.sliding_window"),
        ..halves("exaone4")
    },
    &Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Heads),
        ..Dense::UNSCALED
    },
);

/// GLM 4 without experts: norms around each branch, and gate and up projection in one matrix.
pub(super) const GLM4: Architecture = Architecture::of_gguf_only(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        ..neighbours("glm4")
    },
    &Dense {
        norms: LayerNorms::AROUND,
        ..Dense::UNSCALED
    },
);

/// Command R7B and Command A: layer normalisation, both branches side by side, and rotary embedding only where a layer has a window.
pub(super) const COHERE2: Architecture = Architecture::of_gguf_only(
    Rules {
        factors: Factors::Logits,
        window: Window::pattern(4, None),
        rotated: Rotated::Windowed,
        ..layer_norms(neighbours("cohere2"))
    },
    &Dense {
        norms: LayerNorms::FIRST,
        parallel: Parallel::Always,
        ..Dense::PLAIN
    },
);

/// StarCoder 2: layer normalisation, and networks without a gate.
pub(super) const STARCODER2: Architecture = Architecture::of_gguf_only(
    layer_norms(halves("starcoder2")),
    &Dense {
        plain: Some((
            Activation::Unary(Unary::Gelu),
            UP_AND_DOWN,
            MapRule {
                scaled: false,
                ..MapRule::BIASED
            },
        )),
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        norm_bias: true,
        ..Dense::PLAIN
    },
);

const UP_AND_DOWN: [LinearNames; 2] = [
    LinearNames::new("blk.*.ffn_up", "model.layers.*.mlp.c_fc"),
    LinearNames::new("blk.*.ffn_down", "model.layers.*.mlp.c_proj"),
];

/// StableLM 2: layer normalisation; that of 12B has norms of heads, and both branches side by side.
pub(super) const STABLELM: Architecture = Architecture::of_gguf_only(
    layer_norms(halves("stablelm")),
    &Dense {
        norm_bias: true,
        query_norm: Some(QueryNorm::OwnOfHeads),
        parallel: Parallel::WithoutNorm,
        ..Dense::UNSCALED
    },
);

/// Rules of a GGUF whose norms are layer normalisation.
const fn layer_norms(rules: Rules) -> Rules {
    Rules {
        norm: NormKind::Layer,
        known: rules::GGUF.ignoring(rules::GGUF_RMS),
        ..rules
    }
}
