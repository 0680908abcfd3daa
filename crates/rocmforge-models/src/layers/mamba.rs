//! Mamba 2: a convolution, then a selective scan whose decay is the same for all elements of a head.

use rocmforge_ggml::{GgmlResult, GluKind, Op, TensorId, Unary};

use super::{Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::cache::State;
use crate::config::{MambaConfig, ScanFactors};
use crate::step::{StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// The gate, what is convolved (inputs, what is written, what is read), and steps, in one.
const INPUT: LinearNames = LinearNames::new("blk.*.ssm_in", "model.layers.*.mamba.in_proj");
const CONV: LinearNames = LinearNames::new("blk.*.ssm_conv1d", "model.layers.*.mamba.conv1d");
const STEP: Name = Name::new("blk.*.ssm_dt.bias", "model.layers.*.mamba.dt_bias");
const RATE: Name = Name::new("blk.*.ssm_a", "model.layers.*.mamba.A_log");
const SKIP: Name = Name::new("blk.*.ssm_d", "model.layers.*.mamba.D");
const NORM: LinearNames = LinearNames::new("blk.*.ssm_norm", "model.layers.*.mamba.norm");
const OUTPUT: LinearNames = LinearNames::new("blk.*.ssm_out", "model.layers.*.mamba.out_proj");

/// The selective scan of one layer.
#[derive(Debug)]
pub(crate) struct Mamba2 {
    config: MambaConfig,
    input: Linear,
    /// Factors on the products, `[inner + channels + heads]`, and on the result.
    factors: Option<(TensorId, f32)>,
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
        factors: Option<ScanFactors>,
    ) -> Result<Self, ModelError> {
        let (inner, channels, kept) = (config.inner(), config.channels(), taps - 1);
        let MambaConfig {
            heads, groups, state, ..
        } = config;
        let has_norm = t.has(NORM.weight)?;
        let rows = [inner, inner, groups * state, groups * state, heads];
        let factors = factors.map(|factors| {
            let of_rows = factors.parts.iter().zip(rows);
            let of_rows = of_rows.flat_map(|(part, rows)| std::iter::repeat_n(part * factors.input, rows));
            let of_rows: Vec<f32> = of_rows.collect();
            Ok((t.constants("factors of a scan", &of_rows)?, factors.output))
        });
        let factors: Option<Result<_, ModelError>> = factors;
        Ok(Self {
            config,
            factors: factors.transpose()?,
            input: Linear::new(t, INPUT, None, [inner + channels + heads, width])?,
            taps: t.floats(CONV.weight, [channels, taps])?,
            bias: t.vector_if_there(CONV.bias, None, channels)?,
            step: t.vector(STEP, None, heads)?,
            rate: t.decay(RATE, &[heads, 1])?,
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
        let mut all = self.input.build(g, x)?;
        if let Some((of_rows, _)) = self.factors {
            all = g.push(Op::Mul, &[all, of_rows])?;
        }
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
        let result = self.output.build(g, rows)?;
        match self.factors {
            None => Ok(result),
            Some((_, factor)) => g.push(Op::Scale { factor }, &[result]),
        }
    }
}
