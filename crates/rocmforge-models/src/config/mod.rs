//! Hyper-parameters of a decoder, from GGUF metadata or config.json.

mod gguf;
pub(crate) mod gguf_keys;
mod json;
mod json_rope;
pub(crate) mod json_rules;

use rocmforge_ggml::{Rope, RopeScaling, RopeStyle};

use crate::ModelError;
use crate::arch::Architecture;

pub(crate) use json_rules::{JsonExperts, JsonRules, JsonWindow};

/// Most elements of a head.
pub(super) const MAX_HEAD_DIM: usize = 256;

/// Most layers: no model has more, and lists of layers are made before a tensor is looked for.
pub(super) const MAX_LAYERS: usize = 512;

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

impl DecoderConfig {
    /// Checks what no later check would find: sizes that agree, and bounds that hostile files break.
    ///
    /// # Errors
    /// [`ModelError::Hyperparameter`] with the name and the value.
    pub(crate) fn check(&self) -> Result<(), ModelError> {
        let rule = |holds: bool, key: &'static str, value: usize, rule: &'static str| {
            if holds {
                return Ok(());
            }
            Err(ModelError::Hyperparameter {
                key: key.to_owned(),
                value: value.to_string(),
                rule,
            })
        };
        let number = |holds: bool, key: &'static str, value: f32, rule: &'static str| match holds {
            true => Ok(()),
            false => Err(ModelError::Hyperparameter {
                key: key.to_owned(),
                value: value.to_string(),
                rule,
            }),
        };
        let positive = |key, value: f32| {
            let holds = value.is_finite() && value > 0.0;
            number(holds, key, value, "it must be finite and positive")
        };
        rule(
            (1..=MAX_LAYERS).contains(&self.layers),
            "block_count",
            self.layers,
            "it must be 1 to 512",
        )?;
        for (key, value) in [
            ("embedding_length", self.width),
            ("vocab_size", self.vocab),
            ("context_length", self.context),
        ] {
            rule((1..=1 << 28).contains(&value), key, value, "it must be 1 to 2^28")?;
        }
        for &ff in self.ff.values() {
            let within = (1..=1 << 28).contains(&ff);
            rule(within, "feed_forward_length", ff, "it must be 1 to 2^28")?;
        }
        for layer in 0..self.layers {
            let (heads, kv_heads) = (self.heads.of(layer), self.kv_heads.of(layer));
            let within = (1..=1 << 16).contains(&heads);
            rule(within, "attention.head_count", heads, "it must be 1 to 65536")?;
            let divides = kv_heads > 0 && heads.is_multiple_of(kv_heads);
            let key = "attention.head_count_kv";
            rule(divides, key, kv_heads, "it must divide the number of heads")?;
        }
        rule(
            (1..=MAX_HEAD_DIM).contains(&self.head_dim),
            "attention.key_length",
            self.head_dim,
            "heads of 1 to 256 elements are supported",
        )?;
        for rope in [Some(&self.rope), self.window_rope.as_ref()].into_iter().flatten() {
            rule(
                rope.n_dims >= 2 && rope.n_dims.is_multiple_of(2) && rope.n_dims <= self.head_dim,
                "rope.dimension_count",
                rope.n_dims,
                "it must be even, at least 2 and at most the head's length",
            )?;
            // Below 1 frequencies grow with the dimension, out of the range of f32.
            number(
                rope.theta.is_finite() && rope.theta >= 1.0,
                "rope.freq_base",
                rope.theta,
                "it must be finite and at least 1",
            )?;
            positive("rope.scaling.attn_factor", rope.magnitude)?;
            match rope.scaling {
                RopeScaling::None => {}
                RopeScaling::Linear { factor } => positive("rope.scaling.factor", factor)?,
                RopeScaling::Yarn {
                    factor,
                    original_context,
                    beta_fast,
                    beta_slow,
                    ext_factor,
                } => {
                    positive("rope.scaling.factor", factor)?;
                    positive("rope.scaling.yarn_beta_fast", beta_fast)?;
                    positive("rope.scaling.yarn_beta_slow", beta_slow)?;
                    rule(
                        original_context > 0,
                        "rope.scaling.original_context_length",
                        original_context,
                        "it must be at least 1",
                    )?;
                    number(
                        ext_factor.is_finite() && ext_factor >= 0.0,
                        "rope.scaling.yarn_ext_factor",
                        ext_factor,
                        "it must be finite and not negative",
                    )?;
                }
            }
        }
        if let Some(experts) = &self.experts {
            let &ExpertsConfig { count, used, inner, .. } = experts;
            rule(
                (1..=1 << 16).contains(&count),
                "expert_count",
                count,
                "it must be 1 to 65536",
            )?;
            let most = "it must be 1 to the number of experts";
            rule((1..=count).contains(&used), "expert_used_count", used, most)?;
            let (key, within) = ("expert_feed_forward_length", (1..=1 << 28).contains(&inner));
            rule(within, key, inner, "it must be 1 to 2^28")?;
        }
        positive("attention.scale", self.attention_scale)?;
        for (key, cap) in [
            ("attn_logit_softcapping", self.attention_softcap),
            ("final_logit_softcapping", self.logit_softcap),
        ] {
            cap.map_or(Ok(()), |cap| positive(key, cap))?;
        }
        rule(
            self.window != Some(0),
            "attention.sliding_window",
            0,
            "a window must hold at least one key",
        )?;
        let eps = self.norm_eps;
        number(
            eps.is_finite() && eps >= 0.0,
            "attention.layer_norm_rms_epsilon",
            eps,
            "it must be finite and not negative",
        )
    }
}
