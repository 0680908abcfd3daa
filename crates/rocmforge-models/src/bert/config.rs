//! Configuration of an encoder, from `config.json`.

use std::path::Path;

use rocmforge_ggml::Unary;

use crate::ModelError;
use crate::config::rules::{FEATURES, IGNORED, NO_EXPERTS};
use crate::keys::{Key, Keys, Known, NOT_NEGATIVE, Within};

/// What the encoder's graph depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Width of the hidden states.
    pub hidden_size: usize,
    /// Encoder layers.
    pub num_hidden_layers: usize,
    /// Attention heads; divides `hidden_size`.
    pub num_attention_heads: usize,
    /// Width of the feed-forward layer.
    pub intermediate_size: usize,
    /// Rows of the token table.
    pub vocab_size: usize,
    /// Rows of the position table.
    pub max_position_embeddings: usize,
    /// Rows of the token type table.
    pub type_vocab_size: usize,
    /// Added to the variance in layer normalisation.
    pub layer_norm_eps: f32,
    /// Activation of the feed-forward layer: one of GELU's two forms.
    pub activation: Unary,
}

/// Keys that nothing reads. Poolers and classifiers are no part of a sentence's embedding.
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
};

/// More than any encoder has, and small enough that products of two never overflow.
const SIZE: Within = Within(1..=1 << 24, "it must be between 1 and 16777216");
const LAYERS: Within = Within(1..=1024, "it must be between 1 and 1024");
const HEADS: Key = Key("", "num_attention_heads");
const ACTIVATION: Key = Key("", "hidden_act");

impl BertConfig {
    /// Reads and checks `config.json`.
    ///
    /// # Errors
    /// [`ModelError::Setting`], [`ModelError::Unsupported`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let mut k = Keys::of_json(path)?;
        k.refuse_features(&KNOWN)?;
        let activation = match k.take::<String>(ACTIVATION)?.as_deref() {
            None | Some("gelu") => Unary::GeluErf,
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Unary::Gelu,
            Some(other) => {
                let rule = "gelu, gelu_new, gelu_fast and gelu_pytorch_tanh are supported";
                return Err(k.refuse(ACTIVATION, other, rule));
            }
        };
        let mut size = |name, absent| k.size(Key("", name), &SIZE, absent);
        let config = Self {
            hidden_size: size("hidden_size", None)?,
            num_attention_heads: size("num_attention_heads", None)?,
            intermediate_size: size("intermediate_size", None)?,
            vocab_size: size("vocab_size", None)?,
            max_position_embeddings: size("max_position_embeddings", None)?,
            type_vocab_size: size("type_vocab_size", Some(2))?,
            num_hidden_layers: k.size(Key("", "num_hidden_layers"), &LAYERS, None)?,
            layer_norm_eps: k.number(Key("", "layer_norm_eps"), &NOT_NEGATIVE, Some(1e-12))?,
            activation,
        };
        if !config.hidden_size.is_multiple_of(config.num_attention_heads) {
            return Err(k.refuse(HEADS, config.num_attention_heads, "it must divide hidden_size"));
        }
        k.finish(&KNOWN, "bert")?;
        Ok(config)
    }

    /// Elements of one attention head.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }
}
