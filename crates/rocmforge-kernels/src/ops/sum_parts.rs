//! The sum of the parts of a product over k, in their order.

use crate::launch::Launch;
use crate::{KernelResult, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

/// Adds so many parts `[rows, columns]`, which `op` has as its first operand with exponents of both sides or null, and a bias, into `y` with rows of `y_row`. The
/// operation has checked the length of `y`.
pub(super) fn sum_parts<'a>(
    op: Launch<'_, 'a>,
    stream: &HipStream,
    bias: Option<&'a HipBuffer<f32>>,
    (y, y_row): (&'a HipBuffer<f32>, usize),
    [parts, rows, columns]: [u32; 3],
) -> KernelResult<()> {
    let op = op.read_or_null("bias", bias, &[columns as usize])?.writes("y", y, &[]);
    (op.values([parts, rows, columns]).value(y_row as u64)).run(
        stream,
        "sum_parts",
        ("sum_parts", geometry::parts_of_rows(rows, columns)),
    )
}
