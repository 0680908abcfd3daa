//! RMSNorm, LayerNorm and L2 normalisation, row by row.

use super::half_rows::HalfRows;
use super::matvec_q8::{BLOCK, Q8Activations};
use crate::declared::{Again, Call, Declared, GIB, ROWS, kernel};
use crate::{KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[RMS_NORM, ADD_RMS_NORM, ADD_RMS_NORM_HALVES, LAYER_NORM, L2_NORMALIZE];

kernel! {
    /// `y = x / sqrt(mean(x^2) + eps) * weight` for `x` and `y` `[rows, cols]`, `weight` `[cols]`. `y` may be `x`.
    RMS_NORM: rms_norm in "rms_norm"
    reads x [rows, cols] of -2.0..3.0, weight [cols] of -1.0..1.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    numbers eps = 1e-5, if eps >= 0.0 && eps.is_finite(), "finite and not negative";
    launch geometry::by_row(rows, cols, "rms_norm_rows", "rms_norm_block"), with [rows, cols];
    gives |c| reference::rms_norm(c.f32("x"), c.f32("weight"), eps), within 2e-6;
    tested ROWS; counted &[&[64, 2048], &[256, 512]]; moved &[&[64, 576], &[16, 2048]], Again::Vector;
    timed &[&[GIB / 4096, 4096], &[GIB / 512, 512]];
}

kernel! {
    /// `y = (x - mean) / sqrt(variance + eps) * weight + bias` for `x` and `y` `[rows, cols]`, `weight` and `bias` `[cols]`. `y` may be
    /// `x`.
    LAYER_NORM: layer_norm in "layer_norm"
    reads x [rows, cols] of -2.0..3.0, weight [cols] of -1.0..1.0, bias [cols] of -1.0..1.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    // One column has variance 0: x - mean is 0 in f64 and within rounding here, divided by sqrt(eps).
    numbers eps = 1e-5, if eps >= 0.0 && eps.is_finite(), "finite and not negative";
    launch geometry::by_row(rows, cols, "layer_norm_rows", "layer_norm_block"), with [rows, cols];
    gives |c| reference::layer_norm(c.f32("x"), c.f32("weight"), c.f32("bias"), eps), within 5e-6;
    tested ROWS; counted &[&[64, 2048], &[256, 512]]; moved &[&[64, 576], &[16, 2048]], Again::Vector;
    timed &[&[GIB / 4096, 4096], &[GIB / 512, 512]];
}

kernel! {
    /// `y = x / max(|x|, eps)`, row by row over `[rows, cols]`. `y` may be `x`.
    L2_NORMALIZE: l2_normalize in "pool"
    reads x [rows, cols] of -2.0..3.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    // Its square must not be 0.
    numbers eps = 1e-5, if eps >= 1e-18 && eps.is_finite(), "at least 1e-18";
    launch ("l2_normalize", geometry::rows(rows)), with [rows, cols];
    gives |c| reference::l2_normalize(c.f32("x"), cols, eps), within 1e-6;
    tested ROWS; counted &[&[64, 2048], &[256, 512]]; moved &[&[64, 576]], Again::No; timed &[&[GIB / 512, 512]];
}

/// Memory for rows that a launch leaves rounded, beside f32.
#[derive(Debug, Clone, Copy)]
pub enum Rounded<'a> {
    /// For [`Q8Activations`], as [`Kernels::quantize_q8`] makes them.
    Q8(&'a HipBuffer<u8>),
    /// For [`HalfRows`], as [`Kernels::half_rows`] makes them.
    Halves(&'a HipBuffer<u8>),
}

impl Kernels {
    /// `sum = a + b` and `y = sum / sqrt(mean(sum^2) + eps) * weight` in one launch, all `[rows, cols]`, `weight` `[cols]`; what
    /// [`add`](Self::add) and [`rms_norm`](Self::rms_norm) give, bit for bit. `others` is b and the sum; without it the sum is a. The sum and y may each be a or b.
    /// With `rounded` y is rounded, too.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap beyond the one allowed, a dimension of 0, an `eps` that is negative or not finite; with `rounded` rows that are no whole
    /// blocks of 32, memory of another length or, for f16, at no multiple of 16.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of two ops
    pub fn add_rms_norm(
        &self,
        stream: &HipStream,
        a: &HipBuffer<f32>,
        others: Option<[&HipBuffer<f32>; 2]>,
        weight: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        rounded: Option<Rounded<'_>>,
        [rows, cols]: [usize; 2],
        eps: f32,
    ) -> KernelResult<()> {
        let op = self.op("add_rms_norm");
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        op.value_of("eps", eps, eps >= 0.0 && eps.is_finite(), "finite and not negative")?;
        let mut halves = None;
        match rounded {
            Some(Rounded::Q8(to)) => Q8Activations::room(op.check(), to, [rows, cols])?,
            Some(Rounded::Halves(to)) => {
                op.multiple("rounded rows must be whole blocks", cols, BLOCK)?;
                halves = Some((to, HalfRows::room(op.check(), to, [rows, cols])?));
            }
            None => {}
        }
        let shape = [rows, cols];
        let op = (op.read("a", a, &shape)?)
            .read_or_null("b", others.map(|[b, _]| b), &shape)?
            .read("weight", weight, &[cols])?
            .write_or_null("sum", others.map(|[_, sum]| sum), &shape, &["a", "b"])?
            .write("y", y, &shape, &["a", "b"])?;
        let op = match rounded {
            Some(Rounded::Q8(to)) => op.writes("to", to, &[]),
            _ => op.null(),
        };
        let op = match &halves {
            Some((to, rows)) => (op.writes_later("to", to)).part(&rows.halves).part(&rows.exponents),
            None => op.null().null(),
        };
        op.values([r, c]).value(eps).run(
            stream,
            "add_rms_norm",
            geometry::by_row(r, c, "add_rms_norm_rows", "add_rms_norm_block"),
        )
    }
}

/// With the norm in 8 bits, or as rows of f16, where the columns are whole blocks.
fn sum_and_norm(c: &mut Call<'_>, dims: &[usize], halves: bool) -> KernelResult<()> {
    let &[rows, cols] = dims else { return Ok(()) };
    let n = rows * cols;
    let (a, b) = (c.input("a", n, -2.0..3.0)?, c.input("b", n, -2.0..3.0)?);
    let weight = c.input("weight", cols, -1.0..1.0)?;
    let (sum, y) = (c.output("sum", n)?, c.output("y", n)?);
    let bytes = match halves {
        false => Q8Activations::byte_len(rows, cols),
        true => HalfRows::byte_len(rows, cols).filter(|_| cols.is_multiple_of(BLOCK)),
    };
    let to = match bytes {
        Some(bytes) => Some(c.output_bytes("to", bytes)?),
        None => None,
    };
    let rounded = to.as_ref().map(|to| match halves {
        false => Rounded::Q8(to),
        true => Rounded::Halves(to),
    });
    c.kernels
        .add_rms_norm(c.stream, &a, Some([&b, &sum]), &weight, &y, rounded, [rows, cols], 1e-6)?;
    let sums = |c: &Call<'_>| {
        c.f32("a")
            .iter()
            .zip(c.f32("b"))
            .map(|(a, b)| a + b)
            .collect::<Vec<f32>>()
    };
    c.expect("sum", 0.0, |c| {
        reference::add(c.f32("a"), c.f32("b"))
            .iter()
            .map(|&sum| f64::from(sum as f32))
            .collect()
    });
    c.expect("y", 2e-6, |c| reference::rms_norm(&sums(c), c.f32("weight"), 1e-6));
    Ok(())
}

const ADD_RMS_NORM: Declared = Declared {
    name: "add_rms_norm",
    call: |c: &mut Call<'_>, dims: &[usize]| sum_and_norm(c, dims, false),
    tested: ROWS,
    // The steps of a model that `counters` has launch it.
    moved: &[&[64, 576], &[16, 2048]],
    again: Again::Vector,
    ..Declared::NEW
};

const ADD_RMS_NORM_HALVES: Declared = Declared {
    name: "add_rms_norm_halves",
    call: |c: &mut Call<'_>, dims: &[usize]| sum_and_norm(c, dims, true),
    tested: &[&[1, 32], &[9, 96], &[3, 4096], &[2, 4128]],
    moved: &[],
    ..ADD_RMS_NORM
};
