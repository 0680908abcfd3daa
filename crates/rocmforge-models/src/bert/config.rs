//! Configuration of an encoder, from `config.json`.

use std::path::Path;

use rocmforge_ggml::Unary;

use crate::ModelError;
use crate::config::json_rules::{DROPOUT, FEATURES, GENERATION, NO_EXPERTS, OF_THE_FILE, TASKS};
use crate::settings::{Known, Literal, Settings, fixed, shortened};

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
        OF_THE_FILE,
        DROPOUT,
        TASKS,
        GENERATION,
        &[
            "directionality",
            "pooler_fc_size",
            "pooler_num_attention_heads",
            "pooler_num_fc_layers",
            "pooler_size_per_head",
            "pooler_type",
            "tie_word_embeddings",
        ],
    ],
    fixed: &[&[
        fixed("add_cross_attention", &[Literal::Bool(false)]),
        fixed("is_decoder", &[Literal::Bool(false)]),
        fixed("is_encoder_decoder", &[Literal::Bool(false)]),
        fixed("position_embedding_type", &[Literal::Text("absolute")]),
    ]],
    features: &[FEATURES, NO_EXPERTS],
};

/// More than any encoder has, and small enough that products of two never overflow.
const LARGEST: usize = 1 << 24;
const MOST_LAYERS: usize = 1024;

impl BertConfig {
    /// Reads and checks `config.json`.
    ///
    /// # Errors
    /// [`ModelError::Setting`], [`ModelError::Unsupported`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let mut s = Settings::read(path)?;
        s.refuse_features(&KNOWN)?;
        let unsupported = |field, value: &str, supported: &str| {
            Err(ModelError::Unsupported {
                path: path.to_path_buf(),
                field,
                value: shortened(value),
                supported: supported.to_owned(),
            })
        };
        match s.take::<String>("model_type")?.as_deref() {
            None | Some("bert") => {}
            Some(other) => return unsupported("model_type", other, "bert"),
        }
        let activation = match s.take::<String>("hidden_act")?.as_deref() {
            None | Some("gelu") => Unary::GeluErf,
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Unary::Gelu,
            Some(other) => return unsupported("hidden_act", other, "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh"),
        };
        let config = Self {
            hidden_size: s.need("hidden_size")?,
            num_hidden_layers: s.need("num_hidden_layers")?,
            num_attention_heads: s.need("num_attention_heads")?,
            intermediate_size: s.need("intermediate_size")?,
            vocab_size: s.need("vocab_size")?,
            max_position_embeddings: s.need("max_position_embeddings")?,
            type_vocab_size: s.take("type_vocab_size")?.unwrap_or(2),
            layer_norm_eps: s.take::<f64>("layer_norm_eps")?.unwrap_or(1e-12) as f32,
            activation,
        };
        config.check(&s)?;
        s.finish(&KNOWN, "bert")?;
        Ok(config)
    }

    fn check(&self, s: &Settings<'_>) -> Result<(), ModelError> {
        let setting = |holds: bool, field, value: &dyn std::fmt::Display, rule| match holds {
            true => Ok(()),
            false => Err(s.refuse(field, value, rule)),
        };
        for (field, value) in [
            ("hidden_size", self.hidden_size),
            ("num_attention_heads", self.num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("vocab_size", self.vocab_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ] {
            setting(
                (1..=LARGEST).contains(&value),
                field,
                &value,
                "it must be between 1 and 16777216",
            )?;
        }
        let layers = self.num_hidden_layers;
        setting(
            (1..=MOST_LAYERS).contains(&layers),
            "num_hidden_layers",
            &layers,
            "it must be between 1 and 1024",
        )?;
        setting(
            self.hidden_size.is_multiple_of(self.num_attention_heads),
            "num_attention_heads",
            &self.num_attention_heads,
            "it must divide hidden_size",
        )?;
        setting(
            (0.0..1.0).contains(&self.layer_norm_eps),
            "layer_norm_eps",
            &self.layer_norm_eps,
            "it must be a number from 0 to 1",
        )
    }

    /// Elements of one attention head.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }
}
