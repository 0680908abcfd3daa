//! Products of packed weights with one row of activations, at the shapes of a decode step, and with rows of 16 bits, at those of a prompt.

use crate::card::Card;
use crate::inputs::{Kind, blank, tiled};
use crate::table::{Table, Work};
use crate::timing::{Watch, sets};
use criterion::{Criterion, Throughput};
use rocmforge_kernels::{HalfRows, PackedWeights, WeightMatrix, WeightType};
use rocmforge_runtime::HipBuffer;

const TYPES: &[WeightType] = &[
    WeightType::Q4_0,
    WeightType::Q8_0,
    WeightType::Q2K,
    WeightType::Q3K,
    WeightType::Q4K,
    WeightType::Q6K,
    WeightType::Iq4Xs,
    WeightType::Mxfp4,
];
/// Rows and columns of the weights: on a card, and on the simulator.
const SHAPES: &[([usize; 2], [usize; 2])] = &[
    ([4096, 14_336], [64, 512]),
    ([14_336, 4096], [128, 256]),
    ([4096, 4096], [64, 256]),
];

pub(crate) fn run(criterion: &mut Criterion, card: &Card, table: &mut Table) {
    for &ty in TYPES {
        for &(real, simulated) in SHAPES {
            one(criterion, card, table, ty, card.size(real, simulated));
            card.clear();
            for (real_rows, simulated_rows) in [(512, 9), (2048, 20)] {
                let rows = card.size(real_rows, simulated_rows);
                prompt(criterion, card, table, ty, rows, card.size(real, simulated));
                card.clear();
            }
        }
    }
}

/// A matrix, activations and an output.
struct Set {
    w: PackedWeights,
    x: HipBuffer<f32>,
    y: HipBuffer<f32>,
}

fn one(criterion: &mut Criterion, card: &Card, table: &mut Table, ty: WeightType, [n, k]: [usize; 2]) {
    let (stream, kernels) = (card.stream(), card.kernels());
    let bytes = n * k / ty.block_len() * ty.block_bytes();
    let count = card.size(sets(bytes as u64), 2);
    let mut rotation = None;
    let make = || {
        let set = |seed| {
            let w = tiled(stream, Kind::Quantised, seed, bytes / 4).cast().expect("bytes");
            let packed = blank(stream, bytes / 4).cast().expect("bytes");
            Set {
                w: kernels.pack_weight(stream, ty, &w, packed, [n, k]).expect("packs"),
                x: tiled(stream, Kind::Numbers, seed, k),
                y: blank(stream, n),
            }
        };
        (0..count as u32).map(set).collect::<Vec<_>>()
    };
    let mut next = (0..count).cycle();
    let watch = Watch::new(card);
    let (name, shape) = (format!("matvec_q8_{ty}"), format!("{n} x {k}"));
    let work = Work::Bytes((bytes + 4 * k + 4 * n) as u64);
    let mut group = criterion.benchmark_group("kernel");
    group.throughput(Throughput::Bytes(bytes as u64));
    group.bench_function(format!("{name} {shape}"), |bencher| {
        let rotation = rotation.get_or_insert_with(make);
        table.time(bencher, (&name, &shape), work, |iterations| {
            watch.time(|| {
                for _ in 0..iterations {
                    let set = &rotation[next.next().unwrap_or(0)];
                    let launched = kernels.matvec_q8_row(stream, &set.w, (&set.x).into(), None, None, &set.y);
                    launched.expect("a sound launch");
                }
            })
        });
    });
    group.finish();
}

fn prompt(criterion: &mut Criterion, card: &Card, table: &mut Table, ty: WeightType, m: usize, [n, k]: [usize; 2]) {
    let (stream, kernels) = (card.stream(), card.kernels());
    let bytes = n * k / ty.block_len() * ty.block_bytes();
    let mut operands = None;
    let make = || {
        let w = tiled(stream, Kind::Quantised, 1, bytes / 4).cast().expect("bytes");
        let packed = blank(stream, bytes / 4).cast().expect("bytes");
        let w = kernels.pack_weight(stream, ty, &w, packed, [n, k]).expect("packs");
        let halves = HalfRows::byte_len(m, k).expect("counted") / 4;
        let halves = blank(stream, halves).cast().expect("bytes");
        let x = tiled(stream, Kind::Numbers, 2, m * k);
        let x = kernels.half_rows(stream, &x, &halves, [m, k]).expect("rounds");
        let scratch = kernels
            .matmul_halves_scratch(WeightMatrix::Packed(&w), m)
            .expect("counted");
        let scratch = blank(stream, scratch.div_ceil(4)).cast::<u8>().expect("bytes");
        (w, x, scratch, blank(stream, m * n))
    };
    let watch = Watch::new(card);
    let (name, shape) = (format!("matmul_halves_{ty}"), format!("{m} x {n} x {k}"));
    let work = Work::Flops((2 * m * n * k) as u64);
    let mut group = criterion.benchmark_group("kernel");
    group.bench_function(format!("{name} {shape}"), |bencher| {
        let (w, x, scratch, y) = operands.get_or_insert_with(make);
        let w = WeightMatrix::Packed(w);
        table.time(bencher, (&name, &shape), work, |iterations| {
            watch.time(|| {
                for _ in 0..iterations {
                    let launched = kernels.matmul_halves(stream, w, x, None, y, scratch);
                    launched.expect("a sound launch");
                }
            })
        });
    });
    group.finish();
}
