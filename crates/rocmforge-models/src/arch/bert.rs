//! Encoders that are relatives of BERT: embeddings are normalised, and each layer normalises its sums.

use rocmforge_ggml::Unary;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::{self, halves};
use crate::config::NormKind;
use crate::config::rules::{
    FEATURES, GGUF_EXPERTS, GGUF_FEATURES, GGUF_WINDOW, GGUF_WINDOW_LAYERS, IGNORED, NO_EXPERTS, Positions, Rotated,
    Rules, TextRules,
};
use crate::keys::Known;
use crate::layers::Bias;
use crate::weights::LinearNames;

/// Tables of positions and of types of tokens, biases everywhere, a network without a gate.
pub(super) const BERT: Architecture = Architecture::of_both(
    Rules {
        texts: Some(TEXTS),
        rotated: Rotated::Never,
        known: KNOWN_GGUF,
        ..post_norm("bert")
    },
    &[Rules { known: KNOWN, ..JSON }],
    &Dense {
        qkv_bias: true,
        output_bias: Bias::Needed,
        plain: Some((
            Unary::GeluErf,
            [
                LinearNames::new("blk.*.ffn_up", "encoder.layer.*.intermediate.dense"),
                LinearNames::new("blk.*.ffn_down", "encoder.layer.*.output.dense"),
            ],
        )),
        ..POST_NORM
    },
);

/// Rules of GGUF files.
const fn post_norm(name: &'static str) -> Rules {
    Rules {
        norm: NormKind::Layer,
        output_norm: LinearNames::NONE,
        ..halves(name)
    }
}

const JSON: Rules = Rules {
    name: "bert",
    norm: NormKind::Layer,
    output_norm: LinearNames::NONE,
    rotated: Rotated::Never,
    texts: Some(TEXTS),
    ..llama::JSON
};

const TEXTS: TextRules = TextRules {
    types: Some(2),
    positions: Positions::Table,
    embedding_norm: true,
    alibi: 0.0,
    activation: Unary::GeluErf,
    eps: Some(1e-12),
};

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
        ("model_type", "bert"),
        ("position_embedding_type", "absolute"),
    ]],
    features: &[FEATURES, NO_EXPERTS],
    ..Known::NOTHING
};

/// The same of a GGUF.
const KNOWN_GGUF: Known = Known {
    ignored: &[
        GGUF_WINDOW_LAYERS,
        "attention.layer_norm_rms_epsilon classifier.output_labels tensor_data_layout vocab_size",
    ],
    fixed: &[&[("attention.causal", "false")]],
    features: &[GGUF_FEATURES, GGUF_EXPERTS, GGUF_WINDOW],
    ..Known::NOTHING
};

/// The name of a checkpoint's tensor here: some have a prefix, old ones TensorFlow's names of norms. What other tasks use is left out.
pub(crate) fn renamed(name: &str) -> Option<String> {
    let prefixes = ["bert.", "roberta.", "xlm_roberta.", "new."];
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
    let of_task = ["cls.", "lm_head.", "qa_outputs."]
        .iter()
        .any(|prefix| name.starts_with(prefix));
    (!of_task && !name.ends_with(".position_ids")).then_some(name)
}
