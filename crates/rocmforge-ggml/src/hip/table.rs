//! The column `hip` of the table of ops, and its like for launches of several nodes: what kernels take, and their launch.

use rocmforge_kernels::{Binary, Map};

use super::lower::Shared;
use super::takes::{Takes, all_floats};
use super::{HipGgmlBackend, attention, copies, elementwise, indexed, products, recurrent, rope, rows, unimplemented};
use crate::{GgmlResult, Kernel, Op, TensorDesc, TensorId};

/// What a row is asked for: whether kernels take these operands, or the launch of checked ones.
enum Ask<'a> {
    Takes([&'a [&'a TensorDesc]; 2]),
    Launch(&'a mut HipGgmlBackend, [&'a [TensorId]; 2], Shared),
}

impl Ask<'_> {
    /// The answer of a row: its check, or its launch.
    fn row(
        self,
        op: &Op,
        takes: impl FnOnce(&[&TensorDesc], &[&TensorDesc]) -> Takes,
        launch: impl FnOnce(&mut HipGgmlBackend, &Op, &[TensorId], &[TensorId], Shared) -> GgmlResult<()>,
    ) -> GgmlResult<()> {
        match self {
            Self::Takes([x, y]) => takes(x, y).map_err(|reason| unimplemented(op, reason)),
            Self::Launch(backend, [x, y], with) => launch(backend, op, x, y, with),
        }
    }
}

impl HipGgmlBackend {
    /// Whether the device has a kernel for an op with these operands, whose shapes and types fit the op
    /// ([`crate::shape::infer`]).
    ///
    /// Every launch asks this first, and [`crate::HybridBackend`] asks before it copies an operand and counts the reasons.
    ///
    /// # Errors
    /// [`crate::GgmlError::Unimplemented`]: what no kernel does, or which dimension is more than one launch takes.
    pub fn covers(op: &Op, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> GgmlResult<()> {
        Self::takes(&Kernel::Op(*op), inputs, outputs)
    }

    /// [`Self::covers`] for a launch of one or several nodes.
    pub(crate) fn takes(kernel: &Kernel, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> GgmlResult<()> {
        if let (Kernel::Op(op), true) = (kernel, inputs.is_empty() || outputs.is_empty()) {
            return Err(unimplemented(op, "no kernel without operands"));
        }
        of_kernel(kernel, Ask::Takes([inputs, outputs]))
    }

    /// Launches a kernel whose operands fit it, if there is one for them.
    pub(super) fn launch(
        &mut self,
        kernel: &Kernel,
        inputs: &[TensorId],
        outputs: &[TensorId],
        with: Shared,
    ) -> GgmlResult<()> {
        Self::takes(kernel, &self.slots.descs(inputs)?, &self.slots.descs(outputs)?)?;
        self.unpack_operands(kernel, inputs)?;
        of_kernel(kernel, Ask::Launch(self, [inputs, outputs], with))
    }

    /// Launches a checked op.
    pub(super) fn launch_op(
        &mut self,
        op: &Op,
        inputs: &[TensorId],
        outputs: &[TensorId],
        with: Shared,
    ) -> GgmlResult<()> {
        of_op(op, Ask::Launch(self, [inputs, outputs], with))
    }
}

/// The answers for single ops, and for launches of several nodes.
fn of_kernel(kernel: &Kernel, ask: Ask<'_>) -> GgmlResult<()> {
    match *kernel {
        Kernel::Op(op) => of_op(&op, ask),
        Kernel::MulMatUnary(kind) => ask.row(&Op::MulMat, products::mul_mat, |b, _, x, y, with| {
            b.matmul_unary(kind, x, y[0], with)
        }),
        Kernel::MulMatGlu(kind) => ask.row(&Op::MulMat, products::mul_mat_each, |b, _, x, y, with| {
            b.matmul_glu(kind, x, y[0], with)
        }),
        Kernel::MulMatMany { .. } => ask.row(&Op::MulMat, products::mul_mat_many, |b, _, x, y, with| {
            b.matmul_many(x, y, with)
        }),
        Kernel::MulMatIdGlu(unit) => ask.row(&Op::MulMatId, products::mul_mat_id_each, |b, _, x, y, _| {
            b.experts_glu(unit, x, y[0])
        }),
        Kernel::MulMatIdSum(of) => ask.row(&Op::MulMatId, products::mul_mat_id_sum, |b, _, x, y, _| {
            b.experts_sum(of, x, y[0])
        }),
        Kernel::AddRmsNorm { eps } => ask.row(&Op::RmsNorm { eps }, rows::by_teams, |b, _, x, y, with| {
            b.add_rms_norm(eps, x, y, with)
        }),
        Kernel::RopeSetRows(r) => ask.row(
            &Op::Rope(r),
            |x, y| rope::and_set_rows(r, x, y),
            |b, _, x, y, _| b.rope_set_rows(r, x, y[0]),
        ),
    }
}

/// The answer of a row. A row without kernels answers that the op has no kernel.
macro_rules! answer {
    ($ask:ident, $op:ident,) => {
        Err(unimplemented($op, "no kernel"))
    };
    ($ask:ident, $op:ident, $takes:expr, $launch:expr) => {
        $ask.row($op, $takes, $launch)
    };
}

macro_rules! kernels {
    ($(
        $name:tt $variant:ident $(($member:tt: $kind:ident of $family:ident))? $({ $($field:tt: $parameter:ident),* })?
            [$($fact:tt)*] shape $rule:expr, cpu $function:expr, hip ($($row:tt)*)
    )*) => {
        /// The answer for an op.
        #[allow(unused_variables)]
        fn of_op(op: &Op, ask: Ask<'_>) -> GgmlResult<()> {
            match *op {
                $(Op::$variant { $($member: $kind,)? $($($field: $parameter),*)? } => answer!(ask, op, $($row)*),)*
            }
        }
    };
}

crate::op::ops!(kernels);
