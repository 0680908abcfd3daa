//! Attention of many tokens over a paged cache on the matrix unit: its definition in f64, and properties that hold to the bit.

use crate::paged_attention::Case;
use crate::support::{Device, device_with, refused};
use rocmforge_kernels::{KvType, PagedOptions, PagedShape, reference};
use rocmforge_testkit::compare::{Tolerance, assert_close};

impl Case {
    /// The same tokens in the order of their sequences, as chunks of prompts have them.
    pub(crate) fn in_order(mut self) -> Self {
        let width = self.shape.heads * self.shape.head_dim;
        let mut order: Vec<usize> = (0..self.shape.tokens).collect();
        order.sort_by_key(|&t| (self.seq_of[t], self.positions[t]));
        let q = order
            .iter()
            .flat_map(|&t| &self.q[t * width..][..width])
            .copied()
            .collect();
        let sorted = |values: &[u32]| order.iter().map(|&t| values[t]).collect();
        (self.seq_of, self.positions, self.q) = (sorted(&self.seq_of), sorted(&self.positions), q);
        self
    }

    fn run16(&self, d: &Device, options: PagedOptions) -> (Vec<f32>, Option<(u32, u32, u32)>) {
        self.run16_of(d, KvType::F16, options)
    }

    fn run16_of(&self, d: &Device, kv: KvType, options: PagedOptions) -> (Vec<f32>, Option<(u32, u32, u32)>) {
        let mut found = Vec::new();
        let fault = self.with_operands(d, kv, |operands, faults| {
            d.kernels
                .paged_attention16(d.stream(), kv, operands, self.shape, options, faults)
                .unwrap();
            found = d.get(operands.out);
        });
        (found, fault)
    }

    fn check16(&self, d: &Device, options: PagedOptions) {
        self.check16_of(d, KvType::F16, options);
    }

    fn check16_of(&self, d: &Device, kv: KvType, options: PagedOptions) {
        let (found, fault) = self.run16_of(d, kv, options);
        assert_eq!(fault, None);
        let expected = self.expected(kv, options);
        // Queries and weights of bf16 have 8 bits, others 11.
        let coarser = if kv == KvType::Bf16 { 8.0 } else { 1.0 };
        let s = self.shape;
        for (row, (found, wanted)) in found.chunks(s.head_dim).zip(expected.chunks(s.head_dim)).enumerate() {
            let errors: f64 = found.iter().zip(wanted).map(|(&f, w)| (f64::from(f) - w).powi(2)).sum();
            let whole: f64 = wanted.iter().map(|w| w * w).sum();
            // ggml asks for 5e-4; queries and weights of 11 bits make some 1e-7.
            assert!(
                errors <= 4e-6 * coarser * coarser * whole,
                "{s:?} {kv:?} {options:?}: row {row}: NMSE {:.1e}",
                errors / whole
            );
        }
        let dims = [s.tokens, s.heads, s.head_dim];
        assert_close(&found, &expected, &dims, Tolerance::Absolute(1.5e-3 * coarser));
    }
}

/// Lengths, and how many of its last tokens each sequence asks with.
fn chunks(lengths: &[usize], queries: usize, dims: [usize; 3], block_size: usize) -> Case {
    Case::new(lengths, queries, dims, block_size).in_order()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn chunks_of_prompts_of_every_size_of_heads() {
    let d = device_with!("paged16", "paged16_d64");
    for (heads, kv_heads, head_dim, block_size) in [
        (2, 1, 64, 16),
        (2, 2, 8, 32),
        (1, 1, 80, 64),
        (3, 1, 128, 16),
        (1, 1, 136, 128),
        (2, 1, 256, 256),
    ] {
        if head_dim > 128 && !exists(&d, head_dim) {
            continue;
        }
        let case = chunks(&[70, 1, 33], 40, [heads, kv_heads, head_dim], block_size);
        case.check16(&d, PagedOptions::new(head_dim));
    }
}

#[test]
fn caches_of_other_types() {
    let d = device_with!("paged16_q8_0", "paged16_q8_0_d64");
    for kv in [KvType::Bf16, KvType::Q8_0] {
        for (heads, kv_heads, head_dim, block_size) in [
            (2, 1, 64, 16),
            (2, 2, 32, 32),
            (1, 1, 96, 64),
            (4, 2, 128, 16),
            (1, 1, 160, 128),
            (2, 1, 256, 16),
        ] {
            let case = chunks(&[70, 1, 33], 40, [heads, kv_heads, head_dim], block_size);
            if !(d.kernels.has_paged_attention16(kv, case.shape)).unwrap() {
                continue;
            }
            for (window, softcap) in [(None, None), (Some(20), Some(0.5))] {
                let options = PagedOptions {
                    window,
                    softcap,
                    ..PagedOptions::new(head_dim)
                };
                case.check16_of(&d, kv, options);
            }
        }
    }
}

/// gfx1030 has no kernel for large heads.
fn exists(d: &Device, head_dim: usize) -> bool {
    let case = Case::new(&[1], 1, [1, 1, head_dim], 16);
    d.kernels.has_paged_attention16(KvType::F16, case.shape).unwrap()
}

#[test]
fn lengths_and_chunks_around_the_tiles() {
    let d = device_with!("paged16", "paged16_d64");
    for (length, queries) in [
        (1, 1),
        (2, 1),
        (16, 16),
        (17, 15),
        (33, 32),
        (64, 64),
        (65, 65),
        (130, 129),
        (200, 3),
    ] {
        chunks(&[length], queries, [1, 1, 64], 16).check16(&d, PagedOptions::new(64));
    }
    chunks(&[140], 140, [1, 1, 128], 32).check16(&d, PagedOptions::new(128));
}

#[test]
fn the_window_and_the_cap() {
    let d = device_with!("paged16", "paged16_d64");
    let case = chunks(&[90, 17], 50, [2, 1, 64], 16);
    for window in [Some(1), Some(2), Some(31), Some(33), Some(90), Some(usize::MAX)] {
        for softcap in [None, Some(0.5)] {
            let options = PagedOptions {
                scale: 0.2,
                window,
                softcap,
            };
            case.check16(&d, options);
        }
    }
    // A scale that does not keep the order of scores.
    let options = PagedOptions {
        scale: -0.1,
        ..PagedOptions::new(64)
    };
    case.check16(&d, options);
}

/// What a token gets depends on its own sequence alone: any order, any neighbours.
#[test]
fn any_order_of_tokens_gives_the_same_bits() {
    let d = device_with!("paged16", "paged16_d64");
    for head_dim in [64, 128] {
        let options = PagedOptions {
            window: Some(40),
            ..PagedOptions::new(head_dim)
        };
        let shuffled = Case::new(&[60, 1, 35], 12, [2, 1, head_dim], 16);
        let (seq_of, positions) = (shuffled.seq_of.clone(), shuffled.positions.clone());
        let (apart, _) = shuffled.run16(&d, options);
        let ordered = shuffled.in_order();
        let (together, _) = ordered.run16(&d, options);
        let width = 2 * head_dim;
        for (token, (seq, position)) in seq_of.iter().zip(&positions).enumerate() {
            let same = ordered.seq_of.iter().zip(&ordered.positions);
            let place = same
                .clone()
                .position(|(s, p)| (s, p) == (seq, position))
                .expect("the same tokens");
            let [a, b] = [(&apart, token), (&together, place)].map(|(all, t)| bits(&all[t * width..][..width]));
            assert_eq!(a, b, "token {token}");
        }
    }
}

#[test]
fn shared_heads_are_the_same_as_replicated_ones_to_the_bit() {
    let d = device_with!("paged16", "paged16_d64");
    let dims = [6, 2, 64];
    let shared = chunks(&[50, 9], 20, dims, 16);
    let mut replicated = chunks(&[50, 9], 20, [6, 6, 64], 16);
    replicated.q.clone_from(&shared.q);
    replicated.table.clone_from(&shared.table);
    replicated.rows = shared.rows.each_ref().map(|rows| {
        let replicate = |row: &Vec<f32>| reference::kv_replicate(row, [6, 2], 64);
        rows.iter().map(replicate).collect()
    });
    let options = PagedOptions::new(64);
    assert_eq!(
        bits(&shared.run16(&d, options).0),
        bits(&replicated.run16(&d, options).0)
    );
}

/// A query may be larger or smaller than f16 holds: a power of two changes no bit where the scale has its inverse.
#[test]
fn queries_beyond_f16() {
    let d = device_with!("paged16", "paged16_d64");
    let usual = chunks(&[40], 20, [2, 1, 64], 16);
    let options = PagedOptions::new(64);
    let (expected, _) = usual.run16(&d, options);
    for power in [-60, 17, 60] {
        let mut case = chunks(&[40], 20, [2, 1, 64], 16);
        let factor = 2f32.powi(power);
        case.q = usual.q.iter().map(|x| x * factor).collect();
        let scaled = PagedOptions {
            scale: options.scale / factor,
            ..options
        };
        assert_eq!(bits(&case.run16(&d, scaled).0), bits(&expected), "2^{power}");
    }
    // A query of 0 means every key alike; one that is not finite gives NaN in its own head.
    let mut case = chunks(&[40], 20, [2, 1, 64], 16);
    case.q[..64].fill(0.0);
    case.q[3 * 64] = f32::INFINITY;
    case.q[5 * 64 + 7] = f32::NAN;
    let (found, fault) = case.run16(&d, options);
    assert_eq!(fault, None);
    for (row, values) in found.chunks(64).enumerate() {
        let nan = row == 3 || row == 5;
        assert!(values.iter().all(|v| v.is_nan() == nan), "row {row}");
    }
    let width = 64;
    let mean = |e: usize| -> f64 {
        let rows = case.rows[1][0].chunks(width).take(21);
        rows.map(|row| reference::round_to(rocmforge_kernels::FloatType::F16, f64::from(row[e])))
            .sum::<f64>()
            / 21.0
    };
    for (e, &found) in found[..64].iter().enumerate() {
        assert!((f64::from(found) - mean(e)).abs() < 1e-3, "element {e}: {found}");
    }
}

/// Keys and values that f16 only just holds.
#[test]
fn scores_beyond_f16() {
    let d = device_with!("paged16", "paged16_d64");
    let mut case = chunks(&[40], 20, [1, 1, 64], 16);
    for rows in &mut case.rows {
        rows[0].iter_mut().for_each(|x| *x *= 6e4);
    }
    let options = PagedOptions {
        scale: 1e-5,
        ..PagedOptions::new(64)
    };
    let (found, _) = case.run16(&d, options);
    let expected = case.expected(KvType::F16, options);
    assert_close(&found, &expected, &[20, 64], Tolerance::Absolute(90.0));
}

/// Large scores that are all alike: what was added for the first keys weighs as much as what is added for the last.
#[test]
fn equal_scores_stay_equal_over_many_tiles() {
    let d = device_with!("paged16", "paged16_d64");
    let keys = 2000;
    let mut case = chunks(&[keys], 16, [1, 1, 64], 16);
    case.q.fill(37.0);
    case.rows[0][0].fill(100.0);
    for (n, value) in case.rows[1][0].chunks_mut(64).enumerate() {
        value.fill(if n < keys / 2 { 1.0 } else { 0.0 });
    }
    let options = PagedOptions::new(64);
    let (found, _) = case.run16(&d, options);
    let expected = case.expected(KvType::F16, options);
    // A weight, half a unit of f16 from 1 at most, is rounded; the sum of weights is not.
    assert_close(&found, &expected, &[16, 64], Tolerance::Absolute(2e-4));
}

/// The faults of the kernel in f32, and NaN for the same tokens.
#[test]
fn indices_out_of_range_are_faults() {
    let d = device_with!("paged16", "paged16_d64");
    let types = [KvType::F16, KvType::Q8_0];
    for (head_dim, kv) in [64, 128]
        .into_iter()
        .flat_map(|head_dim| types.map(|kv| (head_dim, kv)))
    {
        for window in [None, Some(20)] {
            let options = PagedOptions {
                window,
                ..PagedOptions::new(head_dim)
            };
            for spoil in 0..4 {
                let mut case = chunks(&[60, 40], 30, [2, 1, head_dim], 16);
                let sound = chunks(&[60, 40], 30, [2, 1, head_dim], 16);
                match spoil {
                    0 => case.seq_of[7] = 9,
                    1 => case.positions[33] = 100_000,
                    // A block that some tokens of sequence 0 see, and with the window not the last ones.
                    2 => case.table[2] = 77,
                    _ => case.table[1] = u32::MAX,
                }
                let run = |matrix: bool| {
                    let mut found = Vec::new();
                    let fault = case.with_operands_of(&sound, &d, kv, |o, faults| {
                        let (k, s) = (&d.kernels, d.stream());
                        match matrix {
                            true => k.paged_attention16(s, kv, o, case.shape, options, faults),
                            false => k.paged_attention(s, kv, o, case.shape, options, faults),
                        }
                        .unwrap();
                        found = d.get(o.out);
                    });
                    (found.iter().map(|v| v.is_nan()).collect::<Vec<_>>(), fault)
                };
                let (found, expected) = (run(true), run(false));
                assert!(expected.1.is_some(), "{spoil}");
                assert_eq!(found, expected, "{head_dim} {kv:?} {window:?} {spoil}");
            }
        }
    }
}

#[test]
fn a_value_that_is_not_finite_stays_with_its_sequence() {
    let d = device_with!("paged16", "paged16_d64");
    let mut case = chunks(&[40, 40], 40, [1, 1, 64], 16);
    case.rows[1][0][39 * 64] = f32::INFINITY;
    let (found, _) = case.run16(&d, PagedOptions::new(64));
    let sound = chunks(&[40, 40], 40, [1, 1, 64], 16);
    let (expected, _) = sound.run16(&d, PagedOptions::new(64));
    assert!(!found[39 * 64].is_finite());
    assert_eq!(bits(&found[40 * 64..]), bits(&expected[40 * 64..]));
}

#[test]
fn what_the_kernels_do_not_take_is_refused() {
    let d = device_with!("paged16", "paged16_d64");
    let has = |kv, shape| d.kernels.has_paged_attention16(kv, shape).unwrap();
    let good = chunks(&[40], 20, [2, 1, 64], 16);
    assert!(has(KvType::F16, good.shape));
    assert!(!has(KvType::F32, good.shape));
    for (head_dim, block_size, text) in [
        (68, 16, "head_dim must be a multiple of 8"),
        (64, 8, "block_size must be a power of two from 16 on"),
        (64, 48, "block_size must be a power of two from 16 on"),
    ] {
        let case = chunks(&[40], 20, [2, 1, head_dim], block_size);
        assert!(!has(KvType::F16, case.shape));
        case.with_operands(&d, KvType::F16, |operands, faults| {
            let shape: PagedShape = case.shape;
            let options = PagedOptions::new(head_dim);
            let result = (d.kernels).paged_attention16(d.stream(), KvType::F16, operands, shape, options, faults);
            refused(result, text);
        });
    }
}
