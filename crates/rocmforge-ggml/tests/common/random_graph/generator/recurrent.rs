//! Recurrent ops: a few tokens of a few sequences, mixed, with states picked from slots.

use rocmforge_ggml::{DType, Op, TensorId};

use super::super::data::Data;
use super::{Generator, Maker};

pub(super) const MAKERS: [Maker; 4] = [conv, scan, delta_net, delta_net_rows];

const SLOTS: usize = 4;
const SMALL: Data = Data::Uniform { low: -1.0, high: 1.0 };

/// The node with its last two operands; both results may be read.
fn with_sequences(g: &mut Generator<'_>, op: Op, tokens: usize, mut inputs: Vec<TensorId>) -> Option<TensorId> {
    let sequences = g.one_of(&[1, 2, 3]);
    inputs.push(g.index_leaf(&[tokens], sequences));
    inputs.push(g.index_leaf(&[sequences], SLOTS));
    let made = g.push_all(op, &inputs)?;
    g.keep(made[1]);
    Some(made[0])
}

fn conv(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, channels, taps) = (g.one_of(&[1, 2, 5]), g.one_of(&[3, 8, 33]), g.one_of(&[2, 4]));
    let inputs = vec![
        g.fit(&[SLOTS, channels, taps - 1])?,
        g.fit(&[tokens, channels])?,
        g.leaf(DType::F32, &[channels, taps], SMALL),
    ];
    with_sequences(g, Op::SsmConv, tokens, inputs)
}

fn scan(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, heads, dim) = (g.one_of(&[1, 2, 5]), g.one_of(&[2, 4]), g.one_of(&[1, 3]));
    let (n_state, groups) = (g.one_of(&[4, 7]), g.one_of(&[1, 2]));
    let decays = g.one_of(&[1, n_state]);
    let negative = Data::Uniform { low: -2.0, high: -0.1 };
    let inputs = vec![
        g.fit(&[SLOTS, heads, dim, n_state])?,
        g.fit(&[tokens, heads, dim])?,
        g.leaf(DType::F32, &[tokens, heads], SMALL),
        g.leaf(DType::F32, &[heads, decays], negative),
        g.fit(&[tokens, groups, n_state])?,
        g.fit(&[tokens, groups, n_state])?,
    ];
    with_sequences(g, Op::SsmScan, tokens, inputs)
}

fn delta_net(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, heads, k_heads) = (g.one_of(&[1, 2, 5]), g.one_of(&[2, 4]), g.one_of(&[1, 2]));
    let (dim_v, dim_k) = (g.one_of(&[3, 8]), g.one_of(&[4, 8]));
    let gates = g.one_of(&[1, dim_k]);
    let negative = Data::Uniform { low: -2.0, high: -0.1 };
    let positive = Data::Uniform { low: 0.1, high: 0.9 };
    let inputs = vec![
        g.fit(&[SLOTS, heads, dim_v, dim_k])?,
        g.fit(&[tokens, k_heads, dim_k])?,
        g.leaf(DType::F32, &[tokens, k_heads, dim_k], SMALL),
        g.fit(&[tokens, heads, dim_v])?,
        g.leaf(DType::F32, &[tokens, heads, gates], negative),
        g.leaf(DType::F32, &[tokens, heads], positive),
    ];
    with_sequences(g, Op::GatedDeltaNet, tokens, inputs)
}

fn delta_net_rows(g: &mut Generator<'_>) -> Option<TensorId> {
    let (tokens, heads, k_heads) = (g.one_of(&[1, 2, 5]), g.one_of(&[2, 4]), g.one_of(&[1, 2]));
    let (dim_v, dim_k) = (g.one_of(&[3, 8]), g.one_of(&[4, 8]));
    let negative = Data::Uniform { low: -2.0, high: -0.1 };
    let inputs = vec![
        g.fit(&[SLOTS, heads, dim_v, dim_k])?,
        g.fit(&[tokens, 2 * k_heads * dim_k + heads * dim_v])?,
        g.leaf(DType::F32, &[tokens, heads], SMALL),
        g.leaf(DType::F32, &[tokens, heads], SMALL),
        g.leaf(DType::F32, &[heads], SMALL),
        g.leaf(DType::F32, &[heads], negative),
    ];
    // The root of a short vector's length has errors as large as itself.
    let (eps, neighbours) = (0.5, g.one_of(&[0, 1]) == 1);
    with_sequences(g, Op::DeltaNetRows { eps, neighbours }, tokens, inputs)
}
