//! Architectures: one file for each family, with its names, its keys and its layers.

mod gemma;
mod llama;
mod phi;
mod qwen;
#[cfg(test)]
mod toy;

use rocmforge_ggml::RopeStyle;

use crate::ModelError;
use crate::config::{DecoderConfig, JsonRules};
use crate::layers::Decoder;
use crate::settings::Known;
use crate::step::Tensors;

/// Which layers see a sliding window only, where a GGUF does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowRule {
    /// None: a window in the file is ignored, as llama.cpp does.
    Never,
    /// All but the last of every `period` layers.
    AllButEvery {
        /// Layers from one full layer to the next.
        period: usize,
    },
}

/// An architecture: how its files are read, and what its layers are.
#[derive(Debug)]
pub struct Architecture {
    /// `general.architecture` of GGUF.
    pub name: &'static str,
    /// Pairs of rotary embedding in GGUF: conversion reorders the query and key rows of some.
    pub gguf_rope: RopeStyle,
    /// Layers with a sliding window.
    pub window: WindowRule,
    /// Rotary base of layers with a window; they have no scaling.
    pub window_rope_base: Option<f32>,
    /// With this many layers, scores are divided by the square root of width / heads and not of head_dim.
    pub wide_scale_layers: Option<usize>,
    /// Keys of GGUF that nothing reads.
    pub(crate) gguf: Known,
    /// config.json of each `model_type`.
    pub(crate) json: &'static [JsonRules],
    /// Makes the model, for sequences of at most `context` tokens.
    pub(crate) compose: fn(&mut Tensors<'_>, &DecoderConfig, usize) -> Result<Decoder, ModelError>,
}

/// By the name, which no two have in common.
impl PartialEq for Architecture {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// Every architecture that can be run.
pub const ARCHITECTURES: &[Architecture] = &[
    llama::LLAMA,
    qwen::QWEN2,
    qwen::QWEN3,
    qwen::QWEN3MOE,
    gemma::GEMMA3,
    phi::PHI3,
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
        ARCHITECTURES.iter().find(|row| row.name == name)
    }

    /// The one with this `model_type`, and the rules of its config.json.
    pub(crate) fn of_model_type(name: &str) -> Option<(&'static Self, &'static JsonRules)> {
        ARCHITECTURES.iter().find_map(|row| {
            let rules = row.json.iter().find(|rules| rules.model_type == name)?;
            Some((row, rules))
        })
    }

    /// The `model_type`s of all.
    pub(crate) fn model_types() -> impl Iterator<Item = &'static str> {
        ARCHITECTURES
            .iter()
            .flat_map(|row| row.json.iter().map(|rules| rules.model_type))
    }
}
