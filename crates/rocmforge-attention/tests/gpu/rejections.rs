//! Refusals: wrong operands are an error before anything is enqueued.

use crate::support::Problem;
use rocmforge_attention::{Attention, AttentionConfig, AttentionError, AttentionResult, MaskShape};
use rocmforge_kernels::{KernelError, Kernels};
use rocmforge_runtime::{Elems, HipBuffer};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

#[track_caller]
fn assert_length(result: AttentionResult<()>, name: &str, has: usize, needs: usize) {
    match result {
        Err(AttentionError::Kernel(KernelError::Length {
            operand,
            got,
            expected,
            shape,
            ..
        })) => {
            assert_eq!((operand, got, expected), (name, has, needs));
            assert_eq!(shape.iter().product::<usize>(), expected);
        }
        other => panic!("{name}: {other:?}"),
    }
}

#[test]
fn wrong_lengths_are_named_with_their_figures() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    for separate in [false, true] {
        let config = AttentionConfig::builder(4, 8)
            .kv_heads(2)
            .mask(MaskShape::KeyPadding)
            .separate_kernels(separate)
            .build()
            .unwrap();
        let problem = Problem::random(&mut rng(51), config, [2, 3, 5]);
        let (q, kv) = (2 * 4 * 3 * 8, 2 * 2 * 5 * 8);
        let attention = Attention::new(&kernels, problem.plan).unwrap();
        let on = problem.upload(&gpu);
        let launches = gpu.sim().map(|sim| sim.launches());
        let short = |n| HipBuffer::zeroed(stream, Elems(n), "short").unwrap();
        let mask = on.mask.as_ref();
        let forward = |q: &_, k: &_, v: &_, mask, out: &_| attention.forward(stream, q, k, v, mask, out);
        assert_length(forward(&short(q - 1), &on.k, &on.v, mask, &on.out), "q", q - 1, q);
        assert_length(forward(&on.q, &short(kv + 1), &on.v, mask, &on.out), "k", kv + 1, kv);
        // The size of all query heads, where k and v have fewer.
        assert_length(forward(&on.q, &on.k, &short(2 * kv), mask, &on.out), "v", 2 * kv, kv);
        assert_length(forward(&on.q, &on.k, &on.v, mask, &short(1)), "out", 1, q);
        assert_length(forward(&on.q, &on.k, &on.v, Some(&short(9)), &on.out), "mask", 9, 10);
        let weights = 2 * 4 * 3 * 5;
        let result = attention.forward_with_weights(stream, &on.q, &on.k, &on.v, mask, &short(weights - 1), &on.out);
        assert_length(result, "weights", weights - 1, weights);
        gpu.backend().synchronize().unwrap();
        assert_eq!(gpu.sim().map(|sim| sim.launches()), launches);
        let untouched = on.out.to_vec(stream).unwrap();
        assert!(untouched.iter().all(|x| x.is_nan()));
    }
}

#[test]
fn a_mask_is_given_exactly_when_configured() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(52);
    let builder = AttentionConfig::builder(2, 8);
    let masked = Problem::random(&mut rng, builder.mask(MaskShape::PerQuery).build().unwrap(), [1, 3, 5]);
    let on = masked.upload(&gpu);
    let attention = Attention::new(&kernels, masked.plan).unwrap();
    let error = attention
        .forward(stream, &on.q, &on.k, &on.v, None, &on.out)
        .unwrap_err();
    assert!(
        matches!(error, AttentionError::MaskMissing { shape: [1, 1, 3, 5] }),
        "{error:?}"
    );
    let attention = Attention::new(&kernels, builder.build().unwrap().plan(1, 3, 5).unwrap()).unwrap();
    let error = attention
        .forward(stream, &on.q, &on.k, &on.v, on.mask.as_ref(), &on.out)
        .unwrap_err();
    assert!(
        matches!(error, AttentionError::MaskUnexpected { elements: 15 }),
        "{error:?}"
    );
}

#[test]
fn outputs_overlap_nothing() {
    let gpu = gpu();
    let stream = gpu.backend().stream();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    for separate in [false, true] {
        let config = AttentionConfig::builder(2, 8)
            .mask(MaskShape::Full)
            .separate_kernels(separate)
            .build()
            .unwrap();
        // As many keys as elements of a head: the mask and the weights are as large as q.
        let problem = Problem::random(&mut rng(53), config, [1, 8, 8]);
        let attention = Attention::new(&kernels, problem.plan).unwrap();
        let on = problem.upload(&gpu);
        let mask = on.mask.as_ref().unwrap();
        for (name, out) in [("q", &on.q), ("k", &on.k), ("v", &on.v), ("mask", mask)] {
            let error = attention
                .forward(stream, &on.q, &on.k, &on.v, Some(mask), out)
                .unwrap_err();
            match error {
                AttentionError::Kernel(KernelError::Overlap {
                    first: "out", second, ..
                }) => assert_eq!(second, name),
                other => panic!("{name}: {other:?}"),
            }
            let error = attention
                .forward_with_weights(stream, &on.q, &on.k, &on.v, Some(mask), out, &on.out)
                .unwrap_err();
            match error {
                AttentionError::Kernel(KernelError::Overlap {
                    first: "weights",
                    second,
                    ..
                }) => assert_eq!(second, name),
                other => panic!("{name}: {other:?}"),
            }
        }
        let error = attention
            .forward_with_weights(stream, &on.q, &on.k, &on.v, Some(mask), &on.out, &on.out)
            .unwrap_err();
        assert!(
            matches!(
                error,
                AttentionError::Kernel(KernelError::Overlap {
                    first: "out",
                    second: "weights",
                    ..
                })
            ),
            "{error:?}"
        );
        // Neighbours that touch without sharing a byte are fine; one element of overlap is not.
        let n = problem.plan.q_elements();
        let both = HipBuffer::zeroed(stream, Elems(2 * n), "q and out").unwrap();
        let (low, high) = (both.view(0..n).unwrap(), both.view(n..2 * n).unwrap());
        attention
            .forward(stream, &low, &on.k, &on.v, Some(mask), &high)
            .unwrap();
        let shifted = both.view(n - 1..2 * n - 1).unwrap();
        let error = attention
            .forward(stream, &low, &on.k, &on.v, Some(mask), &shifted)
            .unwrap_err();
        assert!(
            matches!(
                error,
                AttentionError::Kernel(KernelError::Overlap {
                    first: "out",
                    second: "q",
                    ..
                })
            ),
            "{error:?}"
        );
    }
}
