//! all-MiniLM-L6-v2 against its own reference pipeline (see fixtures/minilm_reference.py). Skipped, visibly, without the
//! model: `cargo xtask model minilm`.

use std::path::Path;

use rocmforge::ggml::CpuBackend;
use rocmforge::models::bert::{Bert, Embedded, Embedder, EmbedderOptions};
use serde::Deserialize;

#[derive(Deserialize)]
struct Reference {
    sentences: Vec<Sentence>,
}

#[derive(Deserialize)]
struct Sentence {
    text: String,
    tokens: Vec<u32>,
    embedding: Vec<f32>,
}

fn reference() -> Vec<Sentence> {
    let text = include_str!("../fixtures/minilm_reference.json");
    serde_json::from_str::<Reference>(text)
        .expect("the fixture is JSON")
        .sentences
}

fn model() -> Option<Bert> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = Bert::minilm_directory(&workspace);
    directory
        .exists()
        .then(|| Bert::open(&directory).expect("the model opens"))
}

/// Texts on the CPU, with hidden states.
fn embed(model: &Bert, cpu: CpuBackend, texts: &[&str]) -> Embedded {
    let options = EmbedderOptions {
        hidden: true,
        ..EmbedderOptions::default()
    };
    let mut embedder = Embedder::new(model.clone(), cpu, options).expect("loaded");
    embedder.embed(texts).expect("encoded")
}

macro_rules! model_or_skip {
    () => {
        match model() {
            Some(model) => model,
            None => rocmforge_testkit::skip!("no model: run `cargo xtask model minilm`"),
        }
    };
}

fn worst(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    // NaN must not pass as a small difference.
    found
        .iter()
        .zip(expected)
        .map(|(a, b)| (a - b).abs())
        .fold(0.0, |m, d| if d > m || d.is_nan() { d } else { m })
}

#[test]
fn tokens_are_the_references() {
    let model = model_or_skip!();
    assert_eq!(model.max_tokens(), 256);
    for sentence in reference() {
        let batch = model.tokenize(&[&sentence.text]).expect("tokenised");
        assert_eq!(batch.ids(), sentence.tokens, "{:?}", sentence.text);
    }
}

#[test]
fn embeddings_are_the_references_one_by_one() {
    let model = model_or_skip!();
    for sentence in reference() {
        let found = embed(&model, CpuBackend::new(), &[&sentence.text]);
        let worst = worst(found.embeddings.row(0), &sentence.embedding);
        println!("{:3} tokens: {worst:.2e}", found.tokens[0]);
        assert!(worst <= 1e-6, "{worst:e} for {:?}", sentence.text);
    }
}

#[test]
fn padding_changes_nothing() {
    let model = model_or_skip!();
    let sentences = reference();
    let texts: Vec<&str> = sentences.iter().map(|s| s.text.as_str()).collect();
    let found = embed(&model, CpuBackend::new(), &texts);
    assert_eq!((found.tokens.len(), found.tokens.iter().max()), (8, Some(&256)));
    for (index, sentence) in sentences.iter().enumerate() {
        let worst = worst(found.embeddings.row(index), &sentence.embedding);
        assert!(worst <= 1e-6, "{worst:e} for {:?}", sentence.text);
    }
}

#[test]
fn results_do_not_depend_on_the_number_of_threads() {
    let model = model_or_skip!();
    let sentences = reference();
    let texts = [6, 0].map(|index| sentences[index].text.as_str());
    let [one, five] = [1, 5].map(|threads| embed(&model, CpuBackend::with_threads(threads), &texts));
    assert_eq!(one, five);
}
