//! Attention as a model uses it: one token, prompts, causal decoding, hard numbers, and its cost.

use crate::support::Problem;
use rocmforge_attention::{Algorithm, Attention, AttentionConfig};
use rocmforge_kernels::Kernels;
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::{GpuTest, On, gpu};

/// A test that looks at what only the simulator counts.
fn counting() -> GpuTest {
    GpuTest::new().only(On::Simulated, "it counts instructions")
}

fn mha(heads: usize, head_dim: usize) -> AttentionConfig {
    AttentionConfig::builder(heads, head_dim).build().unwrap()
}

fn causal(heads: usize, head_dim: usize) -> AttentionConfig {
    AttentionConfig::builder(heads, head_dim).causal(true).build().unwrap()
}

#[test]
fn test_gpu_attention_single_token() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(11);
    // One token that sees only itself: the output is its value.
    let alone = Problem::random(&mut rng, causal(4, 64), [2, 1, 1]);
    let out = alone.run(&gpu, &kernels);
    alone.assert_out(&out, &widen(&alone.v), 1e-6);
    // One token after 32 others.
    Problem::random(&mut rng, causal(4, 64), [2, 1, 33]).assert_matches(&gpu, &kernels, 1e-5);
}

#[test]
fn test_gpu_attention_multi_token() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(12);
    for seq in [2, 8, 17, 64] {
        Problem::random(&mut rng, mha(4, 64), [2, seq, seq]).assert_matches(&gpu, &kernels, 1e-5);
    }
}

#[test]
fn test_gpu_attention_causal_mask() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(13);
    let problem = Problem::random(&mut rng, causal(2, 32), [1, 40, 40]);
    let before = problem.run(&gpu, &kernels);
    problem.assert_out(&before, &problem.expected().out, 1e-5);
    // Nothing that a query does not see may reach it, however large.
    let mut poisoned = problem.clone();
    for plane in 0..2 {
        for token in 32..40 {
            let at = (plane * 40 + token) * 32;
            poisoned.k[at..at + 32].fill(1e30);
            poisoned.v[at..at + 32].fill(1e30);
        }
    }
    let after = poisoned.run(&gpu, &kernels);
    for plane in 0..2 {
        let seen = plane * 40 * 32..(plane * 40 + 32) * 32;
        let bits = |x: &[f32]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&before[seen.clone()]), bits(&after[seen]));
    }
    // The first query sees one key: its output is that value.
    for plane in 0..2 {
        let first = plane * 40 * 32;
        for d in 0..32 {
            assert!((before[first + d] - problem.v[first + d]).abs() < 1e-6);
        }
    }
}

#[test]
fn test_gpu_attention_varying_lengths() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(14);
    for [seq_q, seq_k] in [[1, 5], [3, 129], [33, 64], [65, 31], [128, 7], [5, 1]] {
        Problem::random(&mut rng, mha(2, 64), [2, seq_q, seq_k]).assert_matches(&gpu, &kernels, 1e-5);
        Problem::random(&mut rng, causal(2, 64), [2, seq_q, seq_k]).assert_matches(&gpu, &kernels, 1e-5);
    }
}

#[test]
fn test_gpu_attention_numerical_stability() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(15);
    // Scores up to +-1e4: e^score overflows unless the row's maximum is taken off first. They are multiples of 2 that f32 and the
    // device's order of additions give exactly, so what is left is the rounding of score * log2(e), 2^-11 at 1.4e4, once for the
    // score and once for the maximum: 7e-4 of a weight.
    for separate in [false, true] {
        let config = AttentionConfig::builder(2, 16)
            .scale(1.0)
            .separate_kernels(separate)
            .build()
            .unwrap();
        let mut problem = Problem::random(&mut rng, config, [1, 33, 65]);
        for x in &mut problem.q {
            *x = (*x * 25.0).round();
        }
        for x in &mut problem.k {
            *x = (*x * 12.0).round() * 2.0;
        }
        // Rows in reach of the limit, in both directions.
        problem.q[..16].fill(25.0);
        for (d, k) in problem.k[..48].iter_mut().enumerate() {
            *k = [25.0, -25.0, 24.0][d / 16];
        }
        let expected = problem.expected();
        let out = problem.run(&gpu, &kernels);
        assert!(out.iter().all(|x| x.is_finite()));
        problem.assert_out(&out, &expected.out, 1e-3);
    }
    // And nearly equal scores far from 0: the maximum must not swallow their difference.
    for offset in [1e4f32, -1e4] {
        let mut problem = Problem::random(&mut rng, mha(1, 4), [1, 1, 8]);
        problem.q.copy_from_slice(&[2.0, 0.0, 0.0, 0.0]);
        for (j, k) in problem.k.chunks_mut(4).enumerate() {
            k[0] = offset + j as f32 / 8.0;
        }
        problem.assert_matches(&gpu, &kernels, 1e-3);
    }
}

/// No stopwatch, which would measure the machine the simulator runs on: the work is bounded by counted launches and wave
/// instructions, which are the same on every machine.
#[test]
fn test_gpu_attention_performance_baseline() {
    counting().run(|gpu, _| {
        let (sim, kernels) = (gpu.sim().expect("a simulated device"), gpu.kernels());
        let count = |config: AttentionConfig, shape| {
            let before = sim.counters();
            let problem = Problem::random(&mut rng(16), config, shape);
            problem.run(gpu, kernels);
            let after = sim.counters();
            (
                after.launches - before.launches,
                after.instructions - before.instructions,
            )
        };
        let (launches, instructions) = count(mha(4, 64), [1, 128, 128]);
        assert_eq!(launches, 1);
        // Two products of 4 heads x 128 queries x 128 keys x 64 elements, 32 lanes at a time.
        let products = 2 * 4 * 128 * 128 * 64 / 32;
        assert!(
            instructions < 4 * products,
            "{instructions} instructions for {products} wave multiply-adds"
        );
        // Twice the keys: not more than twice the work. Causality: tiles wholly hidden cost nothing.
        let (_, doubled) = count(mha(4, 64), [1, 128, 256]);
        assert!(doubled < instructions * 21 / 10, "{instructions}, then {doubled}");
        let (_, hidden) = count(causal(4, 64), [1, 128, 128]);
        assert!(hidden < instructions * 3 / 4, "{instructions}, causal {hidden}");
    });
}

/// What the choice of [`Algorithm`] rests on.
#[test]
fn flash_executes_less_than_separate_kernels() {
    counting().run(|gpu, _| {
        let (sim, kernels) = (gpu.sim().expect("a simulated device"), gpu.kernels());
        for head_dim in [64, 128, 256] {
            for [seq_q, seq_k] in [[1, 1], [1, 33], [1, 512], [16, 16], [64, 64], [128, 128], [65, 300]] {
                let mut counts = [0; 2];
                for (count, separate) in counts.iter_mut().zip([false, true]) {
                    let config = AttentionConfig::builder(2, head_dim)
                        .separate_kernels(separate)
                        .build()
                        .unwrap();
                    let problem = Problem::random(&mut rng(17), config, [1, seq_q, seq_k]);
                    let attention = Attention::new(kernels, problem.plan).unwrap();
                    let used = attention.plan().algorithm();
                    assert_eq!(
                        used,
                        if separate {
                            Algorithm::Separate
                        } else {
                            Algorithm::Flash
                        }
                    );
                    let on = problem.upload(gpu);
                    gpu.backend().synchronize().unwrap();
                    let before = sim.counters().instructions;
                    attention
                        .forward(gpu.backend().stream(), &on.q, &on.k, &on.v, None, &on.out)
                        .unwrap();
                    gpu.backend().synchronize().unwrap();
                    *count = sim.counters().instructions - before;
                }
                // Up to 128 flash attention wins everywhere. Its tile of 16 queries at 256 reads keys twice as often as a matrix
                // product does: for many queries it pays up to a quarter more, and still stores no scores.
                let [flash, separate] = counts;
                let limit = if head_dim <= 128 { separate } else { separate * 5 / 4 };
                assert!(flash <= limit, "head_dim {head_dim}, {seq_q} x {seq_k}: {counts:?}");
            }
        }
    });
}

#[test]
fn test_gpu_cpu_consistency() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(18);
    for (heads, kv_heads, head_dim) in [(4, 4, 32), (8, 2, 64), (4, 1, 80)] {
        for causal in [false, true] {
            let config = AttentionConfig::builder(heads, head_dim)
                .kv_heads(kv_heads)
                .causal(causal)
                .build()
                .unwrap();
            let problem = Problem::random(&mut rng, config, [2, 19, 37]);
            let expected = problem.expected();
            let first = problem.run(&gpu, &kernels);
            problem.assert_out(&first, &expected.out, 1e-5);
            // The same bits every time.
            let second = problem.run(&gpu, &kernels);
            assert!(first.iter().zip(&second).all(|(a, b)| a.to_bits() == b.to_bits()));
        }
    }
}
