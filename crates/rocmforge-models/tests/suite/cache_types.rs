//! Caches of every type: logits of a random model in the shape of SmolLM2 beside those of a cache in f32, on the CPU and on a device.

use crate::reference::random_file;
use rocmforge_ggml::{Activations, CpuBackend, DType, HipGgmlBackend, HostAccess};
use rocmforge_gguf::TensorType;
use rocmforge_models::{Engine, EngineOptions, KvType, Limit, Model, ModelError};
use rocmforge_testkit::gpu;

/// Layers, width, heads, heads of keys, elements of a head, of the inner layer, tokens of the vocabulary.
pub(super) const SMALL: [usize; 7] = [3, 192, 3, 1, 64, 256, 160];

fn model(sizes: [usize; 7]) -> Model {
    Model::from_gguf(random_file(sizes, TensorType::Q8_0)).expect("a model")
}

fn engine<B: HostAccess>(backend: B, model: &Model, kv: KvType) -> Result<Engine<B>, ModelError> {
    let options = EngineOptions {
        max_context: Limit::Tokens(128),
        max_sequences: 1,
        kv,
        chunk: 32,
        ..EngineOptions::default()
    };
    Engine::new(backend, model, options)
}

/// Logits after a prompt of some chunks, and after each of five more tokens; a fork goes on from the same cache, and blocks are moved in between.
fn logits<B: HostAccess>(engine: &mut Engine<B>) -> Vec<Vec<f32>> {
    let prompt: Vec<u32> = (0..53).map(|i| (i * 37 + 11) % 160).collect();
    let other = engine.add_sequence(&[5, 6, 7]).expect("room");
    engine.prefill(other, &[5, 6, 7]).expect("runs");
    let sequence = engine.add_sequence(&prompt).expect("room");
    let mut rows = vec![engine.prefill(sequence, &prompt).expect("runs")];
    rows.push(engine.decode(sequence, 3).expect("runs"));
    let fork = engine.fork(sequence).expect("there");
    rows.push(engine.decode(fork, 9).expect("runs"));
    engine.remove(other).expect("there");
    engine.remove(sequence).expect("there");
    assert!(engine.defragment().expect("runs") > 0, "a block was behind others");
    for token in [140, 2, 77] {
        rows.push(engine.decode(fork, token).expect("runs"));
    }
    rows
}

/// The mean square of the differences over that of the logits.
pub(super) fn nmse(found: &[Vec<f32>], expected: &[Vec<f32>]) -> f64 {
    let square = |x: f32| f64::from(x).powi(2);
    let pairs = found.iter().flatten().zip(expected.iter().flatten());
    let error: f64 = pairs.map(|(f, e)| square(f - e)).sum();
    error / expected.iter().flatten().map(|&e| square(e)).sum::<f64>()
}

/// Bounds of the differences from a cache in f32: ggml's for tests of a whole model is 2e-3.
const BOUNDS: [(KvType, f64); 3] = [(KvType::F16, 1e-5), (KvType::Bf16, 5e-4), (KvType::Q8_0, 2e-3)];

#[test]
fn every_type_is_near_a_cache_in_f32() {
    let model = model(SMALL);
    let gpu = gpu();
    let on_cpu = |kv| logits(&mut engine(CpuBackend::with_threads(2), &model, kv).expect("loads"));
    let on_device = |kv, activations| {
        let backend = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        logits(&mut engine(backend.activations(activations), &model, kv).expect("loads"))
    };
    let exact = on_cpu(KvType::F32);
    let same = nmse(&on_device(KvType::F32, Activations::F32), &exact);
    assert!(same < 1e-9, "{same:.1e}");
    let in_8_bits = on_device(KvType::F32, Activations::Int8);
    let rounding = nmse(&in_8_bits, &exact);
    assert!(rounding <= 2e-3, "{rounding:.1e}");
    for (kv, bound) in BOUNDS {
        let cpu = on_cpu(kv);
        let device = on_device(kv, Activations::F32);
        let rounded = on_device(kv, Activations::Int8);
        let [host, card, between, packed] = [
            nmse(&cpu, &exact),
            nmse(&device, &exact),
            nmse(&device, &cpu),
            nmse(&rounded, &in_8_bits),
        ];
        println!(
            "{kv:?}: CPU {host:.1e}, device {card:.1e}, one beside the other {between:.1e}, in 8 bits {packed:.1e}"
        );
        assert!(host > 0.0 && host <= bound, "{kv:?}: {host:.1e}");
        assert!(card > 0.0 && card <= bound, "{kv:?}: {card:.1e}");
        assert!(between <= bound, "{kv:?}: {between:.1e}");
        // Both round activations to 8 bits, each to others where the cache changes them.
        let limit = bound + 2.0 * rounding;
        assert!(packed <= limit, "{kv:?}: {packed:.1e}, at most {limit:.1e}");
    }
}

#[test]
fn a_cache_in_q8_0_takes_its_share_and_wants_heads_of_whole_blocks() {
    let whole = model(SMALL);
    let bytes = |kv| engine(CpuBackend::new(), &whole, kv).expect("loads").memory().cache;
    assert_eq!(bytes(KvType::F16), bytes(KvType::Bf16));
    assert_eq!(bytes(KvType::F32), 2 * bytes(KvType::F16));
    assert_eq!(bytes(KvType::Q8_0) * 64, bytes(KvType::F16) * 34);
    let odd = model([1, 96, 2, 1, 48, 64, 96]);
    let refused = engine(CpuBackend::new(), &odd, KvType::Q8_0).expect_err("heads of 48");
    assert!(
        matches!(
            refused,
            ModelError::CacheType {
                kv: DType::Q8_0,
                head_dim: 48
            }
        ),
        "{refused}"
    );
    engine(CpuBackend::new(), &odd, KvType::Bf16).expect("any head");
}
