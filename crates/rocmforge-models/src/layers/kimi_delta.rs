//! Kimi delta attention: a gated delta net whose states decay column by column.
//!
//! Kimi Team, "Kimi Linear: An Expressive, Efficient Attention Architecture", 2025. Query, key and value have a map and a short convolution each; decay and
//! gate come from products of two matrices with a short vector between them.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Bias, Linear, MapRule, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::State;
use crate::config::DeltaNetConfig;
use crate::step::{Fused, StepGraph, Tensors};
use crate::weights::{LinearNames, Name, Naming};

const ALL: LinearNames = LinearNames::new("blk.*.attn_qkv", "");
const PARTS: [(LinearNames, Name); 3] = [
    (
        LinearNames::new("blk.*.attn_q", "model.layers.*.self_attn.q_proj"),
        Name::new("blk.*.ssm_conv1d_q.weight", "model.layers.*.self_attn.q_conv1d.weight"),
    ),
    (
        LinearNames::new("blk.*.attn_k", "model.layers.*.self_attn.k_proj"),
        Name::new("blk.*.ssm_conv1d_k.weight", "model.layers.*.self_attn.k_conv1d.weight"),
    ),
    (
        LinearNames::new("blk.*.attn_v", "model.layers.*.self_attn.v_proj"),
        Name::new("blk.*.ssm_conv1d_v.weight", "model.layers.*.self_attn.v_conv1d.weight"),
    ),
];
/// Biases and factors of the file are not used, as in llama.cpp.
const RULE: MapRule = MapRule {
    bias: Bias::Unused,
    scaled: false,
};

const STEP: [LinearNames; 2] = [
    LinearNames::new("blk.*.ssm_f_a", "model.layers.*.self_attn.f_a_proj"),
    LinearNames::new("blk.*.ssm_f_b", "model.layers.*.self_attn.f_b_proj"),
];
const STEP_BIAS: Name = Name::new("blk.*.ssm_dt.bias", "model.layers.*.self_attn.dt_bias");
const RATE: Name = Name::new("blk.*.ssm_a", "model.layers.*.self_attn.A_log");
const BETA: LinearNames = LinearNames::new("blk.*.ssm_beta", "model.layers.*.self_attn.b_proj");
const GATE: [LinearNames; 2] = [
    LinearNames::new("blk.*.ssm_g_a", "model.layers.*.self_attn.g_a_proj"),
    LinearNames::new("blk.*.ssm_g_b", "model.layers.*.self_attn.g_b_proj"),
];
const NORM: LinearNames = LinearNames::new("blk.*.ssm_norm", "model.layers.*.self_attn.o_norm");
const OUTPUT: LinearNames = LinearNames::new("blk.*.attn_output", "model.layers.*.self_attn.o_proj");

/// Query, key or value: a map, and its convolution.
#[derive(Debug)]
struct Convolved {
    map: Linear,
    /// `[channels, taps]`.
    taps: TensorId,
    /// The last inputs of the convolution, `[channels, taps - 1]`.
    inputs: State,
}

/// Two maps, one after the other.
#[derive(Debug)]
struct Short([Linear; 2]);

impl Short {
    fn new(t: &mut Tensors<'_>, [first, second]: [LinearNames; 2], sizes: [usize; 3]) -> Result<Self, ModelError> {
        let [width, between, inner] = sizes;
        Ok(Self([
            Linear::by_rule(t, first, None, [between, width], RULE)?,
            Linear::by_rule(t, second, None, [inner, between], RULE)?,
        ]))
    }

    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let between = self.0[0].build(g, x)?;
        self.0[1].build(g, between)
    }
}

/// The Kimi delta attention of one layer.
#[derive(Debug)]
pub(crate) struct KimiDelta {
    config: DeltaNetConfig,
    /// Inputs that a convolution keeps.
    kept: usize,
    /// Added to the square of a key's length.
    eps: f32,
    parts: [Convolved; 3],
    step: Short,
    /// Added to steps, `[heads * dim]`.
    step_bias: TensorId,
    /// What the steps of a head are multiplied by, `[heads, 1]`.
    rate: TensorId,
    beta: Linear,
    gate: Short,
    norm: Norm,
    output: Linear,
    /// A matrix of each head.
    state: State,
}

impl KimiDelta {
    /// Asks for the weights of the current layer, and for its states. The convolutions see `seen` tokens; `eps` is added to the square of a key's length.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        config: DeltaNetConfig,
        width: usize,
        seen: usize,
        (rule, eps): (NormRule, f32),
    ) -> Result<Self, ModelError> {
        let DeltaNetConfig { heads, dim, .. } = config;
        let (inner, kept) = (heads * dim, seen - 1);
        let mut part = |index: usize| -> Result<Convolved, ModelError> {
            let (names, taps) = PARTS[index];
            let fused = Fused {
                names: ALL,
                first: index * inner,
                of: 3 * inner,
            };
            Ok(Convolved {
                map: Linear::by_rule(t, names, Some(&fused), [inner, width], RULE)?,
                taps: t.floats_without_ones(taps, [inner, seen])?,
                inputs: t.state(inner * kept),
            })
        };
        let parts = [part(0)?, part(1)?, part(2)?];
        Ok(Self {
            config,
            kept,
            eps,
            parts,
            step: Short::new(t, STEP, [width, dim, inner])?,
            step_bias: t.vector(STEP_BIAS, None, inner)?,
            rate: match t.naming() {
                Naming::Gguf => t.floats_without_ones(RATE, [heads, 1])?,
                Naming::HuggingFace => t.decay(RATE, &[heads, 1])?,
            },
            beta: Linear::by_rule(t, BETA, None, [heads, width], RULE)?,
            gate: Short::new(t, GATE, [width, dim, inner])?,
            norm: Norm::new(t, NORM, dim, rule)?,
            output: Linear::by_rule(t, OUTPUT, None, [width, inner], RULE)?,
            state: t.state(inner * dim),
        })
    }

    /// The logarithm of the decay of each column, `[tokens, heads, dim]`.
    fn decay(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let DeltaNetConfig { heads, dim, .. } = self.config;
        let step = self.step.build(g, x)?;
        let step = g.push(Op::Add, &[step, self.step_bias])?;
        let step = g.push(Op::Unary(Unary::Softplus), &[step])?;
        let step = g.reshape(step, [g.tokens(), heads, dim])?;
        g.push(Op::Mul, &[step, self.rate])
    }
}

/// Rows of `dim` elements divided by their length: `x / sqrt(sum x^2 + eps)`, which is the norm of root mean squares with other factors.
fn of_length_one(g: &mut StepGraph<'_>, x: TensorId, dim: usize, eps: f32) -> GgmlResult<TensorId> {
    let dim = dim as f32;
    let x = g.push(Op::RmsNorm { eps: eps / dim }, &[x])?;
    let factor = 1.0 / dim.sqrt();
    g.push(Op::Scale { factor }, &[x])
}

impl Part for KimiDelta {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let DeltaNetConfig { heads, dim, .. } = self.config;
        let (tokens, inner) = (g.tokens(), heads * dim);
        let convolved = |g: &mut StepGraph<'_>, part: &Convolved| {
            let rows = part.map.build(g, x)?;
            let rows = g.recur(Op::SsmConv, part.inputs, &[inner, self.kept], &[rows, part.taps])?;
            let rows = g.push(Op::Unary(Unary::Silu), &[rows])?;
            g.reshape(rows, [tokens, heads, dim])
        };
        let [q, k, v] = &self.parts;
        let (q, k, v) = (convolved(g, q)?, convolved(g, k)?, convolved(g, v)?);
        let (q, k) = (of_length_one(g, q, dim, self.eps)?, of_length_one(g, k, dim, self.eps)?);
        let decay = self.decay(g, x)?;
        let beta = self.beta.build(g, x)?;
        let beta = g.push(Op::Unary(Unary::Sigmoid), &[beta])?;
        let inputs = [q, k, v, decay, beta];
        let rows = g.recur(Op::GatedDeltaNet, self.state, &[heads, dim, dim], &inputs)?;
        let rows = self.norm.build(g, rows)?;
        let rows = g.reshape(rows, [tokens, inner])?;
        let gate = self.gate.build(g, x)?;
        let gate = g.push(Op::Unary(Unary::Sigmoid), &[gate])?;
        let rows = g.push(Op::Mul, &[rows, gate])?;
        self.output.build(g, rows)
    }
}
