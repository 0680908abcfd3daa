//! Flash attention under the names of the seeds: causal, not causal, against the separate kernels.

use crate::support::{Device, as_kv, as_q, as_scores, device, usual_scale};
use rocmforge_kernels::{AttentionShape, FlashOptions, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use std::time::Instant;

struct Inputs {
    q: Vec<f32>,
    k: Vec<f32>,
    v: Vec<f32>,
    device: [HipBuffer<f32>; 3],
}

fn inputs(d: &Device, shape: &AttentionShape) -> Inputs {
    let mut random = rng((shape.seq_q * 1000 + shape.head_dim) as u64);
    let q = random.vec(shape.q_elements().unwrap());
    let (k, v) = (
        random.vec(shape.kv_elements().unwrap()),
        random.vec(shape.kv_elements().unwrap()),
    );
    let device = [d.up(&q), d.up(&k), d.up(&v)];
    Inputs { q, k, v, device }
}

fn options(shape: &AttentionShape, causal: bool) -> FlashOptions<'static> {
    FlashOptions {
        scale: usual_scale(shape.head_dim),
        causal,
        mask: None,
    }
}

fn run(d: &Device, inputs: &Inputs, shape: &AttentionShape, causal: bool) -> Vec<f32> {
    let [q, k, v] = &inputs.device;
    let y = d.out(shape.q_elements().unwrap());
    let (q, k, v, out) = (as_q(q, shape), as_kv(k, shape), as_kv(v, shape), as_q(&y, shape));
    d.kernels
        .flash_attention(d.stream(), q, k, v, out, *shape, options(shape, causal))
        .unwrap();
    d.get(&y)
}

fn expected(inputs: &Inputs, shape: &AttentionShape, causal: bool) -> Vec<f64> {
    let hide = |_, _, i, j| match !causal || reference::causal_visible(i, j, shape.seq_q, shape.seq_k) {
        true => 0.0,
        false => f64::NEG_INFINITY,
    };
    let scale = usual_scale(shape.head_dim);
    reference::attention(&inputs.q, &inputs.k, &inputs.v, *shape, scale, hide)
}

fn case(shape: AttentionShape, causal: bool, limit: f64) {
    let d = device();
    let inputs = inputs(&d, &shape);
    let dims = [shape.batch, shape.heads, shape.seq_q, shape.head_dim];
    let actual = run(&d, &inputs, &shape, causal);
    assert_close(
        &actual,
        &expected(&inputs, &shape, causal),
        &dims,
        Tolerance::Absolute(limit),
    );
}

/// The same result from QK^T, softmax and the weighted sum as kernels of their own.
fn separate(d: &Device, inputs: &Inputs, shape: &AttentionShape, causal: bool) -> Vec<f32> {
    let [q, k, v] = &inputs.device;
    let (s, kernels) = (d.stream(), &d.kernels);
    let (scores, y) = (
        d.out(shape.score_elements().unwrap()),
        d.out(shape.q_elements().unwrap()),
    );
    let scale = usual_scale(shape.head_dim);
    kernels
        .qk_matmul(s, as_q(q, shape), as_kv(k, shape), &scores, *shape, scale)
        .unwrap();
    let planes = shape.batch * shape.heads;
    if causal {
        let dims = [planes, shape.seq_q, shape.seq_k];
        kernels.softmax_causal(s, &scores, &scores, dims, 1.0).unwrap();
    } else {
        kernels
            .softmax(s, &scores, &scores, planes * shape.seq_q, shape.seq_k, 1.0)
            .unwrap();
    }
    kernels
        .weighted_matmul(s, &scores, as_kv(v, shape), as_q(&y, shape), *shape)
        .unwrap();
    d.get(&y)
}

/// With V all ones, each output is the sum of its weights.
fn weights_sum_to_one(shape: AttentionShape, causal: bool) {
    let d = device();
    let mut inputs = inputs(&d, &shape);
    inputs.device[2] = d.up(&vec![1.0; shape.kv_elements().unwrap()]);
    for (n, value) in run(&d, &inputs, &shape, causal).into_iter().enumerate() {
        assert!((value - 1.0).abs() < 1e-5, "element {n} is {value}");
    }
}

#[test]
fn test_flash_nocausal_matches_cpu_small() {
    case(AttentionShape::square(1, 2, 4, 8), false, 1e-5);
}

#[test]
fn test_flash_nocausal_matches_cpu_16x16() {
    case(AttentionShape::square(1, 2, 16, 16), false, 1e-5);
}

#[test]
fn test_flash_nocausal_matches_cpu_32x32() {
    case(AttentionShape::square(2, 4, 32, 32), false, 1e-5);
}

#[test]
fn test_flash_nocausal_softmax_properties() {
    weights_sum_to_one(AttentionShape::square(1, 1, 8, 16), false);
}

#[test]
fn test_flash_nocausal_vs_separate_kernels() {
    let d = device();
    let shape = AttentionShape::square(1, 2, 8, 16);
    let inputs = inputs(&d, &shape);
    let (one, three) = (run(&d, &inputs, &shape, false), separate(&d, &inputs, &shape, false));
    assert_close(&one, &widen(&three), &[1, 2, 8, 16], Tolerance::Absolute(1e-5));
}

#[test]
fn test_flash_causal_matches_cpu_small() {
    case(AttentionShape::square(1, 2, 4, 8), true, 1e-5);
}

#[test]
fn test_flash_causal_matches_cpu_16x16() {
    case(AttentionShape::square(1, 2, 16, 16), true, 1e-5);
}

#[test]
fn test_flash_causal_first_position_matches_noncausal() {
    let d = device();
    let shape = AttentionShape::square(1, 1, 8, 16);
    let inputs = inputs(&d, &shape);
    let causal = run(&d, &inputs, &shape, true);
    assert_close(&causal[..16], &widen(&inputs.v[..16]), &[16], Tolerance::Absolute(1e-6));
    let all = run(&d, &inputs, &shape, false);
    assert_close(&causal[112..], &widen(&all[112..]), &[16], Tolerance::Absolute(1e-6));
}

#[test]
fn test_flash_causal_weights_sum_to_one() {
    weights_sum_to_one(AttentionShape::square(1, 1, 4, 8), true);
}

#[test]
fn test_flash_attention_matches_cpu_small_no_mask() {
    case(AttentionShape::square(1, 1, 4, 8), false, 1e-5);
}

#[test]
fn test_flash_attention_matches_cpu_seq_len_8() {
    case(AttentionShape::square(1, 2, 8, 8), false, 1e-5);
}

#[test]
fn test_flash_attention_matches_cpu_batch_2() {
    case(AttentionShape::square(2, 2, 4, 8), false, 1e-5);
}

#[test]
fn test_flash_attention_matches_cpu_with_causal_mask() {
    let d = device();
    let shape = AttentionShape::square(1, 2, 8, 8);
    let inputs = inputs(&d, &shape);
    let [q, k, v] = &inputs.device;
    let (mask, y) = (
        d.out(shape.score_elements().unwrap()),
        d.out(shape.q_elements().unwrap()),
    );
    d.kernels.causal_mask(d.stream(), &mask, 2, 8, 8).unwrap();
    let options = FlashOptions {
        mask: Some(as_scores(&mask, &shape)),
        ..options(&shape, false)
    };
    let (q, k, v, out) = (as_q(q, &shape), as_kv(k, &shape), as_kv(v, &shape), as_q(&y, &shape));
    d.kernels
        .flash_attention(d.stream(), q, k, v, out, shape, options)
        .unwrap();
    d.close(&y, &expected(&inputs, &shape, true), &[1, 2, 8, 8], 1e-5);
}

#[test]
fn test_flash_attention_softmax_properties() {
    weights_sum_to_one(AttentionShape::square(2, 2, 33, 40), false);
    weights_sum_to_one(AttentionShape::square(2, 2, 33, 40), true);
}

/// Both must agree. The times go to the test's output; in simulation they say nothing of a card.
#[test]
fn benchmark_flash_attention_vs_separate() {
    let d = device();
    let shape = AttentionShape::square(1, 4, 64, 32);
    let inputs = inputs(&d, &shape);
    let start = Instant::now();
    let one = run(&d, &inputs, &shape, true);
    let fused = start.elapsed();
    let start = Instant::now();
    let three = separate(&d, &inputs, &shape, true);
    let split = start.elapsed();
    assert_close(&one, &widen(&three), &[1, 4, 64, 32], Tolerance::Absolute(1e-5));
    #[allow(clippy::print_stdout)] // a benchmark reports
    {
        println!("flash attention {fused:?}, separate kernels {split:?}");
    }
}
