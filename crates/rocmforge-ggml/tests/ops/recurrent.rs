//! Recurrent ops against the reference: ggml's cases of equal lengths, ragged steps, one step or several.

use rocmforge_ggml::{CpuBackend, DType, GgmlError, Graph, HostAccess, Op, executor};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Found, Input, assert_near, exact, run};

/// Operands, the indices last.
fn operands(op: Op, dims: [usize; 5], sequence: &[usize], ids: &[usize], form: Form) -> Vec<Input> {
    let [heads, dim, n, groups, decays] = dims;
    let tokens = sequence.len();
    let slots = 1 + ids.iter().max().copied().unwrap_or(0);
    let mut random = rng((tokens * heads + n) as u64);
    let mut input = |shape: &[usize], low: f32, high: f32| {
        let values = random.vec_in(shape.iter().product(), low, high);
        Input::new(DType::F32, shape, &values, form)
    };
    let mut inputs = match op {
        Op::SsmConv => vec![
            input(&[slots, heads, n - 1], -1.0, 1.0),
            input(&[tokens, heads], -1.0, 1.0),
            input(&[heads, n], -1.0, 1.0),
        ],
        Op::SsmScan => vec![
            input(&[slots, heads, dim, n], -1.0, 1.0),
            input(&[tokens, heads, dim], -1.0, 1.0),
            input(&[tokens, heads], -3.0, 3.0),
            input(&[heads, decays], -2.0, -0.1),
            input(&[tokens, groups, n], -1.0, 1.0),
            input(&[tokens, groups, n], -1.0, 1.0),
        ],
        Op::DeltaNetRows { .. } => vec![
            input(&[slots, heads, dim, n], -1.0, 1.0),
            input(&[tokens, 2 * groups * n + heads * dim], -2.0, 2.0),
            input(&[tokens, heads], -3.0, 3.0),
            input(&[tokens, heads], -3.0, 1.0),
            input(&[heads], -1.0, 1.0),
            input(&[heads], -2.0, -0.1),
        ],
        _ => vec![
            input(&[slots, heads, dim, n], -1.0, 1.0),
            input(&[tokens, groups, n], -1.0, 1.0),
            input(&[tokens, groups, n], -0.3, 0.3),
            input(&[tokens, heads, dim], -1.0, 1.0),
            input(&[tokens, heads, decays], -2.0, -0.01),
            input(&[tokens, heads], 0.0, 1.0),
        ],
    };
    inputs.push(Input::ids(&[tokens], sequence));
    inputs.push(Input::ids(&[ids.len()], ids));
    inputs
}

/// Results and states, one after the other.
fn both(op: Op, inputs: &[Input]) -> Found {
    let mut graph = Graph::new();
    let ids: Vec<_> = inputs.iter().map(|input| input.add(&mut graph)).collect();
    let read: Vec<_> = ids.iter().map(|ids| ids.0).collect();
    let outputs = graph.push_all(op, &read).expect("fits");
    assert_eq!(outputs.len(), 2);
    let mut runs = [1, 3].map(|threads| {
        let mut cpu = CpuBackend::with_threads(threads);
        executor::prepare(&mut cpu, &graph).expect("memory");
        for (input, (_, base)) in inputs.iter().zip(&ids) {
            cpu.write(*base, &input.bytes).expect("written");
        }
        executor::execute_graph(&mut cpu, &graph).expect("runs");
        [0, 1]
            .map(|output| cpu.read_f32(outputs[output]).expect("read"))
            .concat()
    });
    assert!(runs[0] == runs[1], "one thread and three");
    let values = std::mem::take(&mut runs[0]);
    Found {
        dtype: DType::F32,
        shape: vec![values.len()],
        bytes: bytemuck::cast_slice(&values).to_vec(),
        values: values.into_iter().map(f64::from).collect(),
    }
}

/// A delta net from the rows of a convolution.
fn rows(neighbours: bool) -> Op {
    Op::DeltaNetRows { eps: 1e-3, neighbours }
}

/// ggml's cases: taps 3 and 4; Mamba 1, Mamba 2, Falcon-H1; delta nets with and without a gate for each key.
fn cases() -> Vec<(Op, [usize; 5])> {
    vec![
        (Op::SsmConv, [256, 1, 3, 1, 1]),
        (Op::SsmConv, [1536, 1, 4, 1, 1]),
        (Op::SsmConv, [5, 1, 9, 1, 1]),
        (Op::SsmScan, [1024, 1, 16, 1, 16]),
        (Op::SsmScan, [16, 64, 128, 2, 1]),
        (Op::SsmScan, [8, 64, 256, 2, 1]),
        (Op::GatedDeltaNet, [4, 16, 16, 4, 1]),
        (Op::GatedDeltaNet, [8, 32, 32, 4, 1]),
        (Op::GatedDeltaNet, [8, 12, 16, 2, 16]),
        (rows(false), [4, 16, 16, 4, 1]),
        (rows(true), [8, 12, 20, 2, 1]),
    ]
}

#[test]
fn as_many_tokens_of_each_sequence() {
    for (op, dims) in cases() {
        for form in [Form::Plain, Form::Gaps, Form::Permuted] {
            for each in [1, 3] {
                let sequence: Vec<usize> = (0..2 * each).map(|token| token / each).collect();
                let inputs = operands(op, dims, &sequence, &[0, 1], form);
                let what = format!("{} {dims:?} {form:?} {each}", op.name());
                assert_near(&both(op, &inputs), &exact(&op, &inputs), 1e-4, &what);
            }
        }
    }
}

/// Sequences of several lengths, one without tokens; two begin with one slot's state (a fork), most slots are not used.
#[test]
fn ragged_steps() {
    for (op, dims) in cases() {
        for sequence in [&[0, 0, 0, 1, 3, 3][..], &[3, 0, 3, 1, 0], &[]] {
            let inputs = operands(op, dims, sequence, &[5, 2, 0, 5], Form::Plain);
            let what = format!("{} {dims:?} {sequence:?}", op.name());
            assert_near(&both(op, &inputs), &exact(&op, &inputs), 1e-4, &what);
        }
    }
}

/// The results alone, into memory with gaps.
#[test]
fn results_in_views() {
    for (op, dims) in cases() {
        let inputs = operands(op, dims, &[0, 1, 1], &[1, 0], Form::Gaps);
        let expected = exact(&op, &inputs);
        for form in [Form::Gaps, Form::Permuted] {
            let found = run(op, &inputs, form).expect("runs");
            assert_near(&found, &expected[..found.values.len()], 1e-4, op.name());
        }
    }
}

#[test]
fn indices_out_of_range() {
    for (op, dims) in cases() {
        for (sequence, ids, position, index, limit) in [([0, 2, 1], [0, 1], 1, 2, 2), ([0, 1, 1], [0, 9], 1, 9, 2)] {
            let mut inputs = operands(op, dims, &sequence, &[1, 0], Form::Plain);
            *inputs.last_mut().expect("ids") = Input::ids(&[2], &ids);
            let error = run(op, &inputs, Form::Plain).expect_err("out of range");
            let GgmlError::IndexOutOfRange {
                position: p,
                index: i,
                limit: l,
                ..
            } = error
            else {
                panic!("{error}")
            };
            assert_eq!((p, i, l), (position, index, limit), "{}", op.name());
        }
    }
}

#[test]
fn operands_that_do_not_fit() {
    for (op, dims) in cases() {
        let fitting = operands(op, dims, &[0, 1], &[1, 0], Form::Plain);
        for operand in 0..fitting.len() {
            let mut inputs = fitting.clone();
            inputs[operand] = Input::f32(&[7, 3, 11, 5, 2], &vec![0.0; 2310]);
            let error = run(op, &inputs, Form::Plain).expect_err("does not fit");
            assert!(error.to_string().contains(op.name()), "{error}");
            inputs.remove(operand);
            let error = run(op, &inputs, Form::Plain).expect_err("one less");
            assert!(matches!(error, GgmlError::InvalidArity { .. }), "{error}");
        }
    }
}
