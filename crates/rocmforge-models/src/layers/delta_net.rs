//! Gated delta net: linear attention whose state is a matrix for each head, which decays and is corrected by keys and values.
//!
//! Yang et al., "Gated Delta Networks: Improving Mamba2 with Delta Rule", 2024. Query, key and value pass a short convolution before.

use rocmforge_ggml::{GgmlResult, GluKind, Op, TensorId};

use super::{Linear, MapRule, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::State;
use crate::config::DeltaNetConfig;
use crate::step::{NormOffset, StepGraph, Tensors, Within};
use crate::weights::{LinearNames, Name, Order};

const ALL: LinearNames = LinearNames::new("blk.*.attn_qkv", "model.layers.*.linear_attn.in_proj_qkv");
const GATE: LinearNames = LinearNames::new("blk.*.attn_gate", "model.layers.*.linear_attn.in_proj_z");
const BETA: LinearNames = LinearNames::new("blk.*.ssm_beta", "model.layers.*.linear_attn.in_proj_b");
const ALPHA: LinearNames = LinearNames::new("blk.*.ssm_alpha", "model.layers.*.linear_attn.in_proj_a");
/// Beta and alpha in one, of each key head the betas of its value heads and then their alphas.
const BETA_ALPHA: LinearNames = LinearNames::new("blk.*.ssm_ba", "model.layers.*.linear_attn.in_proj_ba");
/// Query, key, value and gate in one, in old files beside the others.
const OLD: LinearNames = LinearNames::new("blk.*.ssm_in", "");
/// Query, key, value and gate of a checkpoint in one: of each key head its query and key, and the values and gates of its value heads.
const JOINED: Name = Name::new("", "model.layers.*.linear_attn.in_proj_qkvz.weight");
const TAPS: Name = Name::new("blk.*.ssm_conv1d.weight", "model.layers.*.linear_attn.conv1d.weight");
const DECAY: Name = Name::new("blk.*.ssm_a", "model.layers.*.linear_attn.A_log");
const STEP: Name = Name::new("blk.*.ssm_dt.bias", "model.layers.*.linear_attn.dt_bias");
const NORM: LinearNames = LinearNames::new("blk.*.ssm_norm", "model.layers.*.linear_attn.norm");
const OUTPUT: LinearNames = LinearNames::new("blk.*.ssm_out", "model.layers.*.linear_attn.out_proj");

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
        // llama.cpp applies the factors of Qwen 3.5's maps only.
        let map = MapRule {
            scaled: !config.neighbours,
            ..MapRule::PLAIN
        };
        let (key_heads, each) = (config.key_heads, heads / config.key_heads * dim);
        let joined = 2 * dim + 2 * each;
        let part = |first, rows| Order::rows(first, [key_heads, rows, width], joined);
        let within = |orders| Within {
            name: JOINED,
            dims: vec![key_heads * joined, width],
            orders,
        };
        let all = within(vec![part(0, dim), part(dim, dim), part(2 * dim, each)]);
        let gate = within(vec![part(2 * dim + each, each)]);
        // Its norm has no offset.
        let norm = NormRule {
            offset: NormOffset::None,
            ..rule
        };
        for name in [OLD.weight, OLD.scale, OLD.input_scale] {
            t.allow(name);
        }
        Ok(Self {
            config,
            seen,
            eps: rule.eps,
            all: Linear::within(t, ALL, &all, [channels, width], map)?,
            gate: Linear::within(t, GATE, &gate, [inner, width], map)?,
            factors,
            taps: t.floats(TAPS, [channels, seen])?,
            decay: t.decay(DECAY, &[heads])?,
            step: t.vector(STEP, None, heads)?,
            norm: Norm::new(t, NORM, dim, norm)?,
            output: Linear::by_rule(t, OUTPUT, None, [width, inner], map)?,
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
}

impl Part for DeltaNet {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let DeltaNetConfig {
            heads, dim, neighbours, ..
        } = self.config;
        let (tokens, channels) = (g.tokens(), self.config.channels());
        let all = self.all.build(g, x)?;
        let all = g.recur(Op::SsmConv, self.inputs, &[channels, self.seen - 1], &[all, self.taps])?;
        let [beta, alpha] = self.factors(g, x)?;
        let rule = Op::DeltaNetRows {
            eps: self.eps,
            neighbours,
        };
        let inputs = [all, beta, alpha, self.step, self.decay];
        let rows = g.recur(rule, self.state, &[heads, dim, dim], &inputs)?;
        let rows = self.norm.build(g, rows)?;
        let rows = g.reshape(rows, [tokens, heads * dim])?;
        let gate = self.gate.build(g, x)?;
        let swiglu = Op::Glu {
            kind: GluKind::Swiglu,
            swapped: false,
        };
        let rows = g.push(swiglu, &[gate, rows])?;
        self.output.build(g, rows)
    }
}
