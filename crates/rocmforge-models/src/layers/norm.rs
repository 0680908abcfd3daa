//! Norm: rows divided by their root mean square, times a weight; or layer normalisation, with a bias.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::config::NormKind;
use crate::step::{NormOffset, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// What all norms of a model have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NormRule {
    /// Added to the mean square.
    pub(crate) eps: f32,
    pub(crate) offset: NormOffset,
    pub(crate) kind: NormKind,
    /// Layer normalisation has a bias.
    pub(crate) bias: bool,
}

/// A norm with its weight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Norm {
    weight: Option<TensorId>,
    /// Each of the rows has a weight of its own.
    is_table: bool,
    kind: NormKind,
    bias: Option<TensorId>,
    eps: f32,
}

impl Norm {
    /// A norm of rows of `len` elements.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, names: LinearNames, len: usize, rule: NormRule) -> Result<Self, ModelError> {
        Ok(Self {
            weight: Some(t.norm(names.weight, len, rule.offset)?),
            is_table: false,
            kind: rule.kind,
            bias: rule.bias.then(|| t.vector(names.bias, None, len)).transpose()?,
            eps: rule.eps,
        })
    }

    /// A norm of each of some heads, `[heads, len]`, with a weight for each.
    ///
    /// # Errors
    /// The weights are missing or have another shape.
    pub(crate) fn of_heads(
        t: &mut Tensors<'_>,
        names: LinearNames,
        shape: [usize; 2],
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            weight: Some(t.floats(names.weight, shape)?),
            is_table: true,
            kind: rule.kind,
            bias: None,
            eps: rule.eps,
        })
    }

    /// A norm without a weight.
    pub(crate) const fn plain(rule: NormRule) -> Self {
        Self {
            weight: None,
            is_table: false,
            kind: rule.kind,
            bias: None,
            eps: rule.eps,
        }
    }

    /// A norm whose weight is multiplied by `factor`, without bias and offset.
    ///
    /// # Errors
    /// The weight is missing or has another shape.
    pub(crate) fn scaled(
        t: &mut Tensors<'_>,
        weight: Name,
        len: usize,
        factor: f32,
        rule: NormRule,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            weight: Some(t.scaled(weight, len, factor)?),
            ..Self::plain(rule)
        })
    }

    /// Adds the norm's nodes.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let eps = self.eps;
        let weight = self.weight.filter(|_| !self.is_table);
        let inputs: Vec<TensorId> = [x].into_iter().chain(weight).chain(self.bias).collect();
        let op = match self.kind {
            NormKind::Rms => Op::RmsNorm { eps },
            NormKind::Layer => Op::LayerNorm { eps },
        };
        let normed = g.push(op, &inputs)?;
        match self.weight.filter(|_| self.is_table) {
            None => Ok(normed),
            Some(weight) => g.push(Op::Mul, &[normed, weight]),
        }
    }

    /// The norm of `x`, if there is one; else `x`.
    pub(crate) fn of(norm: Option<&Self>, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        norm.map_or(Ok(x), |norm| norm.build(g, x))
    }
}
