//! scale, copy, add, mul, and a row vector added to or multiplied with every row.

use crate::declared::{Again, Declared, GIB, LENGTHS, ROWS, kernel};
use crate::{geometry, reference};

pub(super) const DECLARED: &[Declared] = &[SCALE, COPY, ADD, MUL, ADD_ROW_BIAS, MUL_ROW];

kernel! {
    /// `y = x * factor`, element by element. `y` may be `x`.
    SCALE: scale in "elementwise"
    reads x [n] of -2.0..3.0;
    writes y [n] over ["x"];
    count n = x.len();
    numbers factor = 1.5, if true, "any";
    launch ("scale", geometry::flat(n)), with [n];
    gives |c| reference::scale(c.f32("x"), factor), within 4e-7;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = x`. Graphs copy by [`copy_strided`](crate::Kernels::copy_strided) or without a kernel; this one is what the test
    /// `test_gpu_to_gpu_copy` compares a transfer with.
    COPY: copy in "copy"
    reads x [n] of -2.0..3.0;
    writes y [n] over [];
    count n = x.len();
    launch ("copy", geometry::flat(n)), with [n];
    gives |c| reference::scale(c.f32("x"), 1.0), within 0.0;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = a + b`, element by element. `y` may be one of them.
    ADD: add in "elementwise"
    reads a [n] of -1.0..1.0, b [n] of -1.0..1.0;
    writes y [n] over ["a", "b"];
    count n = y.len();
    launch ("add", geometry::flat(n)), with [n];
    gives |c| reference::add(c.f32("a"), c.f32("b")), within 1e-7;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y = a * b`, element by element. `y` may be one of them.
    MUL: mul in "elementwise"
    reads a [n] of -1.0..1.0, b [n] of -1.0..1.0;
    writes y [n] over ["a", "b"];
    count n = y.len();
    launch ("mul", geometry::flat(n)), with [n];
    gives |c| reference::mul(c.f32("a"), c.f32("b")), within 1e-7;
    tested LENGTHS; counted &[&[1 << 16]]; moved &[&[1 << 15]], Again::No; timed &[&[GIB]];
}

kernel! {
    /// `y[r, c] = x[r, c] + bias[c]` for `x` and `y` `[rows, cols]`. `y` may be `x`.
    ADD_ROW_BIAS: add_row_bias in "elementwise"
    reads x [rows, cols] of -1.0..1.0, bias [cols] of -1.0..1.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    launch ("add_row_bias", geometry::row_tile(rows, cols)), with [rows, cols];
    gives |c| reference::add_row_bias(c.f32("x"), c.f32("bias")), within 1e-6;
    tested ROWS; counted &[&[256, 256]]; moved &[&[32, 1024]], Again::Vector; timed &[&[GIB / 4096, 4096]];
}

kernel! {
    /// `y[r, c] = x[r, c] * factor[c]` for `x` and `y` `[rows, cols]`. `y` may be `x`.
    MUL_ROW: mul_row in "elementwise"
    reads x [rows, cols] of -1.0..1.0, factor [cols] of -1.0..1.0;
    writes y [rows, cols] over ["x"];
    dims rows, cols;
    launch ("mul_row", geometry::row_tile(rows, cols)), with [rows, cols];
    gives |c| reference::mul_row(c.f32("x"), c.f32("factor")), within 1e-7;
    tested ROWS; counted &[&[256, 256]]; moved &[&[32, 1024]], Again::Vector; timed &[];
}
