//! Rows of latent attention: one launch on a device, with the results of the ops one by one.

use std::collections::HashMap;

use super::case::bytes_of;
use super::packed::on;
use crate::common::latent::{Ids, Latent, MISSES, POSITIONS, yarn};
use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Activations, CpuBackend, DType, GgmlBackend, GgmlError, GgmlResult, Graph, HostAccess, Rope, RopeStyle, TensorId,
    executor,
};
use rocmforge_gguf::blocks;
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

const PLAIN: Latent = Latent {
    tokens: 5,
    heads: 3,
    rank: 64,
    nope: 20,
    shared: 32,
    slots: 9,
    cache: DType::F16,
    rope: None,
    factors: false,
    miss: "nothing",
};

const SLOTS: [u32; 5] = [3, 8, 0, 7, 5];
const AT: [u32; 5] = [0, 39, 4, 4, 17];

/// Queries and the cache after each of three runs: tokens of two sequences at their positions.
fn run<B: HostAccess>(
    backend: &mut B,
    optimizer: GraphOptimizer,
    latent: Latent,
    [positions, slots]: [&[u32]; 2],
) -> GgmlResult<Vec<[Vec<f32>; 2]>> {
    let (mut graph, ids): (Graph, Ids) = latent.graph()?;
    optimizer.optimize(&mut graph);
    let mut program = executor::compile(backend, &graph)?;
    let mut random = rng(7);
    let floats: HashMap<TensorId, Vec<f32>> = [ids.q, ids.plain, ids.all, ids.gains, ids.divisors]
        .into_iter()
        .filter_map(|id| Some((id, graph.tensor(id)?.element_count())))
        .map(|(id, count)| {
            let range = if id == ids.divisors { [1.0, 4.0] } else { [-2.0, 2.0] };
            (id, random.vec_in(count, range[0], range[1]))
        })
        .collect();
    let bytes = graph.tensor(ids.cache).expect("there").byte_size();
    backend.write(ids.cache, &vec![0x11; bytes])?;
    let run = |_| {
        for (&id, values) in &floats {
            if backend.tensor_desc(id).is_some() {
                backend.write(id, &bytes_of(values))?;
            }
        }
        if latent.rope.is_some() {
            backend.write_u32(ids.positions, positions)?;
        }
        backend.write_u32(ids.slots, slots)?;
        executor::run_program(backend, &mut program)?;
        backend.synchronize()?;
        Ok([
            backend.read_f32(ids.queries)?,
            values(latent.cache, &backend.read(ids.cache)?),
        ])
    };
    (0..3).map(run).collect()
}

fn values(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / dtype.block_bytes() * dtype.block_len()];
    blocks::dequantize(dtype.tensor_type().expect("a type of files"), bytes, &mut values).expect("whole blocks");
    values
}

/// The device with what its optimizer joins, and the CPU op by op: the launches of a run.
#[track_caller]
fn same(latent: Latent, optimizer: Option<GraphOptimizer>) -> u64 {
    let (gpu, tokens) = (gpu(), latent.tokens);
    let lists = [&AT[..tokens], &SLOTS[..tokens]];
    let mut device = on(&gpu, Activations::Int8);
    let optimizer = optimizer.unwrap_or_else(|| device.optimizer());
    let expected = run(&mut CpuBackend::with_threads(1), GraphOptimizer::none(), latent, lists).expect("runs");
    let found = run(&mut device, optimizer, latent, lists).expect("runs");
    // A number may be rounded to the neighbour of the one that is expected; the norm makes numbers up to 12.
    let step = match latent.cache {
        DType::F32 => 1e-5,
        DType::F16 => 1e-2,
        DType::Bf16 => 6e-2,
        _ => 12.0 / 127.0,
    };
    for (found, expected) in found.iter().zip(&expected) {
        for ((found, expected), limit) in found.iter().zip(expected).zip([1e-5, step]) {
            for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
                assert!(
                    (found - expected).abs() <= limit,
                    "{latent:?}, {index}: {found}, {expected}"
                );
            }
        }
    }
    device.launches() / 3
}

/// A rotary embedding of the models that have latent attention, with its pairs and what its frequencies are divided by.
fn embeddings() -> Vec<(Option<Rope>, bool)> {
    let plain = |style| Rope::new(32, 10_000.0, style, POSITIONS);
    vec![
        (None, false),
        (Some(plain(RopeStyle::Interleaved)), false),
        (Some(plain(RopeStyle::HalfSplit)), true),
        (Some(yarn(32, RopeStyle::Interleaved)), false),
        (Some(yarn(20, RopeStyle::HalfSplit)), false),
        (Some(yarn(32, RopeStyle::Interleaved)), true),
    ]
}

#[test]
fn one_launch_gives_what_the_ops_give() {
    for cache in [DType::F32, DType::F16, DType::Bf16, DType::Q8_0] {
        for (rope, factors) in embeddings() {
            for tokens in [1, 2, 5] {
                let latent = Latent {
                    tokens,
                    cache,
                    rope,
                    factors,
                    ..PLAIN
                };
                assert_eq!(same(latent, None), 1, "{latent:?}");
            }
        }
    }
}

/// Each copy, rotation and norm is a launch, CONCAT two.
#[test]
fn the_ops_by_themselves_are_eleven_launches() {
    let latent = Latent {
        rope: Some(yarn(32, RopeStyle::Interleaved)),
        ..PLAIN
    };
    assert_eq!(same(latent, Some(GraphOptimizer::none())), 11);
}

/// What the optimizer does not join, and rows that the kernel does not take.
#[test]
fn what_is_no_group_runs_op_by_op() {
    let turned = Latent {
        rope: Some(yarn(32, RopeStyle::Interleaved)),
        cache: DType::F32,
        ..PLAIN
    };
    for miss in MISSES {
        let launches = same(Latent { miss, ..turned }, None);
        assert!(launches >= 10, "{miss}: {launches}");
    }
    let odd = Latent { rank: 66, ..turned };
    let long = Latent { rank: 1024, ..turned };
    for latent in [odd, long] {
        let launches = same(latent, None);
        assert!(launches >= 10, "{latent:?}: {launches}");
    }
}

#[test]
fn an_index_out_of_range_has_the_figures_of_the_cpu() {
    let gpu = gpu();
    for rope in [None, Some(yarn(32, RopeStyle::HalfSplit))] {
        for (at, slot) in [(4, 9), (POSITIONS as u32, 7), (41, 10)] {
            let latent = Latent { rope, ..PLAIN };
            let (mut positions, mut slots) = (AT, SLOTS);
            (positions[2], slots[3]) = (at, slot);
            if rope.is_none() && slot < 9 {
                continue;
            }
            let lists = [&positions[..], &slots[..]];
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            let expected = run(&mut cpu, GraphOptimizer::none(), latent, lists).expect_err("out of range");
            let optimizer = device.optimizer();
            let found = run(&mut device, optimizer, latent, lists).expect_err("out of range");
            assert!(matches!(found, GgmlError::IndexOutOfRange { .. }), "{found:?}");
            assert_eq!(
                (found.to_string(), device.launches()),
                (expected.to_string(), 1),
                "{latent:?}"
            );
        }
    }
}
