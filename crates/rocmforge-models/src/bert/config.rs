//! Configuration of an encoder, from `config.json`.

use std::path::Path;

use rocmforge_ggml::Unary;
use serde::Deserialize;

use crate::{ModelError, files};

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

#[derive(Deserialize)]
struct Raw {
    model_type: Option<String>,
    hidden_act: Option<String>,
    position_embedding_type: Option<String>,
    is_decoder: Option<bool>,
    hidden_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    vocab_size: usize,
    max_position_embeddings: usize,
    #[serde(default = "two")]
    type_vocab_size: usize,
    #[serde(default = "bert_eps")]
    layer_norm_eps: f64,
}

fn two() -> usize {
    2
}

fn bert_eps() -> f64 {
    1e-12
}

/// More than any encoder has, and small enough that products of two never overflow.
const LARGEST: usize = 1 << 24;
const MOST_LAYERS: usize = 1024;

impl BertConfig {
    /// Reads and checks `config.json`.
    ///
    /// # Errors
    /// [`ModelError::Setting`], [`ModelError::Unsupported`], or the file cannot be read.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let raw: Raw = files::read_json(path)?;
        let unsupported = |field, value: &str, supported| {
            Err(ModelError::Unsupported {
                path: path.to_path_buf(),
                field,
                value: value.to_owned(),
                supported,
            })
        };
        let setting = |holds: bool, field, value: &dyn std::fmt::Display, rule| {
            let fault = || ModelError::Setting {
                path: path.to_path_buf(),
                field,
                value: value.to_string(),
                rule,
            };
            if holds { Ok(()) } else { Err(fault()) }
        };
        match raw.model_type.as_deref() {
            None | Some("bert") => {}
            Some(other) => return unsupported("model_type", other, "bert"),
        }
        match raw.position_embedding_type.as_deref() {
            None | Some("absolute") => {}
            Some(other) => return unsupported("position_embedding_type", other, "absolute"),
        }
        if raw.is_decoder == Some(true) {
            return unsupported("is_decoder", "true", "encoders");
        }
        let activation = match raw.hidden_act.as_deref() {
            None | Some("gelu") => Unary::GeluErf,
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Unary::Gelu,
            Some(other) => return unsupported("hidden_act", other, "gelu, gelu_new, gelu_fast, gelu_pytorch_tanh"),
        };
        for (field, value) in [
            ("hidden_size", raw.hidden_size),
            ("num_attention_heads", raw.num_attention_heads),
            ("intermediate_size", raw.intermediate_size),
            ("vocab_size", raw.vocab_size),
            ("max_position_embeddings", raw.max_position_embeddings),
            ("type_vocab_size", raw.type_vocab_size),
        ] {
            setting(
                (1..=LARGEST).contains(&value),
                field,
                &value,
                "it must be between 1 and 16777216",
            )?;
        }
        let layers = raw.num_hidden_layers;
        setting(
            (1..=MOST_LAYERS).contains(&layers),
            "num_hidden_layers",
            &layers,
            "it must be between 1 and 1024",
        )?;
        setting(
            raw.hidden_size.is_multiple_of(raw.num_attention_heads),
            "num_attention_heads",
            &raw.num_attention_heads,
            "it must divide hidden_size",
        )?;
        setting(
            raw.layer_norm_eps.is_finite() && (0.0..1.0).contains(&raw.layer_norm_eps),
            "layer_norm_eps",
            &raw.layer_norm_eps,
            "it must be a number from 0 to 1",
        )?;
        Ok(Self {
            hidden_size: raw.hidden_size,
            num_hidden_layers: raw.num_hidden_layers,
            num_attention_heads: raw.num_attention_heads,
            intermediate_size: raw.intermediate_size,
            vocab_size: raw.vocab_size,
            max_position_embeddings: raw.max_position_embeddings,
            type_vocab_size: raw.type_vocab_size,
            layer_norm_eps: raw.layer_norm_eps as f32,
            activation,
        })
    }

    /// Elements of one attention head.
    #[must_use]
    pub fn head_dim(&self) -> usize {
        self.hidden_size / self.num_attention_heads
    }
}
