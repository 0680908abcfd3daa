//! Linear map: a product with a matrix, and a bias where the file has one.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::step::{Fused, StepGraph, Tensors};
use crate::weights::{LinearNames, Name};

/// A matrix with or without a bias.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: TensorId,
    bias: Option<TensorId>,
}

impl Linear {
    /// A matrix of `[rows, cols]`, which may be rows of another, and a bias where the file has one.
    ///
    /// # Errors
    /// The matrix is missing, or it or the bias has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        names: LinearNames,
        fused: Option<&Fused>,
        shape: [usize; 2],
    ) -> Result<Self, ModelError> {
        let weight = t.matrix(names.weight, fused, shape)?;
        let has_bias = t.has(names.bias)? || fused.map_or(Ok(false), |fused| t.has(fused.names.bias))?;
        let bias = has_bias.then(|| t.vector(names.bias, fused, shape[0])).transpose()?;
        Ok(Self { weight, bias })
    }

    /// A matrix with a bias.
    ///
    /// # Errors
    /// As [`Self::new`], and the bias is missing.
    pub(crate) fn with_bias(
        t: &mut Tensors<'_>,
        names: LinearNames,
        fused: Option<&Fused>,
        shape: [usize; 2],
    ) -> Result<Self, ModelError> {
        let weight = t.matrix(names.weight, fused, shape)?;
        let bias = Some(t.vector(names.bias, fused, shape[0])?);
        Ok(Self { weight, bias })
    }

    /// The matrix of a table, whose rows are looked up elsewhere, and a bias where the file has one.
    ///
    /// # Errors
    /// The bias has another shape.
    pub(crate) fn of_table(t: &mut Tensors<'_>, table: TensorId, bias: Name, rows: usize) -> Result<Self, ModelError> {
        let weight = t.table_as_matrix(table)?;
        let bias = t.has(bias)?.then(|| t.vector(bias, None, rows)).transpose()?;
        Ok(Self { weight, bias })
    }

    /// Adds the product's node.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let inputs: Vec<TensorId> = [x, self.weight].into_iter().chain(self.bias).collect();
        g.push(Op::MulMat, &inputs)
    }
}
