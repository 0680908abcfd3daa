//! Sums, means, running sums, orders, norms and softmax.

use rocmforge_ggml::{DType, Op, SoftMax, SortOrder, alibi_slope};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, assert_nmse, exact, run};

const FLOATS: [DType; 3] = [DType::F32, DType::F16, DType::Bf16];
const FORMS: [Form; 3] = [Form::Plain, Form::Gaps, Form::Permuted];

#[test]
fn sums_and_means() {
    for dtype in FLOATS {
        for form in FORMS {
            for d in [1, 33, 257] {
                let x = Input::new(dtype, &[2, 3, d], &rng(d as u64).vec(6 * d), form);
                let what = format!("{dtype} {form:?} {d}");
                let one = std::slice::from_ref(&x);
                let found = run(Op::Sum, one, Form::Plain).expect("runs");
                assert_eq!(found.shape, [1]);
                assert_near(&found, &exact(&Op::Sum, one), 1e-6, &what);
                let found = run(Op::SumRows, one, form).expect("runs");
                assert_eq!(found.shape, [2, 3, 1]);
                assert_near(&found, &exact(&Op::SumRows, one), 1e-6, &what);
                for op in [Op::Mean, Op::Cumsum] {
                    assert_near(&run(op, one, form).expect("runs"), &exact(&op, one), 1e-6, &what);
                }
            }
        }
    }
}

#[test]
fn sums_do_not_lose_small_values_beside_large_ones() {
    // 2^24 + 1 is not an f32: a running f32 sum would stay at 2^24.
    let mut values = vec![1.0f32; 1001];
    values[0] = 16_777_216.0;
    let x = Input::f32(&[1, 1001], &values);
    let found = run(Op::SumRows, std::slice::from_ref(&x), Form::Plain).expect("runs");
    assert_eq!(found.values, [16_778_216.0]);
    let found = run(Op::Cumsum, &[x], Form::Plain).expect("runs");
    assert_eq!(found.values[1000], 16_778_216.0);
}

#[test]
fn orders_of_rows() {
    for dtype in FLOATS {
        for form in FORMS {
            for d in [1, 2, 31, 257] {
                // Few different values, so that there are ties; one NaN in the second row.
                let mut values: Vec<f32> = rng(d as u64).vec(3 * d).iter().map(|v| (v * 8.0).round()).collect();
                values[d] = f32::NAN;
                let x = Input::new(dtype, &[3, d], &values, form);
                let one = std::slice::from_ref(&x);
                for order in [SortOrder::Ascending, SortOrder::Descending] {
                    let op = Op::Argsort { order };
                    let found = run(op, one, form).expect("runs");
                    assert_eq!((found.dtype, &found.shape[..]), (DType::U32, &[3, d][..]));
                    assert_eq!(found.values, exact(&op, one), "{dtype} {form:?} {d} {order:?}");
                }
                for op in [Op::Argmax, Op::TopK { k: d.div_ceil(2) }] {
                    let found = run(op, one, form).expect("runs");
                    assert_eq!(found.values, exact(&op, one), "{dtype} {form:?} {d}");
                }
            }
        }
    }
}

/// ggml's grid: row lengths 64 1025 33 132 260, eps 0 to 10, views; NMSE 1e-7.
#[test]
fn norms_on_ggmls_grid() {
    for d in [64, 1025, 33, 132, 260] {
        for eps in [0.0f32, 1e-6, 1e-4, 0.1, 10.0] {
            for form in FORMS {
                for dtype in FLOATS {
                    let x = Input::new(dtype, &[2, 3, d], &rng(d as u64).vec(6 * d), form);
                    let what = format!("{dtype} {form:?} {d} {eps}");
                    let one = std::slice::from_ref(&x);
                    for op in [Op::RmsNorm { eps }, Op::L2Norm { eps }, Op::LayerNorm { eps }] {
                        let found = run(op, one, form).expect("runs");
                        assert_nmse(&found, &exact(&op, one), 1e-7, &what);
                    }
                }
            }
        }
    }
}

/// ggml's grid: sizes 16 and around, mask none/f32/f16, sinks, ALiBi 0/8, scale 1/0.1, repeated masks; NMSE 1e-6.
#[test]
fn soft_max_on_ggmls_grid() {
    let mut case = 0usize;
    for [cols, rows] in [[16, 16], [15, 16], [16, 15], [130, 4], [129, 3]] {
        for mask_type in [None, Some(DType::F32), Some(DType::F16)] {
            for sinks in [false, true] {
                for max_bias in [0.0, 8.0] {
                    for scale in [1.0, 0.1] {
                        for [mask_b, mask_h, extra] in [[1, 1, 0], [2, 3, 2]] {
                            if max_bias > 0.0 && mask_type.is_none() {
                                continue;
                            }
                            case += 1;
                            let mut r = rng(case as u64);
                            let (form, dtype) = (FORMS[case % 3], FLOATS[case / 3 % 3]);
                            let x = Input::new(dtype, &[2, 6, rows, cols], &r.vec(12 * rows * cols), form);
                            let mask = mask_type.map(|dtype| {
                                let shape = [mask_b, mask_h, rows + extra, cols];
                                let mut values = r.vec(shape.iter().product());
                                for i in 0..values.len() / 5 {
                                    values[i * 5] = f32::NEG_INFINITY;
                                }
                                values[..cols].fill(f32::NEG_INFINITY);
                                Input::new(dtype, &shape, &values, FORMS[(case + 1) % 3])
                            });
                            let sink = sinks.then(|| Input::f32(&[6], &r.vec_in(6, -10.0, 10.0)));
                            let s = SoftMax {
                                scale,
                                max_bias,
                                mask: mask.is_some(),
                                sinks,
                            };
                            let inputs: Vec<Input> = [Some(x), mask, sink].into_iter().flatten().collect();
                            let what = format!("case {case}: {dtype} {form:?} {s:?} {rows}x{cols}");
                            assert_nmse(
                                &run(Op::SoftMax(s), &inputs, form).expect("runs"),
                                &exact(&Op::SoftMax(s), &inputs),
                                1e-6,
                                &what,
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn alibi_slopes_are_those_of_the_paper() {
    // 8 heads and bias 8: 1/2, 1/4, .. 1/256. Of 12 heads the last 4 lie between those.
    for h in 0..8 {
        assert_eq!(alibi_slope(8.0, 8, h), 0.5f32.powi(h as i32 + 1));
    }
    assert_eq!(alibi_slope(8.0, 12, 7), 0.5f32.powi(8));
    assert!((f64::from(alibi_slope(8.0, 12, 8)) - 0.5f64.powf(0.5)).abs() < 1e-7);
    assert!((f64::from(alibi_slope(8.0, 12, 11)) - 0.5f64.powf(3.5)).abs() < 1e-7);
    assert_eq!((alibi_slope(0.0, 8, 3), alibi_slope(8.0, 0, 0)), (1.0, 1.0));
}
