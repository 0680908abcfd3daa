//! One row of f32 activations of a product with packed weights, whose kernels round it to 8 bits by themselves.

use crate::KernelResult;
use crate::check::Check;
use rocmforge_runtime::{HipBuffer, LaunchArgs};

/// One row of activations. Every block of a product rounds it as [`Kernels::quantize_q8`](crate::Kernels::quantize_q8) does.
#[derive(Debug, Clone, Copy)]
pub struct RowInput<'a> {
    /// `[k]`, at most [`Self::MAX_COLUMNS`].
    pub x: &'a HipBuffer<f32>,
    /// What is done with it before.
    pub norm: Option<RowNorm<'a>>,
}

/// `y = x / sqrt(mean(x^2) + eps) * weight`, which a product computes before it multiplies.
#[derive(Debug, Clone, Copy)]
pub struct RowNorm<'a> {
    /// `[k]`.
    pub weight: &'a HipBuffer<f32>,
    /// Finite and not negative.
    pub eps: f32,
    /// The normed row, `[k]`, apart from `x`.
    pub y: &'a HipBuffer<f32>,
}

impl<'a> From<&'a HipBuffer<f32>> for RowInput<'a> {
    fn from(x: &'a HipBuffer<f32>) -> Self {
        Self { x, norm: None }
    }
}

impl<'a> RowInput<'a> {
    /// The most columns: a block holds the whole row.
    pub const MAX_COLUMNS: usize = 16_384;

    /// Checks the lengths for products with `k` columns.
    pub(super) fn check(self, check: Check, k: usize) -> KernelResult<()> {
        check.dim_to("k", k, Self::MAX_COLUMNS)?;
        check.len("x", self.x, &[k])?;
        let Some(norm) = self.norm else { return Ok(()) };
        check.len("the norm's weight", norm.weight, &[k])?;
        check.len("the norm", norm.y, &[k])?;
        check.value("eps", norm.eps, |eps| eps >= 0.0, "finite and not negative")?;
        check.disjoint(("the norm", norm.y), ("x", self.x))?;
        check.disjoint(("the norm", norm.y), ("the norm's weight", norm.weight))
    }

    /// Checks that an output overlaps nothing of it: other blocks may still read it.
    pub(super) fn apart(self, check: Check, name: &'static str, out: &HipBuffer<f32>) -> KernelResult<()> {
        check.disjoint((name, out), ("x", self.x))?;
        let Some(norm) = self.norm else { return Ok(()) };
        check.disjoint((name, out), ("the norm's weight", norm.weight))?;
        check.disjoint((name, out), ("the norm", norm.y))
    }

    /// Checks that the norm, an output, overlaps no other input.
    pub(super) fn apart_from<T: bytemuck::Pod>(
        self,
        check: Check,
        name: &'static str,
        input: &HipBuffer<T>,
    ) -> KernelResult<()> {
        match self.norm {
            Some(norm) => check.disjoint(("the norm", norm.y), (name, input)),
            None => Ok(()),
        }
    }

    /// The kernels' arguments: x, weight or null, y or null, eps.
    pub(super) fn args(self, args: LaunchArgs<'a>) -> LaunchArgs<'a> {
        args.buffer(self.x)
            .buffer_or_null(self.norm.map(|norm| norm.weight))
            .out_or_null(self.norm.map(|norm| norm.y))
            .value(self.norm.map_or(0.0, |norm| norm.eps))
    }
}
