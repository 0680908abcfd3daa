//! Decoder: embedding, layers, the last norm, and the matrix that gives logits.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use super::{Layer, LayerInputs, Linear, Norm, NormRule, Part};
use crate::ModelError;
use crate::config::{DecoderConfig, OutputMatrix};
use crate::step::{Network, Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const EMBEDDING: Name = Name::new("token_embd.weight", "model.embed_tokens.weight");
const OUTPUT: LinearNames = LinearNames::new("output", "lm_head");
/// Heads of other tasks: scores and embeddings of whole texts.
const OTHER_HEADS: [Name; 7] = [
    Name::new("cls.weight", ""),
    Name::new("cls.bias", ""),
    Name::new("cls.norm.weight", ""),
    Name::new("cls.output.weight", "score.weight"),
    Name::new("cls.output.bias", "score.bias"),
    Name::new("dense_2.weight", ""),
    Name::new("dense_3.weight", ""),
];

/// A decoder.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: TensorId,
    /// Factor on embeddings.
    scale: Option<f32>,
    /// What layers are given beside the residual stream.
    inputs: Option<LayerInputs>,
    layers: Vec<Layer>,
    norm: Norm,
    output: Linear,
    /// Factor on logits.
    logit_factor: Option<f32>,
    /// Bound of logits.
    softcap: Option<f32>,
}

impl Decoder {
    /// Asks for the weights of the embedding, of the layers that `layer` makes, and of the logits.
    ///
    /// # Errors
    /// A weight is missing or has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        c: &DecoderConfig,
        rule: NormRule,
        scale: Option<f32>,
        mut layer: impl FnMut(&mut Tensors<'_>, usize) -> Result<Layer, ModelError>,
    ) -> Result<Self, ModelError> {
        let own = match c.output {
            OutputMatrix::Embedding => false,
            OutputMatrix::Own => true,
            OutputMatrix::OwnIfThere => t.has(OUTPUT.weight)?,
        };
        let shape = [c.vocab, c.width];
        t.at(if own { Place::Embedding } else { Place::Output });
        let embedding = t.table(EMBEDDING, shape)?;
        let of_inputs = |own| LayerInputs::new(t, [c.vocab, c.layers], [c.width, own], rule);
        let inputs = c.layer_input.map(of_inputs).transpose()?;
        t.at(Place::Output);
        let output = match own {
            true => Linear::new(t, OUTPUT, None, shape)?,
            false => {
                // A copy of the embedding's.
                t.allow(OUTPUT.weight);
                Linear::of_table(t, embedding, OUTPUT, c.vocab)?
            }
        };
        for head in OTHER_HEADS {
            t.allow(head);
        }
        let norm = Norm::new(t, c.output_norm, c.width, rule)?;
        let layers = (0..c.layers).map(|index| {
            t.at(Place::Layer(index));
            layer(t, index)
        });
        Ok(Self {
            embedding,
            scale,
            inputs,
            layers: layers.collect::<Result<_, _>>()?,
            norm,
            output,
            logit_factor: c.logit_factor,
            softcap: c.logit_softcap,
        })
    }
}

impl Network for Decoder {
    fn build(&self, g: &mut StepGraph<'_>) -> GgmlResult<Option<TensorId>> {
        let mut x = g.push(Op::GetRows, &[self.embedding, g.ids])?;
        if let Some(factor) = self.scale {
            x = g.push(Op::Scale { factor }, &[x])?;
        }
        x = g.with_rows(x)?;
        if let Some(inputs) = &self.inputs {
            let inputs = inputs.build(g, x)?;
            g.give_layers(inputs);
        }
        for layer in &self.layers {
            x = layer.build(g, x)?;
        }
        let Some(rows) = g.output_rows else { return Ok(None) };
        let last = g.push(Op::GetRows, &[x, rows])?;
        let normed = self.norm.build(g, last)?;
        let mut logits = self.output.build(g, normed)?;
        if let Some(factor) = self.logit_factor {
            logits = g.push(Op::Scale { factor }, &[logits])?;
        }
        match self.softcap {
            None => Ok(Some(logits)),
            Some(cap) => g.push(Op::Softcap { cap }, &[logits]).map(Some),
        }
    }
}
