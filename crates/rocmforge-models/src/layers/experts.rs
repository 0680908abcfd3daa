//! Experts: feed-forward networks of which a router chooses some for each token, and adds their results.

use rocmforge_ggml::{GgmlResult, GluKind, Op, SoftMax, TensorId};

use super::{Linear, Part};
use crate::ModelError;
use crate::config::ExpertsConfig;
use crate::step::{Place, StepGraph, Tensors};
use crate::weights::Name;

const ROUTER: Name = Name::new("blk.*.ffn_gate_inp.weight", "model.layers.*.mlp.gate.weight");
const GATE: Name = Name::new(
    "blk.*.ffn_gate_exps.weight",
    "model.layers.*.mlp.experts.@.gate_proj.weight",
);
const UP: Name = Name::new(
    "blk.*.ffn_up_exps.weight",
    "model.layers.*.mlp.experts.@.up_proj.weight",
);
const DOWN: Name = Name::new(
    "blk.*.ffn_down_exps.weight",
    "model.layers.*.mlp.experts.@.down_proj.weight",
);

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
        layer: usize,
        config: &ExpertsConfig,
        width: usize,
        glu: GluKind,
    ) -> Result<Self, ModelError> {
        let &ExpertsConfig { count, inner, .. } = config;
        let router = Linear::new(t, ROUTER, [count, width])?;
        t.at(Place::Experts(layer));
        let experts = Self {
            router,
            gate: t.experts(GATE, [count, inner, width])?,
            up: t.experts(UP, [count, inner, width])?,
            down: t.experts(DOWN, [count, width, inner])?,
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
