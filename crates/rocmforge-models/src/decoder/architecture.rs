//! Architectures: one row for each, with what differs from Llama.

use rocmforge_ggml::RopeStyle;

/// How the feed-forward network joins gate and up projection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `silu(gate) * up`.
    SwiGlu,
    /// `gelu(gate) * up`, tanh approximation.
    GeGlu,
}

/// Which layers see a sliding window only, where the file does not say.
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

/// What distinguishes an architecture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Architecture {
    /// `general.architecture` of GGUF.
    pub name: &'static str,
    /// `model_type` values of Hugging Face's config.json.
    pub model_types: &'static [&'static str],
    /// Pairs of rotary embedding in GGUF: conversion reorders the query and key rows of some.
    pub gguf_rope: RopeStyle,
    /// Gate and up projection.
    pub activation: Activation,
    /// Query, key and value projections have a bias.
    pub qkv_bias: bool,
    /// Queries and keys are normalised per head before rotary embedding.
    pub qk_norm: bool,
    /// The results of attention and feed-forward network are normalised before they are added.
    pub post_norms: bool,
    /// Embeddings are multiplied by the square root of the width.
    pub scaled_embedding: bool,
    /// Norm weights of safetensors lack the 1 that those of GGUF contain.
    pub norm_plus_one: bool,
    /// Query, key and value are one matrix, gate and up are one matrix.
    pub fused: bool,
    /// Layers with a sliding window.
    pub window: WindowRule,
    /// Rotary base of layers with a window; they have no scaling.
    pub window_rope_base: Option<f32>,
    /// With this many layers, scores are divided by the square root of width / heads and not of head_dim.
    pub wide_scale_layers: Option<usize>,
}

/// Llama 2 and 3, SmolLM2, Mistral: what the others are compared with.
const LLAMA: Architecture = Architecture {
    name: "llama",
    model_types: &["llama", "mistral"],
    gguf_rope: RopeStyle::Interleaved,
    activation: Activation::SwiGlu,
    qkv_bias: false,
    qk_norm: false,
    post_norms: false,
    scaled_embedding: false,
    norm_plus_one: false,
    fused: false,
    window: WindowRule::Never,
    window_rope_base: None,
    wide_scale_layers: None,
};

/// Every architecture that can be run.
pub const ARCHITECTURES: &[Architecture] = &[
    LLAMA,
    Architecture {
        name: "qwen2",
        model_types: &["qwen2"],
        gguf_rope: RopeStyle::HalfSplit,
        qkv_bias: true,
        ..LLAMA
    },
    Architecture {
        name: "qwen3",
        model_types: &["qwen3"],
        gguf_rope: RopeStyle::HalfSplit,
        qk_norm: true,
        ..LLAMA
    },
    Architecture {
        name: "gemma3",
        model_types: &["gemma3_text"],
        gguf_rope: RopeStyle::HalfSplit,
        activation: Activation::GeGlu,
        qk_norm: true,
        post_norms: true,
        scaled_embedding: true,
        norm_plus_one: true,
        window: WindowRule::AllButEvery { period: 6 },
        window_rope_base: Some(10_000.0),
        wide_scale_layers: Some(62),
        ..LLAMA
    },
    Architecture {
        name: "phi3",
        model_types: &["phi3"],
        gguf_rope: RopeStyle::HalfSplit,
        fused: true,
        ..LLAMA
    },
];

impl Architecture {
    /// The row with this `general.architecture`.
    #[must_use]
    pub fn of_gguf(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|row| row.name == name)
    }

    /// The row with this `model_type`.
    #[must_use]
    pub fn of_model_type(name: &str) -> Option<&'static Self> {
        ARCHITECTURES.iter().find(|row| row.model_types.contains(&name))
    }
}
