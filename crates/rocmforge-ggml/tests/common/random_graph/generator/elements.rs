//! Functions of one and two elements, gated linear units.

use rocmforge_ggml::{DType, GluKind, Op, TensorId, Unary};

use super::super::data::Data;
use super::{Generator, Maker};

/// There are many of these ops, so they come in more often.
pub(super) const MAKERS: [Maker; 34] = [
    unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary, unary,
    function, function, function, function, function, function, binary, binary, binary, binary, glu, glu, glu, glu,
    glu, unary, function, constant,
];

fn unary(g: &mut Generator<'_>) -> Option<TensorId> {
    let kind = g.one_of(&Unary::ALL);
    let x = g.pick();
    let x = g.any_float(x)?;
    g.push(Op::Unary(kind), &[x])
}

/// What depends on no element.
fn constant(g: &mut Generator<'_>) -> Option<TensorId> {
    let start = g.random.uniform(-1.5, 1.5);
    if g.one_in(2) {
        let (stop, step) = (start + 4.0, g.one_of(&[0.25, 0.7]));
        return g.push(Op::Arange { start, stop, step }, &[]);
    }
    let x = g.pick();
    let x = g.any_float(x)?;
    g.push(Op::Fill { value: start }, &[x])
}

fn function(g: &mut Generator<'_>) -> Option<TensorId> {
    let factor = g.random.uniform(-1.5, 1.5);
    let x = g.pick();
    let x = g.any_float(x)?;
    let op = match g.random.below(9) {
        0 => Op::Scale { factor },
        1 => Op::ScaleBias { factor, bias: 0.25 },
        2 => Op::Clamp { min: -0.75, max: 1.5 },
        3 => Op::Sqr,
        4 => Op::Sin,
        5 => Op::Cos,
        6 => Op::Softcap {
            cap: 1.0 + factor.abs(),
        },
        root_or_log => {
            // Away from 0, where neither is defined or both are steep.
            let x = g.push(Op::Clamp { min: 0.05, max: 50.0 }, &[x])?;
            return g.push(if root_or_log == 7 { Op::Sqrt } else { Op::Log }, &[x]);
        }
    };
    g.push(op, &[x])
}

/// A shape that repeats to another.
fn part_of(g: &mut Generator<'_>, shape: &[usize]) -> Vec<usize> {
    let first = g.random.below(shape.len());
    let part = |g: &mut Generator<'_>, d: usize| match g.random.below(3) {
        0 => 1,
        1 if d.is_multiple_of(2) => d / 2,
        _ => d,
    };
    shape[first..].iter().map(|&d| part(g, d)).collect()
}

fn binary(g: &mut Generator<'_>) -> Option<TensorId> {
    let op = g.one_of(&[Op::Add, Op::Sub, Op::Mul, Op::Div]);
    let a = g.pick();
    let mut shape = g.dims(a);
    if g.one_in(2) {
        shape = part_of(g, &shape);
    }
    let a = g.any_float(a)?;
    let b = if g.one_in(3) {
        let dtype = g.one_of(&[DType::F32, DType::F32, DType::F16, DType::Bf16]);
        let data = Data::Uniform { low: 0.5, high: 1.75 };
        g.leaf(dtype, &shape, data)
    } else {
        g.fit(&shape)?
    };
    let b = match op {
        Op::Div => g.push(Op::Clamp { min: 0.25, max: 4.0 }, &[b])?,
        _ => b,
    };
    g.push(op, &[a, b])
}

fn glu(g: &mut Generator<'_>) -> Option<TensorId> {
    let kind = g.one_of(&GluKind::ALL);
    let gate = g.pick();
    let mut shape = g.dims(gate);
    if g.one_in(2) {
        let gate = g.any_float(gate)?;
        let up = g.fit(&shape)?;
        let up = g.cast_like(up, gate)?;
        return g.push(Op::Glu { kind, swapped: false }, &[gate, up]);
    }
    let last = shape.len() - 1;
    shape[last] *= 2;
    let both = g.fit(&shape)?;
    let both = g.any_float(both)?;
    let swapped = g.one_in(2);
    g.push(Op::Glu { kind, swapped }, &[both])
}
