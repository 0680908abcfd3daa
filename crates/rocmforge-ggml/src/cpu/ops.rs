//! Ops and launches of several nodes: the function that computes each.

use super::operand::Operand;
use super::output::{Results, Target};
use super::scratch::Scratch;
use super::threads::Threads;
use super::{
    attention, elementwise, flash_attn, fused, moves, norm, paged, planes, products, recurrent, reduce, rope, route,
    rows, select, soft_max, unary,
};
use crate::{Activations, GgmlResult, Kernel, Op, indices};

/// What an op is computed on.
#[derive(Clone, Copy)]
pub(super) struct On<'a> {
    pub(super) activations: Activations,
    pub(super) threads: &'a Threads,
    pub(super) scratch: &'a Scratch,
}

/// Runs a kernel on operands whose types and shapes are checked, into the outputs' memory. Nothing is written if an index is out of range.
pub(super) fn run(kernel: &Kernel, inputs: &[Operand<'_>], targets: &mut [Target<'_>], on: On<'_>) -> GgmlResult<()> {
    let mut y = Results::new(targets, on.scratch);
    match *kernel {
        Kernel::Op(op) => {
            indices::check(&op, inputs)?;
            compute(&op, inputs, &mut y, on)?;
        }
        Kernel::MulMatUnary(kind) => fused::mul_mat_unary(inputs, kind, on, y.one())?,
        Kernel::MulMatGlu(kind) => fused::mul_mat_glu(inputs, kind, on, y.one())?,
        Kernel::MulMatMany { .. } => fused::mul_mat_many(inputs, on, &mut y.all())?,
        Kernel::MulMatIdGlu(unit) => {
            indices::check(&Op::MulMatId, &[inputs[0], inputs[1], inputs[3]][..])?;
            fused::mul_mat_id_glu(inputs, unit, on, y.one())?;
        }
        Kernel::MulMatIdSum(of) => {
            indices::check(&Op::MulMatId, &inputs[..3])?;
            fused::mul_mat_id_sum(inputs, of, on, y.one())?;
        }
        Kernel::AddRmsNorm { eps } => fused::add_rms_norm(inputs, eps, y.words(), on.threads),
        Kernel::RopeSetRows(rope) => {
            // The errors of the two ops that this one stands for.
            indices::check(&Op::Rope(rope), &[inputs[0], inputs[3]][..])?;
            indices::check(&Op::SetRows, &inputs[..3])?;
            fused::rope_set_rows(inputs, rope, y.first())?;
        }
    }
    y.store()
}

/// What a function of the table gives: nothing, or whether it could compute.
trait Computed {
    fn result(self) -> GgmlResult<()>;
}

impl Computed for () {
    fn result(self) -> GgmlResult<()> {
        Ok(())
    }
}

impl Computed for GgmlResult<()> {
    fn result(self) -> GgmlResult<()> {
        self
    }
}

/// Calls the function of a row.
fn call<R: Computed>(
    function: impl FnOnce(&[Operand<'_>], &mut Results<'_, '_>, On<'_>) -> R,
    x: &[Operand<'_>],
    y: &mut Results<'_, '_>,
    on: On<'_>,
) -> GgmlResult<()> {
    function(x, y, on).result()
}

macro_rules! compute {
    ($(
        $name:tt $variant:ident $(($member:tt: $kind:ident of $family:ident))? $({ $($field:tt: $parameter:ident),* })?
            [$($fact:tt)*] shape $rule:expr, cpu $function:expr, hip ($($hip:tt)*)
    )*) => {
        #[allow(unused_variables)]
        fn compute(op: &Op, x: &[Operand<'_>], y: &mut Results<'_, '_>, on: On<'_>) -> GgmlResult<()> {
            match *op {
                $(Op::$variant { $($member: $kind,)? $($($field: $parameter),*)? } => call($function, x, y, on),)*
            }
        }
    };
}

crate::op::ops!(compute);
