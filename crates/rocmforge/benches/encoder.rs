//! The encoder on the CPU: a synthetic layer of MiniLM's size, and the whole model if it is there.
#![allow(missing_docs, clippy::print_stderr)] // criterion's macros make undocumented items; a skip must be seen

use std::hint::black_box;
use std::path::Path;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use rocmforge::ggml::{CpuBackend, DType, Graph, HostAccess, Layout, Op, TensorDesc, executor};
use rocmforge::models::bert::{Bert, Embedder, EmbedderOptions};

/// One dense layer, the encoder's main cost.
fn dense(c: &mut Criterion) {
    let mut group = c.benchmark_group("cpu dense layer");
    for tokens in [1usize, 32, 256] {
        let (k, n) = (384, 1536);
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([tokens, k]));
        let w = graph.add_tensor(TensorDesc::new([k, n], DType::F32, Layout::ColMajor));
        let y = graph.push(Op::MulMat, &[x, w]).expect("fits");
        let mut cpu = CpuBackend::new();
        executor::prepare(&mut cpu, &graph).expect("memory");
        cpu.write_f32(x, &vec![0.5; tokens * k]).expect("written");
        cpu.write_f32(w, &vec![0.25; k * n]).expect("written");
        group.throughput(Throughput::Elements((2 * tokens * k * n) as u64));
        group.bench_function(BenchmarkId::from_parameter(tokens), |b| {
            b.iter(|| executor::execute_graph(&mut cpu, &graph).expect("runs"));
        });
        black_box(cpu.read_f32(y).expect("read"));
    }
    group.finish();
}

fn minilm(c: &mut Criterion) {
    let directory = Bert::minilm_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
    if !directory.exists() {
        eprintln!("no model, its bench is skipped: run `cargo xtask model minilm`");
        return;
    }
    let model = Bert::open(&directory).expect("the model opens");
    let mut group = c.benchmark_group("cpu minilm");
    group.sample_size(10);
    for (texts, tokens) in [(1usize, 16usize), (8, 32), (8, 128)] {
        let ids = (0..tokens as u32).map(|i| 1000 + i).collect();
        let rows = vec![model.encoder().whole(ids).expect("its ids"); texts];
        let options = EmbedderOptions::default();
        let mut embedder = Embedder::new(model.clone(), CpuBackend::new(), options).expect("loaded");
        group.throughput(Throughput::Elements((texts * tokens) as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{texts}x{tokens}")), |b| {
            b.iter(|| embedder.embed_ids(&rows).expect("runs"));
        });
    }
    group.finish();
}

criterion_group!(benches, dense, minilm);
criterion_main!(benches);
