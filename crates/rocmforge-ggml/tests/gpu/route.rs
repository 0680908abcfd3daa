//! ROUTE on the device.

use super::case::{Case, random};
use rocmforge_ggml::{HipGgmlBackend, Op, Route, RouteGate, TensorDesc};

const EIGHT: Route = Route {
    k: 8,
    normalised: true,
    factor: 1.5,
    ..Route::PLAIN
};

#[test]
fn experts_and_factors_are_those_of_the_cpu() {
    for gate in [RouteGate::SoftMax, RouteGate::SoftMaxOfChosen, RouteGate::Sigmoid] {
        for (rows, experts, groups) in [(1, 8, [1, 1]), (5, 33, [1, 1]), (3, 128, [1, 1]), (4, 256, [8, 4])] {
            for biased in [false, true] {
                let how = Route { gate, groups, ..EIGHT };
                for output in [0, 1] {
                    let mut inputs = vec![random([rows, experts], experts as u64)];
                    if biased {
                        inputs.push(random([experts], 1));
                    }
                    let case = Case::with(inputs, |graph, ids| Ok(graph.push_all(Op::Route(how), ids)?[output]));
                    match output {
                        0 => case.same_bytes(),
                        _ => case.close(4e-6),
                    }
                }
            }
        }
    }
}

#[test]
fn what_no_kernel_takes() {
    let covers = |experts, how: Route| {
        let (x, ids, factors) = (
            TensorDesc::f32([2, experts]),
            TensorDesc::u32([2, how.k]),
            TensorDesc::f32([2, how.k]),
        );
        HipGgmlBackend::covers(&Op::Route(how), &[&x], &[&ids, &factors])
    };
    assert!(covers(512, EIGHT).is_ok());
    for (experts, how, reason) in [
        (513, EIGHT, "experts"),
        (64, Route { k: 33, ..EIGHT }, "chosen experts"),
        (
            64,
            Route {
                groups: [64, 8],
                ..EIGHT
            },
            "groups of experts",
        ),
    ] {
        let error = covers(experts, how).expect_err("refused").to_string();
        assert!(error.contains(reason), "{error}");
    }
}
