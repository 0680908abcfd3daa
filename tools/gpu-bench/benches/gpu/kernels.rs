//! Each kernel, at a size that fills the card: 1 GiB a tensor where memory is the limit.

use crate::card::Card;
use crate::inputs::{blank, tiled};
use crate::op::Op;
use crate::table::{Table, Work};
use crate::timing::{Watch, sets};
use criterion::{Criterion, Throughput};
use rocmforge_kernels::declared::all;

/// Operation, shape on a real card, shape on the simulated one.
const OPS: &[(&str, &[usize], &[usize])] = &[
    ("matvec_q4_0", &[65536, 16384], &[64, 256]),
    ("matmul_f16", &[8192, 8192, 8192], &[64, 64, 64]),
    ("matmul_f16", &[2048, 14336, 4096], &[64, 128, 64]),
    ("matmul_f16", &[1, 14336, 4096], &[1, 64, 256]),
    ("matmul_f16", &[8, 14336, 4096], &[8, 64, 256]),
    ("attention_f16_causal", &[1, 32, 2048, 2048, 128], &[1, 2, 64, 64, 128]),
    ("attention_f16_causal", &[1, 32, 8192, 8192, 128], &[1, 2, 64, 96, 128]),
    ("attention_f16", &[4, 32, 2048, 2048, 64], &[1, 2, 64, 64, 64]),
    ("attention_f16_decode", &[16, 32, 8, 8192, 128], &[2, 4, 1, 600, 64]),
    ("attention_f16_decode", &[1, 32, 8, 8192, 128], &[1, 4, 2, 600, 128]),
    ("attention_f16_decode", &[1, 32, 8, 131_072, 128], &[1, 4, 2, 600, 128]),
];

/// The kernels of which 80 % of the copy's rate is asked.
const MEMORY_BOUND: &[&str] = &[
    "scale",
    "add",
    "softmax",
    "rms_norm",
    "layer_norm",
    "rope",
    "swiglu",
    "causal_mask",
];

pub(crate) fn run(criterion: &mut Criterion, card: &Card, table: &mut Table) {
    for kernel in all() {
        for timed in kernel.timed {
            let small = kernel.tested.last().unwrap_or(timed);
            one(criterion, card, table, &Op::new(kernel.name, card.size(timed, small)));
            card.clear();
        }
    }
    for &(name, real, simulated) in OPS {
        let op = Op::new(name, card.size(real, simulated));
        one(criterion, card, table, &op);
        card.clear();
    }
    if let (Some(mask), Some(fill)) = (
        table.seconds("causal_mask", "128 x 2048 x 2048"),
        table.seconds("driver fill", "2 GiB"),
    ) {
        table.note(format!(
            "causal mask of 4 x 32 x 2048 x 2048: {:.0} us, the driver's fill of as many bytes {:.0} us: {:.2} times (target: at most 1.15)",
            mask * 1e6,
            fill * 1e6,
            mask / fill
        ));
    }
    let low = table.below(0.8, MEMORY_BOUND);
    table.note(match low.is_empty() {
        true => format!("{}: each at least 80 % of the copy's rate", MEMORY_BOUND.join(", ")),
        false => format!("below 80 % of the copy's rate: {}", low.join(", ")),
    });
}

fn one(criterion: &mut Criterion, card: &Card, table: &mut Table, op: &Op) {
    let (stream, kernels) = (card.stream(), card.kernels());
    let plan = op.plan(kernels, stream).expect("an operation of the list");
    let elements = plan.inputs.iter().map(|input| input.1).sum::<usize>() + plan.output;
    let room = card.backend().card().budget().available;
    let room = room.to_usize().unwrap_or(usize::MAX);
    if elements * 4 > room {
        println!(
            "{} {}: left out, {} bytes are more than the budget of {room}",
            op.name,
            op.shape_text(),
            elements * 4
        );
        return;
    }
    let count = card.size(sets(elements as u64 * 4), 2).min(room / (elements * 4));
    // Made when criterion wants this one.
    let mut rotation = None;
    let make = || {
        (0..count as u32)
            .map(|set| {
                let inputs: Vec<_> = (plan.inputs.iter().zip(0..))
                    .map(|(&(kind, n), nth)| tiled(stream, kind, set * 8 + nth, n))
                    .collect();
                (inputs, blank(stream, plan.output))
            })
            .collect::<Vec<_>>()
    };
    let mut next = (0..count).cycle();
    let watch = Watch::new(card);
    let shape = op.shape_text();
    let mut group = criterion.benchmark_group("kernel");
    group.throughput(match plan.work {
        Work::Bytes(bytes) => Throughput::Bytes(bytes),
        Work::Flops(flops) => Throughput::Elements(flops),
        Work::Calls => Throughput::Elements(1),
    });
    group.bench_function(format!("{} {shape}", op.name), |bencher| {
        let rotation = rotation.get_or_insert_with(make);
        table.time(bencher, (&op.name, &shape), plan.work, |iterations| {
            watch.time(|| {
                for _ in 0..iterations {
                    let (inputs, y) = &rotation[next.next().unwrap_or(0)];
                    op.launch(kernels, stream, inputs, y).expect("a sound launch");
                }
            })
        });
    });
    group.finish();
}
