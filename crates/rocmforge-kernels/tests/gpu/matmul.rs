//! f32 matrix products.

use crate::support::device;
use rocmforge_kernels::{MatmulShape, reference};
use rocmforge_testkit::data::rng;

fn case(shape: MatmulShape, with_bias: bool, limit: f64) {
    let d = device();
    let mut random = rng((shape.m * 31 + shape.n * 7 + shape.k) as u64);
    let b_batch = if shape.b_shared { 1 } else { shape.batch };
    let a = random.vec(shape.batch * shape.m * shape.k);
    let b = random.vec(b_batch * shape.k * shape.n);
    let bias = with_bias.then(|| random.vec(shape.n));
    let (da, db, y) = (d.up(&a), d.up(&b), d.out(shape.batch * shape.m * shape.n));
    let dbias = bias.as_ref().map(|bias| d.up(bias));
    d.kernels
        .matmul(d.stream(), &da, &db, dbias.as_ref(), &y, shape)
        .unwrap();
    let dims = [shape.batch, shape.m, shape.n];
    d.close(&y, &reference::matmul(&a, &b, bias.as_deref(), shape), &dims, limit);
}

#[test]
fn test_gpu_matmul_matches_cpu_small() {
    let d = device();
    let (a, b, y) = (d.up(&[1.0, 2.0, 3.0, 4.0]), d.up(&[5.0, 6.0, 7.0, 8.0]), d.out(4));
    d.kernels
        .matmul(d.stream(), &a, &b, None, &y, MatmulShape::new(2, 2, 2))
        .unwrap();
    d.same(&y, &[19.0, 22.0, 43.0, 50.0], &[2, 2]);
}

#[test]
fn test_gpu_matmul_larger_matrix() {
    case(MatmulShape::new(70, 90, 110), false, 1e-5);
    case(MatmulShape::linear(70, 90, 110), true, 1e-5);
}

#[test]
fn test_matmul_rectangular_matrices() {
    for (m, n, k) in [(1, 129, 5), (129, 1, 5), (3, 4, 300), (1, 1, 1), (2, 1000, 3)] {
        case(MatmulShape::new(m, n, k), false, 1e-5);
        case(MatmulShape::linear(m, n, k), false, 1e-5);
    }
}

#[test]
fn batches_have_their_own_or_a_shared_weight() {
    for b_shared in [false, true] {
        let shape = MatmulShape {
            b_shared,
            ..MatmulShape::linear(5, 33, 20).batched(3)
        };
        case(shape, true, 1e-5);
        case(
            MatmulShape {
                b_transposed: false,
                ..shape
            },
            false,
            1e-5,
        );
    }
}

#[test]
fn test_matmul_invalid_dims_error() {
    let d = device();
    let (a, b, y) = (d.up(&[0.0; 6]), d.up(&[0.0; 6]), d.out(4));
    let wrong = |shape| {
        d.kernels
            .matmul(d.stream(), &a, &b, None, &y, shape)
            .unwrap_err()
            .to_string()
    };
    let text = wrong(MatmulShape::new(2, 2, 4));
    assert!(
        text.contains("matmul: a has 6 elements; its shape [1, 2, 4] needs 8"),
        "{text}"
    );
    let text = wrong(MatmulShape::new(0, 2, 3));
    assert!(text.contains("matmul: m is 0"), "{text}");
    let text = wrong(MatmulShape::new(2, 3, 3));
    assert!(text.contains("matmul: b has 6 elements"), "{text}");
    let shape = MatmulShape::new(2, 2, 3);
    let text = d
        .kernels
        .matmul(d.stream(), &a, &b, None, &a, shape)
        .unwrap_err()
        .to_string();
    assert!(text.contains("matmul: y has 6 elements"), "{text}");
}

#[test]
fn test_multiple_matmul_same_handle() {
    let d = device();
    let shape = MatmulShape::new(8, 8, 8);
    let mut random = rng(3);
    let identity: Vec<f32> = (0..64).map(|n| if n / 8 == n % 8 { 1.0 } else { 0.0 }).collect();
    let x = random.vec(64);
    let (mut a, i) = (d.up(&x), d.up(&identity));
    for _ in 0..5 {
        let y = d.out(64);
        d.kernels.matmul(d.stream(), &a, &i, None, &y, shape).unwrap();
        a = y;
    }
    d.same(&a, &x, &[8, 8]);
}

#[test]
fn test_matmul_stream_synchronization() {
    let d = device();
    let other = d.lease().backend().create_stream("other").unwrap();
    let shape = MatmulShape::new(33, 33, 33);
    let mut random = rng(4);
    let (x, w) = (random.vec(33 * 33), random.vec(33 * 33));
    let (a, b) = (d.up(&x), d.up(&w));
    let (middle, y) = (d.out(33 * 33), d.out(33 * 33));
    // The second product needs the first, which is on another stream: the buffers carry the order.
    d.kernels.matmul(d.stream(), &a, &b, None, &middle, shape).unwrap();
    d.kernels.matmul(&other, &middle, &b, None, &y, shape).unwrap();
    let first: Vec<f32> = reference::matmul(&x, &w, None, shape)
        .iter()
        .map(|&v| v as f32)
        .collect();
    d.close(&y, &reference::matmul(&first, &w, None, shape), &[33, 33], 1e-4);
}

#[test]
fn test_concurrent_matmul_handles() {
    let d = device();
    let shape = MatmulShape::new(31, 33, 17);
    let mut random = rng(5);
    let (x, w) = (random.vec(31 * 17), random.vec(17 * 33));
    let expected = reference::matmul(&x, &w, None, shape);
    let (a, b) = (d.up(&x), d.up(&w));
    // One stream a thread, the operands shared, all products in flight at once.
    let outputs: Vec<_> = (0..4).map(|_| d.out(31 * 33)).collect();
    std::thread::scope(|scope| {
        for (n, y) in outputs.iter().enumerate() {
            let (d, a, b) = (&d, &a, &b);
            scope.spawn(move || {
                let stream = d.lease().backend().create_stream(&format!("thread {n}")).unwrap();
                d.kernels.matmul(&stream, a, b, None, y, shape).unwrap();
            });
        }
    });
    for y in &outputs {
        d.close(y, &expected, &[31, 33], 1e-5);
    }
}
