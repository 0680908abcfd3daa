//! Dense decoders: what a relative of Llama has that Llama lacks, and the layers of all of them.

use rocmforge_ggml::{GluKind, TensorId, Unary};

use super::architecture::Layers;
use crate::ModelError;
use crate::config::{DecoderConfig, ExpertsConfig, LatentConfig, RecurrentKind, RopeFactors};
use crate::layers::{
    Attention, AttentionShape, Bias, Decoder, DeltaNet, Experts, ExpertsNames, Gated, GatedNames, GatedUnit, Latent,
    LatentShape, Layer, Linear, NetworkRule, Norm, NormRule, Part, Plain, QueryNorm, SharedExpert, ShortConv, Sublayer,
};
use crate::step::{NormOffset, Place, Tensors};
use crate::weights::{LinearNames, Name};

/// What the layers of a dense relative have that Llama's lack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    /// Feed-forward networks and experts.
    pub(super) network: NetworkRule,
    /// Feed-forward networks have no gate: this function of the up projection, and the names of both maps.
    pub(super) plain: Option<(Unary, [LinearNames; 2])>,
    /// Query, key and value must have a bias. Without, they may: some checkpoints of other architectures were trained with biases.
    pub(super) qkv_bias: bool,
    /// The bias of attention's output.
    pub(super) output_bias: Bias,
    /// Queries and keys are normalised.
    pub(super) query_norm: Option<QueryNorm>,
    pub(super) norms: LayerNorms,
    /// Norms have biases.
    pub(super) norm_bias: bool,
    /// Attention and feed-forward network see the same rows, and their results are added together.
    pub(super) parallel: Parallel,
    /// Embeddings are multiplied by the square root of the width.
    pub(super) scaled_embedding: bool,
    /// What norms of safetensors lack.
    pub(super) norm_offset: NormOffset,
    /// The query's matrix has as many rows for a gate of attention's result, head by head.
    pub(super) gated: bool,
    /// Each head's softmax has one more logit.
    pub(super) sinks: bool,
    /// Names of experts.
    pub(super) experts: ExpertsNames,
    /// The first layer may lack the norm before attention.
    pub(super) bare_first: bool,
    /// Parts of names, with what checkpoints have in their place.
    pub(super) renamed: &'static [(&'static str, &'static str)],
}

/// Which layers compute attention and feed-forward network side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parallel {
    Never,
    Always,
    /// Those without a norm before the network.
    WithoutNorm,
}

/// Norms of a layer: before and after attention, before and after the feed-forward network.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerNorms {
    pub(super) attention: [Option<LinearNames>; 2],
    pub(super) network: [Option<LinearNames>; 2],
    /// After the result of attention, or of the network, was added to the rows that it was computed from.
    pub(super) last: [Option<LinearNames>; 2],
}

impl LayerNorms {
    /// Before each.
    pub(super) const BEFORE: Self = Self {
        attention: [Some(ATTENTION), None],
        network: [
            Some(LinearNames::new(
                "blk.*.ffn_norm",
                "model.layers.*.post_attention_layernorm",
            )),
            None,
        ],
        last: [None, None],
    };
    /// The same, of which GGUF calls the second one by its name in safetensors.
    pub(super) const BEFORE_RENAMED: Self = Self {
        network: [Some(POST_ATTENTION), None],
        ..Self::BEFORE
    };
    /// One before both.
    pub(super) const FIRST: Self = Self {
        attention: [Some(ATTENTION), None],
        network: [None, None],
        last: [None, None],
    };
    /// After each.
    pub(super) const AFTER: Self = Self {
        attention: [None, Some(POST_ATTENTION)],
        network: [None, Some(POST_NETWORK)],
        last: [None, None],
    };
    /// Before and after each.
    pub(super) const AROUND: Self = Self {
        attention: [Some(ATTENTION), Some(POST_ATTENTION)],
        network: [
            Some(LinearNames::new(
                "blk.*.ffn_norm",
                "model.layers.*.pre_feedforward_layernorm",
            )),
            Some(POST_NETWORK),
        ],
        last: [None, None],
    };
}

const ATTENTION: LinearNames = LinearNames::new("blk.*.attn_norm", "model.layers.*.input_layernorm");
const POST_ATTENTION: LinearNames =
    LinearNames::new("blk.*.post_attention_norm", "model.layers.*.post_attention_layernorm");
const POST_NETWORK: LinearNames = LinearNames::new("blk.*.post_ffw_norm", "model.layers.*.post_feedforward_layernorm");

/// A norm of some encoders: their layer's input is added to the sum with attention once more.
const SUM_NORM: LinearNames = LinearNames::new("blk.*.attn_norm_2", "encoder.layer.*.layer_norm_1");

impl Dense {
    pub(super) const PLAIN: Self = Self {
        network: NetworkRule {
            unit: GatedUnit::Plain(GluKind::Swiglu),
            scaled: true,
            biased: false,
        },
        plain: None,
        qkv_bias: false,
        output_bias: Bias::IfThere,
        query_norm: None,
        norms: LayerNorms::BEFORE,
        norm_bias: false,
        parallel: Parallel::Never,
        scaled_embedding: false,
        norm_offset: NormOffset::None,
        gated: false,
        sinks: false,
        experts: ExpertsNames::PLAIN,
        bare_first: false,
        renamed: &[],
    };
    /// [`Self::PLAIN`], of whose networks llama.cpp does not apply the factors on products.
    pub(super) const UNSCALED: Self = Self {
        network: NetworkRule {
            scaled: false,
            ..Self::PLAIN.network
        },
        ..Self::PLAIN
    };

    fn layer(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        index: usize,
        factors: Option<TensorId>,
        rule: NormRule,
    ) -> Result<Layer, ModelError> {
        let norm = |t: &mut Tensors<'_>, names: Option<LinearNames>| {
            names.map(|names| Norm::new(t, names, c.width, rule)).transpose()
        };
        let recurrent = (c.recurrent.as_ref()).filter(|recurrent| recurrent.layers.get(index) == Some(&true));
        let attention: Box<dyn Part> = match recurrent {
            Some(recurrent) => match recurrent.kind {
                RecurrentKind::ShortConv => Box::new(ShortConv::new(t, c.width, recurrent.taps)?),
                RecurrentKind::DeltaNet(net) => Box::new(DeltaNet::new(t, net, c.width, recurrent.taps, rule)?),
            },
            None => match c.latent {
                Some(sizes) => Box::new(Latent::new(t, latent(c, index, sizes, factors, rule))?),
                None => Box::new(Attention::new(t, self.attention(c, index, factors, rule))?),
            },
        };
        let [before_network, after_network] = self.norms.network;
        let parallel = match (self.parallel, before_network) {
            (Parallel::WithoutNorm, Some(names)) => !t.has(names.weight)?,
            (kind, _) => kind == Parallel::Always,
        };
        let before = match self.norms.attention[0] {
            Some(names) if self.bare_first && index == 0 && !t.has(names.weight)? => None,
            names => norm(t, names)?,
        };
        let mut first = Sublayer {
            before,
            parts: vec![attention],
            after: norm(t, self.norms.attention[1])?,
            factor: c.branch_factor,
            last: norm(t, self.norms.last[0])?,
        };
        if c.texts.is_some() && t.has(SUM_NORM.weight)? {
            first = Sublayer {
                before: None,
                parts: vec![Box::new(first)],
                after: None,
                factor: None,
                last: norm(t, Some(SUM_NORM))?,
            };
        }
        let network = self.network(t, c, index)?;
        if parallel {
            first.parts.extend(network);
            return Ok(Layer(vec![first]));
        }
        let second = Sublayer {
            before: norm(t, before_network)?,
            parts: network,
            after: norm(t, after_network)?,
            factor: c.branch_factor,
            last: norm(t, self.norms.last[1])?,
        };
        Ok(Layer(vec![first, second]))
    }

    /// A layer's feed-forward network, or its experts and the network beside them.
    fn network(&self, t: &mut Tensors<'_>, c: &DecoderConfig, index: usize) -> Result<Vec<Box<dyn Part>>, ModelError> {
        let sizes = [c.width, c.ff.of(index)];
        let has_experts = |experts: &&ExpertsConfig| experts.layers.get(index) == Some(&true);
        let Some(experts) = c.experts.as_ref().filter(has_experts) else {
            return Ok(vec![match self.plain {
                None => Box::new(Gated::new(t, GatedNames::PLAIN, sizes, self.rule(c))?),
                Some((activation, [up, down])) => Box::new(Plain {
                    up: Linear::of_plain(t, up, [sizes[1], sizes[0]])?,
                    activation: c.texts.map_or(activation, |texts| texts.activation),
                    down: Linear::of_plain(t, down, sizes)?,
                }),
            }]);
        };
        let mut parts: Vec<Box<dyn Part>> = vec![Box::new(Experts::new(
            t,
            self.experts,
            index,
            experts,
            c.width,
            self.network,
        )?)];
        if let Some(shared) = experts.shared {
            parts.push(Box::new(SharedExpert::new(t, shared, c.width, self.network)?));
        }
        Ok(parts)
    }

    /// The rule of networks, with the activation that an encoder's file states.
    fn rule(&self, c: &DecoderConfig) -> NetworkRule {
        let stated = c.texts.map(|texts| texts.activation);
        let kind = stated.and_then(|gate| GluKind::ALL.into_iter().find(|kind| kind.gate() == gate));
        let unit = kind.map_or(self.network.unit, GatedUnit::Plain);
        NetworkRule { unit, ..self.network }
    }

    /// Attention of a layer: `factors` are the divisors of rotary frequencies, `rule` is that of norms.
    fn attention(&self, c: &DecoderConfig, index: usize, factors: Option<TensorId>, rule: NormRule) -> AttentionShape {
        let windowed = c.windowed.get(index).copied().unwrap_or(false);
        let head_dim = c.head_dim.of(index);
        let rope = Some(c.rope.get(index)).filter(|_| *c.rotated.get(index));
        AttentionShape {
            width: c.width,
            heads: c.heads.of(index),
            kv_heads: c.kv_heads.of(index),
            head_dim,
            scale: c.attention_scale.unwrap_or_else(|| 1.0 / (head_dim as f32).sqrt()),
            rope: rope.cloned(),
            rope_factors: factors.filter(|_| rope.is_some_and(|rope| rope.divided)),
            window: c.window.filter(|_| windowed),
            softcap: c.attention_softcap,
            bias: self.qkv_bias,
            output_bias: self.output_bias,
            query_norm: self.query_norm.map(|rows| {
                let bias = rule.bias && rows == QueryNorm::WholeIfAny;
                (rows, NormRule { bias, ..rule })
            }),
            gated: self.gated,
            sinks: self.sinks,
            sees_all: c.texts.is_some(),
            alibi: c.texts.map_or(0.0, |texts| texts.alibi),
        }
    }
}

impl Layers for Dense {
    fn decoder(&self, t: &mut Tensors<'_>, c: &DecoderConfig, context: usize) -> Result<Decoder, ModelError> {
        let rule = NormRule {
            eps: c.norm_eps,
            offset: self.norm_offset,
            kind: c.norm,
            bias: self.norm_bias,
        };
        t.rename(self.renamed);
        t.allow_layers(c.layers..c.layers + c.predictors);
        let factors = rope_factors(t, c, context)?;
        let scale = self.scaled_embedding.then(|| (c.width as f32).sqrt());
        let scale = scale.or(c.embedding_factor);
        Decoder::new(t, c, rule, scale, |t, index| self.layer(t, c, index, factors, rule))
    }
}

/// Latent attention of a layer.
fn latent(
    c: &DecoderConfig,
    index: usize,
    sizes: LatentConfig,
    factors: Option<TensorId>,
    rule: NormRule,
) -> LatentShape {
    let rope = c.rope.get(index).clone();
    LatentShape {
        width: c.width,
        heads: c.heads.of(index),
        sizes,
        scale: c.attention_scale.unwrap_or(1.0),
        rope_factors: factors.filter(|_| rope.divided),
        rope,
        norm: NormRule { bias: false, ..rule },
    }
}

const ROPE_FACTORS: Name = Name::new("rope_freqs.weight", "");
const ROPE_FACTORS_SHORT: Name = Name::new("rope_factors_short.weight", "");
const ROPE_FACTORS_LONG: Name = Name::new("rope_factors_long.weight", "");

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
