//! Causal masks: the mask itself, and its application to scores.

use crate::support::{SIZES, device};
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;
use std::time::{Duration, Instant};

fn mask_case(planes: usize, seq_q: usize, seq_k: usize) -> Vec<f32> {
    let d = device();
    let y = d.out(planes * seq_q * seq_k);
    d.kernels.causal_mask(d.stream(), &y, planes, seq_q, seq_k).unwrap();
    d.close(
        &y,
        &reference::causal_mask(planes, seq_q, seq_k),
        &[planes, seq_q, seq_k],
        1e-5,
    );
    d.get(&y)
}

#[test]
fn test_causal_mask_matches_cpu_small_square() {
    mask_case(1, 4, 4);
}

#[test]
fn test_causal_mask_multi_head_batch() {
    mask_case(2 * 3, 8, 8);
}

#[test]
fn test_causal_mask_preserves_valid_positions() {
    let d = device();
    let (planes, seq) = (4, 9);
    let scores = rng(1).vec(planes * seq * seq);
    let (x, y) = (d.up(&scores), d.out(scores.len()));
    let shape = [planes, seq, seq];
    d.kernels
        .diag_mask(d.stream(), &x, &y, shape, 0, f32::NEG_INFINITY)
        .unwrap();
    let y = d.get(&y);
    for (n, (before, after)) in scores.iter().zip(y).enumerate() {
        let (i, j) = (n / seq % seq, n % seq);
        let expected = if j <= i { *before } else { f32::NEG_INFINITY };
        assert_eq!(after.to_bits(), expected.to_bits(), "query {i}, key {j}");
    }
}

#[test]
fn test_causal_mask_explicit_layout() {
    let inf = f32::NEG_INFINITY;
    let expected = [0.0, inf, inf, 0.0, 0.0, inf, 0.0, 0.0, 0.0];
    assert_eq!(mask_case(2, 3, 3), [expected, expected].concat());
}

#[test]
fn test_gpu_causal_mask_matches_cpu() {
    for seq in SIZES {
        mask_case(2, seq, seq);
    }
}

#[test]
fn test_gpu_causal_mask_batch_dimension() {
    let mask = mask_case(3, 5, 5);
    assert_eq!(mask[..25], mask[25..50]);
    assert_eq!(mask[..25], mask[50..]);
}

/// 2048 queries, 32 heads, batch 4 below one second on a card. The simulator gets a sixteenth and no stopwatch.
#[test]
fn test_gpu_causal_mask_large_sequence() {
    let d = device();
    let simulated = d.lease().sim().is_some();
    let (planes, seq) = (if simulated { 8 } else { 128 }, 2048);
    let y = d.out(planes * seq * seq);
    d.stream().synchronize().unwrap();
    let start = Instant::now();
    d.kernels.causal_mask(d.stream(), &y, planes, seq, seq).unwrap();
    d.stream().synchronize().unwrap();
    let took = start.elapsed();
    if !simulated {
        assert!(took < Duration::from_secs(1), "took {took:?}");
    }
    let mask = d.get(&y);
    for (row, values) in mask.chunks(seq).enumerate() {
        let i = row % seq;
        let right =
            values[..=i].iter().all(|v| v.to_bits() == 0) && values[i + 1..].iter().all(|v| *v == f32::NEG_INFINITY);
        assert!(right, "row {row}");
    }
}

#[test]
fn test_gpu_causal_mask_lower_triangle_preserved() {
    let d = device();
    let (planes, seq) = (2, 65);
    let scores = rng(2).vec(planes * seq * seq);
    let x = d.up(&scores);
    let shape = [planes, seq, seq];
    d.kernels
        .diag_mask(d.stream(), &x, &x, shape, 0, f32::NEG_INFINITY)
        .unwrap();
    let y = d.get(&x);
    for n in (0..y.len()).filter(|n| n % seq <= n / seq % seq) {
        assert_eq!(y[n].to_bits(), scores[n].to_bits(), "element {n}");
    }
}

#[test]
fn test_gpu_causal_mask_multiple_heads() {
    mask_case(8, 16, 16);
}

#[test]
fn test_gpu_causal_mask_single_element() {
    assert_eq!(mask_case(1, 1, 1), [0.0]);
}

#[test]
fn test_gpu_causal_mask_upper_triangle() {
    let seq = 33;
    let mask = mask_case(1, seq, seq);
    let above = |n: &usize| n % seq > n / seq;
    assert!((0..mask.len()).filter(above).all(|n| mask[n] == f32::NEG_INFINITY));
}
