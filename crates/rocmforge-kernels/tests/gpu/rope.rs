//! Rotary position embedding.

use crate::support::{Device, device, refused};
use rocmforge_kernels::{RopePairs, RopeShape, reference};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

fn run(d: &Device, pairs: RopePairs, x: &[f32], positions: usize, shape: RopeShape) -> (Vec<f32>, Vec<f64>) {
    let (cos, sin) = reference::rope_tables(positions, shape.rotary_dim, 10_000.0);
    let (input, y) = (d.up(x), d.out(x.len()));
    let (c, s) = (d.up(&cos), d.up(&sin));
    d.kernels.rope(d.stream(), pairs, &input, [&c, &s], &y, shape).unwrap();
    (d.get(&y), reference::rope(pairs, x, &cos, &sin, shape))
}

fn rope_case(seq: usize, heads: usize, head_dim: usize, start: usize) {
    let d = device();
    let x = rng((seq * heads * head_dim) as u64).vec(seq * heads * head_dim);
    let shape = RopeShape {
        start,
        ..RopeShape::sequence(seq, heads, head_dim)
    };
    for pairs in [RopePairs::Half, RopePairs::Interleaved] {
        let (actual, expected) = run(&d, pairs, &x, start + seq, shape);
        let dims = [seq, heads, head_dim];
        assert_close(&actual, &expected, &dims, Tolerance::Absolute(1e-6));
        assert_close(&actual, &expected, &dims, Tolerance::Relative(1e-3));
    }
}

#[test]
fn test_rope_gpu_matches_cpu_small() {
    rope_case(2, 1, 8, 0);
}

#[test]
fn test_rope_gpu_matches_cpu_multi_head() {
    rope_case(4, 8, 8, 0);
}

#[test]
fn test_rope_gpu_different_positions() {
    let d = device();
    let x: Vec<f32> = [1.0, 0.5, -0.5, 2.0].repeat(3);
    let (y, _) = run(&d, RopePairs::Half, &x, 3, RopeShape::sequence(3, 1, 4));
    assert_eq!(y[..4], x[..4], "position 0 turns nothing");
    assert_ne!(y[4..8], y[8..], "other positions turn differently");
}

#[test]
fn test_rope_gpu_actually_rotates() {
    let d = device();
    let x = rng(3).vec(2 * 64);
    let (y, _) = run(&d, RopePairs::Half, &x, 2, RopeShape::sequence(2, 1, 64));
    assert_ne!(y[64..], x[64..]);
    let norm = |v: &[f32]| v.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
    assert!(
        (norm(&y[64..]) - norm(&x[64..])).abs() < 1e-5,
        "a rotation keeps lengths"
    );
}

#[test]
fn test_rope_gpu_seq_len_8() {
    rope_case(8, 2, 16, 0);
}

#[test]
fn test_rope_gpu_long_context_positions() {
    for start in [2047, 4096, 131_071] {
        rope_case(2, 2, 8, start);
    }
}

#[test]
fn test_rope_gpu_multi_head_independent_rotation() {
    let d = device();
    let head = rng(5).vec(16);
    let other = rng(6).vec(16);
    let shape = RopeShape {
        start: 7,
        ..RopeShape::sequence(1, 2, 16)
    };
    let (both, _) = run(&d, RopePairs::Half, &[head.clone(), other].concat(), 8, shape);
    let (alone, _) = run(&d, RopePairs::Half, &head, 8, RopeShape { heads: 1, ..shape });
    assert_eq!(both[..16], alone[..]);
}

#[test]
fn a_batch_shares_the_table_and_partial_rotation_copies_the_rest() {
    let d = device();
    let shape = RopeShape {
        tokens: 10,
        seq: 5,
        heads: 3,
        head_dim: 40,
        rotary_dim: 24,
        start: 2,
    };
    let x = rng(8).vec(10 * 3 * 40);
    for pairs in [RopePairs::Half, RopePairs::Interleaved] {
        let (actual, expected) = run(&d, pairs, &x, 7, shape);
        assert_close(&actual, &expected, &[10, 3, 40], Tolerance::Absolute(1e-6));
    }
}

#[test]
fn each_token_has_the_position_that_the_device_holds() {
    let d = device();
    for (tokens, heads, head_dim, rotary_dim) in [(1, 1, 2, 2), (9, 3, 40, 24), (5, 2, 64, 64), (3, 5, 129, 128)] {
        let shape = RopeShape {
            rotary_dim,
            ..RopeShape::sequence(tokens, heads, head_dim)
        };
        let (cos, sin) = reference::rope_tables(100, rotary_dim, 10_000.0);
        let mut random = rng(head_dim as u64);
        let x = random.vec(tokens * heads * head_dim);
        let positions: Vec<u32> = (0..tokens).map(|_| random.below(100) as u32).collect();
        let (c, s, at, word) = (d.up(&cos), d.up(&sin), d.ids(&positions), d.no_fault());
        for pairs in [RopePairs::Half, RopePairs::Interleaved] {
            let (input, y) = (d.up(&x), d.out(x.len()));
            for y in [&y, &input] {
                d.kernels
                    .rope_at(d.stream(), pairs, &input, [&c, &s], &at, y, shape, d.faults(&word, 1))
                    .unwrap();
            }
            let expected = reference::rope_at(pairs, &x, &cos, &sin, &positions, shape);
            d.close(&y, &expected, &[tokens, heads, head_dim], 1e-6);
            d.close(&input, &expected, &[tokens, heads, head_dim], 1e-6);
        }
        assert_eq!(d.fault(&word), None);
    }
}

#[test]
fn a_position_beyond_the_tables_is_a_fault_and_gives_nan() {
    let d = device();
    let shape = RopeShape::sequence(20, 3, 10);
    let (cos, sin) = reference::rope_tables(8, 10, 10_000.0);
    let x = rng(2).vec(20 * 30);
    let mut positions = [7; 20];
    (positions[13], positions[4], positions[19]) = (8, u32::MAX, 9);
    let (c, s, at, word) = (d.up(&cos), d.up(&sin), d.ids(&positions), d.no_fault());
    let (input, y) = (d.up(&x), d.out(x.len()));
    d.kernels
        .rope_at(
            d.stream(),
            RopePairs::Half,
            &input,
            [&c, &s],
            &at,
            &y,
            shape,
            d.faults(&word, 6),
        )
        .unwrap();
    assert_eq!(d.fault(&word), Some((6, 4, u32::MAX)));
    let poison = rocmforge_testkit::data::POISON.to_bits();
    for (token, row) in d.get(&y).chunks(30).enumerate() {
        assert!(row.iter().all(|v| v.to_bits() != poison), "token {token}");
        let bad = [4, 13, 19].contains(&token);
        assert!(row.iter().all(|v| v.is_nan() == bad), "token {token}");
    }
    let short = d.ids(&[0; 19]);
    let (pairs, faults) = (RopePairs::Half, d.faults(&word, 6));
    refused(
        d.kernels
            .rope_at(d.stream(), pairs, &input, [&c, &s], &short, &y, shape, faults),
        "positions has 19 elements",
    );
}

#[test]
fn each_pair_has_the_position_of_its_section() {
    let d = device();
    for (tokens, heads, head_dim, rotary_dim) in [(1, 1, 2, 2), (9, 3, 40, 24), (5, 2, 64, 64), (3, 5, 129, 128)] {
        let shape = RopeShape {
            rotary_dim,
            ..RopeShape::sequence(tokens, heads, head_dim)
        };
        let (cos, sin) = reference::rope_tables(100, rotary_dim, 10_000.0);
        let mut random = rng(head_dim as u64);
        let x = random.vec(tokens * heads * head_dim);
        let mut positions: Vec<u32> = (0..4 * tokens).map(|_| random.below(100) as u32).collect();
        let axes: Vec<u32> = (0..rotary_dim / 2).map(|_| random.below(4) as u32).collect();
        let (c, s, of_pairs, word) = (d.up(&cos), d.up(&sin), d.ids(&axes), d.no_fault());
        let (input, y) = (d.up(&x), d.out(x.len()));
        let at = d.ids(&positions);
        for y in [&y, &input] {
            d.kernels
                .rope_sections(
                    d.stream(),
                    &input,
                    [&c, &s],
                    (&at, &of_pairs),
                    y,
                    shape,
                    d.faults(&word, 1),
                )
                .unwrap();
        }
        let expected = reference::rope_sections(&x, [&cos, &sin], &positions, &axes, shape);
        d.close(&y, &expected, &[tokens, heads, head_dim], 1e-6);
        d.close(&input, &expected, &[tokens, heads, head_dim], 1e-6);
        assert_eq!(d.fault(&word), None);

        // One of the last token's positions is in no table, whether a pair reads it or not.
        for axis in 0..4 {
            let (place, input) = (axis * tokens + tokens - 1, d.up(&x));
            let before = std::mem::replace(&mut positions[place], 100);
            let (at, word) = (d.ids(&positions), d.no_fault());
            d.kernels
                .rope_sections(
                    d.stream(),
                    &input,
                    [&c, &s],
                    (&at, &of_pairs),
                    &y,
                    shape,
                    d.faults(&word, 7),
                )
                .unwrap();
            let found = d.get(&y);
            let (right, lost) = found.split_at((tokens - 1) * heads * head_dim);
            assert!(lost.iter().all(|y| y.is_nan()) && right.iter().all(|y| y.is_finite()));
            assert_eq!(d.fault(&word), Some((7, place as u32, 100)));
            positions[place] = before;
        }
    }
}

#[test]
fn sections_want_four_positions_and_an_axis_for_each_pair() {
    let d = device();
    let (x, table, word) = (d.up(&[0.0; 32]), d.up(&[0.0; 8]), d.no_fault());
    let shape = RopeShape::sequence(4, 1, 8);
    let run = |positions: usize, axes: usize| {
        let (positions, axes) = (d.ids(&vec![0; positions]), d.ids(&vec![0; axes]));
        let (tables, lists, faults) = ([&table, &table], (&positions, &axes), d.faults(&word, 1));
        d.kernels
            .rope_sections(d.stream(), &x, tables, lists, &x, shape, faults)
    };
    run(16, 4).unwrap();
    refused(run(4, 4), "positions has 4 elements");
    refused(run(16, 3), "axes has 3 elements");
}
