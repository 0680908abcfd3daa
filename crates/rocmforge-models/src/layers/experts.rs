//! Experts: feed-forward networks of which a router chooses some for each token, and adds their results.

use rocmforge_ggml::{GgmlResult, GluKind, Op, SoftMax, TensorId, Unary};

use super::{Gated, GatedNames, Linear, Part};
use crate::ModelError;
use crate::config::{ExpertsConfig, SharedExpertConfig};
use crate::step::{Fused, Place, StepGraph, Tensors};
use crate::weights::{ExpertNames, LinearNames, Name};

/// Names of the router, of the three matrices of all experts, and of gate and up in one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpertsNames {
    pub(crate) router: LinearNames,
    pub(crate) gate: ExpertNames,
    pub(crate) up: ExpertNames,
    pub(crate) down: ExpertNames,
    pub(crate) gate_up: LinearNames,
}

macro_rules! experts_names {
    ($router:literal, $experts:literal: $gate:literal, $up:literal, $down:literal) => {
        ExpertsNames {
            router: LinearNames::new("blk.*.ffn_gate_inp", concat!($experts, $router)),
            gate: ExpertNames {
                together: Name::new("blk.*.ffn_gate_exps.weight", ""),
                apart: Name::new(
                    "blk.*.ffn_gate.@.weight",
                    concat!($experts, "experts.@.", $gate, ".weight"),
                ),
            },
            up: ExpertNames {
                together: Name::new("blk.*.ffn_up_exps.weight", ""),
                apart: Name::new("blk.*.ffn_up.@.weight", concat!($experts, "experts.@.", $up, ".weight")),
            },
            down: ExpertNames {
                together: Name::new("blk.*.ffn_down_exps.weight", concat!($experts, "experts.down_proj")),
                apart: Name::new(
                    "blk.*.ffn_down.@.weight",
                    concat!($experts, "experts.@.", $down, ".weight"),
                ),
            },
            gate_up: LinearNames {
                weight: Name::new(
                    "blk.*.ffn_gate_up_exps.weight",
                    concat!($experts, "experts.gate_up_proj"),
                ),
                bias: Name::new("", ""),
            },
        }
    };
}

impl ExpertsNames {
    /// Those of most models.
    pub(crate) const PLAIN: Self = experts_names!("gate", "model.layers.*.mlp.": "gate_proj", "up_proj", "down_proj");
    /// Mixtral's.
    pub(crate) const MIXTRAL: Self = experts_names!("gate", "model.layers.*.block_sparse_moe.": "w1", "w3", "w2");
}

/// Gated feed-forward networks and their router.
#[derive(Debug)]
pub(crate) struct Experts {
    router: Linear,
    /// Matrices of all experts: `[count, width, inner]`, and `[count, inner, width]` for `down`.
    gate: TensorId,
    up: TensorId,
    down: TensorId,
    config: ExpertsConfig,
    width: usize,
    glu: GluKind,
}

impl Experts {
    /// Asks for the weights of a layer's experts, which may lie apart from the rest of the layer.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        names: ExpertsNames,
        layer: usize,
        config: &ExpertsConfig,
        width: usize,
        glu: GluKind,
    ) -> Result<Self, ModelError> {
        let &ExpertsConfig { count, inner, .. } = config;
        let router = Linear::new(t, names.router, None, [count, width])?;
        t.at(Place::Experts(layer));
        let half = |first| Fused {
            names: names.gate_up,
            first,
            of: 2 * inner,
        };
        let experts = Self {
            router,
            gate: t.experts(names.gate, Some(&half(0)), [count, inner, width])?,
            up: t.experts(names.up, Some(&half(inner)), [count, inner, width])?,
            down: t.experts(names.down, None, [count, width, inner])?,
            config: config.clone(),
            width,
            glu,
        };
        t.at(Place::Layer(layer));
        Ok(experts)
    }

    /// The chosen experts, u32 `[tokens, used]`, and the factors of their results, f32 of the same shape.
    fn choose(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<[TensorId; 2]> {
        let (tokens, &ExpertsConfig { count, used, .. }) = (g.tokens(), &self.config);
        let scores = self.router.build(g, x)?;
        let shares = g.push(Op::SoftMax(SoftMax::PLAIN), &[scores])?;
        let ids = g.push(Op::TopK { k: used }, &[shares])?;
        // A table with one column for each token.
        let table = g.reshape(shares, [tokens, count, 1])?;
        let chosen = g.push(Op::GetRows, &[table, ids])?;
        let chosen = g.reshape(chosen, [tokens, used])?;
        if !self.config.normalised {
            return Ok([ids, chosen]);
        }
        let sum = g.push(Op::SumRows, &[chosen])?;
        Ok([ids, g.push(Op::Div, &[chosen, sum])?])
    }
}

impl Part for Experts {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let (tokens, used, width) = (g.tokens(), self.config.used, self.width);
        let [ids, factors] = self.choose(g, x)?;
        let rows = g.reshape(x, [tokens, 1, width])?;
        let gate = g.push(Op::MulMatId, &[rows, self.gate, ids])?;
        let up = g.push(Op::MulMatId, &[rows, self.up, ids])?;
        let glu = Op::Glu {
            kind: self.glu,
            swapped: false,
        };
        let inner = g.push(glu, &[gate, up])?;
        let results = g.push(Op::MulMatId, &[inner, self.down, ids])?;
        // The sum of the results times their factors is a product for each token.
        let factors = g.reshape(factors, [tokens, 1, used])?;
        let sum = g.push(Op::MulMat, &[factors, results])?;
        g.reshape(sum, [tokens, width])
    }
}

const SHARED: GatedNames = GatedNames {
    gate: LinearNames::new("blk.*.ffn_gate_shexp", "model.layers.*.mlp.shared_expert.gate_proj"),
    up: LinearNames::new("blk.*.ffn_up_shexp", "model.layers.*.mlp.shared_expert.up_proj"),
    down: LinearNames::new("blk.*.ffn_down_shexp", "model.layers.*.mlp.shared_expert.down_proj"),
    gate_up: LinearNames::new("", ""),
};
const SHARED_FACTOR: Name = Name::new(
    "blk.*.ffn_gate_inp_shexp.weight",
    "model.layers.*.mlp.shared_expert_gate.weight",
);

/// A feed-forward network that every token is given to, beside the chosen experts.
#[derive(Debug)]
pub(crate) struct SharedExpert {
    network: Gated,
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
        glu: GluKind,
    ) -> Result<Self, ModelError> {
        let factor = config.gated.then(|| t.row(SHARED_FACTOR, width)).transpose()?;
        Ok(Self {
            network: Gated::new(t, SHARED, [width, config.inner], glu)?,
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
