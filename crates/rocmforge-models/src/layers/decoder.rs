//! Decoder: embedding, layers, the last norm, and the matrix that gives logits, or what makes a result of a whole text.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use super::{Embedding, LayerInputs, Linear, Norm, NormRule, OTHER_HEADS, Part, Pooled, Streams};
use crate::ModelError;
use crate::config::{DecoderConfig, OutputMatrix};
use crate::step::{Fused, Network, Place, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

const EMBEDDING: Name = Name::new("token_embd.weight", "model.embed_tokens.weight");
const OUTPUT: LinearNames = LinearNames::new("output", "lm_head");
/// A decoder, or an encoder, whose states are pooled.
#[derive(Debug)]
pub(crate) struct Decoder {
    embedding: Embedding,
    /// What layers are given beside the residual stream.
    inputs: Option<LayerInputs>,
    /// What makes several residual streams of one, and one of them behind the last layer.
    streams: Option<Streams>,
    layers: Vec<Box<dyn Part>>,
    norm: Option<Norm>,
    head: Head,
}

/// What becomes of the states behind the last norm.
#[derive(Debug)]
enum Head {
    Logits {
        output: Linear,
        /// Factor on logits.
        factor: Option<f32>,
        /// Bound of logits.
        softcap: Option<f32>,
    },
    Texts {
        pooled: Pooled,
        width: usize,
        /// The hidden states are results, too.
        hidden: bool,
    },
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
        mut layer: impl FnMut(&mut Tensors<'_>, usize) -> Result<Box<dyn Part>, ModelError>,
    ) -> Result<Self, ModelError> {
        let whole_texts = t.whole_texts();
        let own = match c.output {
            _ if whole_texts.is_some() => false,
            OutputMatrix::Embedding => false,
            OutputMatrix::Own => true,
            OutputMatrix::OwnIfThere => t.has(OUTPUT.weight)?,
        };
        let shape = [c.vocab, c.width];
        let is_looked_up = own || whole_texts.is_some();
        t.at(if is_looked_up { Place::Embedding } else { Place::Output });
        let words = t.table(EMBEDDING, shape)?;
        let embedding = Embedding::new(t, words, scale, c.texts, [c.context, c.width], rule)?;
        let of_inputs = |own| LayerInputs::new(t, own, [c.vocab, c.layers, c.width], rule);
        let inputs = c.layer_input.map(of_inputs).transpose()?;
        let streams = c.streams.map(|streams| Streams::new(t, streams, c.width)).transpose()?;
        t.at(Place::Output);
        for head in OTHER_HEADS {
            t.allow(head);
        }
        let head = match whole_texts {
            Some(texts) => {
                t.allow(OUTPUT.weight);
                t.allow(OUTPUT.bias);
                let has_own = match c.output {
                    OutputMatrix::Embedding => false,
                    OutputMatrix::Own => true,
                    OutputMatrix::OwnIfThere => t.has(OUTPUT.weight)?,
                };
                let logits = Fused {
                    names: match has_own {
                        true => OUTPUT,
                        false => LinearNames {
                            weight: EMBEDDING,
                            ..LinearNames::NONE
                        },
                    },
                    first: 0,
                    of: c.vocab,
                };
                Head::Texts {
                    pooled: Pooled::new(t, texts, logits, c.width, rule)?,
                    width: c.width,
                    hidden: texts.hidden,
                }
            }
            None => Head::Logits {
                output: match own {
                    true => Linear::new(t, OUTPUT, None, shape)?,
                    false => {
                        // A copy of the embedding's.
                        t.allow(OUTPUT.weight);
                        Linear::of_table(t, words, OUTPUT, c.vocab)?
                    }
                },
                factor: c.logit_factor,
                softcap: c.logit_softcap,
            },
        };
        let norm = (c.output_norm != LinearNames::NONE).then(|| Norm::new(t, c.output_norm, c.width, rule));
        let norm = norm.transpose()?;
        let layers = (0..c.layers).map(|index| {
            t.at(Place::Layer(index));
            layer(t, index)
        });
        Ok(Self {
            embedding,
            inputs,
            streams,
            layers: layers.collect::<Result<_, _>>()?,
            norm,
            head,
        })
    }
}

impl Network for Decoder {
    fn build(&self, g: &mut StepGraph<'_>) -> GgmlResult<Option<TensorId>> {
        let is_result = matches!(self.head, Head::Texts { hidden: true, .. });
        let of_ids = self.embedding.build(g)?;
        let mut x = g.with_rows(of_ids)?;
        if let Some(inputs) = &self.inputs {
            let inputs = inputs.build(g, x)?;
            g.give_layers(inputs);
        }
        if let Some(streams) = &self.streams {
            x = streams.split(g, x)?;
        }
        for layer in &self.layers {
            if is_result {
                g.result(x);
            }
            x = layer.build(g, x)?;
        }
        let (output, factor, softcap) = match &self.head {
            Head::Logits {
                output,
                factor,
                softcap,
            } => (output, *factor, *softcap),
            Head::Texts { pooled, width, .. } => {
                x = Norm::of(self.norm.as_ref(), g, x)?;
                if is_result {
                    g.result(x);
                }
                return pooled.build(g, x, *width).map(Some);
            }
        };
        let Some(rows) = g.output_rows else { return Ok(None) };
        let mut last = g.push(Op::GetRows, &[x, rows])?;
        if let Some(streams) = &self.streams {
            last = streams.join(g, last)?;
        }
        let normed = Norm::of(self.norm.as_ref(), g, last)?;
        let mut logits = output.build(g, normed)?;
        if let Some(factor) = factor {
            logits = g.push(Op::Scale { factor }, &[logits])?;
        }
        match softcap {
            None => Ok(Some(logits)),
            Some(cap) => g.push(Op::Softcap { cap }, &[logits]).map(Some),
        }
    }
}
