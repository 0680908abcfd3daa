//! Ops on rows: norms, softmax, masks, sums, orders.

use rocmforge_ggml::{DType, DiagFill, Op, SoftMax, SortOrder, TensorId};

use super::super::data::Data;
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 12] = [
    norm, norm, add_norm, soft_max, soft_max, diag_mask, sum, sum, sum, order, order, mean_pool,
];

fn norm(g: &mut Generator<'_>) -> Option<TensorId> {
    let mut x = g.pick();
    let mut shape = g.dims(x);
    let cols = shape[shape.len() - 1];
    if cols < 3 {
        // The norm of one or two numbers is a sign.
        shape = vec![2, 33];
        x = g.fit_of(x, &shape)?;
    }
    let x = g.any_float(x)?;
    let (dtype, cols) = (g.desc(x).dtype, shape[shape.len() - 1]);
    let mut inputs = vec![x];
    let vector = |g: &mut Generator<'_>, low: f32| {
        let layout = rocmforge_ggml::Layout::RowMajor;
        g.weight(dtype, &[cols], layout, Data::Uniform { low, high: 1.5 })
    };
    let eps = g.one_of(&[1e-6, 1e-5, 0.1]);
    let op = match g.random.below(3) {
        0 => {
            if g.one_in(2) {
                inputs.push(vector(g, 0.5));
                if g.one_in(2) {
                    inputs.push(vector(g, -1.0));
                }
            }
            Op::LayerNorm { eps }
        }
        1 => {
            if g.one_in(2) {
                inputs.push(vector(g, 0.5));
            }
            Op::RmsNorm { eps }
        }
        _ => Op::L2Norm { eps },
    };
    g.push(op, &inputs)
}

fn add_norm(g: &mut Generator<'_>) -> Option<TensorId> {
    let cols = g.one_of(&[3, 8, 33, 64]);
    let rows = g.one_of(&[1, 4, 5]);
    let lead: &[usize] = g.one_of(&[&[] as &[usize], &[2]]);
    let shape = [lead, &[rows, cols]].concat();
    let mut inputs = vec![g.fit(&shape)?, g.fit(&shape)?];
    if g.one_in(2) {
        let layout = rocmforge_ggml::Layout::RowMajor;
        inputs.push(g.weight(DType::F32, &[cols], layout, Data::Uniform { low: 0.5, high: 1.5 }));
    }
    let eps = g.one_of(&[1e-6, 1e-5, 0.1]);
    let sum = g.push(Op::Add, &inputs[..2])?;
    g.keep(sum);
    inputs.splice(..2, [sum]);
    g.push(Op::RmsNorm { eps }, &inputs)
}

fn soft_max(g: &mut Generator<'_>) -> Option<TensorId> {
    let x = g.pick();
    let shape = g.dims(x);
    let rank = shape.len();
    let x = g.any_float(x)?;
    let heads = if rank >= 3 { shape[rank - 3] } else { 1 };
    let (mask, sinks) = (rank >= 2 && g.one_in(2), g.one_in(3));
    let mut inputs = vec![x];
    if mask {
        let mut own: Vec<usize> = shape.clone();
        for d in own.iter_mut().take(rank - 2) {
            *d = if g.one_in(2) { 1 } else { *d };
        }
        own[rank - 2] += g.random.below(2);
        let skipped = g.random.below(rank - 1);
        let dtype = g.one_of(&[DType::F32, DType::F16]);
        inputs.push(g.leaf(dtype, &own[skipped..], Data::Mask));
    }
    if sinks {
        inputs.push(g.leaf(DType::F32, &[heads], Data::Uniform { low: -2.0, high: 2.0 }));
    }
    let s = SoftMax {
        scale: g.one_of(&[1.0, 0.3, 1.5]),
        max_bias: if mask && g.one_in(2) { 8.0 } else { 0.0 },
        mask,
        sinks,
    };
    g.push(Op::SoftMax(s), &inputs)
}

fn diag_mask(g: &mut Generator<'_>) -> Option<TensorId> {
    let (lead, rows, cols) = (g.one_of(&[1, 2]), g.one_of(&[2, 5, 8]), g.one_of(&[3, 8, 17]));
    let shape = [lead, rows, cols];
    let first = g.random.below(2);
    let x = g.fit(&shape[first..])?;
    let x = g.any_float(x)?;
    let n_past = g.random.below(5);
    if g.one_in(2) {
        let fill = DiagFill::Zero;
        return g.push(Op::DiagMask { n_past, fill }, &[x]);
    }
    let fill = DiagFill::Inf;
    let masked = g.push(Op::DiagMask { n_past, fill }, &[x])?;
    g.push(Op::SoftMax(SoftMax::PLAIN), &[masked])
}

fn sum(g: &mut Generator<'_>) -> Option<TensorId> {
    let op = g.one_of(&[Op::Sum, Op::SumRows, Op::Mean, Op::Cumsum]);
    let x = g.pick();
    let x = g.any_float(x)?;
    g.push(op, &[x])
}

/// An order of rows, and rows of a table in it.
fn order(g: &mut Generator<'_>) -> Option<TensorId> {
    let (rows, cols) = (g.one_of(&[1, 2, 5]), g.one_of(&[2, 7, 16]));
    let x = g.fit(&[rows, cols])?;
    let op = match g.random.below(4) {
        0 => Op::Argmax,
        1 => Op::Argsort {
            order: SortOrder::Ascending,
        },
        2 => Op::Argsort {
            order: SortOrder::Descending,
        },
        _ => Op::TopK {
            k: 1 + g.random.below(cols),
        },
    };
    let ids = g.push(op, &[x])?;
    g.indices.push(ids);
    let table = g.fit(&[cols, 8])?;
    g.push(Op::GetRows, &[table, ids])
}

fn mean_pool(g: &mut Generator<'_>) -> Option<TensorId> {
    let shape = [g.one_of(&[1, 2]), g.one_of(&[1, 3, 6]), g.one_of(&[8, 33])];
    let x = g.fit(&shape)?;
    let weight = g.leaf(DType::F32, &shape[..2], Data::Uniform { low: 0.1, high: 1.0 });
    g.push(Op::MeanPool, &[x, weight])
}
