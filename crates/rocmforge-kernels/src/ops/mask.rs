//! Additive and causal masks.

use crate::declared::{Again, Declared};
use crate::layout::causal_offset;
use crate::{KernelResult, Kernels, Operand, Strides, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[MASK, CAUSAL_MASK, DIAG_MASK];

impl Kernels {
    /// `y = x + mask` for scores `[batch, heads, seq_q, seq_k]`. The mask (0 and -inf, or any bias) broadcasts through its strides.
    /// `y` may be `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, strides that leave the mask, partial overlap, a dimension of 0.
    pub fn mask(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        mask: Operand<'_>,
        y: &HipBuffer<f32>,
        [batch, heads, seq_q, seq_k]: [usize; 4],
    ) -> KernelResult<()> {
        let shape = [batch, heads, seq_q, seq_k];
        let op = self.op("mask");
        let [h, q, k] = op.dims([("heads", heads), ("seq_q", seq_q), ("seq_k", seq_k)])?;
        let rows = op.rows("batch * heads * seq_q", &shape[..3])?;
        op.read("x", x, &shape)?
            .read_strided("mask", mask, shape)?
            .write("y", y, &shape, &["x"])?
            .values([rows, h, q, k])
            .value(mask.strides)
            .run(stream, "mask", ("mask", geometry::row_tile(rows, k)))
    }

    /// Writes a causal mask into `y` `[planes, seq_q, seq_k]`: 0 where query i sees key j, -inf elsewhere. The last query lines up
    /// with the last key: j <= i + seq_k - seq_q. The attention kernels make their own; this one is for masks that are given as tensors.
    ///
    /// # Errors
    ///
    /// Wrong length, a dimension of 0.
    pub fn causal_mask(
        &self,
        stream: &HipStream,
        y: &HipBuffer<f32>,
        planes: usize,
        seq_q: usize,
        seq_k: usize,
    ) -> KernelResult<()> {
        let op = self.op("causal_mask");
        op.dim("planes", planes)?;
        let [q, k] = op.dims([("seq_q", seq_q), ("seq_k", seq_k)])?;
        let rows = op.rows("planes * seq_q", &[planes, seq_q])?;
        let offset = causal_offset(op.check(), q, k)?;
        op.write("y", y, &[planes, seq_q, seq_k], &[])?
            .values([rows, q, k])
            .value(offset)
            .run(stream, "causal_mask", ("causal_mask", geometry::row_tile(rows, k)))
    }

    /// Copies `x` `[planes, rows, cols]` to `y` with `by` over the columns `c > n_past + r` of each row `r`. `y` may be
    /// `x`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, partial overlap, a dimension of 0.
    pub fn diag_mask(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        [planes, rows, cols]: [usize; 3],
        n_past: usize,
        by: f32,
    ) -> KernelResult<()> {
        let op = self.op("diag_mask");
        let [r, c] = op.dims([("rows", rows), ("cols", cols)])?;
        let all = op.rows("planes * rows", &[planes, rows])?;
        let shape = [planes, rows, cols];
        // Beyond the columns nothing is hidden.
        let offset = i32::try_from(n_past.min(cols)).unwrap_or(i32::MAX);
        op.read("x", x, &shape)?
            .write("y", y, &shape, &["x"])?
            .values([all, r, c])
            .value(offset)
            .value(by)
            .run(stream, "causal_mask", ("diag_mask", geometry::row_tile(all, c)))
    }
}

/// One mask for all heads.
const MASK: Declared = Declared {
    name: "mask",
    call: |c, dims| {
        let &[batch, heads, q, k] = dims else { return Ok(()) };
        let n = batch * heads * q * k;
        let strides = Strides {
            head: 0,
            ..Strides::heads_first(1, q, k)
        };
        let (x, mask) = (c.input("x", n, -2.0..2.0)?, c.input("mask", batch * q * k, -2.0..2.0)?);
        let y = c.output("y", n)?;
        c.kernels
            .mask(c.stream, &x, Operand::new(&mask, strides), &y, [batch, heads, q, k])?;
        c.expect("y", 5e-7, |c| {
            let (x, mask) = (c.f32("x"), c.f32("mask"));
            let of = |at: usize| mask[at / (heads * q * k) * q * k + at % (q * k)];
            x.iter()
                .enumerate()
                .map(|(at, &x)| f64::from(x) + f64::from(of(at)))
                .collect()
        });
        Ok(())
    },
    tested: &[
        &[1, 1, 1, 1],
        &[2, 3, 5, 31],
        &[1, 4, 9, 33],
        &[2, 2, 17, 129],
        &[1, 3, 2, 1025],
    ],
    counted: &[&[1, 4, 128, 128]],
    moved: &[&[1, 4, 64, 128]],
    again: Again::Heads,
    timed: &[&[2, 32, 2048, 2048]],
    ..Declared::NEW
};

/// Whether query i of `q` sees key j of `k`, where the last query sees the last key.
fn sees(at: usize, q: usize, k: usize) -> bool {
    let (i, j) = (at / k % q, at % k);
    j + q <= i + k
}

const CAUSAL_MASK: Declared = Declared {
    name: "causal_mask",
    call: |c, dims| {
        let &[planes, q, k] = dims else { return Ok(()) };
        let y = c.output("y", planes * q * k)?;
        c.kernels.causal_mask(c.stream, &y, planes, q, k)?;
        c.expect("y", 0.0, |_| {
            let value = |at| if sees(at, q, k) { 0.0 } else { f64::NEG_INFINITY };
            (0..planes * q * k).map(value).collect()
        });
        Ok(())
    },
    tested: &[
        &[1, 1, 1],
        &[2, 1, 7],
        &[2, 5, 33],
        &[3, 33, 5],
        &[1, 65, 65],
        &[2, 9, 1025],
    ],
    counted: &[&[4, 128, 128]],
    moved: &[&[1, 512, 512]],
    timed: &[&[128, 2048, 2048]],
    ..Declared::NEW
};

const DIAG_MASK: Declared = Declared {
    name: "diag_mask",
    call: |c, dims| {
        let &[planes, rows, cols] = dims else { return Ok(()) };
        let n = planes * rows * cols;
        let past = cols.saturating_sub(rows);
        let hidden = |at: usize| at % cols > at / cols % rows + past;
        // What is hidden is not read.
        c.moves(4 * ((0..n).filter(|&at| !hidden(at)).count() + n));
        let (x, y) = (c.input("x", n, -2.0..2.0)?, c.output("y", n)?);
        c.kernels
            .diag_mask(c.stream, &x, &y, [planes, rows, cols], past, -7.0)?;
        c.expect("y", 0.0, |c| {
            let of = |(at, &x): (usize, &f32)| if hidden(at) { -7.0 } else { f64::from(x) };
            c.f32("x").iter().enumerate().map(of).collect()
        });
        Ok(())
    },
    tested: &[&[1, 1, 1], &[2, 5, 33], &[3, 33, 5], &[1, 65, 65], &[2, 9, 1025]],
    counted: &[&[1, 256, 256]],
    moved: &[&[1, 512, 512]],
    ..Declared::NEW
};
