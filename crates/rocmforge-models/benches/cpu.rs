//! Tokens a second of SmolLM2-135M on the CPU: a prompt of 512 tokens, and decoding after one of 16.
//!
//! `cargo xtask model smollm2`, then `cargo bench -p rocmforge-models --bench cpu`. Criterion's `elem/s` are tokens a second.
//! `tests/reference/speed.py` measures llama.cpp in the same way.
#![allow(clippy::print_stderr)] // a bench without its model says so

use std::path::Path;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::{Context, Engine, EngineOptions, Model};

const PROMPT: usize = 512;
const DECODED: usize = 32;

fn tokens(c: &mut Criterion) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/models/smollm2/SmolLM2-135M-Instruct.Q4_1.gguf");
    if !path.exists() {
        eprintln!("skipped: SmolLM2 is absent: cargo xtask model smollm2");
        return;
    }
    let model = Model::open(path).expect("the file is whole");
    let options = EngineOptions {
        context: Context::Tokens(1024),
        ..EngineOptions::default()
    };
    let mut engine = Engine::new(CpuBackend::new(), &model, options).expect("the model loads");
    let vocab = model.config().vocab as u32;
    let mut salt = 0;
    // Another prompt each time: the cache must not know it.
    let mut prompt = |length: u32| -> Vec<u32> {
        salt += 1;
        (0..length).map(|i| (salt * 7919 + i * 104_729) % vocab).collect()
    };
    let mut group = c.benchmark_group("smollm2");
    group.sample_size(10);

    group.throughput(Throughput::Elements(PROMPT as u64));
    group.bench_function("prompt", |b| {
        b.iter(|| {
            let ids = prompt(PROMPT as u32);
            let sequence = engine.add_sequence(&ids).expect("room");
            let logits = engine.prefill(sequence, &ids).expect("runs");
            engine.remove(sequence).expect("there");
            logits
        });
    });

    group.throughput(Throughput::Elements(DECODED as u64));
    group.bench_function("decode", |b| {
        let ids = prompt(16);
        let sequence = engine.add_sequence(&ids).expect("room");
        engine.prefill(sequence, &ids).expect("runs");
        b.iter(|| {
            let branch = engine.fork(sequence).expect("there");
            for token in 0..DECODED as u32 {
                engine.decode(branch, 1000 + token).expect("runs");
            }
            engine.remove(branch).expect("there");
        });
    });
    group.finish();
}

criterion_group!(benches, tokens);
criterion_main!(benches);
