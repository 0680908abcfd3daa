//! SiLU, GELU, their gated forms, and the soft cap.

use crate::support::{device, refused};
use rocmforge_kernels::{GluKind, HalfRows, Kernels, reference};
use rocmforge_runtime::HipBuffer;
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

/// The unit and its rows of f16 are those of two launches, bit for bit; also over an operand, with a row of zeros, and with values that are not finite.
#[test]
fn a_unit_and_its_rows_of_f16_in_one_launch() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for (rows, cols) in [(5, 32), (3, 2080), (1, 16_416)] {
        let (n, dims) = (rows * cols, [rows, cols]);
        let mut random = rng(cols as u64);
        let (gate, mut up) = (random.vec_in(n, -6.0, 6.0), random.vec_in(n, -4.0, 4.0));
        if rows > 1 {
            up[cols..2 * cols].fill(0.0);
        }
        (up[cols - 1], up[n - 2]) = (f32::NAN, f32::INFINITY);
        let room = || {
            let bytes = HalfRows::byte_len(rows, cols).expect("counts");
            HipBuffer::from_slice(s, &vec![0xA5u8; bytes], "rows of f16").expect("room")
        };
        for kind in GluKind::ALL {
            let (g, u, expected, y) = (d.up(&gate), d.up(&up), d.out(n), d.out(n));
            let (wanted, to) = (room(), room());
            if !Kernels::leaves_halves(kind) {
                let result = k.glu_halves(s, kind, [&g, &u], &y, &to, dims);
                refused(result, "SWIGLU or GEGLU");
                continue;
            }
            k.glu(s, kind, (&g, cols), (&u, cols), &expected, dims).unwrap();
            k.half_rows(s, &expected, &wanted, dims).expect("rounds");
            let (expected, wanted) = (d.get(&expected), wanted.to_vec(s).expect("download"));
            let bits = |x: Vec<f32>| x.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
            let expected = bits(expected);
            // The second writes over up, the third over gate, last because the others read it.
            for (u, y) in [(&u, &y), (&u, &u), (&d.up(&up), &g)] {
                let to = room();
                k.glu_halves(s, kind, [&g, u], y, &to, dims).unwrap();
                assert_eq!(bits(d.get(y)), expected, "{kind:?} {dims:?}");
                assert_eq!(to.to_vec(s).expect("download"), wanted, "{kind:?} {dims:?}");
            }
        }
    }
    let (x, y) = (d.up(&[1.0; 66]), d.out(66));
    let to = HipBuffer::from_slice(s, &[0u8; 140], "rows of f16").expect("room");
    let result = k.glu_halves(s, GluKind::Swiglu, [&x, &x], &y, &to, [2, 33]);
    refused(result, "rounded rows must be whole blocks");
}
