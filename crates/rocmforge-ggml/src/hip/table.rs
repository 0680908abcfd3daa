//! Table of the device's kernels: for each op, what its kernels take and their launch.

use rocmforge_kernels::Map;

use super::lower::Shared;
use super::takes::{Takes, all_floats};
use super::{HipGgmlBackend, attention, copies, elementwise, indexed, products, rope, rows, unimplemented};
use crate::{GgmlResult, Kernel, Op, TensorDesc, TensorId};

/// What the table is asked for: whether kernels take these operands, or the launch of checked ones.
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
        launch: impl FnOnce(&mut HipGgmlBackend, &[TensorId], &[TensorId], Shared) -> GgmlResult<()>,
    ) -> GgmlResult<()> {
        match self {
            Self::Takes([x, y]) => takes(x, y).map_err(|reason| unimplemented(op, reason)),
            Self::Launch(backend, [x, y], with) => launch(backend, x, y, with),
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
        let [operands, results] = [inputs, outputs].map(|ids| {
            let descs = ids.iter().map(|&id| self.slots.desc(id));
            descs.collect::<GgmlResult<Vec<_>>>()
        });
        Self::takes(kernel, &operands?, &results?)?;
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

/// The rows of single ops, and of launches of several nodes.
fn of_kernel(kernel: &Kernel, ask: Ask<'_>) -> GgmlResult<()> {
    match *kernel {
        Kernel::Op(op) => of_op(&op, ask),
        Kernel::MulMatUnary(kind) => ask.row(&Op::MulMat, products::mul_mat, |b, x, y, with| {
            b.matmul_unary(kind, x, y[0], with)
        }),
        Kernel::MulMatGlu(kind) => ask.row(&Op::MulMat, products::mul_mat_each, |b, x, y, with| {
            b.matmul_glu(kind, x, y[0], with)
        }),
        Kernel::MulMatMany { .. } => ask.row(&Op::MulMat, products::mul_mat_many, |b, x, y, with| {
            b.matmul_many(x, y, with)
        }),
        Kernel::AddRmsNorm { eps } => ask.row(&Op::RmsNorm { eps }, rows::by_teams, |b, x, y, with| {
            b.add_rms_norm(eps, x, y, with)
        }),
        Kernel::RopeSetRows(r) => ask.row(
            &Op::Rope(r),
            |x, y| rope::and_set_rows(r, x, y),
            |b, x, y, _| b.rope_set_rows(r, x, y[0]),
        ),
    }
}

/// The row of an op.
fn of_op(op: &Op, ask: Ask<'_>) -> GgmlResult<()> {
    match *op {
        Op::MulMat => ask.row(op, products::mul_mat, |b, x, y, with| b.matmul(op, x, y[0], with)),
        Op::MulMatId => ask.row(op, products::mul_mat_id, |b, x, y, _| b.matmul_id(op, x, y[0])),

        Op::Attention(a) => ask.row(
            op,
            |x, y| attention::attention(a, x, y),
            |b, x, y, _| b.attention(op, a, x, y[0]),
        ),
        Op::FlashAttnExt(a) => ask.row(op, attention::flash_attn_ext, |b, x, y, _| {
            b.flash_attn_ext(op, a, x, y[0])
        }),
        Op::PagedAttention(a) => ask.row(
            op,
            |x, y| attention::paged_attention(a, x, y),
            |b, x, y, with| b.paged_attention(op, a, x, y[0], with),
        ),
        Op::Rope(r) => ask.row(op, |x, y| rope::rope(r, x, y), |b, x, y, _| b.rope(op, r, x, y[0])),

        Op::LayerNorm { eps } => ask.row(op, rows::by_teams, |b, x, y, _| b.layer_norm(op, eps, x, y[0])),
        Op::RmsNorm { eps } => ask.row(op, rows::by_teams, |b, x, y, with| b.rms_norm(op, eps, x, y[0], with)),
        Op::L2Norm { eps } => ask.row(op, rows::by_long_teams, |b, x, y, _| {
            b.by_rows(op, x, y[0], |b, x, y, [rows, cols]| {
                b.kernels.l2_normalize(b.stream(), x, y, rows, cols, eps)
            })
        }),
        Op::SoftMax(s) => ask.row(
            op,
            |x, y| rows::soft_max(s, x, y),
            |b, x, y, _| b.soft_max(op, s, x, y[0]),
        ),
        Op::DiagMask { n_past, fill } => ask.row(op, rows::by_tiles, |b, x, y, _| {
            b.diag_mask(op, (n_past, fill), x, y[0])
        }),
        Op::Sum => ask.row(op, all_floats, |b, x, y, _| b.sum(op, x[0], y[0])),
        Op::SumRows => ask.row(op, rows::by_teams, |b, x, y, _| b.sum_rows(op, 1.0, x, y[0])),
        Op::Mean => ask.row(op, rows::by_teams, |b, x, y, _| b.mean(op, x, y[0])),
        Op::Cumsum => ask.row(op, rows::by_blocks, |b, x, y, _| {
            b.by_rows(op, x, y[0], |b, x, y, [rows, cols]| {
                b.kernels.cumsum(b.stream(), x, y, rows, cols)
            })
        }),
        Op::MeanPool => ask.row(op, rows::mean_pool, |b, x, y, _| b.mean_pool(op, x, y[0])),
        Op::Argmax | Op::Argsort { .. } | Op::TopK { .. } => ask.row(
            op,
            |x, y| rows::columns(op, x, y),
            |b, x, y, _| b.columns(op, x[0], y[0]),
        ),

        Op::Route(how) => ask.row(op, |x, y| rows::route(how, x, y), |b, x, y, _| b.route(op, how, x, y)),

        Op::GetRows => ask.row(op, indexed::get_rows, |b, x, y, _| b.get_rows(op, x, y[0])),
        Op::SetRows => ask.row(op, indexed::set_rows, |b, x, y, _| b.set_rows(op, x, y[0])),
        Op::AddId => ask.row(op, indexed::add_id, |b, x, y, _| b.add_id(op, x, y[0])),

        Op::Dup | Op::Cont | Op::Cpy { .. } | Op::Reshape | Op::View | Op::Permute { .. } | Op::Transpose => ask.row(
            op,
            |x, y| copies::moves(op, x, y),
            |b, x, y, _| b.move_elements(op, x[0], y[0]),
        ),
        Op::Repeat => ask.row(op, copies::repeats, |b, x, y, _| b.move_elements(op, x[0], y[0])),
        Op::Concat { axis } => ask.row(
            op,
            |x, y| copies::concat(axis, x, y),
            |b, x, y, _| b.concat(op, axis, x, y[0]),
        ),
        Op::Pad { left, .. } => ask.row(
            op,
            |x, y| copies::pad(&left, x, y),
            |b, x, y, _| b.pad(op, &left, x[0], y[0]),
        ),
        Op::Accumulate { offset } => ask.row(op, copies::accumulate, |b, x, y, _| {
            b.accumulate(op, offset, x[0], y[0])
        }),

        Op::Add | Op::Sub | Op::Mul | Op::Div => ask.row(op, elementwise::binary, |b, x, y, _| b.binary(op, x, y[0])),
        Op::Glu { kind, swapped } => ask.row(op, rows::by_tiles, |b, x, y, _| b.glu(op, (kind, swapped), x, y[0])),
        Op::Softcap { cap } => ask.row(op, all_floats, |b, x, y, _| {
            b.by_rows(op, x, y[0], |b, x, y, _| b.kernels.softcap(b.stream(), x, y, cap))
        }),
        Op::Scale { factor } => of_map(op, Map::Affine { factor, add: 0.0 }, ask),
        Op::ScaleBias { factor, bias } => of_map(op, Map::Affine { factor, add: bias }, ask),
        Op::Clamp { min, max } => of_map(op, Map::Clamp { min, max }, ask),
        Op::Sqr => of_map(op, Map::Sqr, ask),
        Op::Sqrt => of_map(op, Map::Sqrt, ask),
        Op::Log => of_map(op, Map::Log, ask),
        Op::Sin => of_map(op, Map::Sin, ask),
        Op::Cos => of_map(op, Map::Cos, ask),
        Op::Unary(kind) => of_map(op, Map::Unary(kind), ask),

        Op::SsmConv
        | Op::SsmScan
        | Op::GatedDeltaNet
        | Op::GroupNorm { .. }
        | Op::Tri { .. }
        | Op::SolveTri
        | Op::Im2col { .. }
        | Op::Conv2d { .. }
        | Op::Pool1d { .. }
        | Op::Pool2d { .. }
        | Op::Arange { .. }
        | Op::Fill { .. }
        | Op::Upscale { .. } => Err(unimplemented(op, "no kernel")),
    }
}

/// The row of an op that is a function of one element.
fn of_map(op: &Op, f: Map, ask: Ask<'_>) -> GgmlResult<()> {
    ask.row(op, elementwise::map, |b, x, y, _| b.map(op, f, x, y[0]))
}
