//! DELTA_NET_ROWS and SSM_SCAN over so many tokens of a sequence that the device takes them 16 at a time, on its matrix unit.

use super::case::Case;
use super::packed::on;
use super::recurrent::{into_slots, operands, rows};
use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{Activations, CpuBackend, GgmlBackend, Op};
use rocmforge_testkit::gpu;

const CASES: [(Op, [usize; 5]); 5] = [
    (rows(false), [4, 19, 128, 2, 1]),
    (rows(true), [6, 66, 33, 3, 1]),
    (rows(false), [1, 16, 16, 1, 1]),
    (Op::SsmScan, [4, 24, 128, 2, 1]),
    (Op::SsmScan, [3, 65, 20, 3, 1]),
];

/// `count` tokens of each sequence of `of`, in turn or one after the other, and then one more of the first.
fn tokens(of: &[u32], count: usize, in_turn: bool) -> Vec<u32> {
    let mut tokens: Vec<u32> = of.iter().flat_map(|&s| vec![s; count]).collect();
    if in_turn {
        tokens = (0..count).flat_map(|_| of.to_vec()).collect();
    }
    tokens.push(of[0]);
    tokens
}

/// The largest error that is taken, of the largest value.
const PART: f32 = 1.0 / 500.0;

fn largest(values: &[f32]) -> f32 {
    values.iter().fold(0.0, |largest, x| largest.max(x.abs()))
}

/// Whether all values are within a part of the largest: operands have 11 bits.
#[track_caller]
fn near(found: &[f32], expected: &[f32], part: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let within = largest(expected) * part;
    assert!(within > 0.0 && within.is_finite(), "{what}: {within}");
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (found - expected).abs() <= within,
            "{what}: [{at}] is {found:e}, not {expected:e}, within {within:e}"
        );
    }
}

/// Operands of a case over `sequence` that `change` has changed, as values; the number of each is its place.
fn case((op, dims): (Op, [usize; 5]), sequence: &[u32], output: usize, change: impl Fn(usize, &mut [f32])) -> Case {
    let mut inputs = operands(op, dims, sequence, &[5, 2, 0]);
    let last = inputs.len() - 2;
    for (place, (_, bytes)) in inputs[..last].iter_mut().enumerate() {
        let mut values: Vec<f32> = bytemuck::pod_collect_to_vec(bytes);
        change(place, &mut values);
        *bytes = bytemuck::cast_slice(&values).to_vec();
    }
    Case::with(inputs, |graph, ids| Ok(graph.push_all(op, ids)?[output]))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// Sequences in turn and one after the other, with whole chunks and parts of one. Exact activations are not rounded, and few tokens are not.
#[test]
fn chunks_give_what_the_tokens_give_one_after_the_other() {
    let gpu = gpu();
    for shape in CASES {
        for (sequence, rounds) in [
            (tokens(&[1], 7, false), false),
            (tokens(&[1], 32, false), true),
            (tokens(&[0, 2, 1], 17, true), true),
            (tokens(&[2, 0, 1], 33, false), true),
        ] {
            for output in [0, 1] {
                let what = format!("{shape:?}, {sequence:?}, output {output}");
                let case = case(shape, &sequence, output, |_, _| ());
                let [cpu, exact, rounded] = [
                    case.run(&mut CpuBackend::with_threads(1)).expect("runs"),
                    case.run(&mut on(&gpu, Activations::F32)).expect("runs"),
                    case.run(&mut on(&gpu, Activations::Int8)).expect("runs"),
                ];
                near(&floats(&rounded), &floats(&cpu), PART, &what);
                assert_eq!(exact != rounded, rounds, "{what}");
                let limit = largest(&floats(&cpu)) * 2e-5;
                for (exact, cpu) in floats(&exact).iter().zip(floats(&cpu)) {
                    assert!((exact - cpu).abs() <= limit.max(2e-5), "{what}: {exact}, {cpu}");
                }
            }
        }
    }
}

/// Changes the values of an operand, of which it gets the place.
type Change<'a> = &'a dyn Fn(usize, &mut [f32]);

/// Values, states and keys far outside f16, decays to nothing, and keys that are all the same.
#[test]
fn chunks_take_numbers_of_any_size() {
    let gpu = gpu();
    let sequence = tokens(&[0], 40, false);
    for shape in CASES {
        let is_scan = shape.0 == Op::SsmScan;
        let changes: [(&str, f32, Change<'_>); 7] = [
            ("large", PART, &|place, values: &mut [f32]| {
                if place == 0 || (is_scan && place == 1) {
                    values.iter_mut().for_each(|x| *x *= 1e12);
                }
            }),
            ("small", PART, &|place, values: &mut [f32]| {
                if place == 0 || (is_scan && place == 1) {
                    values.iter_mut().for_each(|x| *x *= 1e-12);
                }
            }),
            (
                "large and small keys and queries",
                PART,
                &|place, values: &mut [f32]| {
                    if is_scan && place >= 4 {
                        values
                            .iter_mut()
                            .enumerate()
                            .for_each(|(at, x)| *x *= if at % 100 < 50 { 1e8 } else { 1e-8 });
                    }
                },
            ),
            (
                "large before small",
                PART,
                &|place, values: &mut [f32]| match (is_scan, place) {
                    (_, 0) => values.iter_mut().for_each(|x| *x *= 1e18),
                    // A token decays by exp(-20), and the first half of the tokens brings nothing.
                    (true, 2) | (false, 3) => values.fill(20.0),
                    (true, 3) | (false, 5) => values.fill(-1.0),
                    (true, 1) => {
                        let half = values.len() / 2;
                        values[..half].fill(0.0);
                        values[half..].iter_mut().for_each(|x| *x *= 1e-12);
                    }
                    _ => {}
                },
            ),
            (
                "one strong decay",
                PART,
                &|place, values: &mut [f32]| match (is_scan, place) {
                    (true, 2) | (false, 3) => {
                        let heads = values.len() / sequence.len();
                        values.fill(-5.0);
                        values[17 * heads..18 * heads].fill(1e6);
                    }
                    (true, 3) | (false, 5) => values.fill(-1.0),
                    _ => {}
                },
            ),
            (
                "strong decays",
                PART,
                &|place, values: &mut [f32]| match (is_scan, place) {
                    (true, 3) | (false, 5) => values.iter_mut().for_each(|x| *x *= 1e5),
                    _ => {}
                },
            ),
            // What the states hold in other directions is large beside the results then.
            (
                "the same keys",
                5.0 * PART,
                &|place, values: &mut [f32]| match (is_scan, place) {
                    // Not the same in all columns: they would be rounded in the same direction.
                    (false, 1) => {
                        let channels = values.len() / sequence.len();
                        values
                            .iter_mut()
                            .enumerate()
                            .for_each(|(at, x)| *x = (0.7 * (at % channels) as f32).sin());
                    }
                    (false, 2) => values.fill(20.0),
                    (false, 3) => values.fill(-20.0),
                    _ => {}
                },
            ),
        ];
        for (name, part, change) in changes {
            for output in [0, 1] {
                let case = case(shape, &sequence, output, change);
                let cpu = case.run(&mut CpuBackend::with_threads(1)).expect("runs");
                let found = case.run(&mut on(&gpu, Activations::Int8)).expect("runs");
                near(
                    &floats(&found),
                    &floats(&cpu),
                    part,
                    &format!("{name}, {shape:?}, output {output}"),
                );
            }
        }
    }
}

/// The rows of a chunk without tokens have no length to be divided by.
#[test]
fn chunks_with_few_tokens_need_no_eps() {
    let gpu = gpu();
    let op = Op::DeltaNetRows {
        eps: 0.0,
        neighbours: false,
    };
    for output in [0, 1] {
        let case = case((op, [2, 19, 40, 1, 1]), &tokens(&[0], 24, false), output, |_, _| ());
        let cpu = case.run(&mut CpuBackend::with_threads(1)).expect("runs");
        let found = case.run(&mut on(&gpu, Activations::Int8)).expect("runs");
        near(&floats(&found), &floats(&cpu), PART, &format!("output {output}"));
    }
}

/// As with few tokens, also where a slot that is written is one that another sequence begins with.
#[test]
fn states_of_chunks_are_written_into_their_slots() {
    let gpu = gpu();
    for case in &CASES[..2] {
        for (in_turn, from, to) in [
            (false, [5, 2], [2, 0]),
            (true, [0, 3], [4, 2]),
            (true, [0, 3], [3, 0]),
            (false, [1, 1], [1, 6]),
        ] {
            let sequence = tokens(&[1, 0], 18, in_turn);
            let lists: [&[u32]; 3] = [&sequence, &from, &to];
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            let expected = into_slots(&mut cpu, GraphOptimizer::none(), *case, lists).expect("runs");
            let optimizer = device.optimizer();
            let found = into_slots(&mut device, optimizer, *case, lists).expect("runs");
            assert_eq!(device.launches(), 3, "{case:?}");
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                near(found, expected, PART, &format!("{case:?}, {from:?} to {to:?}"));
            }
        }
    }
}

/// The slot that a state goes to.
#[test]
fn slots_of_chunks_out_of_range_have_the_figures_of_the_cpu() {
    let gpu = gpu();
    let sequence = tokens(&[1, 0], 18, true);
    let lists: [&[u32]; 3] = [&sequence, &[0, 1], &[2, 7]];
    let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
    let expected = into_slots(&mut cpu, GraphOptimizer::none(), CASES[0], lists).expect_err("out of range");
    let optimizer = device.optimizer();
    let found = into_slots(&mut device, optimizer, CASES[0], lists).expect_err("out of range");
    assert_eq!(device.launches(), 1);
    assert_eq!(found.to_string(), expected.to_string());
}

/// A sequence of a token, or the slot of a state.
#[test]
fn indices_of_chunks_out_of_range_have_the_figures_of_the_cpu() {
    let gpu = gpu();
    for (op, dims) in CASES {
        for (wrong, ids) in [(9, [0, 1]), (1, [0, 7])] {
            let mut sequence = tokens(&[0, 1], 20, true);
            sequence[33] = wrong;
            let case = Case::with(operands(op, dims, &sequence, &ids), |graph, ids| {
                Ok(graph.push_all(op, ids)?[0])
            });
            let cpu = case.run(&mut CpuBackend::with_threads(1)).expect_err("out of range");
            let found = case.run(&mut on(&gpu, Activations::Int8)).expect_err("out of range");
            assert_eq!(found.to_string(), cpu.to_string(), "{op:?}");
        }
    }
}
