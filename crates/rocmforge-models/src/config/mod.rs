//! Hyper-parameters of a decoder, from GGUF metadata or config.json.

pub(crate) mod read;
mod rope;
pub(crate) mod rules;

use rocmforge_ggml::{Rope, RopeScaling, RopeStyle};

use crate::arch::Architecture;

/// A number for each layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PerLayer(Vec<usize>);

impl PerLayer {
    /// The same for all layers.
    #[must_use]
    pub fn all(value: usize) -> Self {
        Self(vec![value])
    }

    /// One of its own for each layer; `None` for none at all.
    #[must_use]
    pub fn each(values: Vec<usize>) -> Option<Self> {
        (!values.is_empty()).then_some(Self(values))
    }

    /// The layer's number; that of the first where it has none of its own.
    #[must_use]
    pub fn of(&self, layer: usize) -> usize {
        let own = self.0.get(layer).or(self.0.first());
        own.copied().unwrap_or(0)
    }

    /// The numbers: one, or one for each layer.
    #[must_use]
    pub fn values(&self) -> &[usize] {
        &self.0
    }
}

/// Rotary embedding of one kind of layer.
#[derive(Clone, Debug, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f32,
    /// Rotated elements of each head.
    pub n_dims: usize,
    /// Pairing.
    pub style: RopeStyle,
    /// Rule for long contexts.
    pub scaling: RopeScaling,
    /// Factor on cosines and sines.
    pub magnitude: f32,
}

impl RopeConfig {
    /// The op's parameters for positions below `max_position`.
    pub(crate) fn op(&self, max_position: usize) -> Rope {
        Rope {
            scaling: self.scaling,
            magnitude: self.magnitude,
            ..Rope::new(self.n_dims, self.theta, self.style, max_position)
        }
    }
}

/// Divisors of the frequencies that a file brings.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeFactors {
    /// None, or a tensor of the file where there is one (Llama 3).
    FromFile,
    /// Computed from config.json (Llama 3).
    Given(Vec<f32>),
    /// Phi-3: one list for contexts up to the trained one, one for longer ones.
    LongRope {
        /// Context of the training, in tokens.
        original_context: usize,
        /// The lists, where they are not tensors of the file: short, long.
        lists: Option<[Vec<f32>; 2]>,
    },
}

/// Which matrix gives the logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMatrix {
    /// The embedding's, also where the file has another (`tie_word_embeddings`).
    Embedding,
    /// The file's own, which must be there.
    Own,
    /// The file's own where it has one, else the embedding's (GGUF).
    OwnIfThere,
}

/// Experts: feed-forward networks of which a router chooses some for each token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpertsConfig {
    /// Experts of a layer.
    pub count: usize,
    /// Experts that each token is given to.
    pub used: usize,
    /// Width of each.
    pub inner: usize,
    /// The factors of the chosen ones are divided by their sum.
    pub normalised: bool,
    /// Whether each layer has experts; the others have one network.
    pub layers: Vec<bool>,
}

/// What fixes a decoder's graph.
#[derive(Clone, Debug, PartialEq)]
pub struct DecoderConfig {
    /// The row of the table.
    pub architecture: &'static Architecture,
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Width of the feed-forward network.
    pub ff: PerLayer,
    /// Experts in place of some of these networks.
    pub experts: Option<ExpertsConfig>,
    /// Query heads.
    pub heads: PerLayer,
    /// Key and value heads.
    pub kv_heads: PerLayer,
    /// Elements of a head.
    pub head_dim: usize,
    /// Tokens of the vocabulary.
    pub vocab: usize,
    /// Context that the model was made for, in tokens.
    pub context: usize,
    /// Added to the mean square by the norms.
    pub norm_eps: f32,
    /// Factor on attention scores.
    pub attention_scale: f32,
    /// Rotary embedding of layers that see everything.
    pub rope: RopeConfig,
    /// Divisors of its frequencies.
    pub rope_factors: RopeFactors,
    /// Rotary embedding of layers with a window, where it differs.
    pub window_rope: Option<RopeConfig>,
    /// Keys that a layer with a window sees.
    pub window: Option<usize>,
    /// Whether each layer has the window.
    pub windowed: Vec<bool>,
    /// Bound of attention scores.
    pub attention_softcap: Option<f32>,
    /// Bound of logits.
    pub logit_softcap: Option<f32>,
    /// The matrix that gives them.
    pub output: OutputMatrix,
}
