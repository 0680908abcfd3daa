//! Norm: rows divided by their root mean square, times a weight.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::step::{NormOffset, StepGraph, Tensors};
use crate::weights::Name;

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
            eps: rule.eps,
        })
    }

    /// Adds the norm's node.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        g.push(Op::RmsNorm { eps: self.eps }, &[x, self.weight])
    }

    /// The norm of `x`, if there is one; else `x`.
    pub(crate) fn of(norm: Option<&Self>, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        norm.map_or(Ok(x), |norm| norm.build(g, x))
    }
}
