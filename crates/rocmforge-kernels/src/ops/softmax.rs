//! Softmax over the last dimension: plain, causal, with a mask, with slopes and sinks.

use crate::check::Check;
use crate::layout::{causal_offset, check_operand};
use crate::{KernelResult, Kernels, KvType, Operand, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// What is added to the scores of a softmax, and what takes weight besides them.
#[derive(Debug, Clone, Copy)]
pub struct SoftmaxBias<'a> {
    /// Factor of the scores.
    pub scale: f32,
    /// A mask `[outer, inner, rows, cols]` in f32 or f16 bytes, and these four dimensions: the first two divide the
    /// scores' and repeat; there are at least as many rows as the scores have.
    pub mask: Option<(KvType, &'a HipBuffer<u8>, [usize; 4])>,
    /// ALiBi's largest bias: the mask of head h of n is multiplied with `2^(-max_bias (h + 1) / p)`, p the largest
    /// power of two up to n, or with the slopes between those for the heads from p on. 0: not multiplied.
    pub max_bias: f32,
    /// One more logit for the rows of each head, f32 `[heads]`.
    pub sinks: Option<&'a HipBuffer<f32>>,
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Bias {
    per: u32,
    heads: u32,
    outer: u32,
    inner: u32,
    mask_rows: u32,
    power: u32,
    scale: f32,
    max_bias: f32,
}

/// Types that masks have, and keys of `flash_attn_ext`.
pub(super) const SINGLE_OR_HALF: &[KvType] = &[KvType::F32, KvType::F16];

/// Checks the mask of scores `[batch, heads, rows, cols]`.
pub(super) fn check_mask(
    check: Check,
    (ty, mask, dims): (KvType, &HipBuffer<u8>, [usize; 4]),
    shape: [usize; 4],
) -> KernelResult<[u32; 3]> {
    let [outer, inner, rows, cols] = dims;
    check.kv_type(ty, SINGLE_OR_HALF)?;
    check.len("mask", mask, &[outer, inner, rows, cols, ty.block_bytes()])?;
    check.aligned("mask", mask, ty.alignment())?;
    let parts = [
        check.dim("outer", outer)?,
        check.dim("inner", inner)?,
        check.dim("mask rows", rows)?,
    ];
    let [batch, heads, queries, keys] = shape;
    check.multiple("the masks must divide the batch", batch, outer)?;
    check.multiple("the masks must divide the heads", heads, inner)?;
    check.holds(rows >= queries, "the mask must have as many rows", queries, rows)?;
    check.holds(cols == keys, "the mask must have as many columns", keys, cols)?;
    Ok(parts)
}

impl Kernels {
    /// `y = softmax(x * scale + slope * mask)` for scores `[batch, heads, rows, cols]`, with a sink for each head. `y`
    /// may be `x`. A row of nothing but -inf gives zeros.
    ///
    /// # Errors
    ///
    /// Wrong lengths, a mask that does not fit, is not aligned or neither f32 nor f16, partial overlap, a dimension of 0, a scale that is
    /// not finite, a negative `max_bias`.
    pub fn softmax_biased(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        bias: SoftmaxBias<'_>,
        y: &HipBuffer<f32>,
        shape: [usize; 4],
    ) -> KernelResult<()> {
        let check = Check("softmax_biased");
        let [_, heads, per, cols] = shape;
        let (h, p) = (check.dim("heads", heads)?, check.dim("rows", per)?);
        let c = check.dim("cols", cols)?;
        let rows = check.rows("batch * heads * rows", &shape[..3])?;
        check.one_shape(x, y, &shape)?;
        check.value("scale", bias.scale, |_| true, "finite")?;
        check.value("max_bias", bias.max_bias, |b| b >= 0.0, "0 or more")?;
        let mut parts = [1, 1, p];
        let mut ty = KvType::F32;
        if let Some(mask) = bias.mask {
            parts = check_mask(check, mask, shape)?;
            check.disjoint(("y", y), ("mask", mask.1))?;
            ty = mask.0;
        }
        if let Some(sinks) = bias.sinks {
            check.input("sinks", sinks, &[heads], ("y", y))?;
        }
        let args = (LaunchArgs::new().buffer(x))
            .buffer_or_null(bias.mask.map(|mask| mask.1))
            .buffer_or_null(bias.sinks);
        let [outer, inner, mask_rows] = parts;
        let args = args.out(y).values([rows, c]).value(Bias {
            per: p,
            heads: h,
            outer,
            inner,
            mask_rows,
            power: 1 << h.ilog2(),
            scale: bias.scale,
            max_bias: bias.max_bias,
        });
        let (name, config) = match ty {
            KvType::F32 => geometry::by_row(rows, c, "softmax_biased_f32_rows", "softmax_biased_f32_block"),
            _ => geometry::by_row(rows, c, "softmax_biased_f16_rows", "softmax_biased_f16_block"),
        };
        // SAFETY: x, y and sinks have the shape's elements, the mask's dimensions divide the scores', aliasing is as
        // the kernel allows.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }

    /// `y = softmax(x * scale)` row by row over `[rows, cols]`, any row length. `y` may be `x`. A row of nothing but -inf gives zeros.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax");
        let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
        check.one_shape(x, y, &[rows, cols])?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new().buffer(x).out(y).values([r, c]).value(scale);
        let (name, config) = geometry::by_row(r, c, "softmax_rows", "softmax_block");
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }

    /// `y = softmax(x * scale)` over the keys that a causal mask leaves visible (j <= i + seq_k - seq_q), 0 elsewhere, for scores
    /// `[planes, seq_q, seq_k]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax_causal(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [planes, seq_q, seq_k]: [usize; 3],
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax_causal");
        let shape = [planes, seq_q, seq_k];
        let (q, k) = (check.dim("seq_q", seq_q)?, check.dim("seq_k", seq_k)?);
        let rows = check.rows("planes * seq_q", &shape[..2])?;
        check.one_shape(x, y, &shape)?;
        check.value("scale", scale, |_| true, "finite")?;
        let offset = causal_offset(check, q, k)?;
        let args = LaunchArgs::new().buffer(x).out(y).values([rows, q, k]);
        let args = args.value(offset).value(scale);
        let (name, config) = geometry::by_row(rows, k, "softmax_causal_rows", "softmax_causal_block");
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }

    /// `y = softmax(x * scale + mask)` for scores `[batch, heads, seq_q, seq_k]`; the mask broadcasts through its strides. `y` may be
    /// `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, strides that leave the mask, partial overlap, a dimension of 0, a scale that is not finite.
    pub fn softmax_masked(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        mask: Operand<'_>,
        y: &HipBuffer<f32>,
        shape: [usize; 4],
        scale: f32,
    ) -> KernelResult<()> {
        let check = Check("softmax_masked");
        let [_, heads, seq_q, seq_k] = shape;
        let [h, q, k] = check.dims([("heads", heads), ("seq_q", seq_q), ("seq_k", seq_k)])?;
        check.rows("batch * heads * seq_q", &shape[..3])?;
        let planes = check.rows("batch * heads", &shape[..2])?;
        check.one_shape(x, y, &shape)?;
        check_operand(check, "mask", mask, shape)?;
        check.disjoint(("y", y), ("mask", mask.buffer))?;
        check.value("scale", scale, |_| true, "finite")?;
        let args = LaunchArgs::new().buffer(x).buffer(mask.buffer).out(y);
        let args = args.values([h, q, k]).value(mask.strides).value(scale);
        let (name, config) = geometry::by_query(planes, q, k, "softmax_masked_rows", "softmax_masked_block");
        // SAFETY: x and y have the shape's elements, the mask's strides stay inside of it, aliasing is as the kernel allows; the grid has a
        // block along x for each plane and no more, and the kernel leaves out queries that do not exist.
        unsafe { self.launch(stream, "softmax", name, config, args) }
    }
}
