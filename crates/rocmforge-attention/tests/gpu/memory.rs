//! Scratch memory: its size is known beforehand, it is taken once, refused when over budget, and shared by streams.

use crate::support::Problem;
use rocmforge_attention::{Attention, AttentionConfig, AttentionError};
use rocmforge_kernels::Kernels;
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::{LeaseOptions, gpu, gpu_with};

fn separate(heads: usize, head_dim: usize) -> AttentionConfig {
    AttentionConfig::builder(heads, head_dim)
        .separate_kernels(true)
        .build()
        .unwrap()
}

#[test]
fn scratch_is_what_the_plan_tells() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let held = || gpu.backend().card().budget().committed;
    let before = held();
    let flash = AttentionConfig::builder(4, 64)
        .build()
        .unwrap()
        .plan(2, 32, 64)
        .unwrap();
    let attention = Attention::new(&kernels, flash).unwrap();
    assert_eq!((held(), flash.scratch_bytes()), (before, Bytes(0)));
    drop(attention);

    let plan = separate(4, 64).plan(2, 32, 64).unwrap();
    assert_eq!(plan.scratch_bytes(), Bytes(2 * 4 * 32 * 64 * 4));
    let attention = Attention::new(&kernels, plan).unwrap();
    assert_eq!(held(), before.saturating_add(plan.scratch_bytes()));
    drop(attention);
    gpu.backend().synchronize().unwrap();
    assert_eq!(held(), before);
}

#[test]
fn scratch_over_budget_is_refused_before_it_is_taken() {
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes::mib(1)),
        ..LeaseOptions::default()
    });
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let plan = separate(8, 16).plan(1, 512, 512).unwrap();
    assert_eq!(plan.scratch_bytes(), Bytes::mib(8));
    let error = Attention::new(&kernels, plan).unwrap_err();
    match &error {
        AttentionError::Scratch { bytes, shape, source } => {
            assert_eq!((*bytes, *shape), (Bytes::mib(8), [1, 8, 512, 512]));
            assert!(source.is_out_of_memory(), "{source:?}");
        }
        other => panic!("{other:?}"),
    }
    assert!(error.to_string().contains("[1, 8, 512, 512]"), "{error}");
    // Flash attention of the same shape needs none, and runs.
    let config = AttentionConfig::builder(2, 16).build().unwrap();
    Problem::random(&mut rng(41), config, [1, 40, 40]).assert_matches(&gpu, &kernels, 1e-5);
}

#[test]
fn streams_share_scratch_one_after_the_other() {
    let gpu = gpu();
    let backend = gpu.backend();
    let kernels = Kernels::load(backend).unwrap();
    let mut rng = rng(42);
    let problems: Vec<_> = (0..4)
        .map(|_| Problem::random(&mut rng, separate(2, 32), [1, 33, 65]))
        .collect();
    let attention = Attention::new(&kernels, problems[0].plan).unwrap();
    let on: Vec<_> = problems.iter().map(|problem| problem.upload(&gpu)).collect();
    std::thread::scope(|scope| {
        for on in &on {
            let attention = &attention;
            scope.spawn(move || {
                let stream = backend.create_stream("worker").unwrap();
                attention.forward(&stream, &on.q, &on.k, &on.v, None, &on.out).unwrap();
                stream.synchronize().unwrap();
            });
        }
    });
    for (problem, on) in problems.iter().zip(&on) {
        let out = problem.download(&gpu, &on.out);
        problem.assert_out(&out, &problem.expected().out, 1e-5);
    }
}

#[test]
fn operands_may_be_views_of_one_buffer() {
    // Fused projections: q, k and v one behind the other in the same allocation, at offsets that are odd multiples of 4 bytes.
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let config = AttentionConfig::builder(1, 33).causal(true).build().unwrap();
    let problem = Problem::random(&mut rng(43), config, [1, 31, 31]);
    let n = problem.plan.q_elements();
    assert_eq!(n, problem.plan.kv_elements());
    let mut all = vec![7.0; 1];
    for part in [&problem.q, &problem.k, &problem.v, &problem.q] {
        all.extend(part.iter());
    }
    all.push(7.0);
    let buffer = rocmforge_runtime::HipBuffer::from_slice(stream, &all, "qkv and out").unwrap();
    let part = |i: usize| buffer.view(1 + i * n..1 + (i + 1) * n).unwrap();
    let attention = Attention::new(&kernels, problem.plan).unwrap();
    attention
        .forward(stream, &part(0), &part(1), &part(2), None, &part(3))
        .unwrap();
    let after = buffer.to_vec(stream).unwrap();
    problem.assert_out(&after[1 + 3 * n..1 + 4 * n], &problem.expected().out, 1e-5);
    assert_eq!(widen(&after[..1 + 3 * n]), widen(&all[..1 + 3 * n]));
    assert_eq!(after[1 + 4 * n], 7.0);
}
