//! ROUTE against its definition.

use rocmforge_ggml::{CpuBackend, DType, Graph, HostAccess, Op, Route, RouteGate, executor};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Found, Input, assert_near, exact};

/// Ids as numbers, then factors.
fn both(how: Route, inputs: &[Input]) -> Found {
    let mut graph = Graph::new();
    let ids: Vec<_> = inputs.iter().map(|input| input.add(&mut graph)).collect();
    let read: Vec<_> = ids.iter().map(|ids| ids.0).collect();
    let outputs = graph.push_all(Op::Route(how), &read).expect("fits");
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &graph).expect("memory");
    for (input, (_, base)) in inputs.iter().zip(&ids) {
        cpu.write(*base, &input.bytes).expect("written");
    }
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    let chosen: Vec<u32> = bytemuck::pod_collect_to_vec(&cpu.read(outputs[0]).expect("read"));
    let factors = cpu.read_f32(outputs[1]).expect("read");
    let values: Vec<f32> = chosen.into_iter().map(|id| id as f32).chain(factors).collect();
    Found {
        dtype: DType::F32,
        shape: vec![values.len()],
        bytes: bytemuck::cast_slice(&values).to_vec(),
        values: values.into_iter().map(f64::from).collect(),
    }
}

#[test]
fn gates_biases_and_groups() {
    let gates = [RouteGate::SoftMax, RouteGate::SoftMaxOfChosen, RouteGate::Sigmoid];
    for (experts, k, groups) in [
        (1, 1, [1, 1]),
        (7, 7, [1, 1]),
        (64, 6, [1, 1]),
        (24, 5, [8, 2]),
        (6, 3, [6, 3]),
    ] {
        for gate in gates {
            for biased in [false, true] {
                for (normalised, least_sum, factor) in [(false, 0.0, 1.0), (true, 0.0, 2.5), (true, 100.0, -1.5)] {
                    let how = Route {
                        k,
                        gate,
                        groups,
                        normalised,
                        least_sum,
                        factor,
                    };
                    let mut random = rng((experts * 8 + k) as u64);
                    let mut inputs = vec![Input::new(
                        DType::F32,
                        &[5, experts],
                        &random.vec_in(5 * experts, -3.0, 3.0),
                        Form::Gaps,
                    )];
                    if biased {
                        inputs.push(Input::new(
                            DType::F32,
                            &[experts],
                            &random.vec_in(experts, -0.5, 0.5),
                            Form::Plain,
                        ));
                    }
                    assert_near(
                        &both(how, &inputs),
                        &exact(&Op::Route(how), &inputs),
                        1e-6,
                        &format!("{how:?} {biased}"),
                    );
                }
            }
        }
    }
}

/// The bias chooses and is not in the factors; of equal ones the first is chosen; NaN is chosen last.
#[test]
fn what_is_chosen() {
    let scores = [0.0, 1.0, 1.0, f32::NAN, 0.0];
    let inputs = [
        Input::new(DType::F32, &[1, 5], &scores, Form::Plain),
        Input::new(DType::F32, &[5], &[0.0, 0.0, 0.0, 9.0, 5.0], Form::Plain),
    ];
    let gate = RouteGate::Sigmoid;
    let found = both(
        Route {
            k: 5,
            gate,
            ..Route::PLAIN
        },
        &inputs,
    )
    .values;
    assert_eq!(found[..5], [4.0, 1.0, 2.0, 0.0, 3.0]);
    assert_eq!(found[5], 0.5);
    assert!(found[9].is_nan());
}

#[test]
fn parameters_that_do_not_fit() {
    let with = |how| {
        let mut graph = Graph::new();
        let x = Input::new(DType::F32, &[2, 12], &[0.0; 24], Form::Plain)
            .add(&mut graph)
            .0;
        graph.push_all(Op::Route(how), &[x]).map(drop)
    };
    assert!(with(Route { k: 12, ..Route::PLAIN }).is_ok());
    assert!(
        with(Route {
            k: 6,
            groups: [4, 2],
            ..Route::PLAIN
        })
        .is_ok()
    );
    for how in [
        Route { k: 0, ..Route::PLAIN },
        Route { k: 13, ..Route::PLAIN },
        Route {
            k: 7,
            groups: [4, 2],
            ..Route::PLAIN
        },
        Route {
            groups: [5, 1],
            ..Route::PLAIN
        },
        Route {
            groups: [0, 0],
            ..Route::PLAIN
        },
        Route {
            groups: [4, 0],
            ..Route::PLAIN
        },
        Route {
            groups: [4, 5],
            ..Route::PLAIN
        },
        Route {
            least_sum: -1.0,
            ..Route::PLAIN
        },
        Route {
            factor: f32::NAN,
            ..Route::PLAIN
        },
    ] {
        let error = with(how).expect_err("refused").to_string();
        assert!(error.contains("ROUTE"), "{error}");
    }
}
