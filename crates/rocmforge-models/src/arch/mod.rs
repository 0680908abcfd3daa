//! Architectures: one file for each family, with its names, its keys and its layers.

mod architecture;
pub(crate) mod bert;
mod deepseek;
mod dense;
pub(crate) mod find;
mod gemma;
mod gpt_oss;
mod hybrids;
mod lfm2;
mod llama;
mod llama4;
mod mixtures;
mod phi;
mod qwen;
mod qwen35;
mod relatives;
#[cfg(test)]
mod toy;

pub use self::architecture::Architecture;
use crate::config::rules::Rules;

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
    gemma::GEMMA4,
    gemma::GEMMA3N,
    gemma::GEMMA3,
    phi::PHI3,
    llama4::LLAMA4,
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
    hybrids::FALCON_H1,
    hybrids::GRANITE_HYBRID,
    hybrids::MAMBA2,
    hybrids::NEMOTRON_H,
    hybrids::NEMOTRON_H_MOE,
    mixtures::MIMO2,
    mixtures::MINIMAX_M2,
    mixtures::ERNIE4_5_MOE,
    mixtures::HUNYUAN_MOE,
    mixtures::GRANITE,
    mixtures::GRANITE_MOE,
    deepseek::DEEPSEEK2,
    deepseek::KIMI_LINEAR,
    mixtures::BAILINGMOE2,
    bert::BERT,
    bert::NOMIC_BERT,
    bert::NOMIC_BERT_MOE,
    bert::JINA_BERT_V2,
    bert::JINA_BERT_V3,
    bert::MODERN_BERT,
    bert::NEO_BERT,
    bert::EUROBERT,
    gemma::GEMMA_EMBEDDING,
    #[cfg(test)]
    toy::TOY,
    #[cfg(test)]
    toy::HYBRID,
    #[cfg(test)]
    toy::LATENT,
];

impl Architecture {
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
