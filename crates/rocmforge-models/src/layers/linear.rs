//! Linear map: a product with a matrix, and a bias where the file has one.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::step::{Fused, StepGraph, Tensors};
use crate::weights::Name;

/// A matrix with or without a bias.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: TensorId,
    bias: Option<TensorId>,
}

/// Names of a map's tensors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LinearNames {
    pub(crate) weight: Name,
    pub(crate) bias: Name,
}

impl Linear {
    /// `rows` results from `cols` inputs.
    ///
    /// # Errors
    /// The matrix is missing or has another shape.
    pub(crate) fn new(t: &mut Tensors<'_>, weight: Name, shape: [usize; 2]) -> Result<Self, ModelError> {
        let weight = t.matrix(weight, None, shape)?;
        Ok(Self { weight, bias: None })
    }

    /// A matrix that may be rows of another, with a bias or without.
    ///
    /// # Errors
    /// As [`Self::new`], of matrix and bias.
    pub(crate) fn with_bias(
        t: &mut Tensors<'_>,
        names: LinearNames,
        fused: Option<&Fused>,
        shape: [usize; 2],
        bias: bool,
    ) -> Result<Self, ModelError> {
        Ok(Self {
            weight: t.matrix(names.weight, fused, shape)?,
            bias: bias.then(|| t.vector(names.bias, shape[0])).transpose()?,
        })
    }

    /// Adds the product's node.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let inputs: Vec<TensorId> = [x, self.weight].into_iter().chain(self.bias).collect();
        g.push(Op::MulMat, &inputs)
    }
}
