//! Pooling: token vectors to sentence vectors.

use crate::declared::{Again, Declared, kernel};
use crate::{geometry, reference};

pub(super) const DECLARED: &[Declared] = &[MEAN_POOL];

kernel! {
    /// `y[b, c] = sum_s x[b, s, c] * weight[b, s] / max(sum_s weight[b, s], 1e-9)` for `x` `[batch, seq, cols]`, `weight` `[batch, seq]`
    /// (the attention mask, 1 or 0), `y` `[batch, cols]`. Tokens of weight 0 are not read.
    MEAN_POOL: mean_pool in "pool"
    reads x [batch, seq, cols] of -2.0..2.0, weight [batch, seq] of 0.0..1.0;
    writes y [batch, cols] over [];
    array [batch, seq, cols];
    launch ("mean_pool", geometry::config([cols.div_ceil(256), batch, 1], 256)), with [seq, cols];
    gives |c| reference::mean_pool(c.f32("x"), c.f32("weight"), [batch, seq, cols]), within 1e-6;
    tested &[&[1, 1, 1], &[2, 3, 31], &[3, 7, 33], &[2, 5, 257], &[1, 65, 384]];
    counted &[&[2, 32, 2048]]; moved &[&[1, 32, 1024]], Again::No; timed &[&[256, 1024, 1024]];
}
