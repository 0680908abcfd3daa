//! SiLU, GELU, their gated forms, and the soft cap.

use crate::support::{device, refused};
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

fn swiglu_case(rows: usize, cols: usize, limit: f64) {
    let d = device();
    let mut random = rng((rows * cols) as u64);
    let (gate, up) = (
        random.vec_in(rows * cols, -4.0, 4.0),
        random.vec_in(rows * cols, -4.0, 4.0),
    );
    let (g, u, y) = (d.up(&gate), d.up(&up), d.out(rows * cols));
    d.kernels.swiglu(d.stream(), &g, &u, &y).unwrap();
    d.close(&y, &reference::swiglu(&gate, &up), &[rows, cols], limit);
}

#[test]
fn test_swiglu_matches_cpu_small() {
    swiglu_case(4, 8, 1e-4);
}

#[test]
fn test_swiglu_matches_cpu_32x32() {
    swiglu_case(32, 32, 1e-5);
}

#[test]
fn test_swiglu_non_square() {
    swiglu_case(8, 64, 1e-5);
    swiglu_case(7, 129, 1e-5);
}

#[test]
fn test_swiglu_output_is_finite() {
    let d = device();
    let gate = [-1e30, -200.0, -88.0, -1.0, -0.0, 0.0, 1.0, 88.0, 200.0, 1e30];
    let up = [2.0; 10];
    let (g, u, y) = (d.up(&gate), d.up(&up), d.out(10));
    d.kernels.swiglu(d.stream(), &g, &u, &y).unwrap();
    let y = d.get(&y);
    assert!(y.iter().all(|v| v.is_finite()), "{y:?}");
    assert_eq!(y[9], 2e30, "silu(x) is x for large x");
}

#[test]
fn test_swiglu_mathematical_properties() {
    let d = device();
    let values: Vec<f32> = (-40..=40).map(|i| i as f32 * 0.25).collect();
    let n = values.len();
    let (g, ones, zeros) = (d.up(&values), d.up(&vec![1.0; n]), d.up(&vec![0.0; n]));
    let (silu, swapped) = (d.out(n), d.out(n));
    d.kernels.swiglu(d.stream(), &g, &ones, &silu).unwrap();
    let silu = d.get(&silu);
    for (x, y) in values.iter().zip(&silu) {
        assert!(
            *y >= -0.2785,
            "silu has its minimum of -0.2784 at -1.278: {x} gives {y}"
        );
        let mirrored = y - x;
        let at_minus = silu[values.iter().position(|v| v == &-x).unwrap()];
        assert!((mirrored - at_minus).abs() < 1e-6, "silu(x) - x = silu(-x) at {x}");
    }
    // The gate goes through silu, the other operand does not: silu(0) * up is 0, while silu(up) * 1 is not up.
    d.kernels.swiglu(d.stream(), &zeros, &g, &swapped).unwrap();
    assert!(d.get(&swapped).iter().all(|v| *v == 0.0));
}

#[test]
fn gelu_is_accurate_over_a_dense_grid_and_tame_at_the_ends() {
    let d = device();
    let mut x: Vec<f32> = (-9000..=9000).map(|i| i as f32 * 1e-3).collect();
    x.extend([-1e30, -60.0, 60.0, 1e30]);
    let (input, y) = (d.up(&x), d.out(x.len()));
    d.kernels.gelu_erf(d.stream(), &input, &y).unwrap();
    let (actual, expected) = (d.get(&y), reference::gelu_erf(&x));
    for ((x, a), e) in x.iter().zip(actual).zip(expected) {
        let limit = 2e-7 + 2e-7 * e.abs();
        assert!((f64::from(a) - e).abs() <= limit, "gelu({x}) = {a}, expected {e}");
    }
}

#[test]
fn geglu_of_large_factors_and_softcap_of_any_cap() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for n in [2, 3, 33, 1025] {
        let mut random = rng(n as u64);
        let (gate, up) = (random.vec_in(n, -6.0, 6.0), random.vec_in(n, -4.0, 4.0));
        let (g, u, y) = (d.up(&gate), d.up(&up), d.out(n));
        k.geglu(s, &g, &u, &y).unwrap();
        d.close(&y, &reference::geglu(&gate, &up), &[n], 1e-5);
        for cap in [0.5, 1e6] {
            let y = d.out(n);
            k.softcap(s, &g, &y, cap).unwrap();
            d.close(&y, &reference::softcap(&gate, cap), &[n], 5e-7 * f64::from(cap));
        }
    }
    let x = [f32::NEG_INFINITY, -1e30, -0.0, 1e30, f32::INFINITY];
    let (input, y) = (d.up(&x), d.out(5));
    k.softcap(s, &input, &y, 50.0).unwrap();
    d.close(&y, &[-50.0, -50.0, 0.0, 50.0, 50.0], &[5], 1e-5);
    for cap in [0.0, -1.0, f32::INFINITY, 1e-40] {
        refused(k.softcap(s, &input, &y, cap), "positive and normal");
    }
}
