//! Replication of K and V heads.

use crate::support::device;
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

fn case(tokens: usize, heads: usize, kv_heads: usize, head_dim: usize) {
    let d = device();
    let x = rng((tokens + head_dim) as u64).vec(tokens * kv_heads * head_dim);
    let (input, y) = (d.up(&x), d.out(tokens * heads * head_dim));
    d.kernels
        .kv_replicate(d.stream(), &input, &y, tokens, [heads, kv_heads], head_dim)
        .unwrap();
    d.same(
        &y,
        &reference::kv_replicate(&x, [heads, kv_heads], head_dim),
        &[tokens, heads, head_dim],
    );
}

#[test]
fn test_kv_replication_mqa() {
    case(16, 32, 1, 128);
}

#[test]
fn test_kv_replication_gqa() {
    case(16, 32, 8, 128);
}

#[test]
fn test_kv_replication_correctness() {
    let d = device();
    let x: Vec<f32> = (0..4 * 2 * 64).map(|n| n as f32).collect();
    let (input, y) = (d.up(&x), d.out(4 * 8 * 64));
    d.kernels.kv_replicate(d.stream(), &input, &y, 4, [8, 2], 64).unwrap();
    let y = d.get(&y);
    for (n, value) in y.iter().enumerate() {
        let (token, head, column) = (n / 512, n / 64 % 8, n % 64);
        assert_eq!(
            *value,
            ((token * 2 + head / 4) * 64 + column) as f32,
            "token {token}, head {head}, column {column}"
        );
    }
}

#[test]
fn test_kv_replication_edge_cases() {
    case(1, 4, 2, 32);
    case(2048, 4, 2, 32);
    case(3, 5, 5, 33);
    case(2, 2, 1, 1);
    case(1, 2, 1, 1030);
}
