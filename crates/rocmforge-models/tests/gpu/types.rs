//! Models in types of weights that nothing encodes, on a device alone: what has no kernel there is an error.

use rocmforge_ggml::{Activations, CpuBackend, HipGgmlBackend, HostAccess};
use rocmforge_gguf::TensorType;
use rocmforge_models::{Chunk, Model, Outputs};
use rocmforge_testkit::gpu;

use crate::reference::{engine, random_file};

/// The types that kernels read in ggml's order alone, and those that are packed.
const TYPES: [TensorType; 15] = [
    TensorType::Iq1S,
    TensorType::Iq1M,
    TensorType::Iq2Xxs,
    TensorType::Iq2Xs,
    TensorType::Iq2S,
    TensorType::Iq3Xxs,
    TensorType::Iq3S,
    TensorType::Tq1_0,
    TensorType::Tq2_0,
    TensorType::Q1_0,
    TensorType::Q2_0,
    TensorType::Nvfp4,
    TensorType::Iq4Nl,
    TensorType::Iq4Xs,
    TensorType::Mxfp4,
];

/// Logits of twelve tokens at once, and of two more one at a time.
fn logits<B: HostAccess>(backend: B, model: &Model) -> Vec<f32> {
    let ids: Vec<u32> = (0..14).map(|n| n * 5 % 40).collect();
    let mut engine = engine(backend, model, 32);
    let sequence = engine.add_sequence(&ids[..1]).expect("room");
    let mut all = Vec::new();
    for tokens in [&ids[..12], &ids[12..13], &ids[13..]] {
        let chunk = Chunk {
            sequence,
            tokens,
            outputs: Outputs::All,
        };
        let rows = engine.step(&[chunk]).expect("a kernel for each launch");
        all.extend(rows.rows().flatten().copied());
    }
    all
}

/// The mean square of the difference over that of the second.
fn error(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let squares = |values: &mut dyn Iterator<Item = f32>| values.map(|v| f64::from(v).powi(2)).sum::<f64>();
    squares(&mut found.iter().zip(expected).map(|(a, b)| a - b)) / squares(&mut expected.iter().copied())
}

#[test]
fn a_model_of_every_type_without_an_encoder_runs_on_a_device_alone() {
    let gpu = gpu();
    for ty in TYPES {
        let model = Model::from_gguf(random_file([1, 256, 4, 2, 64, 256, 40], ty)).expect("a model");
        let expected = logits(CpuBackend::new(), &model);
        assert!(expected.iter().all(|v| v.is_finite()), "{ty:?}");
        let device = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let exact = error(&logits(device(), &model), &expected);
        // Prompts are rounded to 16 bits, activations of packed weights to 8.
        let rounded = error(&logits(device().activations(Activations::Int8), &model), &expected);
        println!("{ty:?} {exact:.1e} {rounded:.1e}");
        assert!(exact < 1e-9, "{ty:?}: {exact:e}");
        assert!(rounded < 1e-3, "{ty:?}: {rounded:e}");
    }
}
