//! Every shape of mask, causal or not, flash or separate; queries that see nothing; weights.

use crate::support::Problem;
use rocmforge_attention::{Algorithm, AttentionConfig, Layout, MaskShape};
use rocmforge_kernels::Kernels;
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

const SHAPES: [MaskShape; 7] = [
    MaskShape::PerQuery,
    MaskShape::KeyPadding,
    MaskShape::PerSequence,
    MaskShape::Full,
    along(false, false, false),
    along(false, true, false),
    along(true, true, false),
];

const fn along(batch: bool, heads: bool, queries: bool) -> MaskShape {
    MaskShape::Along { batch, heads, queries }
}

#[test]
fn every_mask_shape_matches_the_definition() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(31);
    for mask in SHAPES {
        for causal in [false, true] {
            for separate in [false, true] {
                for [seq_q, seq_k] in [[1, 33], [33, 65], [40, 31]] {
                    let config = AttentionConfig::builder(4, 40)
                        .kv_heads(2)
                        .mask(mask)
                        .causal(causal)
                        .separate_kernels(separate)
                        .build()
                        .unwrap();
                    let problem = Problem::random(&mut rng, config, [2, seq_q, seq_k]);
                    let expected = if separate {
                        Algorithm::Separate
                    } else {
                        Algorithm::FlashMasked
                    };
                    assert_eq!(problem.plan.algorithm(), expected);
                    problem.assert_matches(&gpu, &kernels, 1e-5);
                }
            }
        }
    }
}

#[test]
fn padded_keys_change_nothing() {
    // Sequences of 5 and 12 tokens in one batch of 12 give what each gives alone.
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(32);
    let builder = AttentionConfig::builder(3, 32).layout(Layout::TokensFirst);
    let mut batch = Problem::random(
        &mut rng,
        builder.mask(MaskShape::KeyPadding).build().unwrap(),
        [2, 12, 12],
    );
    let lengths = [5, 12];
    let visible = |b: usize, j: usize| if j < lengths[b] { 0.0 } else { f32::NEG_INFINITY };
    batch.mask = Some((0..24).map(|n| visible(n / 12, n % 12)).collect());
    let together = batch.run(&gpu, &kernels);
    for (b, length) in lengths.into_iter().enumerate() {
        let mut alone = Problem::random(&mut rng, builder.build().unwrap(), [1, length, length]);
        for h in 0..3 {
            let (from, to) = ((b * 3 + h) * 12 * 32, h * length * 32);
            alone.q[to..][..length * 32].copy_from_slice(&batch.q[from..][..length * 32]);
            alone.k[to..][..length * 32].copy_from_slice(&batch.k[from..][..length * 32]);
            alone.v[to..][..length * 32].copy_from_slice(&batch.v[from..][..length * 32]);
        }
        let out = alone.run(&gpu, &kernels);
        for h in 0..3 {
            for n in 0..length * 32 {
                let (a, b) = (out[h * length * 32 + n], together[(b * 3 + h) * 12 * 32 + n]);
                assert!(
                    (a - b).abs() < 1e-6,
                    "head {h}, element {n}: {a} alone, {b} in the batch"
                );
            }
        }
    }
}

#[test]
fn a_query_that_sees_no_key_gives_zeros() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(33);
    for separate in [false, true] {
        // Everything hidden.
        let builder = AttentionConfig::builder(2, 40).separate_kernels(separate);
        let config = builder.mask(MaskShape::Full).build().unwrap();
        let mut all = Problem::random(&mut rng, config, [2, 5, 33]);
        all.mask.as_mut().unwrap().fill(f32::NEG_INFINITY);
        assert!(all.run(&gpu, &kernels).iter().all(|x| x.to_bits() == 0));
        // Some queries, between others that do see.
        let mut some = Problem::random(
            &mut rng,
            builder.mask(MaskShape::PerQuery).build().unwrap(),
            [2, 37, 33],
        );
        for row in [0, 15, 16, 36] {
            some.mask.as_mut().unwrap()[row * 33..][..33].fill(f32::NEG_INFINITY);
        }
        let out = some.run(&gpu, &kernels);
        some.assert_out(&out, &some.expected().out, 1e-5);
        for plane in 0..4 {
            for row in [0, 15, 16, 36] {
                let at = (plane * 37 + row) * 40;
                assert!(out[at..at + 40].iter().all(|x| *x == 0.0), "plane {plane}, query {row}");
            }
        }
        // More queries than keys: causality hides every key from the first ones.
        let early = Problem::random(&mut rng, builder.causal(true).build().unwrap(), [1, 40, 3]);
        let out = early.run(&gpu, &kernels);
        early.assert_out(&out, &early.expected().out, 1e-5);
        assert!(out[..37 * 40].iter().all(|x| *x == 0.0));
        assert!(out[37 * 40..].iter().take(40).any(|x| *x != 0.0));
    }
}

#[test]
fn a_large_finite_mask_hides_as_well() {
    // -1e9 and f32::MIN, the masks of many models.
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(34);
    for hidden in [-1e9, f32::MIN / 2.0] {
        for separate in [false, true] {
            let config = AttentionConfig::builder(2, 32)
                .mask(MaskShape::KeyPadding)
                .separate_kernels(separate)
                .build()
                .unwrap();
            let mut problem = Problem::random(&mut rng, config, [1, 9, 35]);
            let mask = problem.mask.as_mut().unwrap();
            for (j, m) in mask.iter_mut().enumerate() {
                *m = if j % 3 == 0 { hidden } else { 0.0 };
            }
            problem.assert_matches(&gpu, &kernels, 1e-5);
        }
    }
}

#[test]
fn the_weights_are_the_softmax() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(35);
    for mask in [MaskShape::None, MaskShape::KeyPadding, MaskShape::Full] {
        for causal in [false, true] {
            for layout in [Layout::HeadsFirst, Layout::TokensFirst] {
                let config = AttentionConfig::builder(4, 32)
                    .kv_heads(2)
                    .mask(mask)
                    .causal(causal)
                    .layout(layout)
                    .build()
                    .unwrap();
                let problem = Problem::random(&mut rng, config, [2, 31, 33]);
                let expected = problem.expected();
                let (out, weights) = problem.run_with_weights(&gpu, &kernels);
                problem.assert_weights(&weights, &expected, 1e-6);
                problem.assert_out(&out, &expected.out, 1e-5);
                for (n, row) in weights.chunks(33).enumerate() {
                    let sum: f64 = row.iter().map(|&w| f64::from(w)).sum();
                    assert!((sum - 1.0).abs() < 1e-5 || sum == 0.0, "row {n} sums to {sum}");
                }
            }
        }
    }
}
