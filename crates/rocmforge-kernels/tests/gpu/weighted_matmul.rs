//! The weighted sum of the values.

use crate::support::{as_kv, as_q, device};
use rocmforge_kernels::{AttentionShape, Operand, Strides, reference};
use rocmforge_testkit::data::{rng, widen};

/// Values and weights as the seeds have them: v = 0.1 i + 2, weights of a row proportional to 1, 2, 3, ...
fn seed_data(shape: &AttentionShape) -> (Vec<f32>, Vec<f32>) {
    let v = (0..shape.kv_elements().unwrap())
        .map(|i| (i % 50) as f32 * 0.1 + 2.0)
        .collect();
    let sum = (shape.seq_k * (shape.seq_k + 1) / 2) as f32;
    let weights = (0..shape.score_elements().unwrap())
        .map(|n| (n % shape.seq_k + 1) as f32 / sum)
        .collect();
    (weights, v)
}

fn case(shape: AttentionShape, limit: f64) {
    let d = device();
    let (weights, v) = seed_data(&shape);
    let (dw, dv, y) = (d.up(&weights), d.up(&v), d.out(shape.q_elements().unwrap()));
    d.kernels
        .weighted_matmul(d.stream(), &dw, as_kv(&dv, &shape), as_q(&y, &shape), shape)
        .unwrap();
    let dims = [shape.batch, shape.heads, shape.seq_q, shape.head_dim];
    d.close(
        &y,
        &reference::weighted_matmul(&widen(&weights), &v, shape),
        &dims,
        limit,
    );
}

#[test]
fn test_weighted_matmul_matches_cpu_small() {
    case(AttentionShape::square(1, 2, 4, 8), 1e-5);
}

#[test]
fn test_weighted_matmul_matches_cpu_32x32() {
    case(AttentionShape::square(2, 4, 32, 32), 1e-5);
}

#[test]
fn test_weighted_matmul_non_square_sequences() {
    case(AttentionShape::square(1, 2, 8, 16).with_seq_k(16), 1e-5);
    case(AttentionShape::square(1, 2, 3, 16).with_seq_k(70), 1e-5);
}

#[test]
fn test_weighted_matmul_explicit_layout_indexing() {
    let d = device();
    let shape = AttentionShape::square(1, 2, 4, 8);
    // Query i takes key 3 - i alone.
    let weights: Vec<f32> = (0..32)
        .map(|n| if n % 4 == 3 - n / 4 % 4 { 1.0 } else { 0.0 })
        .collect();
    let v: Vec<f32> = (0..64).map(|n| n as f32).collect();
    let (dw, dv, y) = (d.up(&weights), d.up(&v), d.out(64));
    d.kernels
        .weighted_matmul(d.stream(), &dw, as_kv(&dv, &shape), as_q(&y, &shape), shape)
        .unwrap();
    let expected: Vec<f32> = (0..64)
        .map(|n| (n / 32 * 32 + (3 - n / 8 % 4) * 8 + n % 8) as f32)
        .collect();
    d.same(&y, &expected, &[1, 2, 4, 8]);
}

#[test]
fn the_output_may_have_heads_inside_of_tokens() {
    let d = device();
    let shape = AttentionShape::square(2, 3, 9, 20);
    let mut random = rng(2);
    let (weights, v) = (
        random.vec(shape.score_elements().unwrap()),
        random.vec(shape.kv_elements().unwrap()),
    );
    let (dw, dv, y) = (d.up(&weights), d.up(&v), d.out(shape.q_elements().unwrap()));
    let out = Operand::new(&y, Strides::tokens_first(3, 9, 20));
    d.kernels
        .weighted_matmul(d.stream(), &dw, as_kv(&dv, &shape), out, shape)
        .unwrap();
    let expected = reference::weighted_matmul(&widen(&weights), &v, shape);
    let narrow: Vec<f32> = expected.iter().map(|&v| v as f32).collect();
    let tokens_first = reference::swap_middle(&narrow, [2, 3, 9, 20]);
    d.close(&y, &widen(&tokens_first), &[2, 9, 3, 20], 1e-5);
}
