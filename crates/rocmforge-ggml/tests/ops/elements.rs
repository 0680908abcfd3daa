//! Functions of one or two elements, and gated linear units, in every plain float and form of memory.

use rocmforge_ggml::{DType, DiagFill, GluKind, Op, Unary};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, run, unravel};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

/// `erf` from its series: `2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1))`, for |x| <= 5 to 1e-9.
fn erf(x: f64) -> f64 {
    if x.abs() > 5.0 {
        return x.signum();
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / std::f64::consts::PI.sqrt()
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Each member from its definition.
fn unary(kind: Unary, x: f64) -> f64 {
    match kind {
        Unary::Abs => x.abs(),
        Unary::Sgn if x == 0.0 => 0.0,
        Unary::Sgn => x.signum(),
        Unary::Neg => -x,
        Unary::Step => f64::from(u8::from(x > 0.0)),
        Unary::Tanh => x.tanh(),
        Unary::Elu => {
            if x > 0.0 {
                x
            } else {
                x.exp() - 1.0
            }
        }
        Unary::Relu => x.max(0.0),
        Unary::Sigmoid => sigmoid(x),
        Unary::Gelu => 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh()),
        Unary::GeluErf => 0.5 * x * (1.0 + erf(x / 2f64.sqrt())),
        Unary::GeluQuick => x * sigmoid(1.702 * x),
        Unary::Silu => x * sigmoid(x),
        Unary::HardSwish => x * ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        Unary::HardSigmoid => ((x + 3.0) / 6.0).clamp(0.0, 1.0),
        Unary::Exp => x.exp(),
        Unary::Expm1 => x.exp_m1(),
        Unary::Softplus => x.exp().ln_1p(),
        Unary::Floor => x.floor(),
        Unary::Ceil => x.ceil(),
        Unary::Round => x.round(),
        Unary::Trunc => x.trunc(),
    }
}

/// One op of one input against a function of one element, in all types and forms.
fn check(op: Op, low: f32, high: f32, exact: impl Fn(f64) -> f64) {
    for (seed, dtype) in FLOATS.into_iter().enumerate() {
        for form in FORMS {
            let shape = [2, 5, 33];
            let mut values = rng(seed as u64 + 1).vec_in(330, low, high);
            values[..3].copy_from_slice(&[low.max(0.0), 1.0, 2.5]);
            let x = Input::new(dtype, &shape, &values, form);
            let expected: Vec<f64> = x.values.iter().map(|&v| exact(v)).collect();
            let found = run(op, &[x], form).expect("runs");
            assert_eq!(found.dtype, dtype);
            assert_near(&found, &expected, 3e-6, &format!("{} {dtype} {form:?}", op.name()));
        }
    }
}

#[test]
fn unary_family() {
    for kind in Unary::ALL {
        check(Op::Unary(kind), -6.0, 6.0, |x| unary(kind, x));
    }
}

#[test]
fn unary_of_extremes() {
    let values = [0.0, -0.0, 100.0, -100.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    for kind in Unary::ALL {
        let x = Input::f32(&[7], &values);
        let found = run(Op::Unary(kind), &[x], Form::Plain).expect("runs").values;
        // The f32 range ends at 3.4e38; x * sigmoid(x) and its kin are NaN at -inf by their formula, and 0 by their limit.
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
    check(Op::Scale { factor: 0.3 }, -2.0, 2.0, |x| x * f64::from(0.3f32));
    check(
        Op::ScaleBias {
            factor: -1.5,
            bias: 0.25,
        },
        -2.0,
        2.0,
        |x| x * -1.5 + 0.25,
    );
    check(Op::Clamp { min: -0.5, max: 0.75 }, -2.0, 2.0, |x| x.clamp(-0.5, 0.75));
    check(Op::Softcap { cap: 3.0 }, -9.0, 9.0, |x| 3.0 * (x / 3.0).tanh());
    check(Op::Sqr, -3.0, 3.0, |x| x * x);
    check(Op::Sqrt, 0.0, 9.0, f64::sqrt);
    check(Op::Log, 0.01, 9.0, f64::ln);
    check(Op::Sin, -9.0, 9.0, f64::sin);
    check(Op::Cos, -9.0, 9.0, f64::cos);
}

#[test]
fn diagonal_masks() {
    let (shape, n) = ([2, 3, 5, 7], 210);
    for dtype in FLOATS {
        for form in FORMS {
            for n_past in [0, 2, 100, usize::MAX] {
                for fill in [DiagFill::Inf, DiagFill::Zero] {
                    let x = Input::new(dtype, &shape, &rng(4).vec(n), form);
                    let value = if fill == DiagFill::Inf { f64::NEG_INFINITY } else { 0.0 };
                    let hidden = |i: &[usize]| i[3] > n_past.saturating_add(i[2]);
                    let expected: Vec<f64> = (0..n)
                        .map(|at| {
                            if hidden(&unravel(at, &shape)) {
                                value
                            } else {
                                x.values[at]
                            }
                        })
                        .collect();
                    let found = run(Op::DiagMask { n_past, fill }, &[x], form).expect("runs");
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
    type Exact = fn(f64, f64) -> f64;
    let ops: [(Op, Exact); 4] = [
        (Op::Add, |a, b| a + b),
        (Op::Sub, |a, b| a - b),
        (Op::Mul, |a, b| a * b),
        (Op::Div, |a, b| a / b),
    ];
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
    for (op, exact) in ops {
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
                let expected: Vec<f64> = (0..n)
                    .map(|at| {
                        let index = unravel(at, &shape);
                        let own = &index[4 - second.len()..];
                        let y = own.iter().zip(second).fold(0, |at, (&i, &d)| at * d + i % d);
                        exact(a.values[at], b.values[y])
                    })
                    .collect();
                let found = run(op, &[a, b], form).expect("runs");
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
                    let expected: Vec<f64> = half(swapped)
                        .iter()
                        .zip(half(!swapped))
                        .map(|(&g, u)| unary(kind.gate(), g) * u)
                        .collect();
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
