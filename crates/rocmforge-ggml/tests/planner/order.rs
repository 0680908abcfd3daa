//! The search for another order of the nodes.

use rocmforge_ggml::graph_file::{GraphFile, Kind, search_order};
use rocmforge_ggml::planner::BufferKind;
use serde_json::{Value, json};

use super::random::{Random, graph};

const KIND: BufferKind = BufferKind::unlimited(128);

/// Every operand comes before its node.
fn assert_runs(file: &GraphFile, steps: &[u32]) {
    let leafs = file.leafs();
    let mut seen = vec![false; steps.len()];
    for (node, &step) in steps.iter().enumerate() {
        assert!(!std::mem::replace(&mut seen[step as usize], true), "step {step} twice");
        for &src in &file.entries()[leafs + node].srcs {
            let src = src as usize;
            assert!(
                src < leafs || steps[src - leafs] < step,
                "node {node} before its operand {src}"
            );
        }
    }
}

#[test]
fn an_order_is_never_worse_and_often_better_on_random_graphs() {
    let (mut better, mut given, mut found) = (0, 0usize, 0usize);
    for seed in 0..100 {
        let file = graph(&mut Random(seed));
        let order = search_order(&file, KIND).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_runs(&file, &order.steps);
        let planned = file.problem(KIND, rocmforge_ggml::planner::InPlace::Full);
        let own = rocmforge_ggml::planner::Plan::new(&planned.problem).unwrap();
        assert!(order.plan.peak_bytes <= own.peak_bytes, "seed {seed}");
        assert!(order.any_order_bytes <= order.plan.peak_bytes, "seed {seed}");
        better += usize::from(order.changed);
        given += own.peak_bytes;
        found += order.plan.peak_bytes;
    }
    assert!(better > 50, "{better} of 100 graphs");
    assert!(found * 10 < given * 9, "{found} B of {given} B");
}

#[test]
fn transformers_keep_their_order() {
    for name in ["llama7b_pp512", "llama7b_pp512_nofa", "qwen3_30b_a3b_pp512"] {
        let path = format!("{}/graphs/{name}.json.gz", env!("CARGO_MANIFEST_DIR"));
        let file = GraphFile::read(path).unwrap();
        let order = search_order(&file, KIND).unwrap();
        assert_runs(&file, &order.steps);
        assert!(!order.changed, "{name}");
    }
}

/// A cache that is written and then read through another view, with no edge between them, and a chain that would rather run first.
#[test]
fn a_read_of_a_cache_stays_after_its_write() {
    let mut nodes: Vec<Value> = Vec::new();
    let mut add = |op: &str, elements: u64, srcs: &[u32], view_of: Option<u32>| -> u32 {
        let id = nodes.len() as u32;
        let leaf = op == "NONE";
        nodes.push(json!({
            "id": id, "kind": if leaf { "leaf" } else { "node" }, "op": op, "dtype": "f32", "shape": [elements, 1, 1, 1],
            "nb": [4, 4 * elements, 4 * elements, 4 * elements], "nbytes": 4 * elements, "srcs": srcs, "view_of": view_of,
            "external": leaf,
        }));
        id
    };
    let cache = add("NONE", 1024, &[], None);
    let x = add("NONE", 1024, &[], None);
    let large = add("MUL_MAT", 512, &[x], None);
    let write = add("SET_ROWS", 1024, &[large, cache], Some(cache));
    let view = add("VIEW", 1024, &[cache], Some(cache));
    let early = add("MUL_MAT", 64, &[view], None);
    let second = add("SET_ROWS", 1024, &[x, cache], Some(cache));
    let late = add("MUL_MAT", 64, &[view], None);
    let sum = add("ADD", 64, &[early, late], None);
    nodes[sum as usize]["is_output"] = json!(true);
    let text = json!({"schema": "rocmforge-graph-v1", "nodes": nodes}).to_string();
    let file = GraphFile::from_bytes(text.as_bytes()).unwrap();
    assert_eq!(file.entries()[cache as usize].kind, Kind::Leaf);
    let order = search_order(&file, KIND).unwrap();
    assert_runs(&file, &order.steps);
    let step = |id: u32| order.steps[id as usize - file.leafs()];
    assert!(step(write) < step(early) && step(early) < step(second) && step(second) < step(late));
}
