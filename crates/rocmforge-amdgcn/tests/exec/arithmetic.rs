//! Arithmetic, bit for bit where the host can say what is right.

use crate::card::{Arg, Card, Numbers, kernels};
use half::f16;

const N: usize = 1024;

#[track_caller]
fn same32(got: f32, expected: f32, what: &str) {
    assert!(
        got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
        "{what}: {got:e} ({:#x}), expected {expected:e}",
        got.to_bits()
    );
}

#[track_caller]
fn close32(got: f32, exact: f64, ulps: f64, what: &str) {
    let expected = exact as f32;
    if expected.is_nan() || expected.is_infinite() || expected.abs() < 1e-37 {
        let same = (got.is_nan() && expected.is_nan()) || got == expected || (got - expected).abs() < 1e-37;
        assert!(same, "{what}: {got:e}, expected {expected:e}");
        return;
    }
    let ulp = f64::from(f32::from_bits(expected.abs().to_bits() + 1)) - f64::from(expected.abs());
    let off = (f64::from(got) - exact).abs() / ulp;
    assert!(off <= ulps, "{what}: {got:e}, expected {expected:e}: {off} ulp");
}

#[test]
fn single_precision() {
    let mut numbers = Numbers(1);
    let (mut a, mut b) = (numbers.f32s(N), numbers.f32s(N));
    a[..8].copy_from_slice(&[0.0, -0.0, f32::INFINITY, f32::NAN, 1e-40, f32::MAX, 0.5, 2.5]);
    b[..8].copy_from_slice(&[-0.0, 0.0, 2.0, 1.0, 3.0, 1e-40, 1.5, f32::NEG_INFINITY]);
    let mut card = Card::new(kernels());
    let (da, db, dy) = (card.upload(&a), card.upload(&b), card.alloc(8 * N * 4));
    card.run(
        "float_ops",
        4,
        256,
        &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dy), Arg::U32(N as u32)],
    );
    let y: Vec<f32> = card.download(dy, 8 * N);
    for t in 0..N {
        let (x, z) = (a[t], b[t]);
        let what = format!("{t}: {x:e}, {z:e}");
        same32(y[t], x / z, &format!("divide {what}"));
        same32(y[N + t], (if x < 0.0 { -x } else { x }).sqrt(), &format!("root {what}"));
        let min = if x.is_nan() || z < x || (z == x && z.is_sign_negative()) {
            z
        } else {
            x
        };
        let max = if x.is_nan() || z > x || (z == x && z.is_sign_positive()) {
            z
        } else {
            x
        };
        same32(y[2 * N + t], (-max).mul_add(3.0, min), &format!("min, max {what}"));
        same32(
            y[3 * N + t],
            x.floor() + z.trunc() + x.round_ties_even() - z.ceil(),
            &format!("round {what}"),
        );
        close32(y[4 * N + t], f64::from(x).exp(), 2.0, &format!("exp {what}"));
        close32(y[5 * N + t], f64::from(x).abs().ln(), 3.0, &format!("ln {what}"));
        same32(
            y[6 * N + t],
            (x as i32) as f32 + (z.abs() as u32) as f32,
            &format!("convert {what}"),
        );
        same32(
            y[7 * N + t],
            (f64::from(x) * 2f64.powi(t as i32 % 80 - 40)) as f32,
            &format!("ldexp {what}"),
        );
    }
}

#[test]
fn double_precision() {
    let mut numbers = Numbers(2);
    let mut doubles = |n: usize| -> Vec<f64> {
        (0..n)
            .map(|k| {
                let bits = numbers.next();
                if k % 8 == 7 {
                    f64::from_bits(bits)
                } else {
                    bits as i64 as f64 / 4e15
                }
            })
            .collect()
    };
    let (mut a, mut b) = (doubles(N), doubles(N));
    a[..6].copy_from_slice(&[0.0, -0.0, f64::INFINITY, f64::NAN, 5e-324, f64::MAX]);
    b[..6].copy_from_slice(&[-0.0, 0.0, 2.0, 1.0, 3.0, 1e-310]);
    let mut card = Card::new(kernels());
    let (da, db, dy) = (card.upload(&a), card.upload(&b), card.alloc(6 * N * 8));
    card.run(
        "double_ops",
        4,
        256,
        &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dy), Arg::U32(N as u32)],
    );
    let y: Vec<f64> = card.download(dy, 6 * N);
    let same = |got: f64, expected: f64, what: &str| {
        let equal = got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan());
        assert!(equal, "{what}: {got:e}, expected {expected:e}");
    };
    for t in 0..N {
        let (x, z) = (a[t], b[t]);
        let what = format!("{t}: {x:e}, {z:e}");
        same(y[t], x / z, &format!("divide {what}"));
        same(y[N + t], (if x < 0.0 { -x } else { x }).sqrt(), &format!("root {what}"));
        same(y[2 * N + t], x.mul_add(z, x) - z, &format!("fma {what}"));
        let min = if x.is_nan() || z < x || (z == x && z.is_sign_negative()) {
            z
        } else {
            x
        };
        same(
            y[3 * N + t],
            x.floor().mul_add(2.0, min) + z.abs(),
            &format!("floor, min {what}"),
        );
        let inside = x.abs() < 4e9 && z.abs() < 2e9;
        if inside {
            let expected = f64::from(x as f32) + f64::from(z as i32) + f64::from(x.abs() as u32);
            same(y[4 * N + t], expected, &format!("convert {what}"));
        }
        if x.abs() < 9e18 && z.abs() < 9e18 {
            same(
                y[5 * N + t],
                (x as i64) as f64 + (z.abs() as u64) as f64,
                &format!("convert 64 {what}"),
            );
        }
    }
}

#[test]
fn half_precision() {
    let mut numbers = Numbers(3);
    let mut halves = |n: usize| -> Vec<f16> { (0..n).map(|_| f16::from_bits(numbers.next() as u16)).collect() };
    let (a, b) = (halves(N), halves(N));
    let mut card = Card::new(kernels());
    let (da, db) = (card.upload(&a), card.upload(&b));
    let (dy, dw) = (card.alloc(6 * N * 2), card.alloc(N * 4));
    card.run(
        "half_ops",
        4,
        256,
        &[
            Arg::Ptr(da),
            Arg::Ptr(db),
            Arg::Ptr(dy),
            Arg::Ptr(dw),
            Arg::U32(N as u32),
        ],
    );
    let (y, w): (Vec<f16>, Vec<f32>) = (card.download(dy, 6 * N), card.download(dw, N));
    let same = |got: f16, expected: f64, what: &str| {
        // Exact results of two halves fit a double, so this rounds once.
        let expected = f16::from_f64(expected);
        assert!(
            got == expected || (got.is_nan() && expected.is_nan()),
            "{what}: {got:e}, expected {expected:e}"
        );
    };
    for t in 0..N {
        let (x, z) = (a[t].to_f64(), b[t].to_f64());
        let what = format!("{t}: {x:e}, {z:e}");
        same(y[t], x + z, &format!("add {what}"));
        same(y[N + t], x * z, &format!("multiply {what}"));
        same(y[2 * N + t], x.mul_add(z, x), &format!("fma {what}"));
        same(y[3 * N + t], f64::from((x / z) as f32), &format!("divide {what}"));
        same(
            y[4 * N + t],
            f64::from((x as f32).mul_add(z as f32, 1.0)),
            &format!("mixed {what}"),
        );
        same(y[5 * N + t], if x < z { -x } else { z }, &format!("select {what}"));
        let expected = (x as f32).mul_add(z as f32, x as f32);
        assert!(
            w[t].to_bits() == expected.to_bits() || (w[t].is_nan() && expected.is_nan()),
            "widened {what}"
        );
    }
    let dp = card.alloc(N * 2);
    card.run("packed_half", 2, 256, &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dp)]);
    let p: Vec<f16> = card.download(dp, N);
    for t in 0..N / 2 {
        let (x, z) = (
            [a[2 * t].to_f64(), a[2 * t + 1].to_f64()],
            [b[2 * t].to_f64(), b[2 * t + 1].to_f64()],
        );
        same(p[2 * t], x[0].mul_add(z[0], z[1]), &format!("packed low {t}"));
        same(p[2 * t + 1], x[1].mul_add(z[1], x[0]), &format!("packed high {t}"));
    }
}

#[test]
fn integer_division() {
    let mut numbers = Numbers(4);
    let wide = |n: &mut Numbers, k: usize| -> i64 {
        (n.next() >> (k * 7 % 60)) as i64 - if k.is_multiple_of(3) { 1 << 3 } else { 0 }
    };
    let a: Vec<i64> = (0..N).map(|k| wide(&mut numbers, k)).collect();
    let b: Vec<i64> = (0..N)
        .map(|k| wide(&mut numbers, k / 5))
        .map(|x| if x == 0 || x == -1 { 3 } else { x })
        .collect();
    let mut card = Card::new(kernels());
    let (da, db, dq, dr) = (card.upload(&a), card.upload(&b), card.alloc(N * 8), card.alloc(N * 8));
    card.run(
        "divide64",
        4,
        256,
        &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dq), Arg::Ptr(dr)],
    );
    let (q, r): (Vec<i64>, Vec<u64>) = (card.download(dq, N), card.download(dr, N));
    for t in 0..N {
        assert_eq!(
            (q[t], r[t]),
            (a[t] / b[t], a[t] as u64 % b[t] as u64),
            "{} by {}",
            a[t],
            b[t]
        );
    }
    let (a, b): (Vec<u32>, Vec<u32>) = (
        numbers.u32s(N),
        numbers
            .u32s(N)
            .iter()
            .enumerate()
            .map(|(k, x)| (x >> (k % 31)).max(2))
            .collect(),
    );
    let (da, db, dq, dr) = (card.upload(&a), card.upload(&b), card.alloc(N * 4), card.alloc(N * 4));
    card.run(
        "divide32",
        4,
        256,
        &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dq), Arg::Ptr(dr)],
    );
    let (q, r): (Vec<u32>, Vec<i32>) = (card.download(dq, N), card.download(dr, N));
    for t in 0..N {
        assert_eq!(
            (q[t], r[t]),
            (a[t] / b[t], a[t] as i32 % b[t] as i32),
            "{} by {}",
            a[t],
            b[t]
        );
    }
}

#[test]
fn matrix_multiply_accumulate() {
    let mut numbers = Numbers(5);
    // Small whole numbers: every order of summation gives the same.
    let mut small = |n: usize| -> Vec<f16> {
        (0..n)
            .map(|_| f16::from_f32((numbers.next() % 17) as f32 - 8.0))
            .collect()
    };
    let (a, b) = (small(256), small(256));
    let c: Vec<f32> = (0..256).map(|k| k as f32 / 4.0).collect();
    let mut card = Card::new(kernels());
    let (da, db, dc, dy) = (card.upload(&a), card.upload(&b), card.upload(&c), card.alloc(1024));
    card.run(
        "matrix",
        1,
        32,
        &[Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dc), Arg::Ptr(dy)],
    );
    let y: Vec<f32> = card.download(dy, 256);
    for row in 0..16 {
        for column in 0..16 {
            let dot: f32 = (0..16)
                .map(|k| a[row * 16 + k].to_f32() * b[column * 16 + k].to_f32())
                .sum();
            assert_eq!(y[row * 16 + column], dot + c[row * 16 + column], "({row}, {column})");
        }
    }
}
