//! Architectures: one file for each family, with its names, its keys and its layers.

pub(crate) mod bert;
mod dense;
mod gemma;
mod gpt_oss;
mod lfm2;
mod llama;
mod mixtures;
mod phi;
mod qwen;
mod qwen35;
mod relatives;
#[cfg(test)]
mod toy;

use std::fmt;

use self::dense::Dense;
use crate::ModelError;
use crate::config::DecoderConfig;
use crate::config::rules::Rules;
use crate::layers::Decoder;
use crate::step::Tensors;

/// An architecture: how its files are read, and what its layers are.
pub struct Architecture {
    /// GGUF.
    pub(crate) gguf: Rules,
    /// config.json of each `model_type`.
    pub(crate) json: &'static [Rules],
    pub(crate) compose: Compose,
}

/// Makes a decoder of its weights, for sequences of at most so many tokens.
type MakeDecoder = fn(&mut Tensors<'_>, &DecoderConfig, usize) -> Result<Decoder, ModelError>;

/// What makes a model of its weights.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Compose {
    /// A decoder of dense layers.
    Dense(&'static Dense),
    /// Another decoder.
    #[cfg_attr(not(test), expect(dead_code, reason = "all decoders so far are dense"))]
    Decoder(MakeDecoder),
    /// An encoder, which [`crate::bert`] opens.
    Encoder,
}

/// Its name: the rest is a table.
impl fmt::Debug for Architecture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Architecture").field(&self.name()).finish()
    }
}

/// By the name, which no two have in common.
impl PartialEq for Architecture {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// Every architecture that can be run.
pub const ARCHITECTURES: &[Architecture] = &[
    llama::LLAMA,
    qwen::QWEN2,
    qwen::QWEN2MOE,
    qwen::QWEN3,
    qwen::QWEN3MOE,
    gpt_oss::GPT_OSS,
    qwen35::QWEN35,
    qwen35::QWEN35MOE,
    qwen35::QWEN3NEXT,
    lfm2::LFM2,
    lfm2::LFM2MOE,
    gemma::GEMMA2,
    gemma::GEMMA3,
    phi::PHI3,
    relatives::MISTRAL3,
    relatives::SMOLLM3,
    relatives::OLMO2,
    relatives::EXAONE4,
    relatives::GLM4,
    relatives::COHERE2,
    relatives::ERNIE4_5,
    relatives::HUNYUAN,
    relatives::SEED_OSS,
    relatives::STARCODER2,
    relatives::STABLELM,
    mixtures::GLM4MOE,
    mixtures::MINIMAX_M2,
    mixtures::ERNIE4_5_MOE,
    mixtures::HUNYUAN_MOE,
    mixtures::GRANITE,
    mixtures::GRANITE_MOE,
    bert::BERT,
    #[cfg(test)]
    toy::TOY,
    #[cfg(test)]
    toy::HYBRID,
    #[cfg(test)]
    toy::LATENT,
];

/// The names of those that may have experts.
pub(crate) fn mixtures() -> Vec<&'static str> {
    let rows = ARCHITECTURES.iter().filter(|row| row.gguf.experts.is_some());
    rows.map(Architecture::name).collect()
}

impl Architecture {
    /// `general.architecture` of GGUF.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.gguf.name
    }

    /// Whether it makes embeddings of whole texts, and no text.
    #[must_use]
    pub const fn is_encoder(&self) -> bool {
        matches!(self.compose, Compose::Encoder)
    }

    /// # Errors
    /// It is an encoder.
    pub(crate) fn is_decoder(&self) -> Result<(), ModelError> {
        match self.is_encoder() {
            false => Ok(()),
            true => Err(ModelError::IsEncoder {
                architecture: self.name(),
            }),
        }
    }

    /// The decoder of a model's weights, for sequences of at most `context` tokens.
    ///
    /// # Errors
    /// It is an encoder, or a weight is missing or has another shape.
    pub(crate) fn decoder(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        context: usize,
    ) -> Result<Decoder, ModelError> {
        match self.compose {
            Compose::Decoder(make) => make(t, c, context),
            Compose::Dense(dense) => dense.decoder(t, c, context),
            Compose::Encoder => Err(ModelError::IsEncoder {
                architecture: self.name(),
            }),
        }
    }

    /// The one with this `general.architecture`.
    #[must_use]
    pub fn of_gguf(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|row| row.name() == name)
    }

    /// The one with this `model_type`, and the rules of its config.json.
    pub(crate) fn of_model_type(name: &str) -> Option<(&'static Self, &'static Rules)> {
        ARCHITECTURES.iter().find_map(|row| {
            let rules = row.json.iter().find(|rules| rules.name == name)?;
            Some((row, rules))
        })
    }

    /// The `model_type`s of all.
    pub(crate) fn model_types() -> impl Iterator<Item = &'static str> {
        ARCHITECTURES
            .iter()
            .flat_map(|row| row.json.iter().map(|rules| rules.name))
    }
}
