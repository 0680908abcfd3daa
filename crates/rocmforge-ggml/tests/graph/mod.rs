//! Graphs, their checks, the optimizer and the executor, on the backend that only counts and on the CPU.

use proptest::prelude::*;
use rocmforge_ggml::executor::{ExecuteConfig, execute_graph, execute_graph_with_config};
use rocmforge_ggml::optimizer::{DependencyInfo, GraphOptimizer, NodeSignature, OptimizerStats};
use rocmforge_ggml::{
    CpuBackend, DType, GgmlError, GluKind, Graph, HostAccess, Layout, Op, Strictness, TensorDesc, TensorId, executor,
    shape, validate_graph,
};
use rocmforge_testkit::DummyBackend;

fn f32(shape: impl Into<Vec<usize>>) -> TensorDesc {
    TensorDesc::f32(shape)
}

/// `x -> Scale -> Scale`, and the ids.
fn chain() -> (Graph, [TensorId; 3]) {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([4]));
    let y = g.push(Op::Scale { factor: 2.0 }, &[x]).expect("fits");
    let z = g.push(Op::Scale { factor: 3.0 }, &[y]).expect("fits");
    (g, [x, y, z])
}

#[test]
fn test_optimizer_called_when_enabled() {
    let (mut g, _) = chain();
    let result = execute_graph_with_config(&mut DummyBackend::new(), &mut g, ExecuteConfig::with_optimization());
    assert_eq!(result.expect("runs").optimizer_stats, Some(OptimizerStats::default()));
}

#[test]
fn test_optimizer_skipped_when_disabled() {
    let (mut g, _) = chain();
    let result = execute_graph_with_config(&mut DummyBackend::new(), &mut g, ExecuteConfig::without_optimization());
    let result = result.expect("runs");
    assert_eq!((result.optimizer_stats, result.nodes_executed), (None, 2));
}

#[test]
fn test_default_config_no_optimization() {
    assert!(!ExecuteConfig::default().optimize);
}

#[test]
fn test_default_config_no_deferred_sync() {
    assert!(!ExecuteConfig::default().defer_synchronization);
}

#[test]
fn test_with_deferred_sync_enables_flag() {
    assert!(ExecuteConfig::default().with_deferred_sync().defer_synchronization);
}

#[test]
fn test_with_optimization_default_defer_sync() {
    let config = ExecuteConfig::with_optimization();
    assert!(config.optimize && !config.defer_synchronization);
}

#[test]
fn test_mark_and_check_output() {
    let (mut g, [x, _, z]) = chain();
    g.mark_output(z);
    assert!(g.is_output(z) && !g.is_output(x));
    assert_eq!(g.get_outputs(), [z]);
}

#[test]
fn test_clear_outputs() {
    let (mut g, [x, _, z]) = chain();
    g.mark_output(z);
    g.mark_output(x);
    g.clear_outputs();
    assert!(g.get_outputs().is_empty());
}

#[test]
fn test_optimizer_creation() {
    assert_eq!(GraphOptimizer::new(), GraphOptimizer::default());
    assert_ne!(GraphOptimizer::new(), GraphOptimizer::new().without_dce());
}

#[test]
fn test_optimizer_without_passes() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([4]));
    g.reshape(x, [4]).expect("fits");
    let none = GraphOptimizer::new()
        .without_dce()
        .without_cse()
        .without_noop_elimination()
        .without_layout_optimization();
    assert!(none.optimize(&mut g).is_empty());
    assert_eq!(g.nodes().len(), 1);
}

#[test]
fn test_optimize_empty_graph() {
    assert!(GraphOptimizer::new().optimize(&mut Graph::new()).is_empty());
}

#[test]
fn test_dce_removes_unused_nodes() {
    let (mut g, [x, y, z]) = chain();
    let unused = g.push(Op::Scale { factor: 9.0 }, &[x]).expect("fits");
    g.mark_output(z);
    let stats = GraphOptimizer::new().optimize(&mut g);
    assert_eq!((stats.dce_nodes_removed, g.nodes().len()), (1, 2));
    assert!(g.tensor(unused).is_none() && g.tensor(x).is_some() && g.tensor(y).is_some());
}

#[test]
fn test_dce_without_markers_keeps_everything() {
    let (mut g, _) = chain();
    assert_eq!(GraphOptimizer::new().optimize(&mut g).dce_nodes_removed, 0);
    assert_eq!(g.nodes().len(), 2);
}

#[test]
fn test_dce_uses_explicit_output_markers() {
    let (mut g, [x, _, z]) = chain();
    let other = g.push(Op::Scale { factor: 9.0 }, &[x]).expect("fits");
    g.mark_output(other);
    assert_eq!(GraphOptimizer::new().optimize(&mut g).dce_nodes_removed, 2);
    assert!(g.tensor(z).is_none());
}

#[test]
fn test_dce_preserves_nodes_for_marked_outputs() {
    let (mut g, [_, y, z]) = chain();
    g.mark_output(y);
    assert_eq!(GraphOptimizer::new().optimize(&mut g).dce_nodes_removed, 1);
    assert!(g.tensor(z).is_none() && g.tensor(y).is_some());
}

#[test]
fn test_dce_handles_multiple_marked_outputs() {
    let (mut g, [_, y, z]) = chain();
    g.mark_output(y);
    g.mark_output(z);
    assert_eq!(GraphOptimizer::new().optimize(&mut g).dce_nodes_removed, 0);
}

#[test]
fn dce_keeps_effects_and_what_writes_into_views() {
    let mut g = Graph::new();
    let src = g.add_tensor(f32([2]));
    let cache = g.add_tensor(f32([8]));
    let part = g.add_tensor(TensorDesc {
        shape: vec![2],
        strides: vec![1],
        ..TensorDesc::view_of(&f32([8]), 8)
    });
    g.tensor_mut(part).expect("there").view_of = Some(cache);
    g.add_node(Op::Accumulate { offset: 0 }, vec![src, cache], vec![cache]);
    g.add_node(Op::Dup, vec![src], vec![part]);
    let result = g.push(Op::Scale { factor: 1.0 }, &[src]).expect("fits");
    g.mark_output(result);
    assert!(GraphOptimizer::new().optimize(&mut g).is_empty());
    assert_eq!(g.nodes().len(), 3);
}

#[test]
fn test_noop_elimination_removes_redundant_views() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([4]));
    let view = g.add_tensor(f32([4]));
    g.add_node(Op::View, vec![x], vec![view]);
    assert_eq!(GraphOptimizer::new().optimize(&mut g).noops_removed, 1);
    assert!(g.nodes().is_empty());
}

#[test]
fn noop_elimination_rewires_readers_and_keeps_outputs() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([4]));
    let same = g.reshape(x, [4]).expect("fits");
    let other_shape = g.reshape(same, [2, 2]).expect("fits");
    let y = g.push(Op::Scale { factor: 2.0 }, &[other_shape]).expect("fits");
    let kept = g.reshape(y, [2, 2]).expect("fits");
    g.mark_output(kept);
    assert_eq!(GraphOptimizer::new().optimize(&mut g).noops_removed, 1);
    assert!(g.tensor(same).is_none() && g.is_output(kept));
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &g).expect("memory");
    cpu.write_f32(x, &[1.0, 2.0, 3.0, 4.0]).expect("written");
    execute_graph(&mut cpu, &g).expect("runs");
    assert_eq!(cpu.read_f32(kept).expect("read"), [2.0, 4.0, 6.0, 8.0]);
}

#[test]
fn test_optimizer_stats_display() {
    let stats = OptimizerStats {
        noops_removed: 1,
        dce_nodes_removed: 2,
        cse_nodes_removed: 3,
        layout_conversions_added: 4,
        ..OptimizerStats::default()
    };
    assert_eq!(stats.to_string(), "1 noops, 2 DCE, 3 CSE, 4 layout (6 total)");
    assert_eq!(stats.total_removed(), 6);
}

#[test]
fn test_dependency_info_from_graph() {
    let (g, [x, y, z]) = chain();
    let info = DependencyInfo::from_graph(&g);
    assert_eq!(
        (info.producer(x), info.producer(y), info.producer(z)),
        (None, Some(0), Some(1))
    );
    assert_eq!(
        (info.consumers(x), info.consumers(y), info.consumers(z)),
        (&[0][..], &[1][..], &[][..])
    );
}

#[test]
fn test_node_signature_from_add_node() {
    let mut g = Graph::new();
    let [a, b] = [0, 1].map(|_| g.add_tensor(f32([4])));
    for inputs in [[a, b], [a, b], [b, a], [a, a]] {
        g.push(Op::Add, &inputs).expect("fits");
    }
    let s: Vec<_> = g
        .nodes()
        .iter()
        .map(|n| NodeSignature::from_node(&g, n).expect("whole"))
        .collect();
    assert_eq!(s[0], s[1]);
    assert_ne!(s[0], s[2], "other inputs of the same shapes");
    assert_ne!(s[0], s[3]);
}

#[test]
fn test_layout_optimization_for_matmul() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([2, 256]));
    let w = g.add_tensor(f32([256, 512]));
    g.push(Op::MulMat, &[x, w]).expect("fits");
    assert!(GraphOptimizer::new().optimize(&mut g).layout_conversions_added > 0);
    let desc = g.tensor(w).expect("the id is the same");
    assert_eq!((desc.layout, &desc.strides[..]), (Layout::ColMajor, &[1, 256][..]));
    assert_eq!(g.tensor(x).expect("there").layout, Layout::RowMajor);
}

#[test]
fn test_layout_optimization_preserves_rowmajor_for_elementwise() {
    let mut g = Graph::new();
    let [a, b] = [0, 1].map(|_| g.add_tensor(f32([4, 4])));
    g.push(Op::Add, &[a, b]).expect("fits");
    g.push(Op::MulMat, &[a, b]).expect("fits");
    // b is also read by Add.
    assert_eq!(GraphOptimizer::new().optimize(&mut g).layout_conversions_added, 0);
    assert_eq!(g.tensor(b).expect("there").layout, Layout::RowMajor);
}

#[test]
fn test_layout_optimization_can_be_disabled() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([2, 4]));
    let w = g.add_tensor(f32([4, 4]));
    g.push(Op::MulMat, &[x, w]).expect("fits");
    assert!(
        GraphOptimizer::new()
            .without_layout_optimization()
            .optimize(&mut g)
            .is_empty()
    );
}

#[test]
fn data_that_is_bound_keeps_its_layout() {
    let mut g = Graph::new();
    let x = g.add_tensor(f32([1, 2]));
    let w = g.add_tensor(f32([2, 2]));
    let y = g.push(Op::MulMat, &[x, w]).expect("fits");
    let mut cpu = CpuBackend::new();
    executor::prepare(&mut cpu, &g).expect("memory");
    cpu.write_f32(x, &[1.0, 10.0]).expect("written");
    cpu.write_f32(w, &[1.0, 2.0, 3.0, 4.0]).expect("written");
    execute_graph_with_config(&mut cpu, &mut g, ExecuteConfig::with_optimization()).expect("runs");
    assert_eq!(cpu.read_f32(y).expect("read"), [31.0, 42.0]);
}

#[test]
fn test_cse_removes_duplicate_nodes() {
    let mut g = Graph::new();
    let [a, b] = [0, 1].map(|_| g.add_tensor(f32([4])));
    g.push(Op::Add, &[a, b]).expect("fits");
    g.push(Op::Add, &[a, b]).expect("fits");
    assert_eq!(GraphOptimizer::new().optimize(&mut g).cse_nodes_removed, 1);
    assert_eq!(g.nodes().len(), 1);
}

#[test]
fn test_cse_cleans_up_orphaned_tensors() {
    let mut g = Graph::new();
    let [a, b] = [0, 1].map(|_| g.add_tensor(f32([4])));
    let first = g.push(Op::Add, &[a, b]).expect("fits");
    let second = g.push(Op::Add, &[a, b]).expect("fits");
    let y = g.push(Op::Mul, &[first, second]).expect("fits");
    let before = g.tensor_count();
    GraphOptimizer::new().optimize(&mut g);
    assert_eq!(g.tensor_count(), before - 1);
    assert!(g.tensor(second).is_none() && g.tensor(y).is_some());
    assert_eq!(g.nodes()[1].inputs, [first, first]);
}

#[test]
fn cse_looks_at_parameters_and_leaves_outputs() {
    let mut g = Graph::new();
    let a = g.add_tensor(f32([4]));
    for factor in [1.0, 2.0, 2.0] {
        let y = g.push(Op::Scale { factor }, &[a]).expect("fits");
        g.mark_output(y);
    }
    assert_eq!(
        GraphOptimizer::new().optimize(&mut g).cse_nodes_removed,
        0,
        "both are marked"
    );
    g.clear_outputs();
    assert_eq!(GraphOptimizer::new().optimize(&mut g).cse_nodes_removed, 1);
}

#[test]
fn optimized_graphs_give_the_same_bits() {
    let build = |optimize: bool| {
        let mut g = Graph::new();
        let x = g.add_tensor(f32([3, 8]));
        let w = g.add_tensor(f32([8, 8]));
        let same = g.reshape(x, [3, 8]).expect("fits");
        let [p, q] = [0, 1].map(|_| g.push(Op::MulMat, &[same, w]).expect("fits"));
        g.push(Op::Softmax, &[p]).expect("fits");
        let y = g.push(Op::Add, &[p, q]).expect("fits");
        g.mark_output(y);
        if optimize {
            let stats = GraphOptimizer::new().without_layout_optimization().optimize(&mut g);
            assert_eq!(
                (stats.noops_removed, stats.dce_nodes_removed, stats.cse_nodes_removed),
                (1, 1, 1)
            );
        }
        let mut cpu = CpuBackend::new();
        executor::prepare(&mut cpu, &g).expect("memory");
        let values: Vec<f32> = (0..64).map(|i| (i as f32).sin()).collect();
        cpu.write_f32(x, &values[..24]).expect("written");
        cpu.write_f32(w, &values).expect("written");
        execute_graph(&mut cpu, &g).expect("runs");
        cpu.read_f32(y).expect("read")
    };
    assert_eq!(build(false), build(true));
}

/// The seeds' names stand where variants would: in values, in patterns, and with the parameters that they had.
#[test]
fn the_seeds_names_of_ops_work() {
    for (seed, name) in [
        (Op::MatMul, "MUL_MAT"),
        (Op::MatMulQ4_0, "MUL_MAT"),
        (Op::MatMulQ8_0, "MUL_MAT"),
        (Op::GetRows, "GET_ROWS"),
        (Op::Add, "ADD"),
        (Op::Mask, "ADD"),
        (Op::Scale { factor: 2.0 }, "SCALE"),
        (Op::LayerNorm { eps: 1e-5 }, "NORM"),
        (Op::RmsNorm { eps: 1e-5 }, "RMS_NORM"),
        (Op::Softmax, "SOFT_MAX"),
        (Op::SwiGlu, "SWIGLU"),
        (Op::Reshape, "RESHAPE"),
        (Op::View, "VIEW"),
        (Op::Copy, "CPY"),
        (Op::Accumulate { offset: 0 }, "ACC"),
    ] {
        assert_eq!(seed.name(), name, "{seed:?}");
    }
    let products = |op: &Op| matches!(*op, Op::MatMul);
    assert!(products(&Op::MulMat) && !products(&Op::Softmax));
}

#[test]
fn signatures_tell_parameters_apart() {
    let pad = |right| Op::Pad { left: [0; 4], right };
    let different = [
        Op::Clamp { min: 0.0, max: 1.0 },
        Op::Clamp { min: 0.0, max: 2.0 },
        Op::SwiGlu,
        Op::Glu {
            kind: GluKind::Geglu,
            swapped: false,
        },
        pad([0; 4]),
        pad([0, 0, 0, 1]),
        Op::Permute { axes: [0, 1, 2, 3] },
        Op::Permute { axes: [1, 0, 2, 3] },
        Op::Copy,
        Op::Cpy { to: Some(DType::F32) },
        Op::Cpy { to: Some(DType::F16) },
    ];
    for (i, a) in different.iter().enumerate() {
        for (j, b) in different.iter().enumerate() {
            assert_eq!(a.signature() == b.signature(), i == j, "{a:?} and {b:?}");
        }
    }
}

#[test]
fn validation_names_node_op_and_both_shapes() {
    let mut g = Graph::new();
    let a = g.add_tensor(f32([2, 3]));
    let b = g.add_tensor(f32([4, 5]));
    let y = g.add_tensor(f32([2, 5]));
    g.add_node(Op::MulMat, vec![a, b], vec![y]);
    let error = validate_graph(&g, Strictness::Strict).expect_err("3 is not 4");
    assert_eq!(
        error.to_string(),
        "node 0 (MUL_MAT): the inner dimensions must agree, but the shapes are [2, 3] and [4, 5]"
    );
    validate_graph(&g, Strictness::Lenient).expect("a counting backend does not care");
}

#[test]
fn validation_rejects_what_cannot_run() {
    let reject = |g: &Graph, needle: &str| {
        let error = validate_graph(g, Strictness::Strict).expect_err(needle).to_string();
        assert!(error.contains(needle), "{error}");
    };
    let (mut g, [x, y, z]) = chain();
    g.nodes_mut().swap(0, 1);
    reject(&g, "before a later node writes it");
    let (mut g, _) = chain();
    g.add_node(Op::Scale { factor: 1.0 }, vec![x], vec![z]);
    reject(&g, "written twice");
    let (mut g, _) = chain();
    g.remove_tensor(y);
    reject(&g, "not in the graph");
    let (mut g, _) = chain();
    g.tensor_mut(z).expect("there").set_shape([5]);
    reject(&g, "[4] and [5]");
    let (mut g, _) = chain();
    g.tensor_mut(z).expect("there").view_of = Some(z);
    reject(&g, "circle");
    let (mut g, _) = chain();
    g.tensor_mut(z).expect("there").view_of = Some(y);
    g.tensor_mut(z).expect("there").byte_offset = 4;
    reject(&g, "beyond its buffer");
    let (mut g, _) = chain();
    g.add_node(Op::Add, vec![x], vec![y]);
    g.nodes_mut().remove(0);
    g.nodes_mut().rotate_right(1);
    reject(&g, "takes 2 inputs and 1 output, but has 1 inputs");
    let (mut g, _) = chain();
    g.nodes_mut()[0].op = Op::Scale { factor: f32::NAN };
    reject(&g, "factor = NaN");
}

#[test]
fn two_graphs_on_one_backend_are_distinguished() {
    let mut cpu = CpuBackend::new();
    let (g, _) = chain();
    execute_graph(&mut cpu, &g).expect("runs");
    let mut other = Graph::new();
    let x = other.add_tensor(f32([9]));
    other.push(Op::Softmax, &[x]).expect("fits");
    let error = execute_graph(&mut cpu, &other).expect_err("id 0 has 4 elements here");
    assert!(
        matches!(
            error,
            GgmlError::Rebound {
                tensor: TensorId(0),
                ..
            }
        ),
        "{error}"
    );
}

proptest! {
    #[test]
    fn matmul_shapes(lead in prop::collection::vec(1usize..5, 0..3), m in 1usize..70, k in 1usize..70, k2 in 1usize..70, n in 1usize..70) {
        let mut a = lead.clone();
        a.extend([m, k]);
        let (left, right) = (f32(a), f32([k2, n]));
        match shape::infer(3, &Op::MulMat, &[&left, &right]) {
            Ok(found) => {
                prop_assert_eq!(k, k2);
                let mut expected = lead;
                expected.extend([m, n]);
                prop_assert_eq!(found, shape::Inferred::Exact(expected, DType::F32));
            }
            Err(GgmlError::InvalidShape { node: 3, op: "MUL_MAT", left, right, .. }) => {
                prop_assert_ne!(k, k2);
                prop_assert_eq!((left.last(), right), (Some(&k), vec![k2, n]));
            }
            Err(other) => return Err(TestCaseError::fail(other.to_string())),
        }
    }

    #[test]
    fn broadcast_is_what_repeating_gives(a in prop::collection::vec(1usize..4, 0..4), mask in prop::collection::vec(any::<bool>(), 4), cut in 0usize..5) {
        // Replacing any dimensions by 1 and cutting leading ones always broadcasts.
        let b: Vec<usize> = a.iter().zip(&mask).map(|(&d, &one)| if one { 1 } else { d }).skip(cut).collect();
        prop_assert!(shape::broadcasts(&a, &b));
        let mut wrong = b.clone();
        wrong.insert(0, 7);
        prop_assert!(!shape::broadcasts(&a, &wrong));
    }

    #[test]
    fn any_descriptor_is_accepted_or_refused_without_panic(
        dims in prop::collection::vec(prop_oneof![0usize..9, Just(usize::MAX), Just(1usize << 40)], 0..5),
        strides in prop::collection::vec(prop_oneof![0usize..9, Just(usize::MAX)], 0..5),
        offset in prop_oneof![0usize..64, Just(usize::MAX)],
        dtype in prop::sample::select(DType::ALL.to_vec()),
        layout in prop::sample::select(vec![Layout::RowMajor, Layout::ColMajor, Layout::Strided]),
        ops in prop::collection::vec(0usize..6, 1..4),
    ) {
        let mut g = Graph::new();
        let base = g.add_tensor(f32([8]));
        let desc = TensorDesc { id: TensorId(0), dtype, shape: dims, layout, strides, byte_offset: offset, view_of: Some(base) };
        let _ = (desc.byte_size(), desc.is_contiguous(), desc.summary());
        let x = g.add_tensor(desc);
        for op in ops {
            let op = [Op::View, Op::Reshape, Op::Add, Op::Softmax, Op::MeanPool, Op::Transpose][op];
            g.add_node(op, vec![base], vec![x]);
        }
        let _ = validate_graph(&g, Strictness::Strict);
        let _ = validate_graph(&g, Strictness::Lenient);
        let _ = GraphOptimizer::new().optimize(&mut g);
    }

    #[test]
    fn element_counts_decide_reshapes(a in prop::collection::vec(1usize..6, 1..4), b in prop::collection::vec(1usize..6, 1..4)) {
        let mut g = Graph::new();
        let x = g.add_tensor(f32(a.clone()));
        let same = a.iter().product::<usize>() == b.iter().product::<usize>();
        prop_assert_eq!(g.reshape(x, b).is_ok(), same);
    }
}
