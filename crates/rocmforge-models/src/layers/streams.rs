//! Residual streams of a token (AltUp): how a layer predicts all of them, computes with the first, and corrects them.
//!
//! Between layers the streams of a token stand side by side, `[tokens, streams * width]`: the rows that logits are wanted of are chosen before they are joined.

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Layer, LayerInput, Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::config::{LayerInputConfig, StreamsConfig};
use crate::step::{Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const SPLIT: [Name; 2] = [
    Name::new("altup_proj.weight", ""),
    Name::new("", "model.altup_projections.@.weight"),
];
const JOIN: [Name; 2] = [
    Name::new("altup_unembd_proj.weight", ""),
    Name::new("", "model.altup_unembed_projections.@.weight"),
];
const ROUTER: LinearNames = LinearNames::new("blk.*.altup_router", "model.layers.*.altup.modality_router");
const ROUTER_NORM: Name = Name::ending("blk.*.altup_router_norm", "model.layers.*.altup.router_norm", ".weight");
const PREDICTION: LinearNames = LinearNames::new("blk.*.altup_predict_coef", "model.layers.*.altup.prediction_coefs");
const CORRECTION: LinearNames = LinearNames::new("blk.*.altup_correct_coef", "model.layers.*.altup.correction_coefs");
const FIRST_SCALE: Name = Name::new(
    "blk.*.altup_correct_scale.weight",
    "model.layers.*.altup.correct_output_scale",
);
const INPUT_NORM: LinearNames = LinearNames::new("blk.*.post_norm", "model.layers.*.post_per_layer_input_norm");
const LOW: LinearNames = LinearNames::new("blk.*.laurel_l", "model.layers.*.laurel.linear_left");
const HIGH: LinearNames = LinearNames::new("blk.*.laurel_r", "model.layers.*.laurel.linear_right");
const LOW_NORM: LinearNames = LinearNames::new("blk.*.laurel_post_norm", "model.layers.*.laurel.post_laurel_norm");

/// Rank of the map beside attention where neither the configuration nor a matrix says it.
const RANK: usize = 64;
/// The least mean square that a row is scaled by.
const LEAST_SQUARE: f32 = 1e-5;

/// What makes the streams of an embedding, and one row of the streams behind the last layer.
#[derive(Debug)]
pub(crate) struct Streams {
    split: Linear,
    join: Vec<Linear>,
    count: usize,
    width: usize,
}

impl Streams {
    /// Asks for the weights.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, c: StreamsConfig, width: usize) -> Result<Self, ModelError> {
        let others = c.count - 1;
        // What enters the first layer is best made where that layer is computed.
        t.at(Place::Layer(0));
        let split = Linear::bare(t.some_of(SPLIT, 0..others, [others, width, width])?);
        t.at(Place::Output);
        let join = (0..others).map(|index| {
            let matrix = t.some_of(JOIN, index..index + 1, [others, width, width])?;
            Ok(Linear::bare(matrix))
        });
        Ok(Self {
            split,
            join: join.collect::<Result<_, ModelError>>()?,
            count: c.count,
            width,
        })
    }

    /// The streams of embeddings `[tokens, width]`: the embedding, and maps of it that are as long as it is.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other.
    pub(crate) fn split(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let (tokens, width) = (g.tokens(), self.width);
        let others = self.split.build(g, x)?;
        let others = g.reshape(others, [tokens, self.count - 1, width])?;
        let x = g.reshape(x, [tokens, 1, width])?;
        let others = as_long_as(g, others, x)?;
        let all = g.push(Op::Concat { axis: 1 }, &[x, others])?;
        g.reshape(all, [tokens, self.count * width])
    }

    /// The mean of the streams `[rows, streams * width]`: of the first as it is, and of maps of the others that are as long as it is.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other.
    pub(crate) fn join(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let width = self.width;
        let first = g.columns(x, 0..width)?;
        let mut sum = first;
        for (index, map) in self.join.iter().enumerate() {
            let own = g.columns(x, (index + 1) * width..(index + 2) * width)?;
            let mapped = map.build(g, own)?;
            let mapped = as_long_as(g, mapped, first)?;
            sum = g.push(Op::Add, &[sum, mapped])?;
        }
        let factor = 1.0 / self.count as f32;
        g.push(Op::Scale { factor }, &[sum])
    }
}

/// Rows of `x`, each times the root mean square of `like` over its own. A row without any length stays.
fn as_long_as(g: &mut StepGraph<'_>, x: TensorId, like: TensorId) -> GgmlResult<TensorId> {
    let mean_square = |g: &mut StepGraph<'_>, x| {
        let squares = g.push(Op::Sqr, &[x])?;
        g.push(Op::Mean, &[squares])
    };
    let wanted = mean_square(g, like)?;
    let wanted = g.push(Op::Sqrt, &[wanted])?;
    let found = mean_square(g, x)?;
    let (min, max) = (LEAST_SQUARE, f32::INFINITY);
    let found = g.push(Op::Clamp { min, max }, &[found])?;
    let found = g.push(Op::Sqrt, &[found])?;
    let x = g.push(Op::Mul, &[x, wanted])?;
    g.push(Op::Div, &[x, found])
}

/// A layer of several streams. `inner` computes with the first.
#[derive(Debug)]
pub(crate) struct StreamLayer {
    router_norm: Norm,
    router: Linear,
    prediction: Linear,
    inner: Layer,
    correction: Linear,
    /// Factors on the first stream before it meets the layer's input, `[width]`.
    first_scale: TensorId,
    input: LayerInput,
    input_norm: Norm,
    count: usize,
    width: usize,
}

impl StreamLayer {
    /// Asks for the weights of the streams. Those of `inner`, the layer itself, are with it already.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        index: usize,
        [width, count]: [usize; 2],
        input: LayerInputConfig,
        rule: NormRule,
        inner: Layer,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            // The router sees a norm over the width.
            router_norm: Norm::scaled(t, ROUTER_NORM, width, 1.0 / width as f32, rule)?,
            router: Linear::new(t, ROUTER, None, [count, width])?,
            prediction: Linear::new(t, PREDICTION, None, [count * count, count])?,
            inner,
            correction: Linear::new(t, CORRECTION, None, [count, count])?,
            first_scale: t.vector(FIRST_SCALE, None, width)?,
            input: LayerInput::new(t, index, [width, input.width])?,
            input_norm: Norm::new(t, INPUT_NORM, width, rule)?,
            count,
            width,
        })
    }

    /// Coefficients of the streams, `[tokens, streams]`, by what the first one is.
    fn coefficients(&self, g: &mut StepGraph<'_>, first: TensorId) -> GgmlResult<TensorId> {
        let seen = self.router_norm.build(g, first)?;
        let routed = self.router.build(g, seen)?;
        g.push(Op::Unary(Unary::Tanh), &[routed])
    }

    /// The first stream.
    fn first(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let flat = g.reshape(x, [g.tokens(), self.count * self.width])?;
        g.columns(flat, 0..self.width)
    }

    /// Each stream, with a mixture of all added to it.
    fn predicted(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let first = self.first(g, x)?;
        let coefficients = self.coefficients(g, first)?;
        let mixture = self.prediction.build(g, coefficients)?;
        let mixture = g.reshape(mixture, [g.tokens(), self.count, self.count])?;
        let mixed = g.push(Op::MulMat, &[mixture, x])?;
        g.push(Op::Add, &[mixed, x])
    }

    /// Each stream, with a part of what the layer has added to the first one.
    fn corrected(
        &self,
        g: &mut StepGraph<'_>,
        predicted: TensorId,
        [before, after]: [TensorId; 2],
    ) -> GgmlResult<TensorId> {
        let (tokens, count, width) = (g.tokens(), self.count, self.width);
        let coefficients = self.coefficients(g, after)?;
        let parts = self.correction.build(g, coefficients)?;
        let (factor, bias) = (1.0, 1.0);
        let parts = g.push(Op::ScaleBias { factor, bias }, &[parts])?;
        let parts = g.reshape(parts, [tokens, count, 1])?;
        let added = g.push(Op::Sub, &[after, before])?;
        let added = g.reshape(added, [tokens, 1, width])?;
        let added = g.repeat(added, [tokens, count, width])?;
        let added = g.push(Op::Mul, &[added, parts])?;
        g.push(Op::Add, &[added, predicted])
    }
}

impl Part for StreamLayer {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let (tokens, count, width) = (g.tokens(), self.count, self.width);
        let x = g.reshape(x, [tokens, count, width])?;
        let predicted = self.predicted(g, x)?;
        let before = self.first(g, predicted)?;
        let after = self.inner.build(g, before)?;
        let corrected = self.corrected(g, predicted, [before, after])?;
        // The layer's input reaches the other streams only.
        let first = self.first(g, corrected)?;
        let first = g.push(Op::Mul, &[first, self.first_scale])?;
        let input = self.input.build(g, first)?;
        let input = self.input_norm.build(g, input)?;
        let input = g.reshape(input, [1, tokens, 1, width])?;
        let input = g.repeat(input, [1, tokens, count - 1, width])?;
        let zeros = Op::Pad {
            left: [0, 0, 1, 0],
            right: [0; 4],
        };
        let input = g.push(zeros, &[input])?;
        let [corrected, input] = [
            g.reshape(corrected, [tokens, count * width])?,
            g.reshape(input, [tokens, count * width])?,
        ];
        g.push(Op::Add, &[corrected, input])
    }
}

/// A map of low rank beside attention (LAUREL): `x + norm(high(low x))`.
#[derive(Debug)]
pub(crate) struct LowRank {
    low: Linear,
    high: Linear,
    norm: Norm,
}

impl LowRank {
    /// Asks for the weights of the layer.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, c: StreamsConfig, width: usize, rule: NormRule) -> Result<Self, ModelError> {
        let rank = match c.rank {
            Some(rank) => rank,
            None => t.rows_of(LOW.weight)?.unwrap_or(RANK),
        };
        Ok(Self {
            low: Linear::new(t, LOW, None, [rank, width])?,
            high: Linear::new(t, HIGH, None, [width, rank])?,
            norm: Norm::new(t, LOW_NORM, width, rule)?,
        })
    }
}

impl Part for LowRank {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let low = self.low.build(g, x)?;
        let high = self.high.build(g, low)?;
        let normed = self.norm.build(g, high)?;
        g.push(Op::Add, &[normed, x])
    }
}
