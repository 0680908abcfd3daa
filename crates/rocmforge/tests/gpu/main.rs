//! The whole encoder on a device against the CPU: every layer, padded, sentences of different lengths.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod threads;

use std::path::Path;

use rocmforge::ggml::{CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge::models::bert::{Bert, Embedded, Embedder, EmbedderOptions};
use rocmforge_testkit::{gpu, skip};

/// Eight sentences from 3 to 11 tokens: short, because a simulated card multiplies matrices slowly.
const SENTENCES: [&str; 8] = [
    "Hi",
    "Good morning.",
    "GPU memory is shared.",
    "The fox jumps over the dog.",
    "A quick fox leapt over a hound.",
    "Radeon cards drive the desktop too.",
    "How far is it to Zürich?",
    "Kernels, streams and events.",
];

/// What each component of a token may differ by.
const TOLERANCE: f32 = 1e-5;

/// Texts with hidden states.
fn embed(model: &Bert, backend: impl HostAccess, texts: &[&str]) -> Embedded {
    let options = EmbedderOptions {
        hidden: true,
        ..EmbedderOptions::default()
    };
    let mut embedder = Embedder::new(model.clone(), backend, options).expect("loaded");
    embedder.embed(texts).expect("encoded")
}

fn worst(found: &[f32], expected: &[f32]) -> (usize, f32) {
    assert_eq!(found.len(), expected.len());
    let mut worst = (0, 0.0);
    for (index, (a, b)) in found.iter().zip(expected).enumerate() {
        let difference = (a - b).abs();
        if difference > worst.1 || difference.is_nan() {
            worst = (index, difference);
        }
        if difference.is_nan() {
            break;
        }
    }
    worst
}

#[test]
fn every_layer_of_minilm_agrees_with_the_cpu() {
    let directory = Bert::minilm_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    if !directory.exists() {
        skip!("no model: run `cargo xtask model minilm`");
    }
    let model = Bert::open(&directory).expect("the model opens");
    let gpu = gpu();
    let started = std::time::Instant::now();
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels for the device");
    let on_device = embed(&model, device, &SENTENCES);
    println!("{:?} tokens on the device: {:.1?}", on_device.tokens, started.elapsed());
    let on_cpu = embed(&model, CpuBackend::new(), &SENTENCES);
    let (shortest, longest) = (on_cpu.tokens.iter().min(), on_cpu.tokens.iter().max());
    assert!(shortest < longest, "some must be padded: {:?}", on_cpu.tokens);

    let layers = model.config().layers + 1;
    for layer in 0..layers {
        let mut of_layer = 0.0f32;
        for (text, (found, expected)) in on_device.hidden.iter().zip(&on_cpu.hidden).enumerate() {
            assert_eq!((found.len(), expected.len()), (layers, layers));
            let (index, difference) = worst(&found[layer], &expected[layer]);
            assert!(
                difference <= TOLERANCE,
                "layer {layer}, text {text}, element {index}: device {}, CPU {}",
                found[layer][index],
                expected[layer][index]
            );
            of_layer = of_layer.max(difference);
        }
        println!("after layer {layer}: {of_layer:.2e}");
    }
    let (index, difference) = worst(&on_device.embeddings.data, &on_cpu.embeddings.data);
    println!("embeddings: {difference:.2e}");
    assert!(
        difference <= TOLERANCE,
        "embedding component {index} differs by {difference:e}"
    );
}

/// What a component may differ by from the pipeline's, whose weights are f32, if ours are rounded to f16: that moves the worst
/// of these sentences by 1.7e-4.
const HALF_TOLERANCE: f32 = 5e-4;

#[derive(serde::Deserialize)]
struct Reference {
    sentences: Vec<Sentence>,
}

#[derive(serde::Deserialize)]
struct Sentence {
    text: String,
    embedding: Vec<f32>,
}

#[test]
fn embeddings_agree_with_the_reference_pipeline() {
    let directory = Bert::minilm_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    if !directory.exists() {
        skip!("no model: run `cargo xtask model minilm`");
    }
    let text = include_str!("../fixtures/minilm_reference.json");
    let mut sentences = serde_json::from_str::<Reference>(text)
        .expect("the fixture is JSON")
        .sentences;
    // The last one is 256 tokens long, too much for a padded batch in simulation.
    sentences.truncate(7);
    let model = Bert::open(&directory).expect("the model opens");
    let texts: Vec<&str> = sentences.iter().map(|s| s.text.as_str()).collect();
    let gpu = gpu();
    let limit = if model.has_half_weights() {
        HALF_TOLERANCE
    } else {
        TOLERANCE
    };
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels for the device");
    let run = embed(&model, device, &texts);
    for (index, sentence) in sentences.iter().enumerate() {
        let (component, difference) = worst(run.embeddings.row(index), &sentence.embedding);
        println!("{difference:.2e} for {:?}", sentence.text);
        assert!(
            difference <= limit,
            "component {component} differs by {difference:e}: {:?}",
            sentence.text
        );
    }
}
