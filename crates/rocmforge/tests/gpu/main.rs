//! The whole encoder on a device against the CPU: every layer, padded, sentences of different lengths.

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

/// What the issue allows each component.
const TOLERANCE: f32 = 1e-5;

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

    assert_eq!(on_device.hidden.len(), model.config().num_hidden_layers + 1);
    for (layer, (found, expected)) in on_device.hidden.iter().zip(&on_cpu.hidden).enumerate() {
        let (index, difference) = worst(found, expected);
        println!("after layer {layer}: {difference:.2e} at element {index}");
        assert!(
            difference <= TOLERANCE,
            "layer {layer}, element {index}: device {}, CPU {}",
            found[index],
            expected[index]
        );
    }
    let (index, difference) = worst(&on_device.embeddings.data, &on_cpu.embeddings.data);
    println!("embeddings: {difference:.2e}");
    assert!(
        difference <= TOLERANCE,
        "embedding component {index} differs by {difference:e}"
    );
    drop(device);
}
