//! Scores: q k^T.

use crate::support::{as_kv, as_q, device, usual_scale};
use rocmforge_kernels::{AttentionShape, Operand, Strides, reference};
use rocmforge_testkit::data::rng;

fn case(shape: AttentionShape, scale: f32, limit: f64) {
    let d = device();
    let mut random = rng(shape.head_dim as u64);
    let (q, k) = (
        random.vec(shape.q_elements().unwrap()),
        random.vec(shape.kv_elements().unwrap()),
    );
    let (dq, dk, y) = (d.up(&q), d.up(&k), d.out(shape.score_elements().unwrap()));
    d.kernels
        .qk_matmul(d.stream(), as_q(&dq, &shape), as_kv(&dk, &shape), &y, shape, scale)
        .unwrap();
    let dims = [shape.batch, shape.heads, shape.seq_q, shape.seq_k];
    d.close(&y, &reference::qk_matmul(&q, &k, shape, scale), &dims, limit);
}

#[test]
fn test_qkt_matmul_matches_cpu_small() {
    case(AttentionShape::square(1, 2, 4, 8), usual_scale(8), 1e-5);
}

#[test]
fn test_qkt_matmul_matches_cpu_32x32() {
    case(AttentionShape::square(2, 4, 32, 32), usual_scale(32), 1e-5);
}

#[test]
fn test_qkt_matmul_explicit_layout_indexing() {
    let d = device();
    let shape = AttentionShape::square(1, 2, 4, 8);
    // q picks one dimension per query, k holds its own index: each score tells which element it came from.
    let mut q = vec![0.0; shape.q_elements().unwrap()];
    for h in 0..2 {
        for i in 0..4 {
            q[(h * 4 + i) * 8 + i] = 1.0;
        }
    }
    let k: Vec<f32> = (0..shape.kv_elements().unwrap()).map(|n| n as f32).collect();
    let (dq, dk, y) = (d.up(&q), d.up(&k), d.out(shape.score_elements().unwrap()));
    d.kernels
        .qk_matmul(d.stream(), as_q(&dq, &shape), as_kv(&dk, &shape), &y, shape, 1.0)
        .unwrap();
    let expected: Vec<f32> = (0..32).map(|n| ((n / 16 * 4 + n % 4) * 8 + n / 4 % 4) as f32).collect();
    d.same(&y, &expected, &[1, 2, 4, 4]);
}

#[test]
fn test_qkt_matmul_non_square_sequences() {
    case(
        AttentionShape::square(1, 2, 8, 16).with_seq_k(16),
        usual_scale(16),
        1e-5,
    );
    case(
        AttentionShape::square(1, 2, 70, 16).with_seq_k(3),
        usual_scale(16),
        1e-5,
    );
}

#[test]
fn query_heads_share_key_heads() {
    case(AttentionShape::square(2, 6, 5, 16).with_kv_heads(2), 1.0, 1e-5);
    case(AttentionShape::square(2, 4, 5, 16).with_kv_heads(1), 1.0, 1e-5);
}

#[test]
fn strides_reach_heads_inside_of_tokens() {
    let d = device();
    let shape = AttentionShape::square(2, 3, 9, 20);
    let mut random = rng(1);
    let (q, k) = (
        random.vec(shape.q_elements().unwrap()),
        random.vec(shape.kv_elements().unwrap()),
    );
    let (dq, dk, y) = (d.up(&q), d.up(&k), d.out(shape.score_elements().unwrap()));
    let strides = Strides::tokens_first(3, 9, 20);
    let (oq, ok) = (Operand::new(&dq, strides), Operand::new(&dk, strides));
    d.kernels.qk_matmul(d.stream(), oq, ok, &y, shape, 0.25).unwrap();
    let heads_first = |x: &[f32]| reference::swap_middle(x, [2, 9, 3, 20]);
    let expected = reference::qk_matmul(&heads_first(&q), &heads_first(&k), shape, 0.25);
    d.close(&y, &expected, &[2, 3, 9, 9], 1e-5);
}
