//! llama.cpp's own random models on a device against the logits that llama.cpp computes for them.

use rocmforge_ggml::{CpuBackend, HipGgmlBackend};
use rocmforge_sim::{Arch, CardConfig, SimConfig};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu, gpu_with, skip};

use super::hybrid::{card_of, hybrid, part};
use crate::reference::archs::{ARCHS, Judged, TOKENS, judge, models_or_skip};

/// Tokens on a simulated card, where 128 take too long: past the window of 32 of those that have one.
const FEW: usize = 40;

/// Tokens of each of two sequences there.
const FEWER: usize = 12;

fn check(gpu: &GpuLease) {
    let folder = models_or_skip!();
    let mut wrong = Vec::new();
    let simulated = gpu.sim().is_some();
    let (tokens, fewer) = if simulated { (FEW, FEWER) } else { (TOKENS, TOKENS) };
    let device = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
    for name in ARCHS {
        let judged = Judged::open(&folder, name);
        let errors = [
            ("at once", judged.alone(device(), tokens, tokens)),
            ("two sequences", judged.beside(device(), fewer, [5, 3])),
        ];
        judge(name, &errors, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_architecture_equals_llama_cpp() {
    check(&gpu());
}

#[test]
fn every_architecture_equals_llama_cpp_on_gfx1201() {
    let gpu = gpu_with(LeaseOptions {
        sim: SimConfig {
            cards: vec![CardConfig::of(Arch::Gfx1201)],
            ..LeaseOptions::default().sim
        },
        ..LeaseOptions::default()
    });
    if gpu.sim().is_none() {
        skip!("the gfx1201 of this test is a simulated one");
    }
    check(&gpu);
}

/// A budget of a part of the weights and the cache, and the intermediates: the rest is computed on the CPU. With half a dense model has its embedding and its
/// output there and no layer, with three fifths one of its two layers.
#[test]
fn every_architecture_equals_llama_cpp_with_a_part_of_the_memory() {
    let folder = models_or_skip!();
    let mut wrong = Vec::new();
    for name in ARCHS {
        let judged = Judged::open(&folder, name);
        let plan = *judged.engine(CpuBackend::new(), 1).memory();
        let wanted = (plan.scratch as u64, (plan.weights + plan.cache) as u64);
        let errors = [("with half", 50), ("with three fifths", 60)].map(|(way, percent)| {
            let gpu = card_of(part(wanted, percent));
            let tokens = if gpu.sim().is_some() { FEW } else { TOKENS };
            let mut engine = judged.engine(hybrid(&gpu), 1);
            let error = judged.alone_in(&mut engine, tokens, 7);
            let (on_device, all) = engine.backend().groups_on_gpu();
            let statistics = engine.backend().statistics();
            println!("{name} {way}: {on_device} of {all} groups on the device, {statistics:?}");
            assert!(
                on_device > 0 && on_device < all,
                "{name} {way}: {on_device} of {all} groups"
            );
            assert!(
                statistics.gpu_nodes > 0 && statistics.cpu_nodes > 0,
                "{name} {way}: {statistics:?}"
            );
            let budget = gpu.backend().card().budget();
            assert!(budget.peak <= budget.budget, "{name} {way}: {budget:?}");
            (way, error)
        });
        judge(name, &errors, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
