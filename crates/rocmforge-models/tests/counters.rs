//! Counts of a decoding step of SmolLM2 on both simulated cards, against committed bounds: launches, instructions, bytes.
//!
//! `cargo test -p rocmforge-models --test counters -- --nocapture` prints them.

#![allow(clippy::print_stdout)]

use rocmforge_ggml::{Activations, HipGgmlBackend};
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model};
use rocmforge_sim::counters::{Counters, by_kernel};
use rocmforge_sim::{Arch, CardConfig, SimConfig};
use rocmforge_testkit::{LeaseOptions, gpu_with, skip};

const SMOLLM2: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

/// The most that a token may take: two percent more instructions, and one percent more bytes, than when the bound was written.
struct Bound {
    arch: Arch,
    launches: u64,
    /// Of waves.
    instructions: u64,
    /// Of the segments of 128 bytes that each launch touched.
    bytes: u64,
}

const BOUNDS: [Bound; 2] = [
    Bound {
        arch: Arch::Gfx1100,
        launches: 215,
        instructions: 41_500_000,
        bytes: 99_800_000,
    },
    Bound {
        arch: Arch::Gfx1201,
        launches: 215,
        instructions: 36_400_000,
        bytes: 99_800_000,
    },
];

#[test]
fn a_decoding_step_of_smollm2_is_within_its_bounds() {
    let path = rocmforge_testkit::test_model_path(SMOLLM2);
    if !path.exists() {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    }
    let model = Model::open(path).expect("the file is whole");
    let mut passed = Vec::new();
    for bound in BOUNDS {
        let lease = gpu_with(LeaseOptions {
            sim: SimConfig {
                cards: vec![CardConfig::of(bound.arch)],
                counters: true,
                ..SimConfig::default()
            },
            ..LeaseOptions::default()
        });
        let Some(sim) = lease.sim().cloned() else {
            skip!("unset ROCMFORGE_DEVICE: a step is counted on simulated cards");
        };
        let backend = HipGgmlBackend::new(lease.backend()).expect("kernels");
        let options = EngineOptions {
            max_context: Limit::Tokens(512),
            max_sequences: 1,
            kv: KvType::F16,
            ..EngineOptions::default()
        };
        let mut engine = Engine::new(backend.activations(Activations::Int8), &model, options).expect("room");
        let prompt = [504, 3575, 282];
        let sequence = engine.add_sequence(&prompt).expect("room");
        engine.prefill(sequence, &prompt).expect("runs");
        // The first step of a graph may prepare what later ones use.
        engine.decode(sequence, 4649).expect("runs");
        sim.take_launch_counts();
        engine.decode(sequence, 314).expect("runs");
        let launches = sim.take_launch_counts();

        let mut all = Counters::default();
        launches.iter().for_each(|launch| all.add(&launch.counters));
        let weights = std::fs::metadata(rocmforge_testkit::test_model_path(SMOLLM2))
            .expect("there")
            .len();
        println!(
            "{}: a token of SmolLM2 (Q4_1, activations of 8 bits, cache in f16) takes",
            bound.arch
        );
        println!(
            "{} launches, {} instructions of waves, {} bytes of memory (the file has {weights})",
            launches.len(),
            all.total(),
            all.distinct.bytes()
        );
        println!(
            "{:<28} {:>8} {:>13} {:>12}",
            "kernel", "launches", "instructions", "bytes"
        );
        for (kernel, counts) in by_kernel(&launches) {
            let c = &counts.counters;
            println!(
                "{kernel:<28} {:>8} {:>13} {:>12}",
                counts.launches,
                c.total(),
                c.distinct.bytes()
            );
        }
        for (what, found, most) in [
            ("launches", launches.len() as u64, bound.launches),
            ("instructions", all.total(), bound.instructions),
            ("bytes", all.distinct.bytes(), bound.bytes),
        ] {
            if found > most {
                passed.push(format!("{found} {what} on {}, at most {most} are allowed", bound.arch));
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("; "));
}
