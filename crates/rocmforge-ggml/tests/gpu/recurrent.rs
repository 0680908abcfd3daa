//! SSM_CONV, SSM_SCAN and GATED_DELTA_NET on the device.

use super::case::{Case, Input, floats_in};
use rocmforge_ggml::{DType, HipGgmlBackend, Op, TensorDesc};
use rocmforge_testkit::data::rng;

/// Operands of an op: heads (channels), rows and columns of a state (taps), heads of keys (groups), gates (rates).
fn operands(op: Op, dims: [usize; 5], sequence: &[u32], ids: &[u32]) -> Vec<Input> {
    let [heads, dim, cols, groups, gates] = dims;
    let (tokens, slots) = (sequence.len(), 7);
    let mut random = rng((heads * cols + tokens) as u64);
    let mut input = |shape: &[usize], range: [f32; 2]| floats_in(DType::F32, shape, &mut random, range);
    let mut inputs = match op {
        Op::SsmConv => vec![
            input(&[slots, heads, cols - 1], [-1.0, 1.0]),
            input(&[tokens, heads], [-1.0, 1.0]),
            input(&[heads, cols], [-1.0, 1.0]),
        ],
        Op::SsmScan => vec![
            input(&[slots, heads, dim, cols], [-1.0, 1.0]),
            input(&[tokens, heads, dim], [-1.0, 1.0]),
            input(&[tokens, heads], [-3.0, 1.0]),
            input(&[heads, gates], [-1.0, -0.1]),
            input(&[tokens, groups, cols], [-1.0, 1.0]),
            input(&[tokens, groups, cols], [-1.0, 1.0]),
        ],
        Op::DeltaNetRows { .. } => vec![
            input(&[slots, heads, dim, cols], [-1.0, 1.0]),
            input(&[tokens, 2 * groups * cols + heads * dim], [-2.0, 2.0]),
            input(&[tokens, heads], [-3.0, 3.0]),
            input(&[tokens, heads], [-3.0, 1.0]),
            input(&[heads], [-1.0, 1.0]),
            input(&[heads], [-1.0, -0.1]),
        ],
        _ => vec![
            input(&[slots, heads, dim, cols], [-1.0, 1.0]),
            input(&[tokens, groups, cols], [-1.0, 1.0]),
            input(&[tokens, groups, cols], [-0.1, 0.1]),
            input(&[tokens, heads, dim], [-1.0, 1.0]),
            input(&[tokens, heads, gates], [-1.0, -0.01]),
            input(&[tokens, heads], [0.0, 1.0]),
        ],
    };
    let words = |values: &[u32]| {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes());
        (TensorDesc::u32([values.len()]), bytes.collect())
    };
    inputs.extend([words(sequence), words(ids)]);
    inputs
}

/// A delta net from the rows of a convolution.
const fn rows(neighbours: bool) -> Op {
    Op::DeltaNetRows { eps: 1e-6, neighbours }
}

const CASES: [(Op, [usize; 5]); 10] = [
    (Op::SsmConv, [300, 1, 4, 1, 1]),
    (Op::SsmConv, [5, 1, 9, 1, 1]),
    (Op::SsmScan, [33, 1, 16, 1, 16]),
    (Op::SsmScan, [4, 24, 128, 2, 1]),
    (Op::SsmScan, [2, 3, 256, 1, 1]),
    (Op::GatedDeltaNet, [4, 16, 128, 2, 1]),
    (Op::GatedDeltaNet, [8, 5, 33, 4, 33]),
    (Op::GatedDeltaNet, [1, 7, 256, 1, 1]),
    (rows(false), [4, 19, 128, 2, 1]),
    (rows(true), [6, 5, 33, 3, 1]),
];

/// Sequences of several lengths in any order, one without tokens, two that begin with one state.
#[test]
fn results_and_states_are_those_of_the_cpu() {
    for (op, dims) in CASES {
        for sequence in [&[0][..], &[1, 1, 1, 1, 1, 1, 1], &[0, 0, 0, 1, 3, 3], &[3, 0, 3, 1, 0]] {
            for output in [0, 1] {
                let inputs = operands(op, dims, sequence, &[5, 2, 0, 5]);
                let case = Case::with(inputs, |graph, ids| Ok(graph.push_all(op, ids)?[output]));
                case.close(2e-5);
            }
        }
    }
}

/// A sequence of a token, or the slot of a state.
#[test]
fn indices_out_of_range_have_the_figures_of_the_cpu() {
    for (op, dims) in CASES {
        for (sequence, ids) in [([0, 9, 1], [0, 1]), ([0, 1, 1], [0, 7])] {
            let inputs = operands(op, dims, &sequence, &ids);
            Case::with(inputs, |graph, ids| Ok(graph.push_all(op, ids)?[0])).same_error();
        }
    }
}

#[test]
fn what_no_kernel_takes() {
    let covers = |op, dims, sequence: &[u32]| {
        let inputs = operands(op, dims, sequence, &[0]);
        let inputs: Vec<TensorDesc> = inputs.into_iter().map(|(desc, _)| desc).collect();
        let after = TensorDesc::f32([&[1], &inputs[0].shape[1..]].concat());
        let of_values = if op == Op::GatedDeltaNet { 3 } else { 1 };
        HipGgmlBackend::covers(&op, &inputs.iter().collect::<Vec<_>>(), &[&inputs[of_values], &after])
    };
    for (op, [heads, dim, cols, groups, gates]) in CASES {
        assert!(covers(op, [heads, dim, cols, groups, gates], &[0]).is_ok());
        let error = covers(op, [heads, dim, cols, groups, gates], &[]).expect_err("no token");
        assert!(error.to_string().contains("tokens"), "{error}");
        if op != Op::SsmConv {
            let error = covers(op, [heads, dim, 257, groups, 1], &[0]).expect_err("columns");
            assert!(error.to_string().contains("columns of a state"), "{error}");
        }
    }
}
