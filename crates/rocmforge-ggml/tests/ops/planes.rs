//! Ops on matrices and images, with the shapes and parameters of ggml's own cases.

use rocmforge_ggml::{DType, Op, PoolKind, TriKind, UpscaleMode};
use rocmforge_testkit::data::rng;

use super::harness::{Form, Input, assert_near, exact, run};

/// Every float type and every form of the operands and the result.
fn check(op: Op, inputs: &[(&[usize], [f32; 2])], tolerance: f64) {
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        for form in [Form::Plain, Form::Gaps, Form::Permuted] {
            let operand = |&(shape, [low, high]): &(&[usize], [f32; 2])| {
                let count: usize = shape.iter().product();
                Input::new(dtype, shape, &rng(count as u64).vec_in(count, low, high), form)
            };
            let inputs: Vec<Input> = inputs.iter().map(operand).collect();
            let found = run(op, &inputs, form).expect("runs");
            let what = format!("{op:?} {dtype} {form:?}");
            assert_near(&found, &exact(&op, &inputs), tolerance, &what);
        }
    }
}

const ANY: [f32; 2] = [-2.0, 2.0];

#[test]
fn group_norms() {
    for (shape, n_groups) in [([1, 32, 4, 4], 8), ([2, 9, 5, 3], 4), ([3, 2, 7, 1], 1)] {
        for eps in [0.0, 1e-6, 0.1] {
            check(Op::GroupNorm { n_groups, eps }, &[(&shape, ANY)], 1e-5);
        }
    }
}

#[test]
fn triangles() {
    for kind in [TriKind::UpperDiag, TriKind::Upper, TriKind::LowerDiag, TriKind::Lower] {
        for shape in [&[10, 10][..], &[4, 3, 10, 10], &[2, 1, 1]] {
            check(Op::Tri { kind }, &[(shape, ANY)], 0.0);
        }
    }
}

#[test]
fn triangular_systems() {
    // Only the lower triangle is read: the diagonal is not near 0.
    for (a, b) in [
        ([4, 2, 10, 10], [4, 2, 10, 3]),
        ([1, 1, 11, 11], [1, 1, 11, 5]),
        ([2, 2, 17, 17], [2, 2, 17, 1]),
    ] {
        check(Op::SolveTri, &[(&a, [0.5, 1.0]), (&b, ANY)], 1e-3);
    }
}

#[test]
fn columns_of_images() {
    for stride in [[1, 1], [3, 1], [1, 3]] {
        for padding in [[0, 0], [3, 0], [0, 3]] {
            for dilation in [[1, 1], [3, 1], [1, 3]] {
                let op = Op::Im2col {
                    stride,
                    padding,
                    dilation,
                };
                check(op, &[(&[3, 3, 3, 3], ANY), (&[2, 3, 10, 12], ANY)], 0.0);
            }
        }
    }
}

#[test]
fn convolutions() {
    for (stride, padding, dilation) in [
        ([1, 1], [0, 0], [1, 1]),
        ([2, 1], [1, 0], [1, 2]),
        ([1, 3], [0, 3], [3, 1]),
        ([4, 4], [2, 2], [1, 1]),
    ] {
        let op = Op::Conv2d {
            stride,
            padding,
            dilation,
        };
        for (kernel, x) in [
            ([4, 3, 3, 3], [2, 3, 10, 12]),
            ([1, 1, 1, 1], [1, 1, 1, 1]),
            ([2, 5, 2, 4], [1, 5, 7, 11]),
        ] {
            check(op, &[(&kernel, ANY), (&x, ANY)], 1e-5);
        }
    }
    // Work for several threads.
    let op = Op::Conv2d {
        stride: [1, 1],
        padding: [1, 1],
        dilation: [1, 1],
    };
    let inputs = [
        Input::f32(&[8, 8, 3, 3], &rng(1).vec(576)),
        Input::f32(&[1, 8, 40, 40], &rng(2).vec(12_800)),
    ];
    let found = run(op, &inputs, Form::Plain).expect("runs");
    assert_near(&found, &exact(&op, &inputs), 1e-5, "a larger image");
}

#[test]
fn pools_of_rows() {
    for kind in [PoolKind::Max, PoolKind::Avg] {
        for (kernel, stride, padding) in [(1, 1, 0), (3, 1, 1), (2, 2, 0), (3, 2, 1), (4, 3, 3), (2, 1, 5)] {
            let op = Op::Pool1d {
                kind,
                kernel,
                stride,
                padding,
            };
            // The largest of no element is the smallest f32, which is no f16.
            let shapes: &[&[usize]] = if padding < kernel {
                &[&[9], &[3, 10], &[2, 2, 5]]
            } else {
                &[]
            };
            for shape in shapes {
                check(op, &[(shape, ANY)], 1e-6);
            }
            let inputs = vec![Input::f32(&[2, 6], &rng(3).vec(12))];
            let found = run(op, &inputs, Form::Plain).expect("runs");
            assert_near(&found, &exact(&op, &inputs), 1e-6, "pool");
        }
    }
}

/// The elements of a window take time, and no memory.
#[test]
fn windows_that_overlap_too_much_are_refused() {
    let pool = |size, kernel| {
        let op = Op::Pool2d {
            kind: PoolKind::Max,
            kernel: [kernel; 2],
            stride: [1, 1],
            padding: [kernel / 2; 2],
        };
        run(op, &[Input::f32(&[size, size], &vec![1.0; size * size])], Form::Plain)
    };
    assert!(pool(300, 15).is_ok());
    let error = pool(300, 299).expect_err("too much");
    assert!(error.to_string().contains("4096 times"), "{error}");
    let row = Op::Pool1d {
        kind: PoolKind::Avg,
        kernel: 1 << 16,
        stride: 1,
        padding: 1 << 15,
    };
    run(row, &[Input::f32(&[1 << 16], &vec![1.0; 1 << 16])], Form::Plain).expect_err("too much");
    // One window of everything, and windows side by side.
    for (kernel, stride) in [(1 << 16, 1), (1 << 13, 1 << 13)] {
        let op = Op::Pool1d {
            kind: PoolKind::Avg,
            kernel,
            stride,
            padding: 0,
        };
        let found = run(op, &[Input::f32(&[1 << 16], &vec![2.0; 1 << 16])], Form::Plain).expect("runs");
        assert_near(&found, &vec![2.0; (1 << 16) / kernel], 0.0, "side by side");
    }
}

#[test]
fn pools() {
    for kind in [PoolKind::Max, PoolKind::Avg] {
        for kernel in [[1, 1], [3, 1], [1, 3]] {
            for stride in [[1, 1], [2, 1], [1, 2]] {
                for padding in [[0, 0], [1, 0], [0, 1]] {
                    let op = Op::Pool2d {
                        kind,
                        kernel,
                        stride,
                        padding,
                    };
                    let inputs: Vec<Input> = vec![Input::f32(&[2, 3, 9, 10], &rng(1).vec(540))];
                    assert_near(
                        &run(op, &inputs, Form::Plain).expect("runs"),
                        &exact(&op, &inputs),
                        1e-6,
                        "pool",
                    );
                }
            }
        }
        let op = Op::Pool2d {
            kind,
            kernel: [2, 3],
            stride: [2, 2],
            padding: [1, 1],
        };
        check(op, &[(&[3, 9, 10], ANY)], 1e-6);
    }
}

/// The elements of a window are more than 64 bits count.
#[test]
fn a_window_may_be_mostly_padding() {
    let op = Op::Pool2d {
        kind: PoolKind::Avg,
        kernel: [1 << 32; 2],
        stride: [1 << 33; 2],
        padding: [1 << 31; 2],
    };
    let inputs = vec![Input::f32(&[1, 1], &[2.0])];
    let found = run(op, &inputs, Form::Plain).expect("runs");
    assert_near(&found, &[2.0 / 2f64.powi(64)], 1e-26, "pool");
}

#[test]
fn sizes_of_images() {
    for mode in [UpscaleMode::Nearest, UpscaleMode::Bilinear] {
        for (shape, height, width) in [
            ([3, 5, 7], 10, 14),
            ([2, 5, 7], 8, 5),
            ([1, 1, 1], 3, 2),
            ([2, 6, 4], 6, 4),
        ] {
            check(Op::Upscale { mode, height, width }, &[(&shape, ANY)], 1e-5);
        }
    }
}

#[test]
fn parameters_that_do_not_fit() {
    let x = || vec![Input::f32(&[1, 2, 3, 4], &[0.0; 24])];
    let pool = |kernel, stride, padding| Op::Pool2d {
        kind: PoolKind::Max,
        kernel,
        stride,
        padding,
    };
    let upscale = |height| Op::Upscale {
        mode: UpscaleMode::Bilinear,
        height,
        width: 1,
    };
    for op in [
        Op::GroupNorm { n_groups: 0, eps: 0.1 },
        Op::GroupNorm { n_groups: 3, eps: 0.1 },
        Op::GroupNorm { n_groups: 1, eps: -0.1 },
        Op::Tri { kind: TriKind::Lower },
        Op::SolveTri,
        pool([0, 1], [1, 1], [0, 0]),
        pool([1, 1], [0, 1], [0, 0]),
        pool([4, 1], [1, 1], [0, 0]),
        pool([1, 1], [1, 1], [usize::MAX, 0]),
        pool([usize::MAX, 1], [1, 1], [0, 0]),
        upscale(0),
    ] {
        let error = run(op, &x(), Form::Plain).expect_err("does not fit");
        assert!(error.to_string().contains(op.name()), "{error}");
    }
}
