//! Odd lengths, every compiled head_dim and those between, heads sharing keys, both layouts, both algorithms.

use crate::support::Problem;
use rocmforge_attention::{Algorithm, AttentionConfig, Layout};
use rocmforge_kernels::Kernels;
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::gpu;

/// Every length around the wave and tile sizes, as queries and as keys.
const LENGTHS: [[usize; 2]; 11] = [
    [1, 1],
    [1, 129],
    [31, 33],
    [32, 32],
    [33, 31],
    [63, 64],
    [64, 65],
    [65, 63],
    [127, 128],
    [128, 127],
    [129, 1],
];

fn lengths_at(head_dim: usize) {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(head_dim as u64);
    for (n, [seq_q, seq_k]) in LENGTHS.into_iter().enumerate() {
        let causal = n % 2 == 0;
        let layout = if n % 3 == 0 {
            Layout::TokensFirst
        } else {
            Layout::HeadsFirst
        };
        let config = AttentionConfig::builder(2, head_dim)
            .kv_heads(1)
            .causal(causal)
            .layout(layout)
            .build()
            .unwrap();
        let problem = Problem::random(&mut rng, config, [1, seq_q, seq_k]);
        problem.assert_matches(&gpu, &kernels, 1e-5);
    }
}

#[test]
fn head_dim_40() {
    lengths_at(40);
}

#[test]
fn head_dim_64() {
    lengths_at(64);
}

#[test]
fn head_dim_80() {
    lengths_at(80);
}

#[test]
fn head_dim_96() {
    lengths_at(96);
}

#[test]
fn head_dim_128() {
    lengths_at(128);
}

#[test]
fn head_dim_256() {
    lengths_at(256);
}

#[test]
fn head_dims_that_fit_no_tile() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(21);
    for head_dim in [1, 2, 3, 31, 33, 65, 127, 129, 255] {
        for separate in [false, true] {
            let config = AttentionConfig::builder(2, head_dim)
                .separate_kernels(separate)
                .build()
                .unwrap();
            Problem::random(&mut rng, config, [1, 5, 35]).assert_matches(&gpu, &kernels, 1e-5);
        }
    }
}

#[test]
fn head_dim_over_256_goes_to_separate_kernels() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(22);
    for head_dim in [257, 320, 512] {
        let config = AttentionConfig::builder(2, head_dim)
            .kv_heads(1)
            .causal(true)
            .build()
            .unwrap();
        let problem = Problem::random(&mut rng, config, [2, 9, 33]);
        assert_eq!(problem.plan.algorithm(), Algorithm::Separate);
        problem.assert_matches(&gpu, &kernels, 1e-5);
    }
}

#[test]
fn heads_share_keys_and_values() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(23);
    for (heads, kv_heads) in [(1, 1), (6, 1), (6, 2), (6, 3), (6, 6), (8, 4)] {
        for layout in [Layout::HeadsFirst, Layout::TokensFirst] {
            for separate in [false, true] {
                let config = AttentionConfig::builder(heads, 24)
                    .kv_heads(kv_heads)
                    .layout(layout)
                    .separate_kernels(separate)
                    .build()
                    .unwrap();
                Problem::random(&mut rng, config, [2, 7, 33]).assert_matches(&gpu, &kernels, 1e-5);
            }
        }
    }
}

#[test]
fn flash_and_separate_kernels_agree() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(24);
    for causal in [false, true] {
        for [seq_q, seq_k] in [[1, 64], [33, 33], [65, 129], [129, 65]] {
            let builder = AttentionConfig::builder(4, 64).kv_heads(2).causal(causal);
            let flash = Problem::random(&mut rng, builder.build().unwrap(), [2, seq_q, seq_k]);
            let separate = flash.with(builder.separate_kernels(true).build().unwrap());
            assert_eq!(separate.plan.algorithm(), Algorithm::Separate);
            assert_ne!(flash.plan.algorithm(), Algorithm::Separate);
            let out = flash.run(&gpu, &kernels);
            flash.assert_out(&out, &widen(&separate.run(&gpu, &kernels)), 1e-5);
        }
    }
}

#[test]
fn rows_longer_than_a_block_of_softmax() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(25);
    for (causal, separate) in [(false, false), (true, false), (false, true), (true, true)] {
        let config = AttentionConfig::builder(1, 16)
            .causal(causal)
            .separate_kernels(separate)
            .build()
            .unwrap();
        Problem::random(&mut rng, config, [1, 3, 1100]).assert_matches(&gpu, &kernels, 1e-5);
    }
}

#[test]
fn the_scale_is_used() {
    let gpu = gpu();
    let kernels = Kernels::load(gpu.backend()).unwrap();
    let mut rng = rng(26);
    for scale in [0.0, 1.0, -0.5, 3.0] {
        for separate in [false, true] {
            let config = AttentionConfig::builder(2, 32)
                .scale(scale)
                .separate_kernels(separate)
                .build()
                .unwrap();
            Problem::random(&mut rng, config, [1, 8, 33]).assert_matches(&gpu, &kernels, 1e-5);
        }
    }
}
