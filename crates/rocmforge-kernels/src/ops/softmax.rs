//! Softmax over the last dimension: plain, causal, with a mask, with slopes and sinks.

use super::cast::{FloatType, quarters};
use crate::check::Check;
use crate::declared::{Again, Call, Declared, GIB, ROWS, kernel};
use crate::layout::causal_offset;
use crate::{KernelResult, Kernels, KvType, Operand, Strides, geometry, reference};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[
    SOFTMAX,
    SOFTMAX_CAUSAL,
    SOFTMAX_MASKED,
    SOFTMAX_BIASED_F32,
    SOFTMAX_BIASED_F16,
];

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
    let bytes = [outer, inner, rows, cols, ty.block_bytes()];
    check.len_at("mask", mask, &bytes, ty.alignment())?;
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

kernel! {
    /// `y = softmax(x * scale)` row by row over `[rows, cols]`, any row length. `y` may be `x`. A row of nothing but -inf gives zeros.
    SOFTMAX: softmax in "softmax"
    reads x [rows, cols] of -5.0..5.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    numbers scale = 1.0, if scale.is_finite(), "finite";
    launch geometry::by_row(rows, cols, "softmax_rows", "softmax_block"), with [rows, cols];
    gives |c| reference::softmax(c.f32("x"), cols, scale), within 1e-6;
    tested ROWS; counted &[&[64, 2048], &[256, 512]]; moved &[&[160, 256], &[160, 1280]], Again::No;
    timed &[&[GIB / 4096, 4096], &[GIB / 512, 512]];
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
        let op = self.op("softmax_biased");
        let [_, heads, per, cols] = shape;
        let [h, p, c] = op.dims([("heads", heads), ("rows", per), ("cols", cols)])?;
        let rows = op.rows("batch * heads * rows", &shape[..3])?;
        op.value_of("scale", bias.scale, bias.scale.is_finite(), "finite")?;
        op.value_of(
            "max_bias",
            bias.max_bias,
            bias.max_bias >= 0.0 && bias.max_bias.is_finite(),
            "0 or more",
        )?;
        let [outer, inner, mask_rows] = match bias.mask {
            Some(mask) => check_mask(op.check(), mask, shape)?,
            None => [1, 1, p],
        };
        let op = op.read("x", x, &shape)?;
        let op = match bias.mask {
            Some((_, mask, _)) => op.reads("mask", mask),
            None => op.null(),
        };
        let op = (op.read_or_null("sinks", bias.sinks, &[heads])?)
            .write("y", y, &shape, &["x"])?
            .values([rows, c])
            .value(Bias {
                per: p,
                heads: h,
                outer,
                inner,
                mask_rows,
                power: 1 << h.ilog2(),
                scale: bias.scale,
                max_bias: bias.max_bias,
            });
        let launch = match bias.mask {
            Some((KvType::F16, ..)) => geometry::by_row(rows, c, "softmax_biased_f16_rows", "softmax_biased_f16_block"),
            _ => geometry::by_row(rows, c, "softmax_biased_f32_rows", "softmax_biased_f32_block"),
        };
        op.run(stream, "softmax", launch)
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
        let op = self.op("softmax_causal");
        let shape = [planes, seq_q, seq_k];
        let [q, k] = op.dims([("seq_q", seq_q), ("seq_k", seq_k)])?;
        let rows = op.rows("planes * seq_q", &shape[..2])?;
        op.value_of("scale", scale, scale.is_finite(), "finite")?;
        let offset = causal_offset(op.check(), q, k)?;
        op.read("x", x, &shape)?
            .write("y", y, &shape, &["x"])?
            .values([rows, q, k])
            .value(offset)
            .value(scale)
            .run(
                stream,
                "softmax",
                geometry::by_row(rows, k, "softmax_causal_rows", "softmax_causal_block"),
            )
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
        let op = self.op("softmax_masked");
        let [_, heads, seq_q, seq_k] = shape;
        let [h, q, k] = op.dims([("heads", heads), ("seq_q", seq_q), ("seq_k", seq_k)])?;
        op.rows("batch * heads * seq_q", &shape[..3])?;
        let planes = op.rows("batch * heads", &shape[..2])?;
        op.value_of("scale", scale, scale.is_finite(), "finite")?;
        // The grid has a block along x for each plane and no more; the kernel leaves out queries that do not exist.
        op.read("x", x, &shape)?
            .read_strided("mask", mask, shape)?
            .write("y", y, &shape, &["x"])?
            .values([h, q, k])
            .value(mask.strides)
            .value(scale)
            .run(
                stream,
                "softmax",
                geometry::by_query(planes, q, k, "softmax_masked_rows", "softmax_masked_block"),
            )
    }
}

const SOFTMAX_CAUSAL: Declared = Declared {
    name: "softmax_causal",
    call: |c, dims| {
        let &[planes, q, k] = dims else { return Ok(()) };
        let n = planes * q * k;
        let sees = |at: usize| at % k + q <= at / k % q + k;
        // Scores that are hidden are not read; a 0 is written for each.
        c.moves(4 * ((0..n.min(q * k)).filter(|&at| sees(at)).count() * planes + n));
        let (x, y) = (c.input("x", n, -5.0..5.0)?, c.output("y", n)?);
        c.kernels.softmax_causal(c.stream, &x, &y, [planes, q, k], 1.0)?;
        c.expect("y", 1e-6, |c| {
            let seen = |(at, &x): (usize, &f32)| if sees(at) { x } else { f32::NEG_INFINITY };
            let x: Vec<f32> = c.f32("x").iter().enumerate().map(seen).collect();
            reference::softmax(&x, k, 1.0)
        });
        Ok(())
    },
    tested: &[
        &[1, 1, 1],
        &[1, 1, 65],
        &[3, 5, 33],
        &[2, 33, 5],
        &[1, 65, 129],
        &[2, 3, 1025],
    ],
    counted: &[&[1, 64, 2048], &[1, 256, 512]],
    moved: &[&[4, 40, 256], &[4, 40, 1280]],
    timed: &[&[64, 2048, 2048]],
    ..Declared::NEW
};

/// One mask for all heads.
const SOFTMAX_MASKED: Declared = Declared {
    name: "softmax_masked",
    call: |c, dims| {
        let &[batch, heads, q, k] = dims else { return Ok(()) };
        let (x, mask) = (
            c.input("x", batch * heads * q * k, -5.0..5.0)?,
            c.input("mask", q * k, -2.0..2.0)?,
        );
        let y = c.output("y", batch * heads * q * k)?;
        let mask = Operand::new(&mask, Strides::per_row(k));
        c.kernels
            .softmax_masked(c.stream, &x, mask, &y, [batch, heads, q, k], 0.5)?;
        c.expect("y", 1e-6, |c| {
            let mask = |_: usize, _: usize, i: usize, j: usize| f64::from(c.f32("mask")[i * k + j]);
            reference::softmax_biased(c.f32("x"), [batch, heads, q, k], [0.5, 0.0], mask, None)
        });
        Ok(())
    },
    tested: &[&[1, 1, 1, 1], &[2, 3, 5, 33], &[1, 2, 9, 65], &[2, 1, 3, 1025]],
    counted: &[&[1, 1, 64, 2048], &[1, 1, 256, 512]],
    moved: &[&[1, 4, 40, 256], &[1, 4, 40, 1280]],
    again: Again::Heads,
    timed: &[&[2, 32, 2048, 2048]],
    ..Declared::NEW
};

const SOFTMAX_BIASED_F32: Declared = Declared {
    name: "softmax_biased",
    call: |c, dims| biased(c, dims, FloatType::F32),
    tested: &[&[1, 1, 1], &[3, 5, 33], &[5, 9, 65], &[2, 3, 1025]],
    counted: &[&[1, 128, 512], &[1, 32, 2048]],
    moved: &[&[4, 40, 256], &[4, 40, 1280]],
    again: Again::Heads,
    ..Declared::NEW
};
const SOFTMAX_BIASED_F16: Declared = Declared {
    call: |c, dims| biased(c, dims, FloatType::F16),
    ..SOFTMAX_BIASED_F32
};

/// One mask for all heads, with slopes.
fn biased(c: &mut Call<'_>, dims: &[usize], ty: FloatType) -> KernelResult<()> {
    let &[heads, rows, cols] = dims else { return Ok(()) };
    let shape = [1, heads, rows, cols];
    let x = c.input("x", heads * rows * cols, -5.0..5.0)?;
    // Numbers that every type has.
    let masks: Vec<f32> = (0..rows * cols).map(|at| (at % 9) as f32 / 4.0 - 1.0).collect();
    let bytes = quarters(ty, &masks);
    let mask = c.bytes("mask", bytes)?;
    let y = c.output("y", heads * rows * cols)?;
    let bias = SoftmaxBias {
        scale: 1.0,
        mask: Some((ty.kv(), &mask, [1, 1, rows, cols])),
        max_bias: 8.0,
        sinks: None,
    };
    c.kernels.softmax_biased(c.stream, &x, bias, &y, shape)?;
    c.expect("y", 1e-6, |c| {
        let mask = |_: usize, _: usize, i: usize, j: usize| f64::from(masks[i * cols + j]);
        reference::softmax_biased(c.f32("x"), shape, [1.0, 8.0], mask, None)
    });
    Ok(())
}
