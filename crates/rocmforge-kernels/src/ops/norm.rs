//! RMSNorm, LayerNorm and L2 normalisation, row by row.

use super::matvec_q8::Q8Activations;
use crate::check::Check;
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

impl Kernels {
    /// `y = x / sqrt(mean(x^2) + eps) * weight` for `x` and `y` `[rows, cols]`, `weight` `[cols]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, an `eps` that is negative or not finite.
    pub fn rms_norm(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        weight: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
        eps: f32,
    ) -> KernelResult<()> {
        let check = Check("rms_norm");
        let (r, c) = normalised(check, x, y, rows, cols, eps)?;
        check.input("weight", weight, &[cols], ("y", y))?;
        let args = LaunchArgs::new().buffer(x).buffer(weight).out(y);
        let args = args.values([r, c]).value(eps);
        let (name, config) = geometry::by_row(r, c, "rms_norm_rows", "rms_norm_block");
        // SAFETY: lengths are those of the shape and aliasing is as the kernel allows, all checked above.
        unsafe { self.launch(stream, "rms_norm", name, config, args) }
    }

    /// `sum = a + b` and `y = sum / sqrt(mean(sum^2) + eps) * weight` in one launch, all `[rows, cols]`, `weight` `[cols]`; what
    /// [`add`](Self::add) and [`rms_norm`](Self::rms_norm) give, bit for bit. `others` is b and the sum; without it the sum is a. The sum and y may each be a or b.
    /// With `q8` y is rounded to 8 bits, too, as [`quantize_q8`](Self::quantize_q8) does.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap beyond the one allowed, a dimension of 0, an `eps` that is negative or not finite; with `q8` rows that are no whole
    /// blocks of 32.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of two ops
    pub fn add_rms_norm(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        others: Option<[&HipBuffer<f32>; 2]>,
        weight: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        q8: Option<HipBuffer<u8>>,
        [rows, cols]: [usize; 2],
        eps: f32,
    ) -> KernelResult<Option<Q8Activations>> {
        let check = Check("add_rms_norm");
        let (r, c) = normalised(check, a, y, rows, cols, eps)?;
        check.input("weight", weight, &[cols], ("y", y))?;
        if let Some([b, sum]) = others {
            check.len("b", b, &[rows, cols])?;
            check.input("sum", sum, &[rows, cols], ("y", y))?;
            check.in_place(("y", y), ("b", b))?;
            check.disjoint(("sum", sum), ("weight", weight))?;
            check.in_place(("sum", sum), ("a", a))?;
            check.in_place(("sum", sum), ("b", b))?;
        }
        if let Some(to) = &q8 {
            Q8Activations::room(check, to, [rows, cols])?;
            for (name, other) in [("a", a), ("weight", weight), ("y", y)] {
                check.disjoint(("to", to), (name, other))?;
            }
            if let Some([b, sum]) = others {
                check.disjoint(("to", to), ("b", b))?;
                check.disjoint(("to", to), ("sum", sum))?;
            }
        }
        let args = (LaunchArgs::new().buffer(a))
            .buffer_or_null(others.map(|[b, _]| b))
            .buffer(weight)
            .out_or_null(others.map(|[_, sum]| sum))
            .out(y)
            .out_or_null(q8.as_ref());
        let args = args.values([r, c]).value(eps);
        let (name, config) = geometry::by_row(r, c, "add_rms_norm_rows", "add_rms_norm_block");
        // SAFETY: lengths are those of the shape, rows are whole blocks where they are rounded, aliasing is as the kernel allows, all checked above.
        unsafe { self.launch(stream, "add_rms_norm", name, config, args) }?;
        Ok(q8.map(|to| Q8Activations::new(to, [rows, cols])))
    }

    /// `y = (x - mean) / sqrt(variance + eps) * weight + bias` for `x` and `y` `[rows, cols]`, `weight` and `bias` `[cols]`. `y` may be
    /// `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, an `eps` that is negative or not finite.
    pub fn layer_norm(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        weight: &HipBuffer<f32>,
        bias: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
        eps: f32,
    ) -> KernelResult<()> {
        let check = Check("layer_norm");
        let (r, c) = normalised(check, x, y, rows, cols, eps)?;
        check.input("weight", weight, &[cols], ("y", y))?;
        check.input("bias", bias, &[cols], ("y", y))?;
        let args = LaunchArgs::new().buffer(x).buffer(weight).buffer(bias);
        let args = args.out(y).values([r, c]).value(eps);
        let (name, config) = geometry::by_row(r, c, "layer_norm_rows", "layer_norm_block");
        // SAFETY: lengths are those of the shape and aliasing is as the kernel allows, all checked above.
        unsafe { self.launch(stream, "layer_norm", name, config, args) }
    }

    /// `y = x / max(|x|, eps)`, row by row over `[rows, cols]`. `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0, an `eps` below 1e-18 (its square must not be 0).
    pub fn l2_normalize(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rows: usize,
        cols: usize,
        eps: f32,
    ) -> KernelResult<()> {
        let check = Check("l2_normalize");
        let (r, c) = normalised(check, x, y, rows, cols, eps)?;
        check.value("eps", eps, |eps| eps >= 1e-18, "at least 1e-18")?;
        let args = LaunchArgs::new().buffer(x).out(y).values([r, c]).value(eps);
        // SAFETY: x and y have the shape's elements and coincide or are apart, checked above.
        unsafe { self.launch(stream, "pool", "l2_normalize", geometry::rows(r), args) }
    }
}

fn normalised(
    check: Check,
    x: &HipBuffer<f32>,
    y: &HipBuffer<f32>,
    rows: usize,
    cols: usize,
    eps: f32,
) -> KernelResult<(u32, u32)> {
    let (r, c) = (check.dim("rows", rows)?, check.dim("cols", cols)?);
    check.one_shape(x, y, &[rows, cols])?;
    check.value("eps", eps, |eps| eps >= 0.0, "finite and not negative")?;
    Ok((r, c))
}
