//! Kernels of several ops: several ops of a graph in one pass over their memory.

use super::elementwise;
use super::norm::rms_row;
use super::operand::{Operand, Values};
use super::ops::On;
use super::output::Target;
use super::products::{mul_mat, mul_mat_id};
use super::rope::Turns;
use super::rows::{add_chosen, put_row, row_units};
use super::threads::Threads;
use super::unary::function;
use super::weights::{self, Few, Rows, USUAL_WEIGHTS};
use crate::{ExpertUnit, GgmlResult, GluKind, Op, Rope, SumOf, Unary};
use smallvec::SmallVec;

/// The products of `x` with each of several weights, each with its bias if there are any.
pub(super) fn mul_mat_many(inputs: &[Operand<'_>], on: On<'_>, out: &mut [&mut [f32]]) -> GgmlResult<()> {
    let (weights, biases) = inputs[1..].split_at(out.len());
    products(&inputs[0], weights, on, out)?;
    for (out, bias) in out.iter_mut().zip(biases) {
        finish(out, Some(bias), |x| x, on.threads);
    }
    Ok(())
}

/// `a + b` and the norm of its rows.
pub(super) fn add_rms_norm(inputs: &[Operand<'_>], eps: f32, [sum, norm]: [&mut [f32]; 2], threads: &Threads) {
    let row = inputs[0].shape.last().copied().unwrap_or(1);
    if row == 0 || sum.is_empty() {
        return;
    }
    let (a, b) = (inputs[0].values(), inputs[1].values());
    let weight = inputs.get(2).map(Operand::f32);
    let rows = sum.len() / row;
    let rows_each = threads.rows_each(rows, 8 * row);
    let pieces = sum.chunks_mut(rows_each * row).zip(norm.chunks_mut(rows_each * row));
    let (tasks, states) = (pieces.enumerate(), std::iter::repeat(()));
    threads.each(tasks, rows.div_ceil(rows_each), states, |(), (piece, (sum, norm))| {
        let first = piece * rows_each * row;
        for (index, (sum, norm)) in sum.chunks_mut(row).zip(norm.chunks_mut(row)).enumerate() {
            let [a, b] = [a, b].map(|operand| beside_sum(operand.from(first + index * row), norm));
            elementwise::each_of_two(sum, a, b, |a, b| a + b);
            norm.copy_from_slice(sum);
            rms_row(norm, weight, eps);
        }
    });
}

/// An operand's row, as the sum sees it: a row that lies where the norm goes is apart from the sum.
fn beside_sum<'a>(values: Values<'a>, norm: &'a [f32]) -> Values<'a> {
    match values {
        Values::InOutput(1) => Values::Apart(norm),
        others => others,
    }
}

/// The products of `x` with each of the weights.
fn products(x: &Operand<'_>, weights: &[Operand<'_>], on: On<'_>, out: &mut [&mut [f32]]) -> GgmlResult<()> {
    if weights.iter().all(|weight| is_few(x, weight)) {
        let rows = weights
            .iter()
            .map(|weight| Rows::new(Op::MulMat, weight, weight.shape[0]));
        let rows = rows.collect::<GgmlResult<SmallVec<[_; USUAL_WEIGHTS]>>>()?;
        return weights::few_products(x.f32(), &rows, on, out);
    }
    for (weight, out) in weights.iter().zip(out) {
        mul_mat(x, weight, None, on, out)?;
    }
    Ok(())
}

/// Whether a product is one of few rows with a weight that is stored by rows: the one that [`weights::few_products`] computes.
fn is_few(x: &Operand<'_>, weight: &Operand<'_>) -> bool {
    let m: usize = x.shape[..x.shape.len() - 1].iter().product();
    let &[k, n] = weight.shape else { return false };
    (1..=weights::FEW).contains(&m) && k > 0 && n > 0 && weight.strides() == [1, k]
}

/// `f(x w + bias)`.
pub(super) fn mul_mat_unary(inputs: &[Operand<'_>], kind: Unary, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    mul_mat(&inputs[0], &inputs[1], None, on, out)?;
    finish(out, inputs.get(2), function(kind), on.threads);
    Ok(())
}

/// Adds a bias to each row and takes a function of each element, in one pass.
fn finish(out: &mut [f32], bias: Option<&Operand<'_>>, f: impl Fn(f32) -> f32 + Sync, threads: &Threads) {
    let Some(bias) = bias.map(Operand::f32) else {
        return elementwise::pieces(out, threads, |_, piece| piece.iter_mut().for_each(|x| *x = f(*x)));
    };
    let n = bias.len();
    threads.by_rows(out, n, 8 * n, |_, piece| {
        for row in piece.chunks_mut(n) {
            row.iter_mut().zip(bias.iter()).for_each(|(x, b)| *x = f(*x + b));
        }
    });
}

/// `f(x gate) * (x up)`.
pub(super) fn mul_mat_glu(inputs: &[Operand<'_>], kind: GluKind, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (x, gate, up) = (&inputs[0], &inputs[1], &inputs[2]);
    let f = function(kind.gate());
    if !(is_few(x, gate) && is_few(x, up)) {
        let ups = on.scratch.take(out.len());
        mul_mat(x, gate, None, on, out)?;
        mul_mat(x, up, None, on, ups)?;
        gated(kind, out, ups, on.threads);
        return Ok(());
    }
    let k = gate.shape[0];
    let weights = [Rows::new(Op::MulMat, gate, k)?, Rows::new(Op::MulMat, up, k)?];
    let few = Few::new(x.f32(), &weights, on);
    few.run(&mut [out], 1, |room, _, first, piece| {
        let (row, ups) = room.split_at_mut(few.room());
        let ups = &mut ups[..piece.len()];
        few.times(&weights[0], first, row, piece)?;
        few.times(&weights[1], first, row, ups)?;
        piece.iter_mut().zip(ups).for_each(|(g, u)| *g = f(*g) * *u);
        Ok(())
    })
}

/// `f(gate) * up` in the place of the gate.
fn gated(kind: GluKind, gate: &mut [f32], up: &[f32], threads: &Threads) {
    let f = function(kind.gate());
    elementwise::pieces(gate, threads, |first, piece| {
        piece.iter_mut().zip(&up[first..]).for_each(|(g, u)| *g = f(*g) * u);
    });
}

/// The gated unit of two products with the chosen experts.
pub(super) fn mul_mat_id_glu(inputs: &[Operand<'_>], unit: ExpertUnit, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (x, ids) = (&inputs[0], &inputs[3]);
    let ups = on.scratch.take(out.len());
    mul_mat_id(x, &inputs[1], ids, on, out)?;
    mul_mat_id(x, &inputs[2], ids, on, ups)?;
    if let [gate, up] = &inputs[4..] {
        add_chosen(gate, ids, out);
        add_chosen(up, ids, ups);
    }
    let kind = match unit {
        ExpertUnit::Glu(kind) => kind,
        ExpertUnit::Bounded { bound } => {
            let (gate, up) = (
                elementwise::clamp(f32::NEG_INFINITY, bound),
                elementwise::clamp(-bound, bound),
            );
            out.iter_mut().for_each(|x| *x = gate(*x));
            ups.iter_mut().for_each(|x| *x = up(*x) + 1.0);
            ExpertUnit::BOUNDED_KIND
        }
    };
    gated(kind, out, ups, on.threads);
    Ok(())
}

/// The sum of the products with the chosen experts times their factors, and what is added to it.
pub(super) fn mul_mat_id_sum(inputs: &[Operand<'_>], of: SumOf, on: On<'_>, out: &mut [f32]) -> GgmlResult<()> {
    let (experts, ids, factors) = (&inputs[1], &inputs[2], &inputs[3]);
    let [bias, beside, gate, residual] = of.operands(&inputs[4..]);
    let (&[_, _, n], &[tokens, used]) = (experts.shape, ids.shape) else {
        return Ok(());
    };
    let results = on.scratch.take(tokens * used * n);
    mul_mat_id(&inputs[0], experts, ids, on, results)?;
    if let Some(bias) = bias {
        add_chosen(bias, ids, results);
    }
    let (shape, strides) = ([tokens, used, n], [used * n, n, 1]);
    let results = Operand::of_f32(&shape, &strides, results, on.scratch);
    mul_mat(factors, &results, None, on, out)?;
    if let Some(beside) = beside {
        let sigmoid = function(Unary::Sigmoid);
        for (token, (row, beside)) in out.chunks_mut(n).zip(beside.f32().chunks(n)).enumerate() {
            let factor = gate.map(|gate| sigmoid(gate.f32()[token]));
            let beside = beside.iter().map(|x| factor.map_or(*x, |factor| x * factor));
            row.iter_mut().zip(beside).for_each(|(sum, x)| *sum += x);
        }
    }
    if let Some(residual) = residual {
        out.iter_mut().zip(residual.f32()).for_each(|(sum, x)| *sum += x);
    }
    Ok(())
}

/// Rotates each token's heads and writes them as a row of the target.
pub(super) fn rope_set_rows(inputs: &[Operand<'_>], rope: Rope, target: &mut Target<'_>) -> GgmlResult<()> {
    let (x, ids, positions) = (&inputs[0], inputs[2].indices(), &inputs[3]);
    let Target { desc: target, bytes } = target;
    let dim = target.shape[1];
    if dim == 0 {
        return Ok(());
    }
    let mut turns = Turns::new(x, positions, inputs.get(4), rope);
    let (row, units) = (x.scratch().take(dim), row_units(x, target));
    for (token, (x, &id)) in x.f32().chunks(dim).zip(ids).enumerate() {
        row.copy_from_slice(x);
        turns.token(token, row);
        put_row(row, target, id as usize * target.strides[0], units, bytes)?;
    }
    Ok(())
}
