//! Dense relatives of Llama that differ in a few lines.

use rocmforge_ggml::{RopeStyle, Unary};

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms, Parallel};
use super::llama::{JSON, LLAMA, MISTRAL, halves, neighbours};
use crate::config::rules::{self, Factors, Growth, Rotated, Rules, Window, WindowRope};
use crate::config::{NormKind, OutputMatrix};
use crate::keys::Known;
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
pub(super) const SMOLLM3: Architecture = Architecture::of_both(
    Rules {
        rotated: Rotated::AllBut(4),
        ..neighbours("smollm3")
    },
    &[Rules {
        name: "smollm3",
        kv_heads: Some(4),
        theta: 2_000_000.0,
        rotated: Rotated::AllBut(4),
        output: OutputMatrix::Embedding,
        known: Known {
            features: &[rules::FEATURES, rules::NO_EXPERTS, rules::NO_UPPER_WINDOW],
            // Without `use_sliding_window` no layer has the window. In how many parts the training computed products changes no definition: the published file states 2.
            ..rules::JSON.ignoring("attention_bias mlp_bias pretraining_tp sliding_window max_window_layers")
        },
        ..JSON
    }],
    &Dense::UNSCALED,
);

/// Ernie 4.5 without experts. The file may state experts, and no layer has them; llama.cpp loads the bias of the output, and does not add it.
pub(super) const ERNIE4_5: Architecture = Architecture::of_both(
    Rules {
        sections: Some(RopeStyle::Interleaved),
        known: rules::GGUF.ignoring("expert_count expert_used_count"),
        ..neighbours("ernie4_5")
    },
    &[ERNIE4_5_JSON],
    &Dense {
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    },
);

pub(super) const ERNIE4_5_JSON: Rules = Rules {
    name: "ernie4_5",
    pairs: RopeStyle::Interleaved,
    head_dim: Some(128),
    kv_heads: Some(2),
    theta: 500_000.0,
    output: OutputMatrix::Embedding,
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[("hidden_act", "silu"), ("use_bias", "false"), ("use_rmsnorm", "true")],
        ],
        ..rules::JSON
    },
    ..JSON
};

/// Hunyuan without experts: heads of query and key are normalised after rotary embedding.
pub(super) const HUNYUAN: Architecture = Architecture::of_both(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        ..halves("hunyuan-dense")
    },
    &[HUNYUAN_JSON],
    &HUNYUAN_LAYERS,
);

pub(super) const HUNYUAN_LAYERS: Dense = Dense {
    query_norm: Some(QueryNorm::RotatedHeads),
    renamed: &HUNYUAN_NORMS,
    ..Dense::UNSCALED
};

pub(super) const HUNYUAN_NORMS: [(&str, &str); 2] = [
    (".self_attn.q_norm.", ".self_attn.query_layernorm."),
    (".self_attn.k_norm.", ".self_attn.key_layernorm."),
];

pub(super) const HUNYUAN_JSON: Rules = Rules {
    name: "hunyuan_v1_dense",
    alpha: true,
    known: Known {
        fixed: &[
            rules::DECODERS,
            &[
                ("hidden_act", "silu"),
                ("norm_type", "rms"),
                ("num_experts", "1"),
                ("use_cla", "false"),
                ("use_qk_norm", "true"),
                ("use_rotary_pos_emb", "true"),
            ],
        ],
        features: &[rules::FEATURES],
        ..rules::JSON.ignoring(HUNYUAN_NOTES)
    },
    ..JSON
};

/// Notes of Hunyuan's training: ids of tokens, parts for other tasks, and settings of features that are off.
pub(super) const HUNYUAN_NOTES: &str = "add_classification_head attention_bias cla_share_factor class_num dense_list \
    enable_lm_head_fp32 eod_token_id im_end_id im_newline_id im_start_id mask_init_id org_vocab_size pad_id pool_type text_end_id text_start_id";

/// Seed-OSS.
pub(super) const SEED_OSS: Architecture = Architecture::of_both(
    halves("seed_oss"),
    &[Rules {
        name: "seed_oss",
        head_dim: Some(128),
        kv_heads: Some(8),
        known: rules::JSON.ignoring("attention_bias attention_out_bias mlp_bias residual_dropout"),
        ..JSON
    }],
    &Dense {
        norms: LayerNorms::BEFORE_RENAMED,
        ..Dense::UNSCALED
    },
);

/// OLMo 2 and 3: norms after each branch and over whole queries and keys. OLMo 3 has windows, in which the rule for long contexts does not hold.
pub(super) const OLMO2: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(4, None),
        window_rope: WindowRope::Unscaled,
        ..halves("olmo2")
    },
    &[
        Rules {
            name: "olmo2",
            known: rules::JSON.ignoring("attention_bias"),
            ..JSON
        },
        Rules {
            name: "olmo3",
            theta: 500_000.0,
            window: Window::pattern(4, Some(4096)),
            window_rope: WindowRope::Unscaled,
            known: rules::JSON.ignoring("attention_bias"),
            ..JSON
        },
    ],
    &Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Whole),
        ..Dense::UNSCALED
    },
);

/// EXAONE 4: norms after each branch and of heads. That of 64 layers has windows, and rotary embedding only where a layer has one. The file of a model of
/// other sizes may state a window.
pub(super) const EXAONE4: Architecture = Architecture::of_both(
    Rules {
        window: Window::pattern(4, Some(4096)).in_models_of(64),
        rotated: Rotated::WindowedIfAny,
        known: rules::GGUF.ignoring("attention.sliding_window"),
        ..halves("exaone4")
    },
    &[Rules {
        name: "exaone4",
        kv_heads: Some(32),
        window: Window::pattern(4, Some(4096)),
        rotated: Rotated::WindowedIfAny,
        known: rules::JSON,
        ..JSON
    }],
    &Dense {
        norms: LayerNorms::AFTER,
        query_norm: Some(QueryNorm::Heads),
        ..Dense::UNSCALED
    },
);

/// GLM 4 without experts: norms around each branch, and gate and up projection in one matrix.
pub(super) const GLM4: Architecture = Architecture::of_both(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        ..neighbours("glm4")
    },
    &[Rules {
        name: "glm4",
        pairs: RopeStyle::Interleaved,
        head_dim: Some(128),
        kv_heads: Some(2),
        partial_rotary: 0.5,
        known: rules::JSON.ignoring("attention_bias"),
        ..JSON
    }],
    &Dense {
        norms: LayerNorms::AROUND,
        renamed: &[
            (".post_attention_layernorm.", ".post_self_attn_layernorm."),
            (".pre_feedforward_layernorm.", ".post_attention_layernorm."),
            (".post_feedforward_layernorm.", ".post_mlp_layernorm."),
        ],
        ..Dense::UNSCALED
    },
);

/// Command R7B and Command A: layer normalisation, both branches side by side, and rotary embedding only where a layer has a window.
pub(super) const COHERE2: Architecture = Architecture::of_both(
    Rules {
        factors: Factors::Logits,
        window: Window::pattern(4, None),
        rotated: Rotated::Windowed,
        ..layer_norms(neighbours("cohere2"))
    },
    &[Rules {
        name: "cohere2",
        pairs: RopeStyle::Interleaved,
        norm: NormKind::Layer,
        factors: Factors::Logits,
        output: OutputMatrix::Embedding,
        window: Window::pattern(4, Some(4096)),
        rotated: Rotated::Windowed,
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[
                    ("hidden_act", "silu"),
                    ("layer_switch", "4"),
                    ("order_of_interleaved_layers", "local_attn_first"),
                    ("position_embedding_type", "rope_gptj"),
                    ("rotary_pct", "1"),
                    ("use_embedding_sharing", "true"),
                    ("use_gated_activation", "true"),
                    ("use_parallel_block", "true"),
                    ("use_qk_norm", "false"),
                ],
            ],
            ..rules::JSON.ignoring("attention_bias use_parallel_embedding")
        },
        ..JSON
    }],
    &Dense {
        norms: LayerNorms::FIRST,
        parallel: Parallel::Always,
        ..Dense::PLAIN
    },
);

/// StarCoder 2: layer normalisation, and networks without a gate.
pub(super) const STARCODER2: Architecture = Architecture::of_both(
    layer_norms(halves("starcoder2")),
    &[Rules {
        name: "starcoder2",
        kv_heads: Some(2),
        norm: NormKind::Layer,
        output: OutputMatrix::Embedding,
        window: Window::Every { window: None },
        known: Known {
            fixed: &[
                rules::DECODERS,
                &[
                    ("hidden_act", "gelu_pytorch_tanh"),
                    ("mlp_type", "default"),
                    ("norm_type", "layer_norm"),
                    ("scale_attn_weights", "true"),
                    ("use_bias", "true"),
                ],
            ],
            ..rules::JSON.ignoring(
                "attention_softmax_in_fp32 embedding_dropout residual_dropout scale_attention_softmax_in_fp32",
            )
        },
        ..JSON
    }],
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
pub(super) const STABLELM: Architecture = Architecture::of_both(
    layer_norms(halves("stablelm")),
    &[Rules {
        name: "stablelm",
        norm: NormKind::Layer,
        partial_rotary: 0.25,
        // The tensors say the same.
        known: rules::JSON.ignoring("qk_layernorm use_parallel_residual use_qkv_bias"),
        ..JSON
    }],
    &Dense {
        renamed: &[
            (".self_attn.q_norm.", ".self_attn.q_layernorm.norms.@."),
            (".self_attn.k_norm.", ".self_attn.k_layernorm.norms.@."),
        ],
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
