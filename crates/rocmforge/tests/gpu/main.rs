//! The whole encoder on a device against the CPU: every layer, padded, sentences of different lengths.
#![allow(clippy::print_stdout)] // measured differences, shown when a test fails or with --nocapture

mod threads;

use std::path::Path;

use rocmforge::ggml::{CpuBackend, HipGgmlBackend};
use rocmforge::models::bert::Bert;
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

/// What a padding token may differ by: nobody reads it, and the model magnifies rounding there (PyTorch's own f32 is
/// 5.6e-5 from its f64 for this batch, and 3.0e-6 for tokens).
const PADDING_TOLERANCE: f32 = 2e-4;

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
    let batch = model.tokenize(&SENTENCES).expect("tokenised");
    let (shortest, longest) = (batch.lengths().iter().min(), batch.lengths().iter().max());
    assert!(shortest < longest, "the batch must be padded: {:?}", batch.lengths());

    let gpu = gpu();
    let started = std::time::Instant::now();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels for the device");
    let on_device = model.run(&mut device, &batch).expect("encoded on the device");
    println!(
        "{} x {} tokens on the device: {:.1?}",
        batch.len(),
        batch.seq(),
        started.elapsed()
    );
    let on_cpu = model.run(&mut CpuBackend::new(), &batch).expect("encoded on the CPU");

    assert_eq!(on_device.hidden.len(), model.config().layers + 1);
    let width = model.config().width;
    for (layer, (found, expected)) in on_device.hidden.iter().zip(&on_cpu.hidden).enumerate() {
        let mut of_tokens = 0.0f32;
        for (at, (found, expected)) in found.chunks(width).zip(expected.chunks(width)).enumerate() {
            let (text, token) = (at / batch.seq(), at % batch.seq());
            let is_padding = token >= batch.lengths()[text];
            let (index, difference) = worst(found, expected);
            let limit = if is_padding { PADDING_TOLERANCE } else { TOLERANCE };
            assert!(
                difference <= limit,
                "layer {layer}, text {text}, token {token}, element {index}: device {}, CPU {}",
                found[index],
                expected[index]
            );
            if !is_padding {
                of_tokens = of_tokens.max(difference);
            }
        }
        println!("after layer {layer}: {of_tokens:.2e}");
    }
    let (index, difference) = worst(&on_device.embeddings.data, &on_cpu.embeddings.data);
    println!("embeddings: {difference:.2e}");
    assert!(
        difference <= TOLERANCE,
        "embedding component {index} differs by {difference:e}"
    );
    drop(device);
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
    let batch = model.tokenize(&texts).expect("tokenised");
    let gpu = gpu();
    let limit = if model.has_half_weights() {
        HALF_TOLERANCE
    } else {
        TOLERANCE
    };
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels for the device");
    let run = model.run(&mut device, &batch).expect("encoded on the device");
    for (index, sentence) in sentences.iter().enumerate() {
        let (component, difference) = worst(run.embeddings.row(index), &sentence.embedding);
        println!("{difference:.2e} for {:?}", sentence.text);
        assert!(
            difference <= limit,
            "component {component} differs by {difference:e}: {:?}",
            sentence.text
        );
    }
    drop(device);
}
