//! Graph files: what is read is written again, our own graphs as files, and files that are wrong.

use rocmforge_ggml::graph_file::{Entry, GraphFile, GraphFileError};
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan, graph_problem, share_memory};
use rocmforge_ggml::{DType, Graph, Layout, Op, TensorDesc, Unary};
use serde_json::{Value, json};

const GRAPH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs/llama7b_tg1.json.gz");

/// Two inputs, a view of the first, and a sum.
fn small() -> Value {
    let entry = |id: u32, kind: &str, op: &str, srcs: Value| {
        json!({
            "id": id, "kind": kind, "op": op, "name": format!("x{id}"), "dtype": "f32", "shape": [4, 1, 1, 1],
            "nb": [4, 16, 16, 16], "nbytes": 16, "srcs": srcs, "view_of": null, "is_input": kind == "leaf", "is_output": id == 3,
            "is_weight": false, "is_kv": false, "external": false, "can_inplace": false, "extra": [id],
        })
    };
    let mut nodes = vec![
        entry(0, "leaf", "NONE", json!([])),
        entry(1, "leaf", "NONE", json!([])),
        entry(2, "node", "RESHAPE", json!([0])),
        entry(3, "node", "ADD", json!([2, 1])),
    ];
    nodes[2]["view_of"] = json!(0);
    nodes[2]["view_offs"] = json!(0);
    nodes[3]["params"] = json!({"eps": 1e-6});
    json!({"schema": "rocmforge-graph-v1", "n_leafs": 2, "n_nodes": 2, "n_ctx": 7, "nodes": nodes})
}

fn read(value: &Value) -> Result<GraphFile, GraphFileError> {
    GraphFile::from_bytes(value.to_string().as_bytes())
}

#[test]
fn files_are_written_as_they_were_read() {
    let file = GraphFile::read(GRAPH).unwrap();
    assert_eq!(file.entries().len() - file.leafs(), 998);
    for bytes in [file.to_json().unwrap(), file.to_gzip().unwrap()] {
        assert_eq!(GraphFile::from_bytes(&bytes).unwrap(), file);
    }
    let file = read(&small()).unwrap();
    assert_eq!(file.other["n_ctx"], 7);
    assert_eq!(file.entries()[1].other["extra"], json!([1]));
    assert_eq!(file.entries()[3].params.as_ref().unwrap()["eps"], 1e-6);
    let written: Value = serde_json::from_slice(&file.to_json().unwrap()).unwrap();
    assert_eq!(written["nodes"][3]["params"], json!({"eps": 1e-6}));
    assert_eq!(written["n_ctx"], 7);
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.json", "a.json.gz"] {
        file.write(folder.path().join(name)).unwrap();
        assert_eq!(GraphFile::read(folder.path().join(name)).unwrap(), file);
    }
}

#[test]
fn every_contradiction_is_a_typed_error() {
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut value = small();
        change(&mut value);
        read(&value).unwrap_err()
    };
    macro_rules! is {
        ($change:expr, $pattern:pat) => {
            let error = refused(&$change);
            assert!(matches!(error, $pattern), "{error:?}");
        };
    }
    use GraphFileError as E;
    is!(|v: &mut Value| v["schema"] = json!("v2"), E::Schema { .. });
    is!(
        |v: &mut Value| v["n_leafs"] = json!(3),
        E::Count {
            field: "n_leafs",
            stated: 3,
            found: 2
        }
    );
    is!(
        |v: &mut Value| v["n_nodes"] = json!(9),
        E::Count { field: "n_nodes", .. }
    );
    is!(
        |v: &mut Value| v["nodes"][1]["id"] = json!(5),
        E::Id { entry: 1, id: 5 }
    );
    is!(
        |v: &mut Value| v["nodes"][3]["srcs"] = json!([9]),
        E::Dangling {
            entry: 3,
            id: 9,
            entries: 4,
            ..
        }
    );
    is!(
        |v: &mut Value| v["nodes"][3]["srcs"] = json!([3]),
        E::Order { entry: 3, id: 3, .. }
    );
    is!(
        |v: &mut Value| v["nodes"][2]["srcs"] = json!([3]),
        E::Order { entry: 2, id: 3, .. }
    );
    is!(
        |v: &mut Value| v["nodes"][2]["view_of"] = json!(2),
        E::Order { field: "view_of", .. }
    );
    is!(
        |v: &mut Value| v["nodes"][2]["view_of"] = json!(7),
        E::Dangling { field: "view_of", .. }
    );
    is!(
        |v: &mut Value| v["nodes"][3]["view_of"] = json!(2),
        E::Entry { entry: 3, .. }
    );
    is!(
        |v: &mut Value| v["nodes"][2]["view_offs"] = json!(1),
        E::ViewRange {
            offset: 1,
            root_bytes: 16,
            ..
        }
    );
    is!(
        |v: &mut Value| v["nodes"][2]["view_offs"] = json!(u64::MAX),
        E::ViewRange { .. }
    );
    is!(|v: &mut Value| v["nodes"][3]["view_offs"] = json!(4), E::Entry { .. });
    is!(|v: &mut Value| v["nodes"][0]["srcs"] = json!([0]), E::Entry { .. });
    is!(
        |v: &mut Value| v["nodes"][0]["nbytes"] = json!(u64::MAX),
        E::Entry { .. }
    );
    is!(
        |v: &mut Value| v["nodes"][0]["shape"] = json!([4, 2, 1, 1]),
        E::Extent { entry: 0, .. }
    );
    is!(
        |v: &mut Value| v["nodes"][0]["shape"] = json!([u64::MAX, u64::MAX, 1, 1]),
        E::Extent { .. }
    );
    is!(|v: &mut Value| v["nodes"][0]["nbytes"] = json!(-1), E::Json(_));
    is!(
        |v: &mut Value| drop(v["nodes"][0].as_object_mut().unwrap().remove("shape")),
        E::Json(_)
    );
}

#[test]
fn damaged_bytes_are_typed_errors() {
    use GraphFileError as E;
    assert!(matches!(GraphFile::read("no/such/file.json"), Err(E::Io { .. })));
    assert!(matches!(GraphFile::from_bytes(b""), Err(E::Json(_))));
    assert!(matches!(GraphFile::from_bytes(&[0x1f, 0x8b, 1, 2]), Err(E::Gzip(_))));
    let whole = std::fs::read(GRAPH).unwrap();
    for len in [2, 10, 11, whole.len() / 2, whole.len() - 1] {
        assert!(
            matches!(GraphFile::from_bytes(&whole[..len]), Err(E::Gzip(_))),
            "{len} bytes"
        );
    }
    // Nesting that would overflow a stack.
    let deep = format!("{{\"schema\": {}", "[".repeat(1 << 20));
    assert!(matches!(GraphFile::from_bytes(deep.as_bytes()), Err(E::Json(_))));
    let deep = format!("{{\"other\": {}", "[".repeat(1 << 20));
    assert!(matches!(GraphFile::from_bytes(deep.as_bytes()), Err(E::Json(_))));
    // 100 MB of spaces in 100 KB.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..100 {
        std::io::Write::write_all(&mut encoder, &vec![b' '; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(matches!(GraphFile::from_bytes(&bomb), Err(E::TooLong { .. })));
    let leaf = small()["nodes"][0].clone();
    let entry: Entry = serde_json::from_value(leaf).unwrap();
    let many = (0..70_000).map(|id| Entry { id, ..entry.clone() }).collect();
    assert!(matches!(GraphFile::from_entries(many), Err(E::TooManyEntries { .. })));
    // Any byte changed: an error or a file that can be planned, never a panic.
    let text = small().to_string().into_bytes();
    for at in 0..text.len() {
        for byte in [b'9', b'-', b'"', b'}', 0xff] {
            let mut text = text.clone();
            text[at] = byte;
            if let Ok(file) = GraphFile::from_bytes(&text) {
                let _ = Plan::new(&file.problem(BufferKind::unlimited(128), InPlace::Full).problem);
            }
        }
    }
}

#[test]
fn sizes_that_are_too_large_together_are_refused_by_the_planner() {
    let mut value = small();
    for id in 0..4 {
        value["nodes"][id]["nbytes"] = json!(i64::MAX as u64 - 200);
    }
    let file = read(&value).unwrap();
    Plan::new(&file.problem(BufferKind::unlimited(128), InPlace::Full).problem).unwrap_err();
}

/// A layer with a cache: the same plan from the graph and from its file.
#[test]
fn a_graph_of_ours_becomes_a_file() {
    let mut graph = Graph::new();
    let x = graph.add_tensor(TensorDesc::f32([8, 64]));
    let ids = graph.add_tensor(TensorDesc::u32([8]));
    let weight = graph.add_tensor(TensorDesc::new([64, 96], DType::Q4_0, Layout::ColMajor));
    let cache = graph.add_tensor(TensorDesc::new([32, 96], DType::F16, Layout::RowMajor));
    let product = graph.push(Op::MatMul, &[x, weight]).unwrap();
    let shaped = graph.reshape(product, [8, 2, 48]).unwrap();
    let scaled = graph.push(Op::Scale { factor: 2.0 }, &[shaped]).unwrap();
    let flat = graph.reshape(scaled, [8, 96]).unwrap();
    let rows = graph.set_rows(flat, cache, ids).unwrap();
    let read = graph.push(Op::Cpy { to: Some(DType::F32) }, &[rows]).unwrap();
    let halved = graph.push(Op::Scale { factor: 0.5 }, &[read]).unwrap();
    let out = graph.push(Op::Unary(Unary::Silu), &[halved]).unwrap();
    graph.mark_output(out);
    let file = GraphFile::from_graph(&graph, &[x, ids]).unwrap();
    assert_eq!((file.leafs(), file.entries().len()), (4, 12));
    let entry = |op: &str| file.entries().iter().find(|entry| entry.op == op).unwrap();
    let set_rows = entry("SET_ROWS");
    assert_eq!((set_rows.view_of, set_rows.view_offs), (Some(3), Some(0)));
    assert!(file.entries()[3].is_kv && file.entries()[3].external && file.entries()[2].is_weight);
    // Stored as 96 rows of two blocks.
    assert_eq!(
        (file.entries()[2].shape, file.entries()[2].nb),
        ([64, 96, 1, 1], [18, 36, 3456, 3456])
    );
    assert_eq!(GraphFile::from_bytes(&file.to_gzip().unwrap()).unwrap(), file);
    // Beside inputs and outputs, which the graph's own problem leaves alone, both have the same tensors and pairs.
    let kind = BufferKind::unlimited(256);
    let ours = graph_problem(&graph, kind, InPlace::Full).problem;
    let theirs = file.problem(kind, InPlace::Full).problem;
    assert_eq!(ours.items.len() + 3, theirs.items.len());
    assert_eq!(ours.pairs.len() + 1, theirs.pairs.len());
    share_memory(&mut graph).unwrap();
    assert_eq!(GraphFile::from_graph(&graph, &[x, ids]).unwrap(), file);
}
