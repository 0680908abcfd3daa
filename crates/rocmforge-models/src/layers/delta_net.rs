//! Gated delta net: linear attention whose state is a matrix for each head, which decays and is corrected by keys and values.
//!
//! Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024. Query, key and value pass a short convolution before.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Linear, MapRule, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::State;
use crate::config::DeltaNetConfig;
use crate::step::{StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const ALL: LinearNames = LinearNames::new("blk.*.attn_qkv", "");
const GATE: LinearNames = LinearNames::new("blk.*.attn_gate", "");
const BETA: LinearNames = LinearNames::new("blk.*.ssm_beta", "");
const ALPHA: LinearNames = LinearNames::new("blk.*.ssm_alpha", "");
/// Beta and alpha in one, of each key head the betas of its value heads and then their alphas.
const BETA_ALPHA: LinearNames = LinearNames::new("blk.*.ssm_ba", "");
/// Query, key, value and gate in one, in old files beside the others.
const OLD: LinearNames = LinearNames::new("blk.*.ssm_in", "");
const TAPS: Name = Name::new("blk.*.ssm_conv1d.weight", "");
const DECAY: Name = Name::new("blk.*.ssm_a", "");
const STEP: Name = Name::new("blk.*.ssm_dt.bias", "");
const NORM: LinearNames = LinearNames::new("blk.*.ssm_norm", "");
const OUTPUT: LinearNames = LinearNames::new("blk.*.ssm_out", "");

/// The maps of the factors of a head: that of the correction of its state, and its decay.
#[derive(Debug)]
enum Factors {
    Apart { beta: Linear, alpha: Linear },
    Joined(Linear),
}

/// The gated delta net of one layer.
#[derive(Debug)]
pub(crate) struct DeltaNet {
    config: DeltaNetConfig,
    /// Tokens that the convolution sees.
    seen: usize,
    /// Added to the square of a key's length.
    eps: f32,
    all: Linear,
    gate: Linear,
    factors: Factors,
    /// Of the convolution, `[channels, taps]`.
    taps: TensorId,
    /// `[heads]`: what a step is multiplied by, and what is added to it before.
    decay: TensorId,
    step: TensorId,
    norm: Norm,
    output: Linear,
    /// The last inputs of the convolution, and the matrices.
    inputs: State,
    state: State,
}

impl DeltaNet {
    /// Asks for the weights of the current layer, and for its states.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        config: DeltaNetConfig,
        width: usize,
        seen: usize,
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let DeltaNetConfig { heads, dim, .. } = config;
        let (channels, inner) = (config.channels(), heads * dim);
        let factors = match t.has(BETA_ALPHA.weight)? {
            true => Factors::Joined(Linear::new(t, BETA_ALPHA, None, [2 * heads, width])?),
            false => Factors::Apart {
                beta: Linear::new(t, BETA, None, [heads, width])?,
                alpha: Linear::new(t, ALPHA, None, [heads, width])?,
            },
        };
        let linear = |t: &mut Tensors<'_>, names: LinearNames, shape| {
            // llama.cpp applies the factors of Qwen 3.5's maps only.
            let rule = MapRule {
                scaled: !config.neighbours,
                ..MapRule::PLAIN
            };
            Linear::by_rule(t, names, None, shape, rule)
        };
        for name in [OLD.weight, OLD.scale, OLD.input_scale] {
            t.allow(name);
        }
        Ok(Self {
            config,
            seen,
            eps: rule.eps,
            all: linear(t, ALL, [channels, width])?,
            gate: linear(t, GATE, [inner, width])?,
            factors,
            taps: t.floats(TAPS, [channels, seen])?,
            decay: t.vector(DECAY, None, heads)?,
            step: t.vector(STEP, None, heads)?,
            norm: Norm::new(t, NORM, dim, rule)?,
            output: linear(t, OUTPUT, [width, inner])?,
            inputs: t.state(channels * (seen - 1)),
            state: t.state(heads * dim * dim),
        })
    }

    /// Beta and alpha of each head, `[tokens, heads]`.
    fn factors(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<[TensorId; 2]> {
        let both = match &self.factors {
            Factors::Apart { beta, alpha } => return Ok([beta.build(g, x)?, alpha.build(g, x)?]),
            Factors::Joined(both) => both.build(g, x)?,
        };
        let (tokens, heads, key_heads) = (g.tokens(), self.config.heads, self.config.key_heads);
        let each = heads / key_heads;
        let both = g.reshape(both, [tokens, key_heads, 2 * each])?;
        let mut half = |first| {
            let half = g.columns(both, first..first + each)?;
            g.reshape(half, [tokens, heads])
        };
        Ok([half(0)?, half(each)?])
    }

    /// Rows divided by their length: `x / sqrt(sum x^2 + eps)`, which is the norm of root mean squares with other factors.
    fn normed(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let dim = self.config.dim as f32;
        let eps = self.eps / dim;
        let x = g.push(Op::RmsNorm { eps }, &[x])?;
        let factor = 1.0 / dim.sqrt();
        g.push(Op::Scale { factor }, &[x])
    }

    /// A key head's rows for each of its value heads, where value heads of one key head are neighbours; the op takes them in turn.
    fn spread(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let DeltaNetConfig {
            heads,
            key_heads,
            dim,
            neighbours,
            ..
        } = self.config;
        if !neighbours || heads == key_heads {
            return Ok(x);
        }
        let tokens = g.tokens();
        let one = g.reshape(x, [tokens, key_heads, dim])?;
        let mut joined = one;
        for _ in 1..heads / key_heads {
            joined = g.push(Op::Concat { axis: 2 }, &[joined, one])?;
        }
        g.reshape(joined, [tokens, heads, dim])
    }
}

impl Part for DeltaNet {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let DeltaNetConfig {
            heads, key_heads, dim, ..
        } = self.config;
        let (tokens, keys, channels) = (g.tokens(), key_heads * dim, self.config.channels());
        let all = self.all.build(g, x)?;
        let all = g.recur(Op::SsmConv, self.inputs, &[channels, self.seen - 1], &[all, self.taps])?;
        let all = g.push(Op::Unary(Unary::Silu), &[all])?;
        let mut part = |first, heads: usize| {
            let columns = g.columns(all, first..first + heads * dim)?;
            g.reshape(columns, [tokens, heads, dim])
        };
        let (q, k, v) = (part(0, key_heads)?, part(keys, key_heads)?, part(2 * keys, heads)?);
        let (q, k) = (self.normed(g, q)?, self.normed(g, k)?);
        let (q, k) = (self.spread(g, q)?, self.spread(g, k)?);
        let [beta, alpha] = self.factors(g, x)?;
        let beta = g.push(Op::Unary(Unary::Sigmoid), &[beta])?;
        let step = g.push(Op::Add, &[alpha, self.step])?;
        let step = g.push(Op::Unary(Unary::Softplus), &[step])?;
        let decay = g.push(Op::Mul, &[step, self.decay])?;
        let decay = g.reshape(decay, [tokens, heads, 1])?;
        let rows = g.recur(
            Op::GatedDeltaNet,
            self.state,
            &[heads, dim, dim],
            &[q, k, v, decay, beta],
        )?;
        let rows = self.norm.build(g, rows)?;
        let rows = g.reshape(rows, [tokens, heads * dim])?;
        let gate = self.gate.build(g, x)?;
        let gate = g.push(Op::Unary(Unary::Silu), &[gate])?;
        let rows = g.push(Op::Mul, &[rows, gate])?;
        self.output.build(g, rows)
    }
}
