//! Models on a device against the f64 reference.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

#[path = "../reference/mod.rs"]
mod reference;

use reference::{Fixture, Tiny, check_prompt, check_scored, engine, model_file};
use rocmforge_ggml::HipGgmlBackend;
use rocmforge_models::Model;
use rocmforge_testkit::{gpu, skip};

const SMOLLM2: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

#[test]
fn every_architecture_equals_the_f64_forward() {
    let gpu = gpu();
    for tiny in Tiny::all() {
        let worst = [40, 7].map(|chunk| tiny.check(HipGgmlBackend::new(gpu.backend()).expect("kernels"), chunk));
        println!("{:24} {}", tiny.file, worst.map(|d| format!("{d:.1e}")).join(" "));
    }
}

/// On a simulated card one prompt and few tokens; on a real one everything.
#[test]
fn smollm2_equals_the_f64_reference() {
    let Some(path) = model_file(SMOLLM2) else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let gpu = gpu();
    let fixture = Fixture::load("smollm2");
    let model = Model::open(path).expect("the file is whole");
    let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let mut engine = engine(backend, &model, 512);
    let simulated = gpu.sim().is_some();
    let (prompts, tokens) = if simulated { (1, 3) } else { (fixture.prompts.len(), 24) };
    let worst = (0..prompts)
        .map(|index| check_prompt(&mut engine, &fixture, index, tokens))
        .fold(0.0, f64::max);
    println!("largest difference of a logit: {worst:.1e}");
    if !simulated {
        let found = check_scored(&mut engine, &fixture.scored, 128);
        assert!((found - fixture.scored.perplexity).abs() < 1e-3, "{found}");
    }
}
