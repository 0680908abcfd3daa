//! Norm: rows divided by their root mean square, times a weight; or layer normalisation, with a bias.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::step::{NormOffset, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// What all norms of a model have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NormRule {
    /// Added to the mean square.
    pub(crate) eps: f32,
    pub(crate) offset: NormOffset,
}

/// A norm with its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    weight: TensorId,
    /// Of layer normalisation.
    bias: Option<TensorId>,
    eps: f32,
}

impl Norm {
    /// A norm of rows of `len` elements.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, name: Name, len: usize, rule: NormRule) -> Result<Self, ModelError> {
        Ok(Self {
            weight: t.norm(name, len, rule.offset)?,
            bias: None,
            eps: rule.eps,
        })
    }

    /// Layer normalisation of rows of `len` elements.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of_layer(t: &mut Tensors<'_>, names: LinearNames, len: usize, eps: f32) -> Result<Self, ModelError> {
        Ok(Self {
            weight: t.vector(names.weight, None, len)?,
            bias: Some(t.vector(names.bias, None, len)?),
            eps,
        })
    }

    /// Adds the norm's node.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let eps = self.eps;
        match self.bias {
            None => g.push(Op::RmsNorm { eps }, &[x, self.weight]),
            Some(bias) => g.push(Op::LayerNorm { eps }, &[x, self.weight, bias]),
        }
    }

    /// The norm of `x`, if there is one; else `x`.
    pub(crate) fn of(norm: Option<&Self>, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        norm.map_or(Ok(x), |norm| norm.build(g, x))
    }
}
