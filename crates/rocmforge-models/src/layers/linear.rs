//! Linear map: a product with a matrix, a factor and a bias where the file has them.

use rocmforge_ggml::{GgmlResult, Op, TensorId};

use crate::ModelError;
use crate::step::{Fused, StepGraph, Tensors, Within};
use crate::weights::{LinearNames, Name};

/// Which tensors beside its matrix a map applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MapRule {
    pub(crate) bias: Bias,
    /// A factor of the file on the products.
    pub(crate) scaled: bool,
}

impl MapRule {
    /// Those that the file has.
    pub(crate) const PLAIN: Self = Self {
        bias: Bias::IfThere,
        scaled: true,
    };
    /// The same, and the file must have a bias.
    pub(crate) const BIASED: Self = Self {
        bias: Bias::Needed,
        scaled: true,
    };

    /// The names of what is applied; the file may have the others.
    fn applied(self, t: &mut Tensors<'_>, names: LinearNames) -> LinearNames {
        let mut applied = names;
        if !self.scaled {
            t.allow(names.scale);
            applied.scale = Name::NONE;
        }
        if self.bias == Bias::Unused {
            t.allow(names.bias);
            applied.bias = Name::NONE;
        }
        applied
    }
}

/// Whether a map has a bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bias {
    /// One of the file is not used.
    Unused,
    /// Where the file has it.
    IfThere,
    /// It must be there.
    Needed,
}

/// A matrix, with a factor on its products and a bias where the file has them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linear {
    weight: TensorId,
    /// f32 `[1]`.
    scale: Option<TensorId>,
    bias: Option<TensorId>,
    /// The factor multiplies the bias, too.
    scales_bias: bool,
}

impl Linear {
    /// A matrix of `[rows, cols]`, which may be rows of another.
    ///
    /// # Errors
    /// The matrix is missing, or it or another tensor has another shape.
    pub(crate) fn new(
        t: &mut Tensors<'_>,
        names: LinearNames,
        fused: Option<&Fused>,
        shape: [usize; 2],
    ) -> Result<Self, ModelError> {
        let weight = t.matrix(names.weight, fused, shape)?;
        let whole = match fused {
            Some(fused) if !t.has(names.weight)? => fused.names,
            _ => names,
        };
        t.allow(whole.input_scale);
        Ok(Self {
            weight,
            scale: t.vector_if_there(whole.scale, None, 1)?,
            bias: t.vector_if_there(names.bias, fused, shape[0])?,
            scales_bias: false,
        })
    }

    /// A matrix that a checkpoint may have within another, which has no bias.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn within(
        t: &mut Tensors<'_>,
        names: LinearNames,
        within: &Within,
        shape: [usize; 2],
        rule: MapRule,
    ) -> Result<Self, ModelError> {
        if !t.has(within.name)? {
            return Self::by_rule(t, names, None, shape, rule);
        }
        Ok(Self {
            weight: t.matrix_within(names.weight, within, shape)?,
            scale: None,
            bias: None,
            scales_bias: false,
        })
    }

    /// A matrix with what a rule says beside it.
    ///
    /// # Errors
    /// As [`Self::with_bias`].
    pub(crate) fn by_rule(
        t: &mut Tensors<'_>,
        names: LinearNames,
        fused: Option<&Fused>,
        shape: [usize; 2],
        rule: MapRule,
    ) -> Result<Self, ModelError> {
        let names = rule.applied(t, names);
        let fused = fused.map(|fused| Fused {
            names: rule.applied(t, fused.names),
            ..fused.clone()
        });
        match rule.bias {
            Bias::Needed => Self::with_bias(t, names, fused.as_ref(), shape),
            Bias::IfThere | Bias::Unused => Self::new(t, names, fused.as_ref(), shape),
        }
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
        let found = Self::new(t, names, fused, shape)?;
        let bias = match found.bias {
            Some(bias) => bias,
            None => t.vector(names.bias, fused, shape[0])?,
        };
        Ok(Self {
            bias: Some(bias),
            ..found
        })
    }

    /// The matrix of a table, whose rows are looked up elsewhere.
    ///
    /// # Errors
    /// Another tensor has another shape.
    pub(crate) fn of_table(
        t: &mut Tensors<'_>,
        table: TensorId,
        names: LinearNames,
        rows: usize,
    ) -> Result<Self, ModelError> {
        t.allow(names.input_scale);
        Ok(Self {
            weight: t.table_as_matrix(table)?,
            scale: t.vector_if_there(names.scale, None, 1)?,
            bias: t.vector_if_there(names.bias, None, rows)?,
            scales_bias: false,
        })
    }

    /// A matrix alone.
    pub(crate) const fn bare(weight: TensorId) -> Self {
        Self {
            weight,
            scale: None,
            bias: None,
            scales_bias: false,
        }
    }

    /// The same, whose factor multiplies the bias, too.
    pub(crate) fn scaling_bias(self) -> Self {
        Self {
            scales_bias: true,
            ..self
        }
    }

    /// Adds the product's nodes.
    pub(crate) fn build(&self, g: &mut StepGraph<'_>, x: TensorId) -> GgmlResult<TensorId> {
        let product = |g: &mut StepGraph<'_>, bias: Option<TensorId>| {
            let inputs: Vec<TensorId> = [x, self.weight].into_iter().chain(bias).collect();
            g.push(Op::MulMat, &inputs)
        };
        let Some(scale) = self.scale else {
            return product(g, self.bias);
        };
        let first = product(g, self.bias.filter(|_| self.scales_bias))?;
        let scaled = g.push(Op::Mul, &[first, scale])?;
        match self.bias.filter(|_| !self.scales_bias) {
            None => Ok(scaled),
            Some(bias) => g.push(Op::Add, &[scaled, bias]),
        }
    }
}
