//! Real models on the CPU against the f64 reference. Without the files (`cargo xtask model smollm2`) the tests are skipped by name.

use crate::reference::{Fixture, check_batch, check_chunks, check_prompt, check_scored, engine, model_file};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::Model;
use rocmforge_testkit::skip;

/// A real model: its file under target/models, its fixture, the command that fetches it.
struct Real {
    file: &'static str,
    fixture: &'static str,
    command: &'static str,
}

const SMOLLM2: Real = Real {
    file: "smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    fixture: "smollm2",
    command: "cargo xtask model smollm2",
};

const GEMMA3: Real = Real {
    file: "gemma3/gemma-3-270m-q4_k_m.gguf",
    fixture: "gemma3",
    command: "cargo xtask model gemma3",
};

impl Real {
    /// `None`: the file is absent.
    fn open(&self) -> Option<(Model, Fixture)> {
        let model = Model::open(model_file(self.file)?).expect("the file is whole");
        Some((model, Fixture::load(self.fixture)))
    }

    /// First logits and 24 greedy tokens of every prompt.
    fn prompts(&self) {
        let Some((model, fixture)) = self.open() else {
            skip!("{} is absent: {}", self.file, self.command);
        };
        let mut engine = engine(CpuBackend::new(), &model, 256);
        let worst = (0..fixture.prompts.len())
            .map(|index| check_prompt(&mut engine, &fixture, index, 24))
            .fold(0.0, f64::max);
        println!("largest difference of a logit: {worst:.1e}");
    }

    /// Each token of a text given those before it.
    fn perplexity(&self) {
        let Some((model, fixture)) = self.open() else {
            skip!("{} is absent: {}", self.file, self.command);
        };
        let scored = &fixture.scored;
        let mut engine = engine(CpuBackend::new(), &model, scored.ids.len());
        let found = check_scored(&mut engine, scored, 128);
        println!("perplexity {found:.4}, the reference has {:.4}", scored.perplexity);
        assert!((found - scored.perplexity).abs() < 1e-3, "{found}");
    }
}

#[test]
fn smollm2_first_logits_and_greedy_tokens() {
    SMOLLM2.prompts();
}

#[test]
fn smollm2_perplexity() {
    SMOLLM2.perplexity();
}

#[test]
fn gemma3_first_logits_and_greedy_tokens() {
    GEMMA3.prompts();
}

/// 661 tokens: past the window of 512.
#[test]
fn gemma3_perplexity_past_its_window() {
    GEMMA3.perplexity();
}

#[test]
fn a_prompt_in_chunks_gives_the_same_logits() {
    let Some((model, fixture)) = SMOLLM2.open() else {
        skip!("{} is absent: {}", SMOLLM2.file, SMOLLM2.command);
    };
    let longest = fixture
        .prompts
        .iter()
        .max_by_key(|prompt| prompt.ids.len())
        .expect("prompts");
    let worst = check_chunks(CpuBackend::new, &model, &longest.ids);
    println!("largest difference of a logit: {worst:.1e}");
}

#[test]
fn sequences_in_one_batch_give_the_logits_that_each_gives_alone() {
    let Some((model, fixture)) = SMOLLM2.open() else {
        skip!("{} is absent: {}", SMOLLM2.file, SMOLLM2.command);
    };
    let prompts: Vec<&[u32]> = fixture.prompts.iter().map(|prompt| prompt.ids.as_slice()).collect();
    let worst = check_batch(CpuBackend::new, &model, &prompts, 2);
    println!("largest difference of a logit: {worst:.1e}");
}
