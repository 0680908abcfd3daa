//! Ops and launches of several nodes: the function that computes each.

use super::operand::Operand;
use super::output::{Results, Target};
use super::scratch::Scratch;
use super::threads::Threads;
use super::{
    attention, convert, elementwise, flash_attn, fused, moves, norm, paged, planes, products, recurrent, reduce, rope,
    route, rows, select, soft_max, unary,
};
use crate::{Activations, DType, GgmlResult, Kernel, Op, indices};

/// Runs a kernel on operands whose types and shapes are checked, into the outputs' memory. Nothing is written if an index is out of range.
pub(super) fn run(
    kernel: &Kernel,
    inputs: &[Operand<'_>],
    targets: &mut [Target<'_>],
    activations: Activations,
    threads: &Threads,
    scratch: &Scratch,
) -> GgmlResult<()> {
    let mut y = Results::new(targets, scratch);
    match *kernel {
        Kernel::Op(op) => {
            indices::check(&op, inputs)?;
            compute(&op, inputs, &mut y, activations, threads)?;
        }
        Kernel::MulMatUnary(kind) => fused::mul_mat_unary(inputs, kind, activations, y.one(), threads)?,
        Kernel::MulMatGlu(kind) => fused::mul_mat_glu(inputs, kind, activations, y.one(), threads)?,
        Kernel::MulMatMany { .. } => fused::mul_mat_many(inputs, activations, &mut y.all(), threads)?,
        Kernel::AddRmsNorm { eps } => fused::add_rms_norm(inputs, eps, y.words(), threads),
        Kernel::RopeSetRows(rope) => {
            // The errors of the two ops that this one stands for.
            indices::check(&Op::Rope(rope), &[inputs[0], inputs[3]][..])?;
            indices::check(&Op::SetRows, &inputs[..3])?;
            fused::rope_set_rows(inputs, rope, y.first())?;
        }
    }
    y.store()
}

fn compute(
    op: &Op,
    inputs: &[Operand<'_>],
    y: &mut Results<'_, '_>,
    activations: Activations,
    threads: &Threads,
) -> GgmlResult<()> {
    // Shape rules have counted the operands.
    let x = |operand: usize| &inputs[operand];
    let output = y.first().desc;
    match *op {
        Op::GetRows if output.dtype != DType::F32 => y.put(rows::get_plain_rows(x(0), x(1))),
        Op::GetRows => rows::get_rows(x(0), x(1), y.one())?,
        Op::SetRows => rows::set_rows(x(0), x(2), y.first())?,
        Op::MulMat => products::mul_mat(x(0), x(1), inputs.get(2), activations, y.one(), threads)?,
        Op::MulMatId => products::mul_mat_id(x(0), x(1), x(2), activations, y.one(), threads)?,
        Op::AddId => rows::add_id(x(0), x(1), x(2), y.one()),
        Op::Arange { start, step, .. } => rows::arange([start, step].map(f64::from), y.one()),
        Op::Fill { value } => y.one().fill(value),
        Op::Add => elementwise::broadcast(x(0), x(1), y.one(), threads, |a, b| a + b),
        Op::Sub => elementwise::broadcast(x(0), x(1), y.one(), threads, |a, b| a - b),
        Op::Mul => elementwise::broadcast(x(0), x(1), y.one(), threads, |a, b| a * b),
        Op::Div => elementwise::broadcast(x(0), x(1), y.one(), threads, |a, b| a / b),
        Op::Accumulate { offset } => rows::accumulate(x(0), x(1), offset, y.one()),
        Op::Scale { factor } => elementwise::map(x(0), y.one(), threads, |x| x * factor),
        Op::ScaleBias { factor, bias } => elementwise::map(x(0), y.one(), threads, |x| x * factor + bias),
        Op::Clamp { min, max } => elementwise::map(x(0), y.one(), threads, elementwise::clamp(min, max)),
        Op::Sqr => elementwise::map(x(0), y.one(), threads, |x| x * x),
        Op::Sqrt => elementwise::map(x(0), y.one(), threads, f32::sqrt),
        Op::Log => elementwise::map(x(0), y.one(), threads, f32::ln),
        Op::Sin => elementwise::map(x(0), y.one(), threads, f32::sin),
        Op::Cos => elementwise::map(x(0), y.one(), threads, f32::cos),
        Op::Softcap { cap } => elementwise::map(x(0), y.one(), threads, |x| cap * (x / cap).tanh()),
        Op::Unary(kind) => elementwise::map(x(0), y.one(), threads, unary::function(kind)),
        Op::Glu { kind, swapped } => elementwise::glu(inputs, kind, swapped, y.one(), threads),
        Op::LayerNorm { eps } => norm::layer_norm(x(0), inputs.get(1), inputs.get(2), eps, y.one(), threads),
        Op::RmsNorm { eps } => norm::rms_norm(x(0), inputs.get(1), eps, y.one(), threads),
        Op::L2Norm { eps } => norm::l2_norm(x(0), eps, y.one(), threads),
        Op::SoftMax(s) => soft_max::soft_max(inputs, s, y.one(), threads),
        Op::DiagMask { n_past, fill } => soft_max::diag_mask(x(0), n_past, fill, y.one()),
        Op::Rope(rope) => rope::rope(x(0), x(1), inputs.get(2), rope, y.one()),
        Op::FlashAttnExt(a) => flash_attn::attention(inputs, a, y.one(), threads),
        Op::Attention(a) => attention::attention(inputs, a, y.one(), threads),
        Op::PagedAttention(a) => paged::attention(inputs, a, y.one(), threads),
        Op::SsmConv => recurrent::conv(inputs, y.words(), threads),
        Op::SsmScan => recurrent::scan(inputs, y.words(), threads),
        Op::GatedDeltaNet => recurrent::delta_net(inputs, y.words(), threads),
        Op::GroupNorm { n_groups, eps } => planes::group_norm(x(0), n_groups, eps, y.one()),
        Op::Tri { kind } => planes::tri(x(0), kind, y.one()),
        Op::SolveTri => planes::solve_tri(x(0), x(1), y.one()),
        Op::Im2col {
            stride,
            padding,
            dilation,
        } => planes::im2col(x(0).shape, x(1), [stride, padding, dilation], y.one()),
        Op::Conv2d {
            stride,
            padding,
            dilation,
        } => planes::conv(x(0), x(1), [stride, padding, dilation], y.one(), threads),
        Op::Pool1d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool(x(0), kind, [[1, kernel], [1, stride], [0, padding]], true, y.one()),
        Op::Pool2d {
            kind,
            kernel,
            stride,
            padding,
        } => planes::pool(x(0), kind, [kernel, stride, padding], false, y.one()),
        Op::Upscale { mode, height, width } => planes::upscale(x(0), mode, [height, width], y.one()),
        Op::Dup | Op::Cont | Op::Reshape | Op::View => y.put(x(0).units()),
        Op::Cpy { .. } => y.put(convert::convert(x(0), output.dtype)?),
        Op::Concat { axis } => y.put(moves::concat(x(0), x(1), axis)),
        Op::Repeat => y.put(moves::repeat(x(0), output)),
        Op::Pad { left, .. } => y.put(moves::pad(x(0), left, output)),
        Op::Permute { axes } => y.put(moves::permute(op, x(0), &axes[..x(0).shape.len()])?),
        Op::Transpose => y.put(moves::transpose(op, x(0))?),
        Op::Argmax => select::arg_max(x(0), bytemuck::cast_slice_mut(y.one())),
        Op::Argsort { order } => select::arg_sort(x(0), order, bytemuck::cast_slice_mut(y.one())),
        Op::TopK { k } => select::top_k(x(0), k, bytemuck::cast_slice_mut(y.one())),
        Op::Route(how) => route::route(inputs, how, y.words()),
        Op::Sum => reduce::total(x(0), y.one()),
        Op::SumRows => reduce::rows(x(0), y.one(), |_| 1.0),
        Op::Mean => reduce::rows(x(0), y.one(), |n| 1.0 / n),
        Op::Cumsum => reduce::running(x(0), y.one()),
        Op::MeanPool => rows::mean_pool(x(0), x(1), y.one()),
    }
    Ok(())
}
