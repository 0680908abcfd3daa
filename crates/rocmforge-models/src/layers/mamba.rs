//! Mamba 2: a convolution, then a selective scan whose decay is the same for all elements of a head.

use rocmforge_ggml::{GgmlResult, GluKind, Op, TensorId, Unary};

use super::{Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::State;
use crate::config::MambaConfig;
use crate::step::{StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// The gate, what is convolved (inputs, what is written, what is read), and steps, in one.
const INPUT: LinearNames = LinearNames::new("blk.*.ssm_in", "");
const CONV: LinearNames = LinearNames::new("blk.*.ssm_conv1d", "");
const STEP: Name = Name::new("blk.*.ssm_dt.bias", "");
const RATE: Name = Name::new("blk.*.ssm_a", "");
const SKIP: Name = Name::new("blk.*.ssm_d", "");
const NORM: LinearNames = LinearNames::new("blk.*.ssm_norm", "");
const OUTPUT: LinearNames = LinearNames::new("blk.*.ssm_out", "");

/// The selective scan of one layer.
#[derive(Debug)]
pub(crate) struct Mamba2 {
    config: MambaConfig,
    input: Linear,
    /// `[channels, taps]`.
    taps: TensorId,
    bias: Option<TensorId>,
    /// Added to steps, `[heads]`.
    step: TensorId,
    /// `[heads, 1]`.
    rate: TensorId,
    /// Factors on inputs that go past the scan, `[heads, 1]`.
    skip: TensorId,
    /// Of each group of heads, with a weight of its own.
    norm: Option<Norm>,
    output: Linear,
    /// The last inputs of the convolution, `[channels, taps - 1]`.
    inputs: State,
    kept: usize,
    /// A matrix of each head.
    state: State,
}

impl Mamba2 {
    /// Asks for the weights of the current layer, and for its states. The convolution sees `taps` tokens.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        config: MambaConfig,
        width: usize,
        taps: usize,
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let (inner, channels, kept) = (config.inner(), config.channels(), taps - 1);
        let MambaConfig {
            heads, groups, state, ..
        } = config;
        let has_norm = t.has(NORM.weight)?;
        Ok(Self {
            config,
            input: Linear::new(t, INPUT, None, [inner + channels + heads, width])?,
            taps: t.floats(CONV.weight, [channels, taps])?,
            bias: t.vector_if_there(CONV.bias, None, channels)?,
            step: t.vector(STEP, None, heads)?,
            rate: t.floats(RATE, [heads, 1])?,
            skip: t.floats(SKIP, [heads, 1])?,
            norm: has_norm
                .then(|| Norm::of_heads(t, NORM, [groups, inner / groups], rule))
                .transpose()?,
            output: Linear::new(t, OUTPUT, None, [width, inner])?,
            inputs: t.state(channels * kept),
            kept,
            state: t.state(inner * state),
        })
    }
}

impl Part for Mamba2 {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let MambaConfig {
            heads,
            dim,
            groups,
            state,
        } = self.config;
        let (tokens, inner, channels) = (g.tokens(), self.config.inner(), self.config.channels());
        let all = self.input.build(g, x)?;
        let gate = g.columns(all, 0..inner)?;
        let step = g.columns(all, inner + channels..inner + channels + heads)?;
        let seen = g.columns(all, inner..inner + channels)?;
        let mut seen = g.recur(Op::SsmConv, self.inputs, &[channels, self.kept], &[seen, self.taps])?;
        if let Some(bias) = self.bias {
            seen = g.push(Op::Add, &[seen, bias])?;
        }
        let seen = g.push(Op::Unary(Unary::Silu), &[seen])?;

        let own = g.columns(seen, 0..inner)?;
        let own = g.reshape(own, [tokens, heads, dim])?;
        let mut of_groups = |first| {
            let columns = g.columns(seen, first..first + groups * state)?;
            g.reshape(columns, [tokens, groups, state])
        };
        let (written, read) = (of_groups(inner)?, of_groups(inner + groups * state)?);
        let step = g.push(Op::Add, &[step, self.step])?;
        let inputs = [own, step, self.rate, written, read];
        let rows = g.recur(Op::SsmScan, self.state, &[heads, dim, state], &inputs)?;
        let past = g.push(Op::Mul, &[own, self.skip])?;
        let rows = g.push(Op::Add, &[rows, past])?;
        let rows = g.reshape(rows, [tokens, inner])?;
        let swiglu = Op::Glu {
            kind: GluKind::Swiglu,
            swapped: false,
        };
        let mut rows = g.push(swiglu, &[gate, rows])?;
        if let Some(norm) = &self.norm {
            let of_groups = g.reshape(rows, [tokens, groups, inner / groups])?;
            let normed = norm.build(g, of_groups)?;
            rows = g.reshape(normed, [tokens, inner])?;
        }
        self.output.build(g, rows)
    }
}
