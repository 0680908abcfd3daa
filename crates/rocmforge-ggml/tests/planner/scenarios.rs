//! The scenarios of llama.cpp's `tests/test-alloc.cpp`: no buffer kind takes more than ggml does there.

use std::io::Read;

use rocmforge_ggml::graph_file::{Entry, GraphFile};
use rocmforge_ggml::planner::{BufferKind, InPlace, InPlacePair, Plan, Problem};
use serde_json::Value;

fn scenarios() -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs/test_alloc_scenarios.json.gz");
    let mut text = String::new();
    let file = std::fs::File::open(path).unwrap();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let all: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(all["schema"], "rocmforge-alloc-scenarios-v1");
    all["scenarios"].as_array().unwrap().clone()
}

/// The scenario's plan, and the place of a tensor in it by name.
struct Planned {
    file: GraphFile,
    entries: Vec<u32>,
    plan: Plan,
}

impl Planned {
    fn place(&self, name: &str) -> (u32, usize) {
        let item = self
            .entries
            .iter()
            .position(|&id| self.file.entries()[id as usize].name == name)
            .unwrap();
        (self.plan.places[item].buffer, self.plan.places[item].offset)
    }
}

fn plan(scenario: &Value) -> Planned {
    let entries: Vec<Entry> = serde_json::from_value(scenario["nodes"].clone()).unwrap();
    let file = GraphFile::from_entries(entries).unwrap();
    let kind = BufferKind {
        alignment: scenario["align"].as_u64().unwrap() as usize,
        max_bytes: scenario["max_chunk"].as_u64().map(|max| max as usize),
    };
    let planned = file.problem(kind, InPlace::Full);
    let plan = Plan::new(&planned.problem).unwrap();
    Planned {
        file,
        entries: planned.entries,
        plan,
    }
}

#[test]
fn totals_are_no_larger_than_ggmls() {
    let mut seen = 0;
    for scenario in scenarios() {
        let name = scenario["name"].as_str().unwrap();
        let (Some(total), true) = (scenario["ggml_allocated_total"].as_u64(), scenario["nodes"].is_array()) else {
            assert_eq!(name, "multiple_buffer_types");
            continue;
        };
        let planned = plan(&scenario);
        assert!(planned.plan.peak_bytes as u64 <= total, "{name}");
        let limit = scenario["limit"].as_str().unwrap();
        let bytes = planned.plan.peak_bytes;
        if let Some(most) = limit.strip_prefix("<=") {
            assert!(bytes <= most.parse().unwrap(), "{name}");
        } else if let Some(exactly) = limit.strip_prefix("==") {
            assert_eq!(bytes, exactly.parse::<usize>().unwrap(), "{name}");
        } else if let Some(more) = limit.strip_prefix(">") {
            assert!(bytes > more.parse().unwrap(), "{name}");
        }
        // No buffer is larger than its kind allows, unless one tensor is.
        if let Some(max) = scenario["max_chunk"].as_u64() {
            let largest = planned.file.entries().iter().map(|entry| entry.nbytes).max().unwrap();
            assert!(
                planned.plan.buffers.iter().all(|b| b.bytes as u64 <= max.max(largest)),
                "{name}"
            );
        }
        seen += 1;
    }
    // Two of the 14 scenarios have two graphs; one has no graph in the file.
    assert_eq!(seen, 15);
}

#[test]
fn a_tensor_is_kept_for_a_node_that_asks_for_it() {
    for scenario in scenarios() {
        let places = |planned: &Planned| [planned.place("x1"), planned.place("x2")];
        match scenario["name"].as_str().unwrap() {
            "graph_optimize_alloc_dep(False)" => {
                let [x1, x2] = places(&plan(&scenario));
                assert_eq!(x1, x2);
            }
            "graph_optimize_alloc_dep(True)" => {
                let [x1, x2] = places(&plan(&scenario));
                assert_ne!(x1, x2);
            }
            _ => {}
        }
    }
}

/// `multiple_buffer_types`: nine nodes over two devices. What is external has no item; ggml puts `x3`, asked for on B, over `x2` on A.
fn two_devices() -> Problem {
    let mut problem = Problem::new(
        8,
        BufferKind {
            alignment: 8,
            max_bytes: Some(32),
        },
    );
    problem.kinds.push(BufferKind::unlimited(8));
    // x0 is the input; xi is written by node i - 1.
    let x0 = problem.add(16, 0, 0);
    let x1 = problem.add(16, 0, 1); // x0 * a0
    let x2 = problem.add(24, 1, 2); // pad x1
    let x3 = problem.add(24, 2, 3); // x2 * b0
    let x4 = problem.add(4, 3, 4); // mean of x3
    let x5 = problem.add(4, 4, 5); // x4 + b1
    let x6 = problem.add(16, 5, 6); // pad x5
    let x7 = problem.add(16, 6, 7); // x6 + a1
    let x8 = problem.add(16, 7, 7); // scale x7, the output
    for item in [x3, x4, x5, x6] {
        problem.items[item as usize].kind = 1;
    }
    let pairs = [(x1, x0), (x3, x2), (x5, x4), (x7, x6), (x8, x7)];
    problem.pairs = pairs.map(|(item, over)| InPlacePair { item, over }).to_vec();
    problem
}

#[test]
fn two_buffer_kinds_take_no_more_than_ggmls() {
    let mut problem = two_devices();
    problem.pairs_across_kinds = true;
    let plan = Plan::new(&problem).unwrap();
    // Beside 32 B of external tensors on each.
    assert!(plan.kind_bytes(0) <= 40 && plan.kind_bytes(1) <= 24, "{plan:?}");
    // Strictly apart, each kind takes its own bound.
    problem.pairs_across_kinds = false;
    let plan = Plan::new(&problem).unwrap();
    assert_eq!((plan.kind_bytes(0), plan.kind_bytes(1)), (40, 32));
    assert_eq!(plan.peak_bytes, plan.bound_bytes);
    // A kind that nothing is placed on has no buffer.
    problem.kinds.push(BufferKind::unlimited(8));
    assert_eq!(Plan::new(&problem).unwrap().kind_bytes(2), 0);
}
