//! Functions of one element, of two with a repeated operand, gated linear units.

use crate::support::{SIZES, device, refused};
use rocmforge_kernels::{Binary, GluKind, Map, Unary, reference};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

#[test]
fn every_function_at_every_length_and_in_place() {
    let d = device();
    let with_parameters = [
        Map::Clamp { min: -0.25, max: 0.5 },
        Map::Affine {
            factor: -1.5,
            add: 0.25,
        },
    ];
    for f in Map::plain().chain(with_parameters) {
        for n in [1, 2, 3, 33, 1023, 1025] {
            let mut random = rng(n as u64);
            let (low, high) = match f {
                Map::Log | Map::Sqrt => (1e-3, 4.0),
                _ => (-4.0, 4.0),
            };
            let x = random.vec_in(n, low, high);
            let (input, y) = (d.up(&x), d.out(n));
            d.kernels.map(d.stream(), f, &input, &y).unwrap();
            // The largest result is e^4.
            let limit = if matches!(f, Map::Unary(Unary::Exp) | Map::Unary(Unary::Expm1) | Map::Sqr) {
                1e-5
            } else {
                1e-6
            };
            d.close(&y, &reference::map(f, &x), &[n], limit);
            d.kernels.map(d.stream(), f, &input, &input).unwrap();
            d.close(&input, &reference::map(f, &x), &[n], limit);
        }
    }
}

/// Where f32's own steps are large, or the result is small: relative errors.
#[test]
fn functions_keep_their_digits_far_from_one() {
    let d = device();
    let wide: Vec<f32> = (-30..=30)
        .flat_map(|e| [1.0f32, 1.37, 1.93].map(|m| m * 2f32.powi(4 * e)))
        .collect();
    let both: Vec<f32> = wide.iter().flat_map(|&x| [x, -x]).collect();
    let moderate: Vec<f32> = both.iter().copied().filter(|x| x.abs() < 80.0).collect();
    for (f, x) in [
        (Map::Log, &wide),
        (Map::Sqrt, &wide),
        (Map::Sin, &both),
        (Map::Cos, &both),
        (Map::Unary(Unary::Exp), &moderate),
        (Map::Unary(Unary::Expm1), &moderate),
        (Map::Unary(Unary::Tanh), &both),
        (Map::Unary(Unary::Softplus), &moderate),
    ] {
        let (input, y) = (d.up(x), d.out(x.len()));
        d.kernels.map(d.stream(), f, &input, &y).unwrap();
        for ((x, &found), want) in x.iter().zip(&d.get(&y)).zip(reference::map(f, x)) {
            let error = (f64::from(found) - want).abs();
            // Sine and cosine near a zero: the error of the reduced angle.
            let floor = if matches!(f, Map::Sin | Map::Cos) { 1e-7 } else { 1e-37 };
            assert!(
                error <= 1e-6 * want.abs() + floor,
                "{f:?}({x:e}) is {found:e}, not {want:e}"
            );
        }
    }
}

#[test]
fn functions_of_what_is_no_usual_number() {
    let d = device();
    let x = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        0.5,
        -0.5,
        2.5,
        -2.5,
    ];
    let input = d.up(&x);
    for f in Map::plain().chain([Map::Clamp { min: -1.0, max: 1.0 }]) {
        // Products of an infinite x and 0 have no value; the largest of NaN and 0 is 0; a step is one of two numbers.
        let products = matches!(
            f,
            Map::Unary(Unary::Gelu)
                | Map::Unary(Unary::GeluErf)
                | Map::Unary(Unary::GeluQuick)
                | Map::Unary(Unary::Silu)
                | Map::Unary(Unary::HardSwish)
        );
        let y = d.out(x.len());
        d.kernels.map(d.stream(), f, &input, &y).unwrap();
        for (i, (found, want)) in d.get(&y).into_iter().zip(reference::map(f, &x)).enumerate() {
            if (products && i == 2) || (matches!(f, Map::Unary(Unary::Relu) | Map::Unary(Unary::Step)) && i == 0) {
                continue;
            }
            let (found, close) = (f64::from(found), (f64::from(found) - want).abs() < 1e-6);
            assert!(
                found == want || close || found.is_nan() && want.is_nan(),
                "{f:?}({}): {found} {want}",
                x[i]
            );
        }
    }
}

const BINARY: [Binary; 4] = [Binary::Add, Binary::Sub, Binary::Mul, Binary::Div];

#[test]
fn the_second_operand_repeats_over_any_dimension() {
    let d = device();
    let shapes = [
        ([1, 1, 3, 33], [1, 1, 3, 33]),
        ([2, 3, 5, 33], [1, 1, 1, 33]),
        ([2, 3, 5, 33], [2, 1, 5, 1]),
        ([4, 3, 5, 66], [2, 3, 1, 33]),
        ([2, 6, 4, 8], [2, 2, 2, 2]),
        ([1, 1, 9, 1030], [1, 1, 3, 515]),
        ([3, 1, 1, 1], [1, 1, 1, 1]),
    ];
    for (shape, part) in shapes {
        let (n, m): (usize, usize) = (shape.iter().product(), part.iter().product());
        let mut random = rng(n as u64);
        let (a, b) = (random.vec(n), random.vec_in(m, 0.5, 2.0));
        for f in BINARY {
            let (da, db, y) = (d.up(&a), d.up(&b), d.out(n));
            d.kernels
                .binary_repeat(d.stream(), f, (&da, shape), (&db, part), &y)
                .unwrap();
            let want = reference::binary_repeat(f, (&a, shape), (&b, part));
            d.close(&y, &want, &shape, 1e-6);
            d.kernels
                .binary_repeat(d.stream(), f, (&da, shape), (&db, part), &da)
                .unwrap();
            d.close(&da, &want, &shape, 1e-6);
        }
    }
    let (a, b, y) = (d.up(&[0.0; 12]), d.up(&[1.0; 4]), d.out(12));
    for (part, text) in [
        ([1, 1, 2, 2], "must divide those of a (2 and 3)"),
        ([1, 1, 2, 1], "binary: b has 4"),
    ] {
        let (a, b) = ((&a, [1, 2, 2, 3]), (&b, part));
        refused(d.kernels.binary_repeat(d.stream(), Binary::Add, a, b, &y), text);
    }
}

#[test]
fn gates_of_two_tensors_and_of_both_halves() {
    let d = device();
    for gate in [
        GluKind::Reglu,
        GluKind::Geglu,
        GluKind::Swiglu,
        GluKind::GegluErf,
        GluKind::GegluQuick,
    ] {
        for cols in SIZES.into_iter().chain([1030]) {
            let (rows, mut random) = (3, rng(cols as u64));
            let (g, u) = (random.vec_in(rows * cols, -3.0, 3.0), random.vec(rows * cols));
            let want = reference::glu(gate, &g, &u);
            let (dg, du, y) = (d.up(&g), d.up(&u), d.out(rows * cols));
            let (k, s) = (&d.kernels, d.stream());
            k.glu(s, gate, (&dg, cols), (&du, cols), &y, [rows, cols]).unwrap();
            d.close(&y, &want, &[rows, cols], 2e-6);
            k.glu(s, gate, (&dg, cols), (&du, cols), &du, [rows, cols]).unwrap();
            d.close(&du, &want, &[rows, cols], 2e-6);
            let both: Vec<f32> = g
                .chunks(cols)
                .zip(u.chunks(cols))
                .flat_map(|(g, u)| [g, u].concat())
                .collect();
            let (both, y) = (d.up(&both), d.out(rows * cols));
            let second = both.view(cols..both.len()).unwrap();
            k.glu(s, gate, (&both, 2 * cols), (&second, 2 * cols), &y, [rows, cols])
                .unwrap();
            assert_close(&d.get(&y), &want, &[rows, cols], Tolerance::Absolute(2e-6));
        }
    }
    let (x, y) = (d.up(&[0.0; 12]), d.out(9));
    refused(
        d.kernels.glu(d.stream(), GluKind::Reglu, (&x, 5), (&x, 3), &y, [3, 3]),
        "gate has 12 elements; its strides [5, 1]",
    );
}
