//! Hyper-parameters of a BERT, from GGUF metadata or config.json.

use rocmforge_ggml::Unary;

use super::names::{CONTEXT, FF, HEADS, LAYERS, MOST_LAYERS, SIZE, VOCAB, WIDTH};
use crate::ModelError;
use crate::keys::{Key, Keys, Known, NOT_NEGATIVE};

/// What the encoder's graph depends on.
#[derive(Clone, Debug, PartialEq)]
pub struct BertConfig {
    /// Width of the hidden states.
    pub width: usize,
    /// Encoder layers.
    pub layers: usize,
    /// Attention heads; divides `width`.
    pub heads: usize,
    /// Width of the feed-forward layer.
    pub ff: usize,
    /// Rows of the token table.
    pub vocab: usize,
    /// Rows of the position table.
    pub context: usize,
    /// Rows of the token type table.
    pub types: usize,
    /// Added to the variance in layer normalisation.
    pub norm_eps: f32,
    /// Activation of the feed-forward layer: one of GELU's two forms.
    pub activation: Unary,
}

const ACTIVATION: Key = Key("", "hidden_act");
const EPS: Key = Key("attention.layer_norm_epsilon", "layer_norm_eps");
const TYPE_COUNT: Key = Key("", "type_vocab_size");

impl BertConfig {
    /// `sizes` are the tokens and their types, where the file states them elsewhere.
    pub(crate) fn read(k: &mut Keys<'_>, known: &Known, sizes: Option<[usize; 2]>) -> Result<Self, ModelError> {
        k.refuse_features(known)?;
        let activation = match k.take::<String>(ACTIVATION)?.as_deref() {
            // GGUF has no key for it.
            None | Some("gelu") => Unary::GeluErf,
            Some("gelu_new" | "gelu_fast" | "gelu_pytorch_tanh") => Unary::Gelu,
            Some(other) => {
                let rule = "gelu, gelu_new, gelu_fast and gelu_pytorch_tanh are supported";
                return Err(k.refuse(ACTIVATION, other, rule));
            }
        };
        let eps = k.take(EPS)?.or((!k.is_gguf()).then_some(1e-12_f64));
        let [vocab, types] = match sizes {
            Some([vocab, types]) => [k.check(VOCAB, vocab, &SIZE)?, k.check(TYPE_COUNT, types, &SIZE)?],
            None => [k.size(VOCAB, &SIZE, None)?, k.size(TYPE_COUNT, &SIZE, Some(2))?],
        };
        let config = Self {
            width: k.size(WIDTH, &SIZE, None)?,
            layers: k.size(LAYERS, &MOST_LAYERS, None)?,
            heads: k.size(HEADS, &SIZE, None)?,
            ff: k.size(FF, &SIZE, None)?,
            vocab,
            context: k.size(CONTEXT, &SIZE, None)?,
            types,
            norm_eps: k.number(EPS, &NOT_NEGATIVE, eps.map(|eps| eps as f32))?,
            activation,
        };
        match config.width.is_multiple_of(config.heads) {
            true => Ok(config),
            false => Err(k.refuse(HEADS, config.heads, "it must divide hidden_size")),
        }
    }
}
