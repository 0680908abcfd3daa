//! SSM_CONV, SSM_SCAN and GATED_DELTA_NET on the device.

use super::case::{Case, Input, floats_in};
use super::packed::on;
use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Activations, CpuBackend, DType, GgmlBackend, GgmlError, Graph, HipGgmlBackend, HostAccess, Op, TensorDesc,
    TensorId, executor,
};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

/// Operands of an op: heads (channels), rows and columns of a state (taps), heads of keys (groups), gates (rates).
pub(super) fn operands(op: Op, dims: [usize; 5], sequence: &[u32], ids: &[u32]) -> Vec<Input> {
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
pub(super) const fn rows(neighbours: bool) -> Op {
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

/// An op whose states go into slots of the table that it has them from: result and table of each of three runs.
pub(super) fn into_slots<B: HostAccess>(
    backend: &mut B,
    optimizer: GraphOptimizer,
    (op, dims): (Op, [usize; 5]),
    [sequence, from, to]: [&[u32]; 3],
) -> Result<Vec<[Vec<f32>; 2]>, GgmlError> {
    let inputs = operands(op, dims, sequence, from);
    let (shape, mut graph) = (inputs[0].0.shape.to_vec(), Graph::new());
    let (slots, width) = (shape[0], shape[1..].iter().product::<usize>());
    let table = graph.add_tensor(TensorDesc::f32([slots, width]));
    let rest: Vec<TensorId> = inputs[1..]
        .iter()
        .map(|(desc, _)| graph.add_tensor(desc.clone()))
        .collect();
    let ids = graph.add_tensor(TensorDesc::u32([to.len()]));
    let state = graph.reshape(table, shape)?;
    let outputs = graph.push_all(op, &[&[state], &rest[..]].concat())?;
    let rows = graph.reshape(outputs[1], [to.len(), width])?;
    let written = graph.set_rows(rows, table, ids)?;
    graph.mark_output(outputs[0]);
    graph.mark_output(written);
    optimizer.optimize(&mut graph);
    let mut program = executor::compile(backend, &graph)?;
    backend.write(table, &inputs[0].1)?;
    let run = |_| {
        for (&id, (_, bytes)) in rest.iter().zip(&inputs[1..]) {
            backend.write(id, bytes)?;
        }
        backend.write_u32(ids, to)?;
        executor::run_program(backend, &mut program)?;
        Ok([backend.read_f32(outputs[0])?, backend.read_f32(table)?])
    };
    (0..3).map(run).collect()
}

const IN_PLACE: [(Op, [usize; 5]); 4] = [
    (Op::SsmConv, [300, 1, 4, 1, 1]),
    (Op::SsmConv, [5, 1, 9, 1, 1]),
    (rows(false), [4, 19, 128, 2, 1]),
    (rows(true), [6, 5, 33, 3, 1]),
];

/// Other slots, the same, those of other sequences in turn, one that another sequence begins with: one launch, and no other slot changes.
#[test]
fn states_are_written_into_their_slots() {
    let gpu = gpu();
    for case in IN_PLACE {
        for [sequence, from, to] in [
            [&[0][..], &[5], &[2]],
            [&[0, 0, 0], &[5], &[5]],
            [&[1, 0, 1, 1], &[0, 3], &[4, 2]],
            [&[1, 0, 1, 1], &[0, 3], &[3, 0]],
            [&[0, 2, 1, 1, 3], &[1, 1, 6, 0], &[2, 1, 0, 6]],
        ] {
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            let expected = into_slots(&mut cpu, GraphOptimizer::none(), case, [sequence, from, to]).expect("runs");
            let optimizer = device.optimizer();
            let found = into_slots(&mut device, optimizer, case, [sequence, from, to]).expect("runs");
            assert_eq!(device.launches(), 3, "{case:?}");
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                for (found, expected) in found.iter().zip(expected) {
                    assert!(
                        (found - expected).abs() <= 2e-4,
                        "{case:?}, {to:?}: {found}, {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_slot_out_of_range_has_the_figures_of_the_cpu() {
    let gpu = gpu();
    for case in IN_PLACE {
        for (from, to) in [([0, 1], [2, 7]), ([0, 9], [2, 3])] {
            let lists: [&[u32]; 3] = [&[0, 1, 1], &from, &to];
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            let expected = into_slots(&mut cpu, GraphOptimizer::none(), case, lists).expect_err("out of range");
            let optimizer = device.optimizer();
            let found = into_slots(&mut device, optimizer, case, lists).expect_err("out of range");
            assert_eq!(device.launches(), 1, "{case:?}");
            assert_eq!(found.to_string(), expected.to_string(), "{case:?}");
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
