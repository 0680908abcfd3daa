//! scale, copy, add, mul, row vectors, parts of rows.

use crate::support::{SIZES, device};
use rocmforge_kernels::reference;
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

/// Flat sizes: around a wave, around a block's 1024 elements, and every remainder of 4.
fn lengths() -> impl Iterator<Item = usize> {
    SIZES.into_iter().chain([2, 3, 1022, 1023, 1024, 1025, 1026, 5000])
}

#[test]
fn test_scale_gpu_matches_cpu() {
    let d = device();
    let x: Vec<f32> = (0..16).map(|i| i as f32 * 0.25 - 1.0).collect();
    let (input, y) = (d.up(&x), d.out(16));
    d.kernels.scale(d.stream(), &input, &y, 0.5).unwrap();
    d.close(&y, &reference::scale(&x, 0.5), &[1, 4, 4], 1e-5);
}

#[test]
fn elementwise_kernels_match_at_every_length_and_in_place() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for n in lengths() {
        let mut random = rng(n as u64);
        let (a, b) = (random.vec(n), random.vec(n));
        let (da, db) = (d.up(&a), d.up(&b));
        let y = d.out(n);
        k.add(s, &da, &db, &y).unwrap();
        d.close(&y, &reference::add(&a, &b), &[n], 1e-7);
        let y = d.out(n);
        k.mul(s, &da, &db, &y).unwrap();
        d.close(&y, &reference::mul(&a, &b), &[n], 1e-7);
        let y = d.out(n);
        k.scale(s, &da, &y, -3.5).unwrap();
        d.close(&y, &reference::scale(&a, -3.5), &[n], 4e-7);
        let y = d.out(n);
        k.copy(s, &da, &y).unwrap();
        d.same(&y, &a, &[n]);
        k.add(s, &da, &db, &da).unwrap();
        d.close(&da, &reference::add(&a, &b), &[n], 1e-7);
    }
}

#[test]
fn a_view_that_starts_at_an_odd_element_is_processed_alone() {
    let d = device();
    let x = rng(5).vec(300);
    let (input, whole) = (d.up(&x), d.out(300));
    let y = whole.view(3..202).unwrap();
    d.kernels
        .scale(d.stream(), &input.view(1..200).unwrap(), &y, 2.0)
        .unwrap();
    d.close(&y, &reference::scale(&x[1..200], 2.0), &[199], 1e-6);
    let all = d.get(&whole);
    assert!(
        all[..3].iter().chain(&all[202..]).all(|v| v.is_nan()),
        "the neighbours keep their poison"
    );
}

#[test]
fn row_bias_matches_at_odd_shapes() {
    let d = device();
    for (rows, cols) in [
        (1, 1),
        (3, 31),
        (8, 32),
        (9, 33),
        (5, 129),
        (2, 1024),
        (2, 1025),
        (17, 384),
    ] {
        let mut random = rng(7);
        let (x, bias) = (random.vec(rows * cols), random.vec(cols));
        let (input, b, y) = (d.up(&x), d.up(&bias), d.out(rows * cols));
        d.kernels.add_row_bias(d.stream(), &input, &b, &y, rows, cols).unwrap();
        d.close(&y, &reference::add_row_bias(&x, &bias), &[rows, cols], 1e-6);
        d.kernels
            .add_row_bias(d.stream(), &input, &b, &input, rows, cols)
            .unwrap();
        d.close(&input, &reference::add_row_bias(&x, &bias), &[rows, cols], 1e-6);
    }
}

#[test]
fn test_gpu_to_gpu_copy() {
    let d = device();
    let x = rng(11).vec(4097);
    let (input, by_kernel, by_runtime) = (d.up(&x), d.out(4097), d.out(4097));
    d.kernels.copy(d.stream(), &input, &by_kernel).unwrap();
    by_runtime.copy_from_buffer(d.stream(), &input).unwrap();
    d.same(&by_kernel, &x, &[4097]);
    d.same(&by_runtime, &x, &[4097]);
}

#[test]
fn an_empty_buffer_is_refused() {
    let d = device();
    let x = d.up(&[1.0]);
    let empty: HipBuffer<f32> = x.view(0..0).unwrap();
    let error = d.kernels.scale(d.stream(), &empty, &empty, 1.0).unwrap_err();
    assert!(error.to_string().contains("scale: elements is 0"), "{error}");
}

#[test]
fn every_row_times_a_row_vector() {
    let d = device();
    for cols in SIZES.into_iter().chain([384, 1025]) {
        let mut random = rng(cols as u64);
        let (x, factor) = (random.vec(9 * cols), random.vec(cols));
        let (input, f, y) = (d.up(&x), d.up(&factor), d.out(9 * cols));
        d.kernels.mul_row(d.stream(), &input, &f, &y, 9, cols).unwrap();
        d.close(&y, &reference::mul_row(&x, &factor), &[9, cols], 1e-7);
        d.kernels.mul_row(d.stream(), &input, &f, &input, 9, cols).unwrap();
        d.close(&input, &reference::mul_row(&x, &factor), &[9, cols], 1e-7);
    }
}
