//! Layer inputs: of each token a vector for each layer, beside the residual stream.

use std::ops::Range;

use rocmforge_ggml::{GgmlResult, Op, TensorId, Unary};

use super::{Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::config::LayerInputConfig;
use crate::step::{Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const TABLE: Name = Name::new("per_layer_token_embd.weight", "model.embed_tokens_per_layer.weight");
const PROJECTION: LinearNames = LinearNames::new("per_layer_model_proj", "model.per_layer_model_projection");
const NORM: LinearNames = LinearNames::new("per_layer_proj_norm", "model.per_layer_projection_norm");
const GATE: LinearNames = LinearNames::new("blk.*.inp_gate", "model.layers.*.per_layer_input_gate");
const OUT: LinearNames = LinearNames::new("blk.*.proj", "model.layers.*.per_layer_projection");

/// The inputs of all layers: rows of a table by the token's id, and a projection of its embedding.
#[derive(Debug)]
pub(crate) struct LayerInputs {
    table: TensorId,
    /// Where the table has fewer rows than the vocabulary: the row of each token, u32 `[vocabulary, 1]`.
    rows: Option<TensorId>,
    projection: Linear,
    norm: Norm,
    layers: usize,
    /// Width of the residual stream, and of the input of a layer.
    widths: [usize; 2],
}

impl LayerInputs {
    /// Asks for the weights.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        c: LayerInputConfig,
        [vocab, layers, width]: [usize; 3],
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        let own = c.width;
        t.at(Place::Embedding);
        Ok(Self {
            table: t.table(TABLE, [c.tokens, layers * own])?,
            rows: (c.tokens < vocab).then(|| t.indices("rows of layer inputs", rows(c.tokens, vocab))),
            projection: Linear::new(t, PROJECTION, None, [layers * own, width])?,
            norm: Norm::new(t, NORM, own, rule)?,
            layers,
            widths: [width, own],
        })
    }

    /// The inputs, `[tokens, layers * own]`, from embeddings `[tokens, width]`: the sum of both, divided by the square root of 2.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, embeddings: TensorId) -> GgmlResult<TensorId> {
        let (tokens, [width, own]) = (g.tokens(), self.widths);
        let scale = |g: &mut StepGraph<'_>, x, factor: f32| g.push(Op::Scale { factor }, &[x]);
        let mut ids = g.ids;
        if let Some(rows) = self.rows {
            let own = g.push(Op::GetRows, &[rows, ids])?;
            ids = g.reshape(own, [tokens])?;
        }
        let of_ids = g.push(Op::GetRows, &[self.table, ids])?;
        let of_ids = scale(g, of_ids, (own as f32).sqrt())?;
        let projected = self.projection.build(g, embeddings)?;
        let projected = scale(g, projected, 1.0 / (width as f32).sqrt())?;
        let projected = g.reshape(projected, [tokens, self.layers, own])?;
        let projected = self.norm.build(g, projected)?;
        let projected = g.reshape(projected, [tokens, self.layers * own])?;
        let sum = g.push(Op::Add, &[projected, of_ids])?;
        scale(g, sum, std::f32::consts::FRAC_1_SQRT_2)
    }
}

/// The row of each token of a vocabulary in a table that has `known` rows: the first for all others.
fn rows(known: usize, vocab: usize) -> impl Iterator<Item = u32> {
    (0..vocab).map(move |id| if id < known { id as u32 } else { 0 })
}

/// What a layer makes of its input: `out(gelu(gate x) * input)`.
#[derive(Debug)]
pub(crate) struct LayerInput {
    gate: Linear,
    out: Linear,
    columns: Range<usize>,
}

impl LayerInput {
    /// Asks for the weights of the layer.
    ///
    /// # Errors
    /// One is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, layer: usize, [width, own]: [usize; 2]) -> Result<Self, ModelError> {
        Ok(Self {
            gate: Linear::new(t, GATE, None, [own, width])?,
            out: Linear::new(t, OUT, None, [width, own])?,
            columns: layer * own..(layer + 1) * own,
        })
    }
}

impl Part for LayerInput {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let inputs = g.layer_inputs()?;
        let own = g.columns(inputs, self.columns.clone())?;
        let gate = self.gate.build(g, x)?;
        let gate = g.push(Op::Unary(Unary::Gelu), &[gate])?;
        let inner = g.push(Op::Mul, &[gate, own])?;
        self.out.build(g, inner)
    }
}
