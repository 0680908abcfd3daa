//! Layout changes: transposition, replication of K and V heads.

use crate::declared::{Again, Declared, kernel};
use crate::{KernelResult, Kernels, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[TRANSPOSE, KV_REPLICATE];

kernel! {
    /// `y[b, c, r] = x[b, r, c]` for `x` `[batch, rows, cols]`.
    TRANSPOSE: transpose in "transpose"
    reads x [batch, rows, cols] of -2.0..2.0;
    writes y [batch, rows, cols] over [];
    array [batch, rows, cols];
    launch ("transpose", geometry::config([cols.div_ceil(64), rows.div_ceil(64), batch], 256)), with [rows, cols];
    gives |c| reference::transpose(c.f32("x"), [batch, rows, cols]).into_iter().map(f64::from).collect(), within 0.0;
    tested &[&[1, 1, 1], &[2, 31, 33], &[3, 65, 2], &[1, 127, 129], &[2, 5, 257]];
    counted &[&[1, 256, 256]]; moved &[&[2, 64, 256]], Again::No; timed &[&[16, 4096, 4096]];
}

impl Kernels {
    /// Repeats K or V heads for MQA and GQA: `x` `[tokens, kv_heads, head_dim]` to `y` `[tokens, heads, head_dim]`, where head h is kv
    /// head h / (heads / kv_heads). The attention kernels here do not need it; it is for
    /// programs that replicate heads.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, heads that `kv_heads` does not divide.
    pub fn kv_replicate(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        y: &HipBuffer<f32>,
        tokens: usize,
        [heads, kv_heads]: [usize; 2],
        head_dim: usize,
    ) -> KernelResult<()> {
        let op = self.op("kv_replicate");
        let [t, d] = op.dims([("tokens", tokens), ("head_dim", head_dim)])?;
        let [h, kv] = op.dims([("heads", heads), ("kv_heads", kv_heads)])?;
        op.heads(heads, kv_heads)?;
        let rows = op.rows("tokens * heads", &[tokens, heads])?;
        op.read("x", x, &[tokens, kv_heads, head_dim])?
            .write("y", y, &[tokens, heads, head_dim], &[])?
            .values([t, h, kv, d])
            .run(stream, "kv_replicate", ("kv_replicate", geometry::row_tile(rows, d)))
    }
}

const KV_REPLICATE: Declared = Declared {
    name: "kv_replicate",
    call: |c, dims| {
        let &[tokens, heads, kv_heads, dim] = dims else {
            return Ok(());
        };
        let (x, y) = (
            c.input("x", tokens * kv_heads * dim, -2.0..2.0)?,
            c.output("y", tokens * heads * dim)?,
        );
        c.kernels
            .kv_replicate(c.stream, &x, &y, tokens, [heads, kv_heads], dim)?;
        c.expect("y", 0.0, |c| {
            let y = reference::kv_replicate(c.f32("x"), [heads, kv_heads], dim);
            y.into_iter().map(f64::from).collect()
        });
        Ok(())
    },
    tested: &[&[1, 1, 1, 1], &[3, 4, 2, 31], &[5, 6, 1, 64], &[2, 3, 3, 129]],
    counted: &[&[256, 16, 4, 64]],
    moved: &[&[128, 16, 4, 64]],
    again: Again::Heads,
    timed: &[&[65536, 32, 8, 128]],
    ..Declared::NEW
};
