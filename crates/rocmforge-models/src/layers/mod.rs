//! Layers: parts that compute from the residual stream, and how a layer puts them together.
//!
//! A part asks [`Tensors`](crate::step::Tensors) for each of its weights, once, when it is made. What it holds afterwards are ids, from which it
//! adds its nodes to the graph of any step.

mod attention;
mod decoder;
mod delta_net;
mod embedding;
mod experts;
mod feed_forward;
mod kimi_delta;
mod latent;
mod layer_input;
mod linear;
mod mamba;
mod norm;
mod pooled;
mod short_conv;
mod streams;
mod whole_texts;

use rocmforge_ggml::{GgmlResult, Op, TensorId};

pub(crate) use attention::{Attention, AttentionShape, QueryNorm};
pub(crate) use decoder::Decoder;
pub(crate) use delta_net::DeltaNet;
pub(crate) use embedding::Embedding;
pub(crate) use experts::{Experts, ExpertsNames, SharedExpert};
pub(crate) use feed_forward::{Activation, Gated, GatedNames, GatedUnit, NetworkRule, Plain};
pub(crate) use kimi_delta::KimiDelta;
pub(crate) use latent::{Latent, LatentShape};
pub(crate) use layer_input::{LayerInput, LayerInputs};
pub(crate) use linear::{Bias, Linear, MapRule};
pub(crate) use mamba::Mamba2;
pub(crate) use norm::{Norm, NormRule};
pub(crate) use pooled::{OTHER_HEADS, Pooled};
pub(crate) use short_conv::ShortConv;
pub(crate) use streams::{LowRank, StreamLayer, Streams};

use crate::step::StepGraph;

/// Something that computes rows from rows: attention, a feed-forward network.
pub(crate) trait Part: std::fmt::Debug + Send + Sync {
    /// Adds the part's nodes. `x` and the result are f32 `[tokens, width]`.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other.
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId>;
}

/// One branch of a layer: `scale * end * last(x + factor * after(sum of part(before(x))))`.
#[derive(Debug, Default)]
pub(crate) struct Sublayer {
    /// Norm of what the parts see.
    pub(crate) before: Option<Norm>,
    /// Their results are added.
    pub(crate) parts: Vec<Box<dyn Part>>,
    /// Norm of the sum, before it is added to the residual stream.
    pub(crate) after: Option<Norm>,
    /// Factor on the sum, after the norm.
    pub(crate) factor: Option<f32>,
    /// Norm of the residual stream afterwards.
    pub(crate) last: Option<Norm>,
    /// Factor of the architecture on the residual stream afterwards.
    pub(crate) end: Option<f32>,
    /// That of the file, one element.
    pub(crate) scale: Option<TensorId>,
}

impl Sublayer {
    /// The same with a part that sees the same rows, and whose result has no norm; and a factor on the sum of all.
    pub(crate) fn beside(self, part: Box<dyn Part>, factor: f32) -> Self {
        let normed = Normed {
            before: None,
            parts: self.parts,
            after: self.after,
        };
        Self {
            parts: vec![Box::new(normed), part],
            after: None,
            end: Some(factor),
            ..self
        }
    }
}

impl Part for Sublayer {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let seen = Norm::of(self.before.as_ref(), g, x)?;
        let Some(sum) = sum(&self.parts, g, seen)? else {
            return Ok(x);
        };
        let mut sum = Norm::of(self.after.as_ref(), g, sum)?;
        if let Some(factor) = self.factor {
            sum = g.push(Op::Scale { factor }, &[sum])?;
        }
        let sum = g.push(Op::Add, &[sum, x])?;
        let mut sum = Norm::of(self.last.as_ref(), g, sum)?;
        if let Some(factor) = self.end {
            sum = g.push(Op::Scale { factor }, &[sum])?;
        }
        match self.scale {
            None => Ok(sum),
            Some(scale) => g.push(Op::Mul, &[sum, scale]),
        }
    }
}

/// The sum of what parts make of the same rows; `None`: there is no part.
fn sum(parts: &[Box<dyn Part>], g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<Option<TensorId>> {
    let mut sum = None;
    for part in parts {
        let result = part.build(g, x)?;
        sum = Some(match sum {
            None => result,
            Some(sum) => g.push(Op::Add, &[sum, result])?,
        });
    }
    Ok(sum)
}

/// Parts with norms of their own, beside parts that have others.
#[derive(Debug)]
pub(crate) struct Normed {
    pub(crate) before: Option<Norm>,
    pub(crate) parts: Vec<Box<dyn Part>>,
    pub(crate) after: Option<Norm>,
}

impl Part for Normed {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let seen = Norm::of(self.before.as_ref(), g, x)?;
        let result = sum(&self.parts, g, seen)?.unwrap_or(seen);
        Norm::of(self.after.as_ref(), g, result)
    }
}

/// A layer: its sublayers, one after the other.
#[derive(Debug)]
pub(crate) struct Layer(pub(crate) Vec<Sublayer>);

impl Part for Layer {
    fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        self.0.iter().try_fold(x, |x, sublayer| sublayer.build(g, x))
    }
}
