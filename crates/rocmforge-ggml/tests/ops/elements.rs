//! Functions of one or two elements, and gated linear units, in every plain float and form of memory.

use rocmforge_ggml::{DType, DiagFill, GluKind, Op, Unary};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, exact, run};
use crate::common::reference::elements::unary;

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

/// One op of one input in all types and forms.
fn check(op: Op, low: f32, high: f32) {
    for (seed, dtype) in FLOATS.into_iter().enumerate() {
        for form in FORMS {
            let shape = [2, 5, 33];
            let mut values = rng(seed as u64 + 1).vec_in(330, low, high);
            values[..3].copy_from_slice(&[low.max(0.0), 1.0, 2.5]);
            let x = [Input::new(dtype, &shape, &values, form)];
            let found = run(op, &x, form).expect("runs");
            assert_eq!(found.dtype, dtype);
            assert_near(
                &found,
                &exact(&op, &x),
                3e-6,
                &format!("{} {dtype} {form:?}", op.name()),
            );
        }
    }
}

#[test]
fn unary_family() {
    for kind in Unary::ALL {
        check(Op::Unary(kind), -6.0, 6.0);
    }
}

#[test]
fn unary_of_extremes() {
    let values = [0.0, -0.0, 100.0, -100.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for kind in Unary::ALL {
        let x = Input::f32(&[7], &values);
        let found = run(Op::Unary(kind), &[x], Form::Plain).expect("runs").values;
        // The f32 range ends at 3.4e38; x * sigmoid(x) and similar functions are NaN at -inf by their formula, and 0 by their limit.
        for (i, &v) in values.iter().enumerate().take(4) {
            let exact = unary(kind, f64::from(v));
            let exact = if exact > f64::from(f32::MAX) {
                f64::INFINITY
            } else {
                exact
            };
            assert!(
                found[i] == exact || (found[i] - exact).abs() < 1e-5 * exact.abs().max(1.0),
                "{kind:?} of {v}: {}",
                found[i]
            );
        }
        if !matches!(kind, Unary::Step | Unary::Relu) {
            assert!(found[6].is_nan(), "{kind:?} of NaN: {}", found[6]);
        }
    }
}

#[test]
fn functions_with_parameters() {
    check(Op::Scale { factor: 0.3 }, -2.0, 2.0);
    let (factor, bias) = (-1.5, 0.25);
    check(Op::ScaleBias { factor, bias }, -2.0, 2.0);
    check(Op::Clamp { min: -0.5, max: 0.75 }, -2.0, 2.0);
    check(Op::Softcap { cap: 3.0 }, -9.0, 9.0);
    check(Op::Sqr, -3.0, 3.0);
    check(Op::Sqrt, 0.0, 9.0);
    check(Op::Log, 0.01, 9.0);
    check(Op::Sin, -9.0, 9.0);
    check(Op::Cos, -9.0, 9.0);
}

#[test]
fn constants() {
    check(Op::Fill { value: -1.5 }, -2.0, 2.0);
    let infinite = Op::Fill {
        value: f32::NEG_INFINITY,
    };
    let found = run(infinite, &[Input::f32(&[2, 3], &[f32::NAN; 6])], Form::Gaps).expect("runs");
    assert_eq!(found.values, [f64::NEG_INFINITY; 6]);
    for (start, stop, step, count) in [
        (0.0, 9.0, 1.0, 9),
        (-1.5, 2.25, 0.5, 8),
        (0.0, 0.3, 0.1, 3),
        (3.0, 3.5, 7.0, 1),
    ] {
        for form in FORMS {
            let op = Op::Arange { start, stop, step };
            let found = run(op, &[], form).expect("runs");
            assert_eq!(found.shape, [count]);
            assert_near(&found, &exact(&op, &[]), 1e-12, "arange");
        }
    }
}

#[test]
fn constants_that_are_none() {
    let arange = |start, stop, step| (Op::Arange { start, stop, step }, vec![]);
    let x = || vec![Input::f32(&[2], &[1.0; 2])];
    for (op, inputs) in [
        arange(0.0, 0.0, 1.0),
        arange(0.0, -1.0, 1.0),
        arange(0.0, 1.0, 0.0),
        arange(0.0, 1.0, -1.0),
        arange(0.0, 1e30, 1.0),
        arange(0.0, f32::INFINITY, 1.0),
        arange(f32::NEG_INFINITY, 0.0, 1.0),
        arange(f32::NAN, 1.0, 1.0),
        arange(0.0, f32::NAN, 1.0),
        arange(0.0, 1.0, 1e-30),
        (
            Op::Arange {
                start: 0.0,
                stop: 2.0,
                step: 1.0,
            },
            x(),
        ),
        (Op::Fill { value: f32::NAN }, x()),
        (Op::Fill { value: 1.0 }, vec![]),
    ] {
        let error = run(op, &inputs, Form::Plain).expect_err("does not fit");
        assert!(error.to_string().contains(op.name()), "{error}");
    }
}

#[test]
fn diagonal_masks() {
    let (shape, n) = ([2, 3, 5, 7], 210);
    for dtype in FLOATS {
        for form in FORMS {
            for n_past in [0, 2, 100, usize::MAX] {
                for fill in [DiagFill::Inf, DiagFill::Zero] {
                    let x = Input::new(dtype, &shape, &rng(4).vec(n), form);
                    let (op, x) = (Op::DiagMask { n_past, fill }, [x]);
                    let found = run(op, &x, form).expect("runs");
                    let expected = exact(&op, &x);
                    assert_eq!(found.values, expected, "{dtype} {form:?} {n_past} {fill:?}");
                }
            }
        }
    }
}

/// ggml's binary ops repeat the second operand: every dimension divides.
#[test]
fn binary_ops_broadcast_the_second_operand() {
    let shape = [4, 2, 6, 10];
    let n: usize = shape.iter().product();
    let ops = [Op::Add, Op::Sub, Op::Mul, Op::Div];
    let seconds: [&[usize]; 11] = [
        &[4, 2, 6, 10],
        &[10],
        &[1],
        &[],
        &[6, 1],
        &[6, 10],
        &[1, 1, 1, 10],
        &[2, 1, 3, 5],
        &[2, 2, 2, 2],
        &[4, 1, 1, 1],
        &[2, 6, 10],
    ];
    for op in ops {
        for (case, second) in seconds.into_iter().enumerate() {
            for (a_type, b_type) in [
                (DType::F32, DType::F32),
                (DType::F32, DType::F16),
                (DType::F16, DType::F32),
                (DType::Bf16, DType::Bf16),
            ] {
                let form = FORMS[case % 3];
                let m = second.iter().product();
                let a = Input::new(a_type, &shape, &rng(1).vec_in(n, 0.9, 1.1), form);
                let b = Input::new(b_type, second, &rng(2).vec_in(m, 0.9, 1.1), FORMS[(case + 1) % 3]);
                let inputs = [a, b];
                let expected = exact(&op, &inputs);
                let found = run(op, &inputs, form).expect("runs");
                assert_eq!(found.dtype, a_type);
                assert_near(
                    &found,
                    &expected,
                    1e-6,
                    &format!("{} {second:?} {a_type} {b_type} {form:?}", op.name()),
                );
            }
        }
    }
}

#[test]
fn gated_linear_units() {
    let (rows, d) = (5, 33);
    for kind in GluKind::ALL {
        for dtype in FLOATS {
            for form in FORMS {
                let both = Input::new(dtype, &[2, rows, 2 * d], &rng(3).vec_in(4 * rows * d, -4.0, 4.0), form);
                let half = |second: bool| -> Vec<f64> {
                    both.values
                        .chunks(2 * d)
                        .flat_map(|row| row[usize::from(second) * d..][..d].to_vec())
                        .collect()
                };
                for swapped in [false, true] {
                    let expected = exact(&Op::Glu { kind, swapped }, std::slice::from_ref(&both));
                    let what = format!("{} {dtype} {form:?} {swapped}", kind.name());
                    let found = run(Op::Glu { kind, swapped }, std::slice::from_ref(&both), form).expect("runs");
                    assert_eq!(found.shape, [2, rows, d]);
                    assert_near(&found, &expected, 5e-6, &what);
                    if !swapped {
                        let part = |second| {
                            let values: Vec<f32> = half(second).iter().map(|&v| v as f32).collect();
                            Input::new(dtype, &[2, rows, d], &values, form)
                        };
                        let found = run(Op::Glu { kind, swapped }, &[part(false), part(true)], form).expect("runs");
                        assert_near(&found, &expected, 5e-6, &what);
                    }
                }
            }
        }
    }
}
