//! Stages of a sampler, and the orders in which other engines run them.

/// A stage of a sampler; its parameters are those of the [`SamplerConfig`](super::SamplerConfig).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Stage {
    /// [`logit_bias`](super::stages::logit_bias)
    LogitBias,
    /// [`penalties`](super::stages::penalties): repetition, frequency, presence.
    Penalties,
    /// [`dry`](super::stages::dry)
    Dry,
    /// [`top_n_sigma`](super::stages::top_n_sigma)
    TopNSigma,
    /// [`top_k`](super::stages::top_k)
    TopK,
    /// [`typical`](super::stages::typical)
    Typical,
    /// [`top_p`](super::stages::top_p)
    TopP,
    /// [`min_p`](super::stages::min_p)
    MinP,
    /// [`xtc`](super::stages::xtc)
    Xtc,
    /// [`temperature`](super::stages::temperature)
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
}
