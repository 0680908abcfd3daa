//! Chain of a sampler's stages, run in the configured order.

use super::history::History;
use super::{Candidates, SamplerConfig, stages};

/// A stage of a sampler; its parameters are those of the [`SamplerConfig`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// [`stages::logit_bias`]
    LogitBias,
    /// [`stages::penalties`]: repetition, frequency, presence.
    Penalties,
    /// [`stages::dry`]
    Dry,
    /// [`stages::top_n_sigma`]
    TopNSigma,
    /// [`stages::top_k`]
    TopK,
    /// [`stages::typical`]
    Typical,
    /// [`stages::top_p`]
    TopP,
    /// [`stages::min_p`]
    MinP,
    /// [`stages::xtc`]
    Xtc,
    /// [`stages::temperature`]
    Temperature,
}

impl Stage {
    /// The order of llama.cpp: the list is shortened first, by the model's own probabilities, and the temperature comes last.
    pub const LLAMA_CPP: [Self; 10] = [
        Self::LogitBias,
        Self::Penalties,
        Self::Dry,
        Self::TopNSigma,
        Self::TopK,
        Self::Typical,
        Self::TopP,
        Self::MinP,
        Self::Xtc,
        Self::Temperature,
    ];

    /// The order of vLLM and Hugging Face's transformers: the temperature comes before the stages that shorten the list, so a high one
    /// lets more tokens through. The same parameters mean another distribution than in [`LLAMA_CPP`](Self::LLAMA_CPP).
    pub const TEMPERATURE_FIRST: [Self; 10] = [
        Self::LogitBias,
        Self::Penalties,
        Self::Dry,
        Self::Temperature,
        Self::TopNSigma,
        Self::TopK,
        Self::Typical,
        Self::TopP,
        Self::MinP,
        Self::Xtc,
    ];

    /// Whether the stage shortens the list. Mirostat takes the place of those that do.
    pub fn shortens(self) -> bool {
        match self {
            Self::LogitBias | Self::Penalties | Self::Dry | Self::Temperature => false,
            Self::TopNSigma | Self::TopK | Self::Typical | Self::TopP | Self::MinP | Self::Xtc => true,
        }
    }

    /// Applies the stage. `uniform` is the random number that decides about XTC.
    pub(super) fn apply(self, candidates: &mut Candidates, config: &SamplerConfig, history: &History, uniform: f64) {
        match self {
            Self::LogitBias => stages::logit_bias(candidates, &config.logit_bias),
            Self::Penalties => stages::penalties(
                candidates,
                history.counts(),
                config.repeat_penalty,
                config.frequency_penalty,
                config.presence_penalty,
            ),
            Self::Dry => stages::dry(candidates, history.tokens(), &config.dry),
            Self::TopNSigma => stages::top_n_sigma(candidates, config.top_n_sigma),
            Self::TopK => stages::top_k(candidates, config.top_k),
            Self::Typical => stages::typical(candidates, config.typical_p),
            Self::TopP => stages::top_p(candidates, config.top_p),
            Self::MinP => stages::min_p(candidates, config.min_p),
            Self::Xtc => stages::xtc(candidates, config.xtc.probability, config.xtc.threshold, uniform),
            Self::Temperature => stages::temperature(candidates, config.temperature),
        }
    }
}
