//! scale, copy, add, mul, row vectors, parts of rows.

use crate::support::device;
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

#[test]
fn test_scale_gpu_matches_cpu() {
    let d = device();
    let x: Vec<f32> = (0..16).map(|i| i as f32 * 0.25 - 1.0).collect();
    let (input, y) = (d.up(&x), d.out(16));
    d.kernels.scale(d.stream(), &input, &y, 0.5).unwrap();
    d.close(&y, &reference::scale(&x, 0.5), &[1, 4, 4], 1e-5);
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
