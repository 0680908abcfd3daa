//! Real models on the CPU against the f64 reference. Without the files (`cargo xtask model smollm2`) the tests are skipped by name.

#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture
#![allow(dead_code)] // the random models' half of the module

mod reference;

use reference::{Fixture, check_prompt, check_scored, engine, model_file};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::Model;
use rocmforge_testkit::skip;

const SMOLLM2: &str = "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";

fn open(file: &str) -> Option<Model> {
    Some(Model::open(model_file(file)?).expect("the file is whole"))
}

#[test]
fn smollm2_first_logits_and_greedy_tokens() {
    let Some(model) = open(SMOLLM2) else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let fixture = Fixture::load("smollm2");
    let mut engine = engine(CpuBackend::new(), &model, 256);
    let worst = (0..fixture.prompts.len())
        .map(|i| check_prompt(&mut engine, &fixture, i, 24))
        .fold(0.0, f64::max);
    println!("largest difference of a logit: {worst:.1e}");
}

#[test]
fn smollm2_perplexity() {
    let Some(model) = open(SMOLLM2) else {
        skip!("SmolLM2 is absent: cargo xtask model smollm2");
    };
    let fixture = Fixture::load("smollm2");
    let mut engine = engine(CpuBackend::new(), &model, 512);
    let found = check_scored(&mut engine, &fixture.scored, 128);
    assert!((found - fixture.scored.perplexity).abs() < 1e-3, "{found}");
}
