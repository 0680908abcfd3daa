//! Encoders of whole texts: BERT and its relatives.

use rocmforge_ggml::Unary;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::find::JINA;
use super::llama::{self, halves, neighbours};
use crate::config::rules::{
    DECODERS, ExpertKeys, ExpertWidth, Experts, FEATURES, GGUF_EXPERTS, GGUF_FEATURES, GGUF_IGNORED, GGUF_RMS,
    GGUF_SHARED_EXPERT, GGUF_WINDOW, GGUF_WINDOW_LAYERS, IGNORED, NO_EXPERTS, Positions, Rotated, Rules, TextRules,
    Window, WindowRope,
};
use crate::config::{NormKind, PoolingMode};
use crate::keys::Known;
use crate::layers::{Activation, Bias, MapRule, QueryNorm};
use crate::weights::LinearNames;

/// Tables of positions and of types of tokens, biases everywhere, a network without a gate. RoBERTa is a BERT whose positions begin behind the
/// padding token's.
pub(super) const BERT: Architecture = Architecture::of_both(
    Rules {
        rotated: Rotated::Never,
        texts: Some(TEXTS),
        ..post_norm("bert")
    },
    &[JSON, roberta("xlm-roberta"), roberta("roberta"), roberta("camembert")],
    &Dense {
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        plain: Some((Activation::Unary(Unary::GeluErf), PLAIN, MapRule::BIASED)),
        ..POST_NORM
    },
);

/// BERT with rotary embedding in place of positions, and SwiGLU.
pub(super) const NOMIC_BERT: Architecture = Architecture::of_both(
    Rules {
        texts: Some(NOMIC_TEXTS),
        ..post_norm("nomic-bert")
    },
    &[Rules {
        name: "nomic_bert",
        rotated: Rotated::All,
        texts: Some(NOMIC_TEXTS),
        renamed: &[
            ("n_embd", "hidden_size"),
            ("n_layer", "num_hidden_layers"),
            ("n_head", "num_attention_heads"),
            ("n_inner", "intermediate_size"),
            ("max_trained_positions", "max_position_embeddings"),
            ("rotary_emb_base", "rope_theta"),
        ],
        known: Known {
            ignored: &[
                IGNORED,
                "dense_seq_output fused_bias_fc fused_dropout_add_ln n_positions pad_vocab_size_multiple summary_activation summary_first_dropout \
                 summary_proj_to_labels summary_type summary_use_proj tie_word_embeddings use_flash_attn use_xentropy",
            ],
            fixed: &[&[
                ("causal", "false"),
                ("mlp_fc1_bias", "false"),
                ("mlp_fc2_bias", "false"),
                ("parallel_block", "false"),
                ("parallel_block_tied_norm", "false"),
                ("prenorm", "false"),
                ("qkv_proj_bias", "false"),
                ("reorder_and_upcast_attn", "false"),
                ("rotary_emb_fraction", "1"),
                ("rotary_emb_interleaved", "false"),
                ("scale_attn_by_inverse_layer_idx", "false"),
                ("scale_attn_weights", "true"),
                ("use_rms_norm", "false"),
            ]],
            features: &[
                FEATURES,
                NO_EXPERTS,
                &[
                    ("a base that grows with the context", "rotary_scaling_factor"),
                    ("a decay with the distance", "rotary_emb_scale_base"),
                    ("mixture of experts", "moe_every_n_layers"),
                ],
            ],
            ..Known::NOTHING
        },
        ..JSON
    }],
    &Dense {
        renamed: &[
            ("model.embed_tokens.", "embeddings.word_embeddings."),
            ("embeddings.LayerNorm.", "emb_ln."),
            (".attention.output.LayerNorm.", ".norm1."),
            (".output.LayerNorm.", ".norm2."),
            ("encoder.layer.", "encoder.layers."),
            ("model.layers.", "encoder.layers."),
            (".self_attn.qkv_proj.", ".attn.Wqkv."),
            (".self_attn.o_proj.", ".attn.out_proj."),
            (".mlp.gate_proj.", ".mlp.fc12."),
            (".mlp.up_proj.", ".mlp.fc11."),
            (".mlp.down_proj.", ".mlp.fc2."),
        ],
        ..POST_NORM
    },
);

/// Nomic BERT with experts in every so many layers, GELU without a gate, and biases of all maps but those of experts.
pub(super) const NOMIC_BERT_MOE: Architecture = Architecture::of_gguf_only(
    Rules {
        texts: Some(WITHOUT_POSITIONS),
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            normalised: false,
            keys: ExpertKeys {
                every: true,
                ..ExpertKeys::FACTOR
            },
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network, a softmax, and factors as they are, whatever the file says.
        known: KNOWN_GGUF.ignoring("expert_feed_forward_length expert_gating_func expert_weights_norm"),
        ..post_norm("nomic-bert-moe")
    },
    &Dense {
        plain: Some((Activation::Unary(Unary::GeluErf), PLAIN, MapRule::PLAIN)),
        ..POST_NORM
    },
);

const NOMIC_TEXTS: TextRules = TextRules {
    activation: Unary::Silu,
    ..WITHOUT_POSITIONS
};

/// BERT with ALiBi in place of positions, and GEGLU; the one for code has norms of queries and keys, and one more of each layer.
pub(super) const JINA_BERT_V2: Architecture = Architecture::of_both(
    Rules {
        rotated: Rotated::Never,
        texts: Some(JINA_TEXTS),
        ..post_norm("jina-bert-v2")
    },
    &[Rules {
        name: JINA,
        texts: Some(JINA_TEXTS),
        known: Known {
            fixed: &[&[
                ("add_cross_attention", "false"),
                ("feed_forward_type", "geglu"),
                ("is_decoder", "false"),
                ("is_encoder_decoder", "false"),
                ("position_embedding_type", "alibi"),
            ]],
            ..KNOWN.ignoring("attention_softmax_in_fp32 emb_pooler")
        },
        ..JSON
    }],
    &Dense {
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        query_norm: Some(QueryNorm::WholeIfAny),
        renamed: &[
            ("model.embed_tokens.", "embeddings.word_embeddings."),
            ("model.layers.", "encoder.layer."),
            (".self_attn.q_proj.", ".attention.self.query."),
            (".self_attn.k_proj.", ".attention.self.key."),
            (".self_attn.v_proj.", ".attention.self.value."),
            (".self_attn.o_proj.", ".attention.output.dense."),
            (".attention.output.LayerNorm.", ".attention.@."),
            (".output.LayerNorm.", ".mlp.layernorm."),
            (".attention.@.", ".attention.output.LayerNorm."),
            (".mlp.gate_up_proj.", ".mlp.gated_layers."),
            (".mlp.down_proj.", ".mlp.wo."),
        ],
        ..POST_NORM
    },
);

const JINA_TEXTS: TextRules = TextRules {
    alibi: 8.0,
    ..WITHOUT_POSITIONS
};

/// Norms before branches and without biases, rotary embedding, GEGLU, and a window of two of three layers.
pub(super) const MODERN_BERT: Architecture = Architecture::of_both(
    modern(post_norm("modern-bert")),
    &[Rules {
        known: Known {
            ignored: &[
                IGNORED,
                "classifier_dropout decoder_bias deterministic_flash_attn embedding_dropout initializer_cutoff_factor \
                 mlp_dropout position_embedding_type reference_compile repad_logits_with_grad sparse_pred_ignore_index sparse_prediction \
                 tie_word_embeddings",
            ],
            fixed: &[&[
                ("attention_bias", "false"),
                ("classifier_activation", "gelu"),
                ("classifier_bias", "false"),
                ("mlp_bias", "false"),
                ("norm_bias", "false"),
            ]],
            ..KNOWN
        },
        texts: Some(TextRules {
            classifies: Some(PoolingMode::Cls),
            ..MODERN_TEXTS
        }),
        ..modern(Rules {
            name: "modernbert",
            ..JSON
        })
    }],
    &Dense {
        norms: LayerNorms::BEFORE,
        norm_bias: false,
        bare_first: true,
        renamed: &[
            ("model.embed_tokens.", "embeddings.tok_embeddings."),
            ("embeddings.LayerNorm.", "embeddings.norm."),
            ("model.norm.", "final_norm."),
            ("pooler.dense.", "head.dense."),
            ("pooler.norm.", "head.norm."),
            ("model.layers.", "layers."),
            (".self_attn.qkv_proj.", ".attn.Wqkv."),
            (".self_attn.o_proj.", ".attn.Wo."),
            (".input_layernorm.", ".attn_norm."),
            (".post_attention_layernorm.", ".mlp_norm."),
            (".mlp.gate_up_proj.", ".mlp.Wi."),
            (".mlp.down_proj.", ".mlp.Wo."),
        ],
        ..Dense::UNSCALED
    },
);

/// Llama's layers without a mask: RMS norms before branches, SwiGLU, and neighbours as pairs of rotary embedding.
pub(super) const NEO_BERT: Architecture = Architecture::of_gguf_only(
    Rules {
        output_norm: LinearNames::new("enc.output_norm", ""),
        texts: Some(ROTATED_RMS),
        known: KNOWN_RMS_GGUF,
        ..neighbours("neo-bert")
    },
    &Dense::UNSCALED,
);

/// The same with grouped heads, and halves as pairs.
pub(super) const EUROBERT: Architecture = Architecture::of_both(
    Rules {
        texts: Some(ROTATED_RMS),
        known: KNOWN_RMS_GGUF,
        ..halves("eurobert")
    },
    &[Rules {
        name: "eurobert",
        texts: Some(TextRules {
            // The mean of what a map and GELU make of each state.
            classifies: None,
            ..ROTATED_RMS
        }),
        known: Known {
            fixed: &[DECODERS],
            ..KNOWN
        },
        ..llama::JSON
    }],
    &Dense {
        renamed: &[("model.", "")],
        ..Dense::UNSCALED
    },
);

/// BERT's layers with rotary embedding in place of positions. Its adapters for tasks lie in files of their own, and are not applied.
pub(super) const JINA_BERT_V3: Architecture = Architecture::of_both(
    Rules {
        texts: Some(WITHOUT_POSITIONS),
        ..post_norm("jina-bert-v3")
    },
    &[Rules {
        name: "jina_embeddings_v3",
        rotated: Rotated::All,
        theta: 20_000.0,
        texts: Some(TextRules {
            types: Some(1),
            eps: Some(1e-5),
            ..WITHOUT_POSITIONS
        }),
        ..JSON
    }],
    &Dense {
        qkv: MapRule::BIASED,
        output_bias: Bias::Needed,
        plain: Some((Activation::Unary(Unary::GeluErf), PLAIN, MapRule::BIASED)),
        renamed: &[
            ("model.embed_tokens.", "embeddings.word_embeddings."),
            ("embeddings.LayerNorm.", "emb_ln."),
            ("encoder.layer.", "encoder.layers."),
            ("model.layers.", "encoder.layers."),
            (".attention.output.LayerNorm.", ".norm1."),
            (".output.LayerNorm.", ".norm2."),
            (".self_attn.qkv_proj.", ".mixer.Wqkv."),
            (".self_attn.o_proj.", ".mixer.out_proj."),
            (".intermediate.dense.", ".mlp.fc1."),
            (".output.dense.", ".mlp.fc2."),
        ],
        ..POST_NORM
    },
);

const ROTATED_RMS: TextRules = TextRules {
    types: None,
    embedding_norm: false,
    activation: Unary::Silu,
    eps: None,
    ..WITHOUT_POSITIONS
};

/// What both kinds of ModernBERT's files have.
const fn modern(rules: Rules) -> Rules {
    Rules {
        output_norm: LinearNames::new("output_norm", "model.norm"),
        rotated: Rotated::All,
        theta: 160_000.0,
        window: Window::ButFirst { period: 3 },
        window_rope: WindowRope::Own(10_000.0),
        texts: Some(MODERN_TEXTS),
        ..rules
    }
}

/// llama.cpp's classifiers take the mean where a file says nothing, transformers' the first state.
const MODERN_TEXTS: TextRules = TextRules {
    types: None,
    classifies: Some(PoolingMode::Mean),
    eps: Some(1e-5),
    ..WITHOUT_POSITIONS
};

/// Rules of GGUF files.
const fn post_norm(name: &'static str) -> Rules {
    Rules {
        norm: NormKind::Layer,
        output_norm: LinearNames::NONE,
        known: KNOWN_GGUF,
        ..halves(name)
    }
}

const JSON: Rules = Rules {
    name: "bert",
    norm: NormKind::Layer,
    output_norm: LinearNames::NONE,
    rotated: Rotated::Never,
    texts: Some(TEXTS),
    known: KNOWN,
    ..llama::JSON
};

const fn roberta(name: &'static str) -> Rules {
    Rules {
        name,
        texts: Some(TextRules {
            positions: Positions::AfterPadding,
            ..TEXTS
        }),
        ..JSON
    }
}

const TEXTS: TextRules = TextRules {
    types: Some(2),
    positions: Positions::Table,
    embedding_norm: true,
    alibi: 0.0,
    activation: Unary::GeluErf,
    classifies: Some(PoolingMode::Cls),
    eps: Some(1e-12),
};
const WITHOUT_POSITIONS: TextRules = TextRules {
    positions: Positions::None,
    ..TEXTS
};

/// Names of a network without a gate.
const PLAIN: [LinearNames; 2] = [
    LinearNames::new("blk.*.ffn_up", "encoder.layer.*.intermediate.dense"),
    LinearNames::new("blk.*.ffn_down", "encoder.layer.*.output.dense"),
];

/// Norms of sums, with biases.
const POST_NORM: Dense = Dense {
    norms: LayerNorms {
        attention: [None, None],
        network: [None, None],
        last: [
            Some(LinearNames::new(
                "blk.*.attn_output_norm",
                "encoder.layer.*.attention.output.LayerNorm",
            )),
            Some(LinearNames::new(
                "blk.*.layer_output_norm",
                "encoder.layer.*.output.LayerNorm",
            )),
        ],
    },
    norm_bias: true,
    renamed: &[
        ("model.embed_tokens.", "embeddings.word_embeddings."),
        ("model.layers.", "encoder.layer."),
        (".self_attn.q_proj.", ".attention.self.query."),
        (".self_attn.k_proj.", ".attention.self.key."),
        (".self_attn.v_proj.", ".attention.self.value."),
        (".self_attn.o_proj.", ".attention.output.dense."),
    ],
    ..Dense::UNSCALED
};

/// Keys that nothing reads. How many scores a classifier has, its weights say.
const KNOWN: Known = Known {
    ignored: &[
        IGNORED,
        "directionality pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type tie_word_embeddings",
    ],
    fixed: &[&[
        ("add_cross_attention", "false"),
        ("is_decoder", "false"),
        ("is_encoder_decoder", "false"),
        ("position_embedding_type", "absolute"),
    ]],
    features: &[FEATURES, NO_EXPERTS],
    ..Known::NOTHING
};

/// The same of a GGUF.
pub(super) const KNOWN_GGUF: Known = Known {
    ignored: &[GGUF_IGNORED, GGUF_WINDOW_LAYERS, GGUF_RMS],
    fixed: &[
        &[("attention.causal", "false")],
        &[
            ("rope.scaling.yarn_ext_factor", "0 -1"),
            ("rope.scaling.yarn_attn_factor", "1"),
            ("rope.scaling.yarn_log_multiplier", "0"),
        ],
    ],
    features: &[GGUF_FEATURES, GGUF_EXPERTS, GGUF_SHARED_EXPERT, GGUF_WINDOW],
    ..Known::NOTHING
};

/// The same of one with RMS norms.
const KNOWN_RMS_GGUF: Known = Known {
    ignored: &[GGUF_IGNORED, GGUF_WINDOW_LAYERS],
    ..KNOWN_GGUF
};

/// The name of a checkpoint's tensor here: some have a prefix, old ones TensorFlow's names of norms. What other tasks use is left out.
pub(crate) fn renamed(name: &str) -> Option<String> {
    let prefixes = ["bert.", "roberta.", "model."];
    let name = prefixes
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))
        .unwrap_or(name);
    let name = name
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias");
    // RoBERTa's classifier of two maps, and BERT's.
    let name = name
        .replace("classifier.dense.", "pooler.dense.")
        .replace("classifier.out_proj.", "classifier.");
    let of_task = ["cls.", "decoder.", "lm_head.", "qa_outputs."]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    (!of_task && !name.ends_with(".position_ids")).then_some(name)
}
