//! Feed-forward networks: gated, `down(f(gate x) * (up x))`, and plain, `down(f(up x))`.

use rocmforge_ggml::{GgmlResult, GluKind, Op, TensorId, Unary};

use super::{Linear, Part};
use crate::ModelError;
use crate::config::SparsityConfig;
use crate::step::{Fused, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// Names of the three maps, and of gate and up in one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GatedNames {
    pub(crate) gate: LinearNames,
    pub(crate) up: LinearNames,
    pub(crate) down: LinearNames,
    pub(crate) gate_up: LinearNames,
}

impl GatedNames {
    /// A file may have the tensors, and nobody uses them.
    pub(crate) fn allow(self, t: &mut Tensors<'_>) {
        for names in [self.gate, self.up, self.down, self.gate_up] {
            t.allow_linear(names);
        }
    }

    /// Those of a layer with one such network. Phi-3's GGUF calls the fused matrix by the name of one half.
    pub(crate) const PLAIN: Self = Self {
        gate: LinearNames::new("blk.*.ffn_gate", "model.layers.*.mlp.gate_proj"),
        up: LinearNames::new("blk.*.ffn_up", "model.layers.*.mlp.up_proj"),
        down: LinearNames::new("blk.*.ffn_down", "model.layers.*.mlp.down_proj"),
        gate_up: LinearNames::new("blk.*.ffn_up", "model.layers.*.mlp.gate_up_proj"),
    };
    /// [`Self::PLAIN`], for which transformers writes the names of a mixture when it saves Kimi Linear.
    pub(crate) const OF_MIXTURE: Self = Self {
        gate: LinearNames::new("blk.*.ffn_gate", "model.layers.*.block_sparse_moe.gate_proj"),
        up: LinearNames::new("blk.*.ffn_up", "model.layers.*.block_sparse_moe.up_proj"),
        down: LinearNames::new("blk.*.ffn_down", "model.layers.*.block_sparse_moe.down_proj"),
        ..Self::PLAIN
    };
}

/// How gate and up projection are joined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum GatedUnit {
    /// A function of the gate, times the up projection.
    Plain(GluKind),
    /// Gate and up projection are bounded, and 1 is added to the latter: `min(gate, c) * sigmoid(1.702 min(gate, c)) * (clamp(up, -c, c) + 1)`.
    Clamped {
        /// The bound `c`.
        bound: f32,
    },
}

impl GatedUnit {
    /// Adds the nodes. `gate`, `up` and the result have one shape.
    pub(crate) fn build(self, g: &mut StepGraph<'_>, gate: TensorId, up: TensorId) -> GgmlResult<TensorId> {
        let glu = |kind| Op::Glu { kind, swapped: false };
        let bound = match self {
            Self::Plain(kind) => return g.push(glu(kind), &[gate, up]),
            Self::Clamped { bound } => bound,
        };
        let (min, max) = (f32::NEG_INFINITY, bound);
        let gate = g.push(Op::Clamp { min, max }, &[gate])?;
        let up = g.push(Op::Clamp { min: -bound, max }, &[up])?;
        let (factor, bias) = (1.0, 1.0);
        let up = g.push(Op::ScaleBias { factor, bias }, &[up])?;
        g.push(glu(GluKind::GegluQuick), &[gate, up])
    }
}

/// What the networks of a model have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NetworkRule {
    pub(crate) unit: GatedUnit,
    /// Factors that the file states of the products are applied. llama.cpp loads them for all architectures, and applies them in some.
    pub(crate) scaled: bool,
    /// The router and the experts must have biases. Without, they may.
    pub(crate) biased: bool,
    /// Gates of a network are mostly zero.
    pub(crate) sparsity: Option<SparsityConfig>,
    /// A factor on gates, which the configuration states.
    pub(crate) gate_factor: Option<f32>,
}

impl NetworkRule {
    /// The name of a factor that is applied; [`Name::NONE`] if none is.
    pub(crate) fn scale(self, t: &mut Tensors<'_>, name: Name) -> Name {
        t.allow(name);
        if self.scaled { name } else { Name::NONE }
    }
}

/// A gated feed-forward network.
#[derive(Debug)]
pub(crate) struct Gated {
    gate: Linear,
    up: Linear,
    down: Linear,
    unit: GatedUnit,
    sparsity: Option<SparsityConfig>,
    inner: usize,
    gate_factor: Option<f32>,
}

impl Gated {
    /// Asks for the weights: `width` inputs and results, `inner` between.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        names: GatedNames,
        [width, inner]: [usize; 2],
        rule: NetworkRule,
    ) -> Result<Self, ModelError> {
        let mut applied = |names: LinearNames| LinearNames {
            scale: rule.scale(t, names.scale),
            ..names
        };
        let names = GatedNames {
            gate: applied(names.gate),
            up: applied(names.up),
            down: applied(names.down),
            gate_up: applied(names.gate_up),
        };
        let is_fused = !t.has(names.gate.weight)? && t.has_shape(names.gate_up.weight, &[2 * inner, width])?;
        let half = |first| {
            is_fused.then_some(Fused {
                names: names.gate_up,
                first,
                of: 2 * inner,
            })
        };
        // A file without the fused matrix lacks `up` first.
        let up = Linear::new(t, names.up, half(inner).as_ref(), [inner, width])?;
        let gate = Linear::new(t, names.gate, half(0).as_ref(), [inner, width])?;
        let down = Linear::new(t, names.down, None, [width, inner])?;
        // As llama.cpp computes it.
        Ok(Self {
            gate: gate.scaling_bias(),
            up: up.scaling_bias(),
            down: down.scaling_bias(),
            unit: rule.unit,
            sparsity: rule.sparsity,
            inner,
            gate_factor: rule.gate_factor,
        })
    }
}

impl Part for Gated {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let mut gate = self.gate.build(g, x)?;
        if let Some(factor) = self.gate_factor {
            gate = g.push(Op::Scale { factor }, &[gate])?;
        }
        if let Some(rule) = self.sparsity {
            gate = sparse(g, gate, rule, self.inner)?;
        }
        let up = self.up.build(g, x)?;
        let inner = self.unit.build(g, gate, up)?;
        self.down.build(g, inner)
    }
}

/// What of rows of `length` gates lies above their mean by some standard deviations: `max(gate - (mean + factor * deviation), 0)`.
fn sparse(g: &mut StepGraph<'_>, gate: TensorId, rule: SparsityConfig, length: usize) -> GgmlResult<TensorId> {
    let mean = g.push(Op::Mean, &[gate])?;
    let centred = g.push(Op::Sub, &[gate, mean])?;
    let squares = g.push(Op::Sqr, &[centred])?;
    let sum = g.push(Op::SumRows, &[squares])?;
    let divisor = length - usize::from(rule.sample);
    let factor = 1.0 / divisor.max(1) as f32;
    let variance = g.push(Op::Scale { factor }, &[sum])?;
    let deviation = g.push(Op::Sqrt, &[variance])?;
    let factor = rule.deviations;
    let least = g.push(Op::Scale { factor }, &[deviation])?;
    let above = g.push(Op::Sub, &[centred, least])?;
    g.push(Op::Unary(Unary::Relu), &[above])
}

/// The function of a network without a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Unary(Unary),
    /// The square of what is positive.
    ReluSquared,
}

impl Activation {
    /// Adds the nodes.
    pub(crate) fn build(self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        match self {
            Self::Unary(function) => g.push(Op::Unary(function), &[x]),
            Self::ReluSquared => {
                let positive = g.push(Op::Unary(Unary::Relu), &[x])?;
                g.push(Op::Sqr, &[positive])
            }
        }
    }
}

/// A feed-forward network without a gate.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) up: Linear,
    pub(crate) activation: Activation,
    pub(crate) down: Linear,
}

impl Part for Plain {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let inner = self.up.build(g, x)?;
        let inner = self.activation.build(g, inner)?;
        self.down.build(g, inner)
    }
}
