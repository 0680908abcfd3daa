//! Llama 2 and 3, SmolLM2, Mistral; and the layers that dense relatives of Llama share.

use rocmforge_ggml::{GluKind, RopeStyle, TensorId};

use super::{Architecture, Compose};
use crate::ModelError;
use crate::config::rules::{self, ExpertWidth, Experts as ExpertRules, Rules, Softcaps, Window};
use crate::config::{DecoderConfig, OutputMatrix, RopeFactors};
use crate::keys::Known;
use crate::layers::{
    Attention, AttentionShape, Decoder, Experts, ExpertsNames, Gated, GatedNames, Layer, NetworkRule, Norm, NormRule,
    Part, SharedExpert, Sublayer,
};
use crate::step::{NormOffset, Place, Tensors};
use crate::weights::Name;

/// What the others are compared with. Mixtral is a Llama with experts.
pub(super) const LLAMA: Architecture = Architecture {
    gguf: Rules {
        name: "llama",
        pairs: RopeStyle::Interleaved,
        experts: Some(ExpertRules {
            count: 0,
            used: None,
            inner: ExpertWidth::Network,
            normalised: true,
            shared: None,
        }),
        known: Known {
            // llama.cpp takes the width of the network, and normalises the factors, whatever the file says.
            ignored: &[
                rules::GGUF_IGNORED,
                rules::GGUF_WINDOW_LAYERS,
                "expert_feed_forward_length expert_weights_norm",
            ],
            features: &[rules::GGUF_FEATURES, rules::GGUF_SHARED_EXPERT, rules::GGUF_WINDOW],
            ..rules::GGUF
        },
        ..GGUF
    },
    json: &[JSON, MISTRAL, MIXTRAL],
    compose: Compose::Decoder(|t, c, context| {
        let dense = Dense {
            experts: ExpertsNames::MIXTRAL,
            ..Dense::PLAIN
        };
        decoder(t, c, context, &dense)
    }),
};

/// Files without experts.
pub(super) const GGUF: Rules = Rules {
    output: OutputMatrix::OwnIfThere,
    known: rules::GGUF,
    ..JSON
};

pub(super) const JSON: Rules = Rules {
    name: "llama",
    // Checkpoints of safetensors are not reordered.
    pairs: RopeStyle::HalfSplit,
    head_dim: None,
    kv_heads: None,
    theta: 10_000.0,
    window_theta: None,
    original_context: None,
    output: OutputMatrix::Own,
    score_divisor: None,
    softcaps: Softcaps::NONE,
    wide_scale_layers: None,
    window: Window::Never,
    experts: None,
    known: Known {
        ignored: &[rules::IGNORED, "max_window_layers"],
        features: &[
            rules::FEATURES,
            rules::NO_EXPERTS,
            &[("a sliding window", "sliding_window use_sliding_window")],
        ],
        ..rules::JSON
    },
};

const MISTRAL: Rules = Rules {
    name: "mistral",
    kv_heads: Some(8),
    window: Window::Every { window: Some(4096) },
    known: Known {
        ignored: JSON.known.ignored,
        features: &[rules::FEATURES, rules::NO_EXPERTS, rules::NO_UPPER_WINDOW],
        ..rules::JSON
    },
    ..JSON
};

/// The defaults are those of `MixtralConfig`.
const MIXTRAL: Rules = Rules {
    name: "mixtral",
    theta: 1_000_000.0,
    window: Window::Every { window: None },
    experts: Some(ExpertRules {
        count: 8,
        used: Some(2),
        inner: ExpertWidth::Network,
        normalised: true,
        shared: None,
    }),
    known: Known {
        ignored: &[rules::IGNORED, rules::ROUTER_TRAINING],
        features: &[rules::FEATURES, rules::NO_UPPER_WINDOW],
        ..rules::JSON
    },
    ..MISTRAL
};

/// What the layers of a dense relative have that Llama's lack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dense {
    /// Feed-forward networks and experts.
    pub(super) network: NetworkRule,
    /// Query, key and value must have a bias. Without, they may: some checkpoints of other architectures were trained with biases.
    pub(super) qkv_bias: bool,
    /// Queries and keys are normalised per head before rotary embedding.
    pub(super) qk_norm: bool,
    /// The results of attention and feed-forward network are normalised before they are added.
    pub(super) post_norms: bool,
    /// Embeddings are multiplied by the square root of the width.
    pub(super) scaled_embedding: bool,
    /// What norms of safetensors lack.
    pub(super) norm_offset: NormOffset,
    /// Names of experts.
    pub(super) experts: ExpertsNames,
}

impl Dense {
    pub(super) const PLAIN: Self = Self {
        network: NetworkRule {
            glu: GluKind::Swiglu,
            scaled: true,
        },
        qkv_bias: false,
        qk_norm: false,
        post_norms: false,
        scaled_embedding: false,
        norm_offset: NormOffset::None,
        experts: ExpertsNames::PLAIN,
    };
}

const ATTENTION_NORM: Name = Name::new("blk.*.attn_norm.weight", "model.layers.*.input_layernorm.weight");
const FF_NORM: Name = Name::new(
    "blk.*.ffn_norm.weight",
    "model.layers.*.post_attention_layernorm.weight",
);
/// Llama calls the norm before the feed-forward network what Gemma calls the one after attention.
const POST_ATTENTION_NORM: Name = Name::new(
    "blk.*.post_attention_norm.weight",
    "model.layers.*.post_attention_layernorm.weight",
);
const FF_NORM_BETWEEN: Name = Name::new(
    "blk.*.ffn_norm.weight",
    "model.layers.*.pre_feedforward_layernorm.weight",
);
const POST_FF_NORM: Name = Name::new(
    "blk.*.post_ffw_norm.weight",
    "model.layers.*.post_feedforward_layernorm.weight",
);

const ROPE_FACTORS: Name = Name::new("rope_freqs.weight", "");
const ROPE_FACTORS_SHORT: Name = Name::new("rope_factors_short.weight", "");
const ROPE_FACTORS_LONG: Name = Name::new("rope_factors_long.weight", "");

/// [`Dense::PLAIN`]'s networks, whose factors on products are not applied.
pub(super) const UNSCALED: NetworkRule = NetworkRule {
    scaled: false,
    ..Dense::PLAIN.network
};

/// A decoder of dense layers, for sequences of at most `context` tokens.
pub(super) fn decoder(
    t: &mut Tensors<'_>,
    c: &DecoderConfig,
    context: usize,
    dense: &Dense,
) -> Result<Decoder, ModelError> {
    let rule = NormRule {
        eps: c.norm_eps,
        offset: dense.norm_offset,
    };
    let factors = rope_factors(t, c, context)?;
    let scale = dense.scaled_embedding.then(|| (c.width as f32).sqrt());
    Decoder::new(t, c, rule, scale, |t, index| {
        let norm = |t: &mut Tensors<'_>, name| Norm::new(t, name, c.width, rule);
        let post = |t: &mut Tensors<'_>, name| dense.post_norms.then(|| norm(t, name)).transpose();
        let ff_norm = if dense.post_norms { FF_NORM_BETWEEN } else { FF_NORM };
        let attention = Attention::new(t, attention_shape(c, index, factors, dense, rule))?;
        let experts = c
            .experts
            .as_ref()
            .filter(|experts| experts.layers.get(index) == Some(&true));
        let mut feed_forward: Vec<Box<dyn Part>> = Vec::new();
        match experts {
            Some(experts) => {
                feed_forward.push(Box::new(Experts::new(
                    t,
                    dense.experts,
                    index,
                    experts,
                    c.width,
                    dense.network,
                )?));
                if let Some(shared) = experts.shared {
                    feed_forward.push(Box::new(SharedExpert::new(t, shared, c.width, dense.network)?));
                }
            }
            None => {
                let sizes = [c.width, c.ff.of(index)];
                feed_forward.push(Box::new(Gated::new(t, GatedNames::PLAIN, sizes, dense.network)?));
            }
        }
        Ok(Layer(vec![
            Sublayer {
                before: Some(norm(t, ATTENTION_NORM)?),
                parts: vec![Box::new(attention)],
                after: post(t, POST_ATTENTION_NORM)?,
                last: None,
            },
            Sublayer {
                before: Some(norm(t, ff_norm)?),
                parts: feed_forward,
                after: post(t, POST_FF_NORM)?,
                last: None,
            },
        ]))
    })
}

/// Attention of a layer: `factors` are the divisors of rotary frequencies, `rule` is that of norms.
fn attention_shape(
    c: &DecoderConfig,
    index: usize,
    factors: Option<TensorId>,
    dense: &Dense,
    rule: NormRule,
) -> AttentionShape {
    let windowed = c.windowed.get(index).copied().unwrap_or(false);
    let head_dim = c.head_dim.of(index);
    let rope = c.rope.get(index);
    AttentionShape {
        width: c.width,
        heads: c.heads.of(index),
        kv_heads: c.kv_heads.of(index),
        head_dim,
        scale: c.attention_scale.unwrap_or_else(|| 1.0 / (head_dim as f32).sqrt()),
        rope: rope.clone(),
        rope_factors: factors.filter(|_| rope.divided),
        window: c.window.filter(|_| windowed),
        softcap: c.attention_softcap,
        bias: dense.qkv_bias,
        head_norms: dense.qk_norm.then_some(rule),
    }
}

/// Divisors of the rotary frequencies: given by the configuration, or tensors of the file. `context` decides between Phi-3's two lists.
fn rope_factors(t: &mut Tensors<'_>, c: &DecoderConfig, context: usize) -> Result<Option<TensorId>, ModelError> {
    t.at(Place::Layers);
    // Which of them counts depends on the context.
    for name in [ROPE_FACTORS, ROPE_FACTORS_SHORT, ROPE_FACTORS_LONG] {
        t.allow(name);
    }
    if c.rope_factors == RopeFactors::FromFile && !t.has(ROPE_FACTORS)? {
        return Ok(None);
    }
    let mut lengths = c.rope.values().filter(|rope| rope.divided).map(|rope| rope.n_dims);
    let length = lengths.next().unwrap_or(0);
    if let Some(other) = lengths.find(|&other| other != length) {
        return Err(ModelError::Hyperparameter {
            key: "rope.dimension_count".to_owned(),
            value: format!("{length} and {other}"),
            rule: "layers whose frequencies have divisors must rotate equally many elements".to_owned(),
        });
    }
    let (pairs, computed) = (length / 2, "rope factors");
    match &c.rope_factors {
        RopeFactors::Given(values) => t.add_divisors(computed, values).map(Some),
        RopeFactors::FromFile => t.divisors(ROPE_FACTORS, pairs).map(Some),
        RopeFactors::LongRope {
            original_context,
            lists,
        } => {
            let long = context > *original_context;
            let found = match lists {
                Some(lists) => t.add_divisors(computed, &lists[usize::from(long)]),
                None if long => t.divisors(ROPE_FACTORS_LONG, pairs),
                None => t.divisors(ROPE_FACTORS_SHORT, pairs),
            };
            found.map(Some)
        }
    }
}
