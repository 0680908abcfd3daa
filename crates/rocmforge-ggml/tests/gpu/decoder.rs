//! Ops of decoders on a device against the CPU backend: the same results, and the same errors.

use super::case::{Case, bytes_of, random};
use crate::common::weights::{WEIGHTS, weight};
use half::f16;
use rocmforge_ggml::{
    Activations, CpuBackend, DType, GluKind, Graph, HipGgmlBackend, HostAccess, Layout, Op, PagedAttention, Rope,
    RopeScaling, RopeStyle, TensorDesc, Unary,
};
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

fn indices(values: &[u32]) -> (TensorDesc, Vec<u8>) {
    (TensorDesc::u32([values.len()]), bytes_of(values))
}

#[test]
fn products_with_weights_of_every_type() {
    for dtype in WEIGHTS {
        let k = 2 * dtype.block_len().max(16);
        // Each kernel for few rows, and tiles.
        for (m, n) in [(1, 33), (2, 7), (3, 65), (8, 9), (9, 5), (33, 65)] {
            let (w, values) = weight(dtype, n, k, (m * n) as u64);
            let b = (TensorDesc::new([k, n], dtype, Layout::ColMajor), w);
            let mut inputs = vec![random([m, k], 3), b];
            if n % 2 == 0 || m == 3 {
                inputs.push(random([n], 4));
            }
            let widest = values.iter().fold(1.0f32, |max, v| max.max(v.abs()));
            Case::of(Op::MulMat, inputs).close(4e-6 * k as f64 * f64::from(widest));
        }
    }
}

#[test]
fn rows_of_every_type() {
    for dtype in WEIGHTS {
        let cols = dtype.block_len() * if dtype.block_len() == 1 { 33 } else { 3 };
        let (w, _) = weight(dtype, 5, cols, 9);
        let table = || (TensorDesc::new([5, cols], dtype, Layout::RowMajor), w.clone());
        Case::of(Op::GetRows, vec![table(), indices(&[4, 0, 0, 3, 2])]).close(0.0);
        let error = Case::of(Op::GetRows, vec![table(), indices(&[4, 1, 5, 6])]).same_error();
        assert!(error.to_string().contains('5'), "{error}");
    }
}

#[test]
fn set_rows_of_every_type_of_caches() {
    for dtype in [DType::F32, DType::F16, DType::Bf16, DType::Q8_0] {
        for width in [1, 33, 64, 129, 1120] {
            if width % dtype.block_len() != 0 {
                continue;
            }
            let case = |ids: &[u32]| {
                let mut graph = Graph::new();
                let src = graph.add_tensor(TensorDesc::f32([ids.len(), width]));
                let cache = graph.add_tensor(TensorDesc::new([6, width], dtype, Layout::RowMajor));
                let rows = graph.add_tensor(TensorDesc::u32([ids.len()]));
                graph.set_rows(src, cache, rows).expect("fits");
                let before = vec![0x11; graph.tensor(cache).expect("there").byte_size()];
                let source = rng(5).vec_in(ids.len() * width, -9.0, 9.0);
                let inputs = vec![(src, bytes_of(&source)), (cache, before), (rows, bytes_of(ids))];
                // The op's output is a view of the cache.
                Case {
                    graph,
                    inputs,
                    output: cache,
                }
            };
            case(&[5, 0, 3]).same_bytes();
            case(&[5, 6, 7]).same_error();
        }
    }
}

const PLAIN: PagedAttention = PagedAttention {
    heads: 4,
    kv_heads: 2,
    head_dim: 36,
    scale: 0.3,
    block_size: 4,
    window: None,
    softcap: None,
    sinks: false,
};

fn paged(a: PagedAttention, cache: DType, table: [u32; 6], sequence: &[u32], positions: &[u32]) -> Case {
    let (slots, kv_width) = (6 * a.block_size, a.kv_heads * a.head_dim);
    let values = |seed| {
        let values = rng(seed).vec_in(slots * kv_width, -2.0, 2.0);
        let bytes = match cache {
            DType::F32 => bytes_of(&values),
            ty => blocks::quantize(ty.tensor_type().expect("a type of files"), &values).expect("whole blocks"),
        };
        (TensorDesc::new([slots, kv_width], cache, Layout::RowMajor), bytes)
    };
    let mut inputs = vec![
        random([positions.len(), a.heads * a.head_dim], 11),
        values(12),
        values(13),
        (TensorDesc::u32([2, 3]), bytes_of(&table)),
        indices(sequence),
        indices(positions),
    ];
    if a.sinks {
        inputs.push(random([a.heads], 14));
    }
    Case::of(Op::PagedAttention(a), inputs)
}

const TABLE: [u32; 6] = [5, 0, 3, 1, 4, 2];

#[test]
fn paged_attention() {
    let wide = PagedAttention {
        heads: 3,
        kv_heads: 1,
        head_dim: 128,
        ..PLAIN
    };
    let window = PagedAttention {
        window: Some(3),
        ..PLAIN
    };
    let capped = PagedAttention {
        softcap: Some(1.5),
        ..PLAIN
    };
    let sinks = PagedAttention { sinks: true, ..wide };
    for cache in [DType::F32, DType::F16, DType::Bf16, DType::Q8_0] {
        for mut a in [PLAIN, wide, window, capped, sinks] {
            a.head_dim = a.head_dim.next_multiple_of(cache.block_len());
            paged(a, cache, TABLE, &[0, 1, 0, 1, 1], &[0, 10, 9, 3, 11]).close(1e-5);
        }
    }
}

#[test]
fn paged_attention_with_an_index_out_of_range() {
    for cache in [DType::F32, DType::F16] {
        paged(PLAIN, cache, TABLE, &[0, 2, 3], &[0, 1, 1]).same_error();
        paged(PLAIN, cache, TABLE, &[0, 1, 1], &[0, 11, 12]).same_error();
        // A block that token 2 sees, and token 1 does not.
        paged(PLAIN, cache, [5, 6, 3, 1, 4, 2], &[1, 0, 0], &[11, 3, 4]).same_error();
        // Behind the last token a table holds anything.
        paged(PLAIN, cache, [5, 99, 99, 1, 4, 2], &[1, 0], &[11, 3]).close(1e-5);
    }
}

/// A chunk of a prompt goes to the matrix unit where activations may be rounded, and stays f32 where they may not.
#[test]
fn chunks_of_prompts_over_a_paged_cache() {
    for sinks in [false, true] {
        chunk_of_a_prompt(sinks);
    }
}

fn chunk_of_a_prompt(sinks: bool) {
    let a = PagedAttention {
        sinks,
        head_dim: 64,
        block_size: 16,
        scale: 0.125,
        ..PLAIN
    };
    // 30 tokens of sequence 1 from position 2 on, then 6 of sequence 0.
    let sequence: Vec<u32> = (0..36).map(|t| u32::from(t < 30)).collect();
    let positions: Vec<u32> = (2..32).chain(40..46).collect();
    let gpu = gpu();
    let run = |case: &Case, activations| {
        let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        case.run(&mut device.activations(activations))
    };
    let case = paged(a, DType::F16, TABLE, &sequence, &positions);
    let expected: Vec<f32> = bytemuck::pod_collect_to_vec(&case.run(&mut CpuBackend::new()).expect("runs"));
    let [exact, rounded] = [Activations::F32, Activations::Int8]
        .map(|activations| -> Vec<f32> { bytemuck::pod_collect_to_vec(&run(&case, activations).expect("runs")) });
    let error = |found: &[f32]| -> f32 {
        let pairs = found.iter().zip(&expected);
        pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(error(&exact) < 1e-5, "{}", error(&exact));
    assert!((1e-5..2e-3).contains(&error(&rounded)), "{}", error(&rounded));
    // The same errors.
    for (table, position) in [(TABLE, 48), ([5, 0, 3, 1, 6, 2], 31)] {
        let mut positions = positions.clone();
        positions[29] = position;
        let case = paged(a, DType::F16, table, &sequence, &positions);
        let [exact, rounded] = [Activations::F32, Activations::Int8].map(|activations| run(&case, activations));
        let [exact, rounded] = [exact, rounded].map(|result| result.expect_err("out of range").to_string());
        assert_eq!(exact, rounded);
    }
}

/// Of a token over long heads the keys are in parts where activations may be rounded: the memory for them is counted.
#[test]
fn parts_of_long_heads_are_scratch_memory() {
    let gpu = gpu();
    let a = PagedAttention {
        kv_heads: 1,
        head_dim: 576,
        block_size: 64,
        scale: 0.05,
        ..PLAIN
    };
    let case = paged(a, DType::F16, TABLE, &[1], &[130]);
    let [exact, rounded] = [Activations::F32, Activations::Int8].map(|activations| {
        let mut device = HipGgmlBackend::new(gpu.backend())
            .expect("kernels")
            .activations(activations);
        let bytes = device.scratch_bytes(&case.graph);
        let expected: Vec<f32> = bytemuck::pod_collect_to_vec(&case.run(&mut CpuBackend::new()).expect("runs"));
        let found: Vec<f32> = bytemuck::pod_collect_to_vec(&case.run(&mut device).expect("runs"));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 2e-3, "{activations:?}: {found}, {expected}");
        }
        bytes
    });
    // Two parts at least, each with a maximum and a sum.
    assert_eq!(exact, 0);
    assert!(rounded >= 2 * 4 * (576 + 2) * 4, "{rounded} bytes");
}

#[test]
fn rope_at_positions_with_scaling_and_factors() {
    let (tokens, heads, dim) = (7, 3, 36);
    let yarn = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 32,
        beta_fast: 32.0,
        beta_slow: 1.0,
        ext_factor: 0.75,
    };
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        for scaling in [RopeScaling::None, RopeScaling::Linear { factor: 4.0 }, yarn] {
            for factors in [false, true] {
                let rope = Rope {
                    scaling,
                    magnitude: 1.25,
                    ..Rope::new(32, 10_000.0, style, 100)
                };
                let case = |positions: &[u32]| {
                    let mut inputs = vec![random([1, tokens, heads, dim], 1), indices(positions)];
                    if factors {
                        let divisors: Vec<f32> = (0..16).map(|i| 1.0 + i as f32 / 4.0).collect();
                        inputs.push((TensorDesc::f32([16]), bytes_of(&divisors)));
                    }
                    Case::of(Op::Rope(rope), inputs)
                };
                case(&[0, 99, 5, 5, 31, 32, 64]).close(1e-5);
                case(&[0, 99, 5, 100, 31, 101, 64]).same_error();
            }
        }
    }
}

#[test]
fn rope_by_four_positions() {
    let (batch, seq, heads, dim) = (2, 5, 3, 36);
    for (style, n_dims) in [
        (RopeStyle::Mrope([3, 5, 6, 0]), 32),
        (RopeStyle::Mrope([1, 0, 2, 1]), 36),
        (RopeStyle::Imrope([6, 5, 5, 0]), 32),
        (RopeStyle::Imrope([4, 2, 1, 3]), 20),
        (RopeStyle::Vision([9, 9, 0, 0]), 18),
        (RopeStyle::Vision([2, 3, 1, 2]), 18),
    ] {
        for (lists, factors) in [(vec![4, batch, seq], false), (vec![4, seq], true)] {
            let rope = Rope {
                magnitude: 1.25,
                ..Rope::new(n_dims, 10_000.0, style, 100)
            };
            let case = |other: u32| {
                let mut positions: Vec<u32> = (0..lists.iter().product::<usize>() as u32)
                    .map(|i| i * 37 % 100)
                    .collect();
                positions[3 * seq + 1] = other;
                let mut inputs = vec![
                    random([batch, seq, heads, dim], 1),
                    (TensorDesc::u32(lists.clone()), bytes_of(&positions)),
                ];
                if factors {
                    let divisors: Vec<f32> = (0..rope.pairs()).map(|i| 1.0 + i as f32 / 4.0).collect();
                    inputs.push((TensorDesc::f32([rope.pairs()]), bytes_of(&divisors)));
                }
                Case::of(Op::Rope(rope), inputs)
            };
            case(99).close(1e-5);
            case(100).same_error();
        }
    }
}

#[test]
fn activations() {
    for n in [1, 31, 33, 129, 1025] {
        Case::of(
            Op::Glu {
                kind: GluKind::Geglu,
                swapped: false,
            },
            vec![random([3, n], 1), random([3, n], 2)],
        )
        .close(1e-5);
        Case::of(Op::Unary(Unary::Silu), vec![random([3, n], 3)]).close(1e-6);
        for cap in [0.5, 30.0] {
            Case::of(Op::Softcap { cap }, vec![random([3, n], 4)]).close(1e-5);
        }
        Case::of(Op::Mul, vec![random([3, n], 5), random([n], 6)]).close(0.0);
    }
}

#[test]
fn casts_to_the_last_bit() {
    // Ties of both float types, a value too large for f16, a denormal of f16.
    let values = [
        1.0,
        -2.5,
        1.0 + 1.0 / 2048.0,
        1.0 + 3.0 / 2048.0,
        1.0 + 1.0 / 256.0,
        1e6,
        6e-8,
        0.0,
        f32::INFINITY,
    ];
    let shape = [values.len()];
    for from in [DType::F32, DType::F16, DType::Bf16] {
        let source = match from {
            DType::F32 => bytes_of(&values),
            DType::F16 => bytes_of(&values.map(|v| f16::from_f32(v).to_bits())),
            _ => bytes_of(&values.map(|v| half::bf16::from_f32(v).to_bits())),
        };
        for to in [DType::F32, DType::F16, DType::Bf16] {
            let x = TensorDesc::new(shape, from, Layout::RowMajor);
            Case::of(Op::Cpy { to: Some(to) }, vec![(x, source.clone())]).same_bytes();
        }
    }
}

#[test]
fn concat_along_every_axis() {
    for axis in 0..3 {
        let (mut a, mut b) = ([2, 3, 33], [2, 3, 33]);
        (a[axis], b[axis]) = (1, 5);
        Case::of(Op::Concat { axis }, vec![random(a, 1), random(b, 2)]).close(0.0);
    }
}

/// Few values, so that many are equal, and some that are no numbers.
fn ties(shape: [usize; 2], seed: u64) -> (TensorDesc, Vec<u8>) {
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0];
    let mut random = rng(seed);
    let mut value = || match random.below(6) {
        0 => odd[random.below(odd.len())],
        _ => random.below(5) as f32 - 2.0,
    };
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|_| value()).collect();
    (TensorDesc::f32(shape), bytes_of(&values))
}

#[test]
fn largest_values_with_ties() {
    for n in [1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000] {
        Case::of(Op::Argmax, vec![random([2, 3, n], n as u64)]).same_bytes();
        Case::of(Op::Argmax, vec![ties([5, n], n as u64)]).same_bytes();
        for k in [1, n.div_ceil(2), n] {
            Case::of(Op::TopK { k }, vec![random([2, 3, n], n as u64)]).same_bytes();
            Case::of(Op::TopK { k }, vec![ties([5, n], n as u64)]).same_bytes();
        }
    }
    let none = (TensorDesc::f32([2, 40]), bytes_of(&[f32::NAN; 80]));
    Case::of(Op::Argmax, vec![none.clone()]).same_bytes();
    Case::of(Op::TopK { k: 3 }, vec![none]).same_bytes();
    Case::of(Op::TopK { k: 50 }, vec![random([1, 32_003], 1)]).same_bytes();
}
