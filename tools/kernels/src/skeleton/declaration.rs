//! `NAME`: say here what it is for.

use crate::declared::{Again, Declared, GIB, LENGTHS, kernel};
use crate::geometry;

pub(super) const DECLARED: &[Declared] = &[KERNEL];

kernel! {
    /// `y = factor * x`, element by element. `y` may be `x`.
    KERNEL: NAME in "NAME"
    reads x [n] of -4.0..4.0;
    writes y [n] over ["x"];
    count n = x.len();
    numbers factor = 1.5, if factor.is_finite(), "finite";
    launch ("NAME", geometry::flat(n)), with [n];
    gives |c| definition(c.f32("x"), factor), within 1e-6;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

/// `factor * x`, element by element, in f64.
fn definition(x: &[f32], factor: f32) -> Vec<f64> {
    x.iter().map(|&x| f64::from(factor) * f64::from(x)).collect()
}
