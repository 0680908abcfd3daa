//! Layers of all architectures: what each has that Llama lacks.

use std::collections::HashMap;
use std::f32::consts::FRAC_1_SQRT_2;

use rocmforge_ggml::{GluKind, TensorId};

use super::architecture::Layers;
use crate::ModelError;
use crate::cache::Cached;
use crate::config::{DecoderConfig, ExpertsConfig, LatentConfig, Presence, RecurrentKind, RopeFactors};
use crate::layers::{
    Activation, Attention, AttentionShape, Bias, Decoder, DeltaNet, Experts, ExpertsNames, Gated, GatedNames,
    GatedUnit, KimiDelta, Latent, LatentShape, Layer, LayerInput, Linear, LowRank, Mamba2, MapRule, NetworkRule, Norm,
    NormRule, Normed, Part, Plain, QueryNorm, SharedExpert, ShortConv, StreamLayer, Sublayer,
};
use crate::step::{NormOffset, Place, Tensors};
use crate::weights::{LinearNames, Name};

/// What the layers of a dense relative have that Llama's lack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    /// Feed-forward networks and experts.
    pub(super) network: NetworkRule,
    /// Feed-forward networks have no gate: this function of the up projection, and both maps.
    pub(super) plain: Option<(Activation, [LinearNames; 2], MapRule)>,
    /// Query, key and value. Some checkpoints of architectures without biases were trained with them.
    pub(super) qkv: MapRule,
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
    pub(super) sinks: Presence,
    /// Names of experts.
    pub(super) experts: ExpertsNames,
    /// Which layers have experts, and what is beside them.
    pub(super) mixture: Mixture,
    /// Values are normalised without a weight.
    pub(super) value_norm: bool,
    /// Values may follow from the keys' product.
    pub(super) values_of_keys: bool,
    /// A layer ends with a factor on the residual stream.
    pub(super) end_factor: Presence,
    /// The first layer may lack the norm before attention.
    pub(super) bare_first: bool,
    /// Parts of names, with what checkpoints have in their place.
    pub(super) renamed: &'static [(&'static str, &'static str)],
}

/// Layers with experts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mixture {
    /// Those of the configuration, in place of the network.
    Stated,
    /// Of these the ones whose router the file has, in place of the network.
    WithRouter,
    /// The same, beside the network; each of both has norms of its own.
    Beside,
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
    /// Before each, by one name: layers have one of both.
    pub(super) const SAME: Self = Self {
        attention: [Some(ATTENTION), None],
        network: [Some(ATTENTION), None],
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

const POST_NETWORK_BESIDE: LinearNames =
    LinearNames::new("blk.*.post_ffw_norm_1", "model.layers.*.post_feedforward_layernorm_1");
const POST_INPUT: LinearNames = LinearNames::new("blk.*.post_norm", "model.layers.*.post_per_layer_input_norm");
const END_FACTOR: Name = Name::new("blk.*.layer_output_scale.weight", "model.layers.*.layer_scalar");

/// What all layers of a model share.
#[derive(Clone, Copy)]
struct Shared {
    /// Divisors of rotary frequencies.
    factors: Option<TensorId>,
    /// That of norms.
    rule: NormRule,
}

/// Keys and values of layers, by their numbers.
type Caches = HashMap<usize, [Cached; 2]>;

/// The norm of `x + y` in Jina's encoder for code, where `y` is the norm of `x + attention(x)`.
const SUM_NORM: LinearNames = LinearNames::new("blk.*.attn_norm_2", "encoder.layer.*.layer_norm_1");

impl Dense {
    pub(super) const PLAIN: Self = Self {
        network: NetworkRule {
            unit: GatedUnit::Plain(GluKind::Swiglu),
            scaled: true,
            biased: false,
            sparsity: None,
            gate_factor: None,
        },
        plain: None,
        qkv: MapRule::PLAIN,
        output_bias: Bias::IfThere,
        query_norm: None,
        norms: LayerNorms::BEFORE,
        norm_bias: false,
        parallel: Parallel::Never,
        scaled_embedding: false,
        norm_offset: NormOffset::None,
        gated: false,
        sinks: Presence::Never,
        experts: ExpertsNames::PLAIN,
        mixture: Mixture::Stated,
        value_norm: false,
        values_of_keys: false,
        end_factor: Presence::Never,
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

    /// A layer. `caches` are the keys and values of those before it.
    fn layer(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        index: usize,
        shared: Shared,
        caches: &mut Caches,
    ) -> Result<Box<dyn Part>, ModelError> {
        let rule = shared.rule;
        let norm = |t: &mut Tensors<'_>, names: Option<LinearNames>| {
            names.map(|names| Norm::new(t, names, c.width, rule)).transpose()
        };
        let parts = match c.mixes.get(index) {
            true => self.mixers(t, c, index, shared, caches)?,
            false => Vec::new(),
        };
        let [before_network, after_network] = self.norms.network;
        let parallel = match (self.parallel, before_network) {
            (Parallel::WithoutNorm, Some(names)) => !t.has(names.weight)?,
            (kind, _) => kind == Parallel::Always,
        };
        let mut branches = Vec::new();
        if !parts.is_empty() {
            let before = match self.norms.attention[0] {
                Some(names) if self.bare_first && index == 0 && !t.has(names.weight)? => None,
                names => norm(t, names)?,
            };
            let mut first = Sublayer {
                before,
                parts,
                after: norm(t, self.norms.attention[1])?,
                factor: c.attention_factor.or(c.branch_factor),
                last: norm(t, self.norms.last[0])?,
                ..Sublayer::default()
            };
            if let Some(streams) = c.streams {
                let (beside, factor) = (LowRank::new(t, streams, c.width, rule)?, FRAC_1_SQRT_2);
                first = first.beside(Box::new(beside), factor);
            }
            branches.push(match c.texts.is_some() && t.has(SUM_NORM.weight)? {
                false => first,
                true => Sublayer {
                    parts: vec![Box::new(first)],
                    last: norm(t, Some(SUM_NORM))?,
                    ..Sublayer::default()
                },
            });
        }
        let experts = match (c.experts.get(index), self.mixture) {
            (Some(_), Mixture::WithRouter | Mixture::Beside) if !t.has(self.experts.router.weight)? => None,
            (experts, _) => experts.as_ref(),
        };
        let is_beside = self.mixture == Mixture::Beside && experts.is_some();
        let before_network = before_network.filter(|_| !is_beside);
        let parts = match experts {
            None if c.ff.of(index) == 0 => Vec::new(),
            None => vec![self.network(t, c, index)?],
            Some(experts) if is_beside => self.beside(t, c, index, experts, rule)?,
            Some(experts) => self.experts(t, c, index, experts)?,
        };
        match branches.last_mut().filter(|_| parallel) {
            Some(first) => first.parts.extend(parts),
            None if parts.is_empty() => {}
            None => branches.push(Sublayer {
                before: norm(t, before_network)?,
                parts,
                after: norm(t, after_network)?,
                factor: c.branch_factor,
                last: norm(t, self.norms.last[1])?,
                ..Sublayer::default()
            }),
        }
        if let (Some(streams), Some(input)) = (c.streams, c.layer_input) {
            let sizes = [c.width, streams.count];
            let layer = StreamLayer::new(t, index, sizes, input, rule, Layer(branches))?;
            return Ok(Box::new(layer));
        }
        if let Some(own) = c.layer_input {
            branches.push(Sublayer {
                parts: vec![Box::new(LayerInput::new(t, index, [c.width, own.width])?)],
                after: norm(t, Some(POST_INPUT))?,
                ..Sublayer::default()
            });
        }
        if let Some(last) = branches.last_mut() {
            last.scale = t.vector_where(self.end_factor, END_FACTOR, 1)?;
        }
        Ok(Box::new(Layer(branches)))
    }

    /// A layer's attention, or what stands in its place or beside it.
    fn mixers(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        index: usize,
        Shared { factors, rule }: Shared,
        caches: &mut Caches,
    ) -> Result<Vec<Box<dyn Part>>, ModelError> {
        let mut parts: Vec<Box<dyn Part>> = Vec::new();
        let recurrent = (c.recurrent.as_ref()).filter(|recurrent| recurrent.layers.get(index) == Some(&true));
        if let Some(recurrent) = recurrent {
            let taps = recurrent.taps;
            parts.push(match recurrent.kind {
                RecurrentKind::ShortConv => Box::new(ShortConv::new(t, c.width, taps)?),
                RecurrentKind::DeltaNet(net) => Box::new(DeltaNet::new(t, net, c.width, taps, rule)?),
                RecurrentKind::KimiDelta(net) => Box::new(KimiDelta::new(t, net, c.width, taps, (rule, c.inner_eps))?),
                RecurrentKind::Mamba2(scan) => Box::new(Mamba2::new(t, scan, c.width, taps, rule, c.scan_factors)?),
            });
            if !recurrent.beside {
                return Ok(parts);
            }
        }
        if let Some(sizes) = c.latent {
            let shape = latent(c, index, (sizes, self.qkv), factors, rule);
            parts.push(Box::new(Latent::new(t, shape)?));
            return Ok(parts);
        }
        let mut shape = self.attention(c, index, factors, rule);
        shape.shared = c.cache_of.get(index).and_then(|source| caches.get(&source).copied());
        let attention = Attention::new(t, shape)?;
        caches.extend(attention.caches().map(|kept| (index, kept)));
        parts.push(Box::new(attention));
        Ok(parts)
    }

    /// A layer's feed-forward network.
    fn network(&self, t: &mut Tensors<'_>, c: &DecoderConfig, index: usize) -> Result<Box<dyn Part>, ModelError> {
        let sizes = [c.width, c.ff.of(index)];
        Ok(match self.plain {
            None => {
                let sparsity = *c.sparsity.get(index);
                let rule = NetworkRule {
                    sparsity,
                    ..self.rule(c)
                };
                let names = [GatedNames::PLAIN, GatedNames::OF_MIXTURE];
                let is_renamed = t.has(names[1].down.weight)?;
                Box::new(Gated::new(t, names[usize::from(is_renamed)], sizes, rule)?)
            }
            Some((activation, [up, down], rule)) => Box::new(Plain {
                up: Linear::by_rule(t, up, None, [sizes[1], sizes[0]], rule)?.scaling_bias(),
                activation: stated(c, activation),
                down: Linear::by_rule(t, down, None, sizes, rule)?.scaling_bias(),
            }),
        })
    }

    /// A layer's experts, and the expert that every token is given to.
    fn experts(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        index: usize,
        experts: &ExpertsConfig,
    ) -> Result<Vec<Box<dyn Part>>, ModelError> {
        if self.mixture == Mixture::WithRouter {
            // A network of the same layer is not used.
            GatedNames::PLAIN.allow(t);
        }
        let plain = self.plain.map(|(activation, ..)| stated(c, activation));
        let chosen = Experts::new(t, self.experts, index, experts, c.width, self.network, plain, None)?;
        let mut parts: Vec<Box<dyn Part>> = vec![Box::new(chosen)];
        if let Some(shared) = experts.shared {
            parts.push(Box::new(SharedExpert::new(t, shared, c.width, self.network, plain)?));
        }
        Ok(parts)
    }

    /// A layer's network and its experts, each with norms of its own.
    fn beside(
        &self,
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        index: usize,
        experts: &ExpertsConfig,
        rule: NormRule,
    ) -> Result<Vec<Box<dyn Part>>, ModelError> {
        let part = self.network(t, c, index)?;
        let [before, after] = [self.norms.network[0].unwrap_or(LinearNames::NONE), POST_NETWORK_BESIDE];
        let network = Normed {
            before: Some(Norm::new(t, before, c.width, rule)?),
            parts: vec![part],
            after: Some(Norm::new(t, after, c.width, rule)?),
        };
        let experts = Experts::new(t, self.experts, index, experts, c.width, self.network, None, Some(rule))?;
        Ok(vec![Box::new(network), Box::new(experts)])
    }

    /// The rule of networks, with the activation that an encoder's file states.
    fn rule(&self, c: &DecoderConfig) -> NetworkRule {
        let stated = c.texts.map(|texts| texts.activation);
        let kind = stated.and_then(|gate| GluKind::ALL.into_iter().find(|kind| kind.gate() == gate));
        let unit = kind.map_or(self.network.unit, GatedUnit::Plain);
        NetworkRule {
            unit,
            gate_factor: c.gate_factor,
            ..self.network
        }
    }

    /// Attention of a layer: `factors` are the divisors of rotary frequencies, `rule` is that of norms.
    fn attention(&self, c: &DecoderConfig, index: usize, factors: Option<TensorId>, rule: NormRule) -> AttentionShape {
        let head_dim = c.head_dim.of(index);
        let rope = Some(c.rope.get(index)).filter(|_| *c.rotated.get(index));
        AttentionShape {
            width: c.width,
            heads: c.heads.of(index),
            kv_heads: c.kv_heads.of(index),
            head_dim,
            value_dim: c.value_dim.of(index),
            scale: c.attention_scale.unwrap_or_else(|| 1.0 / (head_dim as f32).sqrt()),
            rope: rope.cloned(),
            rope_factors: factors.filter(|_| rope.is_some_and(|rope| rope.divided)),
            window: *c.window.get(index),
            window_kind: c.window_kind,
            growth: *c.growth.get(index),
            softcap: c.attention_softcap,
            qkv: self.qkv,
            output_bias: self.output_bias,
            query_norm: self.query_norm.filter(|_| c.query_norm).map(|rows| {
                let bias = rule.bias && rows == QueryNorm::WholeIfAny;
                (rows, NormRule { bias, ..rule })
            }),
            gated: self.gated,
            sinks: self.sinks,
            value_norm: self.value_norm.then_some(rule),
            values_of_keys: self.values_of_keys,
            shared: None,
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
        let (shared, mut caches) = (Shared { factors, rule }, Caches::new());
        Decoder::new(t, c, rule, scale, |t, index| {
            self.layer(t, c, index, shared, &mut caches)
        })
    }
}

/// The activation of a network without a gate: an encoder's file may state another.
fn stated(c: &DecoderConfig, absent: Activation) -> Activation {
    c.texts.map_or(absent, |texts| Activation::Unary(texts.activation))
}

/// Latent attention of a layer.
fn latent(
    c: &DecoderConfig,
    index: usize,
    (sizes, query): (LatentConfig, MapRule),
    factors: Option<TensorId>,
    rule: NormRule,
) -> LatentShape {
    let rope = c.rope.get(index);
    LatentShape {
        width: c.width,
        heads: c.heads.of(index),
        sizes,
        query,
        scale: c.attention_scale.unwrap_or(1.0),
        growth: *c.growth.get(index),
        shared: rope.n_dims,
        rope_factors: factors.filter(|_| rope.divided),
        rope: c.rotated.get(index).then(|| rope.clone()),
        norm: NormRule {
            eps: c.inner_eps,
            bias: false,
            ..rule
        },
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
    match c.rope_factors {
        RopeFactors::Unused => return Ok(None),
        RopeFactors::FromFile if !t.has(ROPE_FACTORS)? => return Ok(None),
        _ => {}
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
        RopeFactors::FromFile | RopeFactors::Unused => t.divisors(ROPE_FACTORS, pairs).map(Some),
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
