//! Planning of every committed graph: a table of peak, bound and ggml's peak, and the time of a plan with all that belongs to it: the
//! problem from the graph, in-place decisions, placement, verification.
//!
//! `cargo bench -p rocmforge-ggml --bench planner`.
#![allow(clippy::print_stderr)] // the table

use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_ggml::graph_file::GraphFile;
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan};

fn plans(c: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("graphs");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the graphs are committed")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "gz"))
        .collect();
    paths.sort();
    let mut group = c.benchmark_group("plan");
    eprintln!(
        "{:<22} {:>6} {:>11} {:>11} {:>11} {:>6} {:>8}",
        "graph", "nodes", "peak B", "bound B", "ggml B", "ratio", "ggml us"
    );
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.trim_end_matches(".json.gz");
        // The scenarios are not a graph.
        let Ok(file) = GraphFile::read(&path) else { continue };
        let make = || Plan::new(&file.problem(BufferKind::unlimited(128), InPlace::Full).problem).expect("plans");
        let plan = make();
        let ggml = file.ggml_peak(128).unwrap_or(0);
        eprintln!(
            "{name:<22} {:>6} {:>11} {:>11} {ggml:>11} {:>6.3} {:>8.1}",
            file.entries().len() - file.leafs(),
            plan.peak_bytes,
            plan.bound_bytes,
            ggml as f64 / plan.peak_bytes as f64,
            file.ggml_plan_us.unwrap_or(0.0)
        );
        group.bench_function(name, |b| b.iter(make));
    }
    group.finish();
}

criterion_group!(benches, plans);
criterion_main!(benches);
