//! Graph files of graphs: every graph and every parameter comes back as it was.

use proptest::prelude::*;
use rocmforge_ggml::graph_file::{GraphFile, GraphFileError};
use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Attention, AttentionMask, DType, DiagFill, FlashAttnExt, GluKind, Graph, Op, PagedAttention, PoolKind, Rope,
    RopeScaling, RopeStyle, Route, RouteGate, SoftMax, SortOrder, TensorDesc, TensorId, TriKind, Unary, UpscaleMode,
    planner,
};
use serde_json::{Value, json};

use crate::common::random_graph::file::{from_json, to_json};
use crate::common::random_graph::generator::generate;

/// What a file has of a graph: nodes, outputs, and the tensors that are used.
fn content(graph: &Graph) -> (Vec<rocmforge_ggml::Node>, Vec<TensorId>, Vec<TensorDesc>) {
    let used = graph
        .nodes()
        .iter()
        .flat_map(|node| node.inputs.iter().chain(&node.outputs));
    let mut used: Vec<TensorId> = used.copied().collect();
    used.sort_unstable();
    used.dedup();
    let tensors = used.into_iter().map(|id| graph.tensor(id).expect("there").clone());
    (graph.nodes().to_vec(), graph.get_outputs(), tensors.collect())
}

#[test]
fn a_random_graph_comes_back_from_its_file() {
    for seed in 0..300 {
        let case = generate(seed, 20, &mut |_, _| true);
        let inputs: Vec<TensorId> = case.leafs.keys().copied().collect();
        let file = GraphFile::from_graph(&case.graph, &inputs).expect("a file");
        let read = GraphFile::from_bytes(&file.to_gzip().expect("JSON")).expect("holds together");
        assert_eq!(read, file);
        let (graph, found) = read.to_graph().expect("a graph");
        assert_eq!(content(&graph), content(&case.graph), "seed {seed}");
        let used: Vec<TensorId> = inputs.into_iter().filter(|id| graph.tensor(*id).is_some()).collect();
        assert_eq!(found, used, "seed {seed}");
        assert_eq!(
            GraphFile::from_graph(&graph, &found).expect("a file"),
            file,
            "seed {seed}"
        );
        // A planned graph has the file of the graph before.
        let mut planned = case.graph.clone();
        planner::share_memory(&mut planned).expect("a plan");
        assert_eq!(
            GraphFile::from_graph(&planned, &found).expect("a file"),
            file,
            "seed {seed}"
        );
        let text = to_json(&case);
        assert_eq!(to_json(&from_json(&text)), text, "seed {seed}");
    }
}

/// Any f32, by its bits.
fn bits() -> impl Strategy<Value = f32> {
    any::<u32>().prop_map(f32::from_bits)
}

/// Ops with parameters of any value.
fn op() -> impl Strategy<Value = Op> {
    let numbers = (bits(), bits(), bits(), bits());
    let counts = (any::<usize>(), any::<usize>(), any::<usize>(), 0usize..4);
    (0usize..90, numbers, counts, any::<bool>(), any::<bool>()).prop_map(
        |(kind, (a, b, c, d), (m, n, o, small), p, q)| match kind {
            0 => Op::Accumulate { offset: m },
            1 => Op::Scale { factor: a },
            2 => Op::ScaleBias { factor: a, bias: b },
            3 => Op::Clamp { min: a, max: b },
            4 => Op::Softcap { cap: a },
            5 => Op::LayerNorm { eps: a },
            6 => Op::RmsNorm { eps: a },
            7 => Op::L2Norm { eps: a },
            8 => Op::SoftMax(SoftMax {
                scale: a,
                max_bias: b,
                mask: p,
                sinks: q,
            }),
            9 => Op::DiagMask {
                n_past: m,
                fill: if p { DiagFill::Inf } else { DiagFill::Zero },
            },
            10..=15 => {
                let rope = Rope {
                    n_dims: m,
                    theta: a,
                    style: match m % 5 {
                        0 => RopeStyle::HalfSplit,
                        1 => RopeStyle::Interleaved,
                        2 => RopeStyle::Mrope([m, n, o, 0]),
                        3 => RopeStyle::Imrope([m, n, o, m]),
                        _ => RopeStyle::Vision([m, n, o, n]),
                    },
                    max_position: n,
                    scaling: match small {
                        0 => RopeScaling::None,
                        1 => RopeScaling::Linear { factor: b },
                        _ => RopeScaling::Yarn {
                            factor: b,
                            original_context: o,
                            beta_fast: c,
                            beta_slow: d,
                            ext_factor: a,
                        },
                    },
                    magnitude: d,
                };
                Op::Rope(rope)
            }
            16 => Op::FlashAttnExt(FlashAttnExt {
                scale: a,
                max_bias: b,
                softcap: c,
                mask: p,
                sinks: q,
            }),
            17 => Op::Attention(Attention {
                heads: m,
                kv_heads: n,
                head_dim: o,
                scale: a,
                causal: p,
                mask: if q {
                    AttentionMask::Additive
                } else {
                    AttentionMask::None
                },
            }),
            18..=20 => Op::PagedAttention(PagedAttention {
                heads: m,
                kv_heads: n,
                head_dim: o,
                scale: a,
                block_size: small,
                window: p.then_some(m),
                softcap: q.then_some(b),
                sinks: p != q,
            }),
            21..=30 => Op::Cpy {
                to: p.then(|| DType::ALL[m % DType::ALL.len()]),
            },
            31 => Op::Concat { axis: m },
            32 => Op::Pad {
                left: [m, n, o, 0],
                right: [small, m, 1, n],
            },
            33 => Op::Permute { axes: [m, n, o, small] },
            34 => Op::Argsort {
                order: if p { SortOrder::Ascending } else { SortOrder::Descending },
            },
            35 => Op::TopK { k: m },
            36 => Op::Route(Route {
                k: n,
                gate: if p { RouteGate::Sigmoid } else { RouteGate::SoftMax },
                groups: [m, o],
                normalised: p,
                least_sum: a,
                factor: b,
            }),
            37..=40 => Op::Glu {
                kind: GluKind::ALL[m % GluKind::ALL.len()],
                swapped: p,
            },
            41..=60 => Op::Unary(Unary::ALL[m % Unary::ALL.len()]),
            _ => {
                let plain = [
                    Op::GetRows,
                    Op::SetRows,
                    Op::MulMat,
                    Op::MulMatId,
                    Op::Add,
                    Op::Sub,
                    Op::Mul,
                    Op::Div,
                    Op::AddId,
                    Op::Sqr,
                    Op::Sqrt,
                    Op::Log,
                    Op::Sin,
                    Op::Cos,
                    Op::GroupNorm { n_groups: n, eps: a },
                    Op::Tri {
                        kind: [TriKind::UpperDiag, TriKind::Upper, TriKind::LowerDiag, TriKind::Lower][n % 4],
                    },
                    Op::SolveTri,
                    Op::Im2col {
                        stride: [n, o],
                        padding: [o, small],
                        dilation: [small, n],
                    },
                    Op::Conv2d {
                        stride: [n, o],
                        padding: [o, small],
                        dilation: [small, n],
                    },
                    Op::Pool1d {
                        kind: if p { PoolKind::Max } else { PoolKind::Avg },
                        kernel: n,
                        stride: o,
                        padding: small,
                    },
                    Op::Arange {
                        start: a,
                        stop: b,
                        step: a,
                    },
                    Op::Fill { value: a },
                    Op::Pool2d {
                        kind: if p { PoolKind::Max } else { PoolKind::Avg },
                        kernel: [n, o],
                        stride: [o, small],
                        padding: [small, n],
                    },
                    Op::Upscale {
                        mode: if p { UpscaleMode::Nearest } else { UpscaleMode::Bilinear },
                        height: n,
                        width: o,
                    },
                    Op::SsmConv,
                    Op::SsmScan,
                    Op::GatedDeltaNet,
                    Op::DeltaNetRows { eps: a, neighbours: p },
                    Op::Dup,
                    Op::Cont,
                    Op::Repeat,
                    Op::Reshape,
                    Op::View,
                    Op::Transpose,
                    Op::Argmax,
                    Op::Sum,
                    Op::SumRows,
                    Op::Mean,
                    Op::Cumsum,
                    Op::MeanPool,
                ];
                plain[m % plain.len()]
            }
        },
    )
}

/// A graph of one node; nothing says that its operands fit.
fn one_node(op: Op) -> Graph {
    let mut graph = Graph::new();
    let x = graph.add_tensor(TensorDesc::f32([2, 3]));
    let y = graph.add_tensor(TensorDesc::f32([3]));
    graph.add_node(op, vec![x], vec![y]);
    graph.mark_output(y);
    graph
}

fn again(file: &GraphFile) -> Result<Graph, GraphFileError> {
    let read = GraphFile::from_bytes(&file.to_json().expect("JSON")).expect("holds together");
    read.to_graph().map(|(graph, _)| graph)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every bit of every parameter: infinities, NaN with their payloads, subnormal numbers.
    #[test]
    fn parameters_come_back_bit_for_bit(op in op()) {
        let file = GraphFile::from_graph(&one_node(op), &[]).expect("a file");
        let graph = again(&file).expect("a graph");
        prop_assert_eq!(graph.nodes()[0].op.signature(), op.signature());
    }
}

/// Names and forms of parameters do not change: files are kept.
#[test]
fn parameters_are_written_as_before() {
    let scaling = RopeScaling::Yarn {
        factor: 4.0,
        original_context: 2048,
        beta_fast: 32.0,
        beta_slow: 1.0,
        ext_factor: 0.5,
    };
    let rope = Rope::new(8, 10_000.0, RopeStyle::Mrope([2, 1, 1, 0]), 16);
    for (op, params) in [
        (
            Op::Clamp {
                min: f32::NEG_INFINITY,
                max: 0.25,
            },
            json!({ "min": "-inf", "max": 0.25 }),
        ),
        (
            Op::DiagMask {
                n_past: 3,
                fill: DiagFill::Zero,
            },
            json!({ "n_past": 3 }),
        ),
        (Op::Cpy { to: Some(DType::Q8_0) }, json!({ "to": "Q8_0" })),
        (Op::Cpy { to: None }, json!({ "to": null })),
        (
            Op::Argsort {
                order: SortOrder::Descending,
            },
            json!({ "descending": true }),
        ),
        (
            Op::Glu {
                kind: GluKind::Geglu,
                swapped: true,
            },
            json!({ "swapped": true }),
        ),
        (
            Op::Attention(Attention {
                heads: 4,
                kv_heads: 2,
                head_dim: 8,
                scale: f32::from_bits(0x7fc0_0001),
                causal: true,
                mask: AttentionMask::Additive,
            }),
            json!({
                "heads": 4, "kv_heads": 2, "head_dim": 8, "scale": "nan:7fc00001", "causal": true, "mask": true,
            }),
        ),
        (
            Op::PagedAttention(PagedAttention {
                heads: 4,
                kv_heads: 2,
                head_dim: 8,
                scale: 0.5,
                block_size: 16,
                window: None,
                softcap: Some(30.0),
                sinks: true,
            }),
            json!({
                "heads": 4, "kv_heads": 2, "head_dim": 8, "scale": 0.5, "block_size": 16, "window": null,
                "softcap": 30.0, "sinks": true,
            }),
        ),
        (
            Op::Rope(Rope { scaling, ..rope }),
            json!({
                "n_dims": 8, "theta": 10_000.0, "mode": "mrope", "sections": [2, 1, 1, 0], "max_position": 16,
                "magnitude": 1.0, "scaling": "yarn", "factor": 4.0, "original_context": 2048, "beta_fast": 32.0,
                "beta_slow": 1.0, "ext_factor": 0.5,
            }),
        ),
        (Op::Add, Value::Null),
    ] {
        let file = GraphFile::from_graph(&one_node(op), &[]).expect("a file");
        let value: Value = serde_json::from_slice(&file.to_json().expect("JSON")).expect("JSON");
        let found = value["nodes"][1].get("params").unwrap_or(&Value::Null);
        assert_eq!(*found, params, "{}", op.name());
    }
}

/// The file holds together, and so do its parameters, but the op takes other operands.
#[test]
fn a_file_whose_nodes_do_not_fit_their_ops_is_not_optimized() {
    let file = GraphFile::from_graph(&one_node(Op::MulMat), &[]).expect("a file");
    let error = file.optimized(&GraphOptimizer::new()).expect_err("one operand");
    let GraphFileError::Graph(cause) = &error else {
        panic!("{error:?}")
    };
    assert!(cause.to_string().contains("node 0 (MUL_MAT)"), "{cause}");
}

/// A file of a scale, changed.
fn changed(change: impl Fn(&mut Value)) -> GraphFileError {
    let file = GraphFile::from_graph(&one_node(Op::Scale { factor: 0.5 }), &[]).expect("a file");
    let mut value: Value = serde_json::from_slice(&file.to_json().expect("JSON")).expect("JSON");
    change(&mut value);
    let read = GraphFile::from_bytes(value.to_string().as_bytes()).expect("still a file that holds together");
    read.to_graph().expect_err("no graph any more")
}

#[test]
fn files_that_are_no_graphs_are_typed_errors() {
    use GraphFileError as E;
    macro_rules! is {
        ($change:expr, $pattern:pat) => {
            let error = changed($change);
            assert!(matches!(error, $pattern), "{error:?}");
        };
    }
    let params = |params: Value| move |v: &mut Value| v["nodes"][1]["params"] = params.clone();
    is!(
        |v| drop(v["nodes"][0].as_object_mut().expect("an entry").remove("descriptor")),
        E::Entry { entry: 0, .. }
    );
    is!(params(json!({})), E::Parameter { entry: 1, .. });
    is!(params(Value::Null), E::Parameter { entry: 1, .. });
    for wrong in [
        json!("x"),
        json!(1e300),
        json!("nan:3f800000"),
        json!("infinity"),
        json!([1]),
        json!(null),
    ] {
        is!(params(json!({ "factor": wrong })), E::Parameter { .. });
    }
    is!(params(json!({ "factor": 1, "bias": 2 })), E::Parameter { .. });
    let error = changed(params(json!({ "factor": 1, "bias": 2 }))).to_string();
    assert_eq!(error, "entry 1 (SCALE): parameter `bias`: the op has no such parameter");
    is!(|v| v["nodes"][1]["op"] = json!("SCALES"), E::Entry { entry: 1, .. });
    is!(|v| v["nodes"][1]["dtype"] = json!("F33"), E::Entry { .. });
    let descriptor =
        |field: &'static str, value: Value| move |v: &mut Value| v["nodes"][1]["descriptor"][field] = value.clone();
    is!(descriptor("tensor", json!(1u64 << 18)), E::Entry { .. });
    is!(descriptor("tensor", json!(u64::MAX)), E::Entry { .. });
    is!(descriptor("tensor", json!(0)), E::Entry { .. });
    is!(descriptor("node", json!(1)), E::Entry { .. });
    is!(descriptor("node", json!(null)), E::Entry { .. });
    is!(descriptor("shape", json!([4])), E::Entry { .. });
    is!(descriptor("shape", json!([1, 1, 1, 1, 3])), E::Entry { .. });
    is!(descriptor("shape", json!([u64::MAX, 3])), E::Entry { .. });
    is!(descriptor("strides", json!([])), E::Entry { .. });
    is!(descriptor("strides", json!([u64::MAX])), E::Entry { .. });
    is!(descriptor("layout", json!("Diagonal")), E::Entry { .. });
    is!(descriptor("base", json!(0)), E::Entry { .. });
    is!(descriptor("base", json!(7)), E::Entry { .. });
    is!(
        |v| v["nodes"][0]["descriptor"]["node"] = json!(0),
        E::Entry { entry: 0, .. }
    );
    is!(
        |v| v["nodes"][0]["descriptor"]["strides"] = json!([9, 1]),
        E::Entry { entry: 0, .. }
    );
}

#[test]
fn files_of_llama_cpp_are_no_graphs_of_ours() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs/llama7b_tg1.json.gz");
    let error = GraphFile::read(path)
        .expect("a file")
        .to_graph()
        .expect_err("other operands");
    assert!(error.to_string().contains("no descriptor"), "{error}");
}

/// A tensor changed in place by a node whose output it is, a view of a view that no node reads, gaps in the ids.
#[test]
fn unusual_graphs_come_back() {
    let mut graph = Graph::new();
    graph.start_ids_at(TensorId(5));
    let x = graph.add_tensor(TensorDesc::f32([2, 8]));
    let gone = graph.add_tensor(TensorDesc::f32([1]));
    let mut view = TensorDesc::view_of(graph.tensor(x).expect("there"), 32);
    view.set_shape([8]);
    let row = graph.add_tensor(view);
    let mut view = TensorDesc::view_of(graph.tensor(row).expect("there"), 8);
    view.set_shape([3]);
    let part = graph.add_tensor(view);
    let dst = graph.add_tensor(TensorDesc::f32([5]));
    graph.remove_tensor(gone);
    graph.add_node(Op::Accumulate { offset: 1 }, vec![part, dst], vec![dst]);
    graph.add_node(Op::Accumulate { offset: 0 }, vec![part, dst], vec![dst]);
    let y = graph.push(Op::Sqr, &[dst]).expect("fits");
    graph.mark_output(y);
    graph.mark_output(dst);
    let file = GraphFile::from_graph(&graph, &[x]).expect("a file");
    let (found, inputs) = file.to_graph().expect("a graph");
    assert_eq!((content(&found), inputs), (content(&graph), vec![x]));
    assert_eq!(found.tensor(row), graph.tensor(row));
    assert!(found.tensor(gone).is_none());
    let mut empty = graph.clone();
    empty.nodes_mut()[2].outputs.clear();
    let error = GraphFile::from_graph(&empty, &[]).expect_err("a node without an output");
    assert!(
        matches!(error, GraphFileError::ExportNode { node: 2, op: "SQR", .. }),
        "{error:?}"
    );
    // Any byte changed: an error or a graph, never a panic.
    let text = file.to_json().expect("JSON");
    for at in 0..text.len() {
        for byte in [b'9', b'-', b'"', b'0'] {
            let mut text = text.clone();
            text[at] = byte;
            if let Ok(file) = GraphFile::from_bytes(&text) {
                let _ = file.to_graph();
            }
        }
    }
}
