//! Experts: feed-forward networks of which a router chooses some for each token, and adds their results.

use rocmforge_ggml::{GgmlResult, Op, Route, TensorId, Unary};

use super::{Activation, Gated, GatedNames, GatedUnit, Linear, NetworkRule, Norm, NormRule, Part, Plain};
use crate::ModelError;
use crate::config::{ExpertsConfig, SharedExpertConfig};
use crate::step::{Place, StepGraph, Tensors, Within};
use crate::weights::{ExpertNames, LinearNames, Name, Order};

/// How checkpoints have the matrices of all experts, where they are one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turned {
    /// A row for each result.
    Never,
    /// Rows and columns are exchanged (Llama 4).
    Halves,
    /// The same, and columns of gate and up come in turn (gpt-oss).
    InTurn,
}

/// Names of the router, of the three matrices of all experts, and of gate and up in one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertsNames {
    pub(crate) router: LinearNames,
    pub(crate) gate: ExpertNames,
    pub(crate) up: ExpertNames,
    pub(crate) down: ExpertNames,
    pub(crate) gate_up: Name,
    /// How checkpoints have the matrices of all experts in one tensor.
    pub(crate) turned: Turned,
}

macro_rules! experts_names {
    ($part:literal: $gate:literal, $up:literal, $down:literal) => {
        ExpertsNames {
            router: LinearNames::new("blk.*.ffn_gate_inp", concat!($part, "gate")),
            gate: experts_names!("gate", $part, $gate, "", ""),
            up: experts_names!("up", $part, $up, "", ""),
            down: experts_names!(
                "down",
                $part,
                $down,
                concat!($part, "experts.down_proj"),
                concat!($part, "experts.down_proj_bias")
            ),
            gate_up: Name::new("blk.*.ffn_gate_up_exps.weight", concat!($part, "experts.gate_up_proj")),
            turned: Turned::Never,
        }
    };
    ($kind:literal, $part:literal, $own:literal, $together:expr, $bias:expr) => {
        ExpertNames {
            together: Name::new(concat!("blk.*.ffn_", $kind, "_exps.weight"), $together),
            apart: Name::new(
                concat!("blk.*.ffn_", $kind, ".@.weight"),
                concat!($part, "experts.@.", $own, ".weight"),
            ),
            bias: Name::new(concat!("blk.*.ffn_", $kind, "_exps.bias"), $bias),
            scale: Name::new(concat!("blk.*.ffn_", $kind, "_exps.scale"), ""),
            input_scale: Name::new(concat!("blk.*.ffn_", $kind, "_exps.input_scale"), ""),
        }
    };
}

impl ExpertsNames {
    /// Those of most models.
    pub(crate) const PLAIN: Self = experts_names!("model.layers.*.mlp.": "gate_proj", "up_proj", "down_proj");
    /// Llama 4's.
    pub(crate) const LLAMA4: Self = Self {
        turned: Turned::Halves,
        ..Self::PLAIN
    };
    /// Those of Gemma 4, which has a factor for the result of each expert.
    pub(crate) const WITH_FACTORS: Self = Self {
        down: ExpertNames {
            scale: Name::new("blk.*.ffn_down_exps.scale", "model.layers.*.router.per_expert_scale"),
            ..Self::PLAIN.down
        },
        ..Self::PLAIN
    };
    /// Those of gpt-oss.
    pub(crate) const IN_TURN: Self = Self {
        turned: Turned::InTurn,
        ..Self::PLAIN
    };
    /// Mixtral's.
    pub(crate) const MIXTRAL: Self = experts_names!("model.layers.*.block_sparse_moe.": "w1", "w3", "w2");
}

/// A matrix of each expert, `[count, cols, rows]`, and where the file has them a factor on the products of each, `[count, 1]`, and a bias of each, `[count, rows]`.
#[derive(Debug)]
struct Matrices {
    weights: TensorId,
    scales: Option<TensorId>,
    biases: Option<TensorId>,
}

impl Matrices {
    fn new(
        t: &mut Tensors<'_>,
        names: ExpertNames,
        fused: Option<(Name, usize, usize)>,
        within: Option<&[Within; 2]>,
        shape: [usize; 3],
        rule: NetworkRule,
    ) -> Result<Self, ModelError> {
        t.allow(names.input_scale);
        let scale = rule.scale(t, names.scale);
        let (weights, biases) = (within.map(|[weights, _]| weights), within.map(|[_, biases]| biases));
        Ok(Self {
            weights: t.experts(names, fused, weights, shape)?,
            scales: t.has(scale)?.then(|| t.column(scale, shape[0])).transpose()?,
            biases: match rule.biased || t.has(names.bias)? {
                true => Some(t.floats_within(names.bias, biases, [shape[0], shape[1]])?),
                false => None,
            },
        })
    }

    /// Where a checkpoint with `turned` matrices has those of `[count, rows, cols]`, and their biases: of every `of` matrices the one of number `part`.
    /// Floats are transposed, block formats are not.
    ///
    /// # Errors
    /// The tensor is of a type that cannot be used.
    fn within(
        t: &Tensors<'_>,
        turned: Turned,
        [weights, biases]: [Name; 2],
        [part, of]: [usize; 2],
        [count, rows, cols]: [usize; 3],
    ) -> Result<Option<[Within; 2]>, ModelError> {
        let whole = of * rows;
        let (first, step) = match turned {
            Turned::Never => return Ok(None),
            Turned::Halves => (part * rows, 1),
            Turned::InTurn => (part, of),
        };
        let name = weights.of_checkpoints();
        let block = t.dtype(name)?.map_or(1, |dtype| dtype.block_len());
        let blocks = cols / block;
        let weights = match block {
            1 => Within {
                name,
                dims: vec![count, cols, whole],
                orders: vec![Order {
                    first,
                    dims: vec![count, rows, cols],
                    steps: vec![cols * whole, step, whole],
                }],
            },
            _ => Within {
                name,
                dims: vec![count, whole, cols],
                orders: vec![Order {
                    first: first * blocks,
                    dims: vec![count, rows, blocks],
                    steps: vec![whole * blocks, step * blocks, 1],
                }],
            },
        };
        let biases = Within {
            name: biases.of_checkpoints(),
            dims: vec![count, whole],
            orders: vec![Order {
                first,
                dims: vec![count, rows],
                steps: vec![whole, step],
            }],
        };
        Ok(Some([weights, biases]))
    }

    /// The products of `x` with the experts of each token: `ids` is u32 `[tokens, used]`, the result `[tokens, used, rows]`.
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId, ids: TensorId, used: usize) -> GgmlResult<TensorId> {
        let mut products = g.push(Op::MulMatId, &[x, self.weights, ids])?;
        if let Some(scales) = self.scales {
            let tokens = g.tokens();
            let ids = g.reshape(ids, [tokens * used])?;
            let chosen = g.push(Op::GetRows, &[scales, ids])?;
            let chosen = g.reshape(chosen, [tokens, used, 1])?;
            products = g.push(Op::Mul, &[products, chosen])?;
        }
        match self.biases {
            None => Ok(products),
            Some(biases) => g.push(Op::AddId, &[products, biases, ids]),
        }
    }
}

const GATE_UP_BIAS: Name = Name::new("", "model.layers.*.mlp.experts.gate_up_proj_bias");
const CHOICE_BIAS: Name = Name::new(
    "blk.*.exp_probs_b.bias",
    "model.layers.*.mlp.gate.e_score_correction_bias",
);
/// The least divisor of factors, whose sum may be small: the least positive normal f16, as in llama.cpp.
const LEAST_SUM: f32 = 6.103_515_6e-5;

/// Norms of experts that see the residual stream itself.
#[derive(Debug)]
struct OwnNorms {
    /// Of what the router sees.
    router: Norm,
    /// Of what experts see.
    before: Norm,
    /// Of their result.
    after: Norm,
}

const ROUTER_NORM: Name = Name::new("blk.*.ffn_gate_inp.scale", "model.layers.*.router.scale");
const BEFORE: LinearNames = LinearNames::new("blk.*.pre_ffw_norm_2", "model.layers.*.pre_feedforward_layernorm_2");
const AFTER: LinearNames = LinearNames::new("blk.*.post_ffw_norm_2", "model.layers.*.post_feedforward_layernorm_2");

/// Gated feed-forward networks and their router.
#[derive(Debug)]
pub(crate) struct Experts {
    norms: Option<OwnNorms>,
    router: Linear,
    /// Added to the scores that choose.
    choice_bias: Option<TensorId>,
    inner: Inner,
    down: Matrices,
    config: ExpertsConfig,
    width: usize,
}

/// What experts compute between input and result.
#[derive(Debug)]
enum Inner {
    Gated {
        gate: Matrices,
        up: Matrices,
        unit: GatedUnit,
    },
    Plain {
        up: Matrices,
        activation: Activation,
    },
}

impl Experts {
    /// Asks for the weights of a layer's experts, which may lie apart from the rest of the layer. Those of `plain`
    /// have no gate, but this function. With `norms` they have norms of their own, by this rule.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        names: ExpertsNames,
        layer: usize,
        config: &ExpertsConfig,
        width: usize,
        rule: NetworkRule,
        plain: Option<Activation>,
        norms: Option<NormRule>,
    ) -> Result<Self, ModelError> {
        let mut names = names;
        let of_rule = |norms| -> Result<OwnNorms, ModelError> {
            // The tensor is no factor of the router's product.
            names.router.scale = Name::NONE;
            Ok(OwnNorms {
                router: Norm::scaled(t, ROUTER_NORM, width, 1.0 / (width as f32).sqrt(), norms)?,
                before: Norm::new(t, BEFORE, width, norms)?,
                after: Norm::new(t, AFTER, width, norms)?,
            })
        };
        let norms = norms.map(of_rule).transpose()?;
        let &ExpertsConfig { count, inner, .. } = config;
        let router = match rule.biased {
            true => Linear::with_bias(t, names.router, None, [count, width])?,
            false => Linear::new(t, names.router, None, [count, width])?,
        };
        let choice_bias = t.vector_where(config.choice_bias, CHOICE_BIAS, count)?;
        t.at(Place::Experts(layer));
        let half = |first| Some((names.gate_up, first, 2 * inner));
        let (shape, down_shape) = ([count, inner, width], [count, width, inner]);
        let within = |t: &Tensors<'_>, tensors, part, shape| Matrices::within(t, names.turned, tensors, part, shape);
        let gate_up = [names.gate_up, GATE_UP_BIAS];
        let gate_within = within(t, gate_up, [0, 2], shape)?;
        let up_within = within(t, gate_up, [1, 2], shape)?;
        let down_within = within(t, [names.down.together, names.down.bias], [0, 1], down_shape)?;
        let experts = Self {
            norms,
            router,
            choice_bias,
            inner: match plain {
                None => Inner::Gated {
                    gate: Matrices::new(t, names.gate, half(0), gate_within.as_ref(), shape, rule)?,
                    up: Matrices::new(t, names.up, half(inner), up_within.as_ref(), shape, rule)?,
                    unit: rule.unit,
                },
                Some(activation) => Inner::Plain {
                    up: Matrices::new(t, names.up, None, None, shape, rule)?,
                    activation,
                },
            },
            down: Matrices::new(t, names.down, None, down_within.as_ref(), down_shape, rule)?,
            config: config.clone(),
            width,
        };
        t.at(Place::Layer(layer));
        Ok(experts)
    }

    /// The chosen experts, u32 `[tokens, used]`, and the factors of their results, f32 of the same shape.
    fn choose(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<[TensorId; 2]> {
        let config = &self.config;
        let scores = self.router.build(g, x)?;
        let how = Route {
            k: config.used,
            gate: config.gate,
            groups: config.groups,
            normalised: config.normalised,
            least_sum: LEAST_SUM,
            factor: config.factor.unwrap_or(1.0),
        };
        let inputs: Vec<TensorId> = [scores].into_iter().chain(self.choice_bias).collect();
        let outputs = g.push_all(Op::Route(how), &inputs)?;
        if !config.on_input {
            return Ok([outputs[0], outputs[1]]);
        }
        // A table of one column for each token.
        let (tokens, used) = (g.tokens(), config.used);
        let scores = g.reshape(scores, [tokens, config.count, 1])?;
        let chosen = g.push(Op::GetRows, &[scores, outputs[0]])?;
        let chosen = g.reshape(chosen, [tokens, used])?;
        Ok([outputs[0], g.push(Op::Unary(Unary::Sigmoid), &[chosen])?])
    }
}

impl Part for Experts {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let (tokens, used, width) = (g.tokens(), self.config.used, self.width);
        let norms = self.norms.as_ref();
        let routed = Norm::of(norms.map(|norms| &norms.router), g, x)?;
        let [ids, factors] = self.choose(g, routed)?;
        let seen = Norm::of(norms.map(|norms| &norms.before), g, x)?;
        let mut rows = g.reshape(seen, [tokens, 1, width])?;
        if self.config.on_input {
            // Each expert sees rows of its own.
            if used > 1 {
                rows = g.repeat(rows, [tokens, used, width])?;
            }
            let of_inputs = g.reshape(factors, [tokens, used, 1])?;
            rows = g.push(Op::Mul, &[rows, of_inputs])?;
        }
        let inner = match &self.inner {
            Inner::Gated { gate, up, unit } => {
                let gate = gate.build(g, rows, ids, used)?;
                let up = up.build(g, rows, ids, used)?;
                unit.build(g, gate, up)?
            }
            Inner::Plain { up, activation } => {
                let up = up.build(g, rows, ids, used)?;
                activation.build(g, up)?
            }
        };
        let results = self.down.build(g, inner, ids, used)?;
        let sum = if self.config.on_input && used == 1 {
            results
        } else {
            // The sum of the results times their factors is a product for each token.
            let mut factors = g.reshape(factors, [tokens, 1, used])?;
            if self.config.on_input {
                let (factor, bias) = (0.0, 1.0);
                factors = g.push(Op::ScaleBias { factor, bias }, &[factors])?;
            }
            g.push(Op::MulMat, &[factors, results])?
        };
        let sum = g.reshape(sum, [tokens, width])?;
        Norm::of(norms.map(|norms| &norms.after), g, sum)
    }
}

const SHARED: GatedNames = GatedNames {
    gate: LinearNames::new("blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_expert.gate_proj"),
    up: LinearNames::new("blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_expert.up_proj"),
    down: LinearNames::new("blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_expert.down_proj"),
    gate_up: LinearNames::new("", "model.layers.*.mlp.shared_expert.gate_up_proj"),
};
const SHARED_FACTOR: Name = Name::new(
    "blk.*.ffn_gate_inp_shexp.weight",
    "model.layers.*.mlp.shared_expert_gate.weight",
);

/// A feed-forward network that every token is given to, beside the chosen experts.
#[derive(Debug)]
pub(crate) struct SharedExpert {
    network: Box<dyn Part>,
    /// One row, for the factor of the result.
    factor: Option<TensorId>,
}

impl SharedExpert {
    /// Asks for the weights: `width` inputs and results.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        config: SharedExpertConfig,
        width: usize,
        rule: NetworkRule,
        plain: Option<Activation>,
    ) -> Result<Self, ModelError> {
        let factor = config.gated.then(|| t.row(SHARED_FACTOR, width)).transpose()?;
        Ok(Self {
            network: match plain {
                None => Box::new(Gated::new(t, SHARED, [width, config.inner], rule)?),
                Some(activation) => Box::new(Plain {
                    up: Linear::new(t, SHARED.up, None, [config.inner, width])?.scaling_bias(),
                    activation,
                    down: Linear::new(t, SHARED.down, None, [width, config.inner])?.scaling_bias(),
                }),
            },
            factor,
        })
    }
}

impl Part for SharedExpert {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let result = self.network.build(g, x)?;
        let Some(factor) = self.factor else { return Ok(result) };
        let factor = g.push(Op::MulMat, &[x, factor])?;
        let factor = g.push(Op::Unary(Unary::Sigmoid), &[factor])?;
        g.push(Op::Mul, &[result, factor])
    }
}
