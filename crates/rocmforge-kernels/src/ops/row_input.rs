//! One row of f32 activations of a product with packed weights, whose kernels round it to 8 bits by themselves.

use crate::KernelResult;
use crate::launch::Launch;
use rocmforge_runtime::HipBuffer;

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

    /// The kernels' arguments for products with `k` columns: x, weight or null, y or null, eps.
    pub(super) fn read<'k>(self, op: Launch<'k, 'a>, k: usize) -> KernelResult<Launch<'k, 'a>> {
        op.dim_to("k", k, Self::MAX_COLUMNS)?;
        let eps = self.norm.map_or(0.0, |norm| norm.eps);
        op.value_of("eps", eps, eps >= 0.0 && eps.is_finite(), "finite and not negative")?;
        let op = (op.read("x", self.x, &[k])?)
            .read_or_null("the norm's weight", self.norm.map(|norm| norm.weight), &[k])?
            .write_or_null("the norm", self.norm.map(|norm| norm.y), &[k], &[])?;
        Ok(op.value(eps))
    }
}
