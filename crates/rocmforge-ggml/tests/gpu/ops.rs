//! Ops at sizes about those of waves, and what a backend does with mistakes.

use rocmforge_ggml::{
    Attention, AttentionMask, CpuBackend, DType, GgmlBackend, GgmlError, Graph, HipGgmlBackend, HostAccess, Layout, Op,
    Rope, RopeStyle, TensorDesc, TensorId, Unary, executor,
};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::gpu;

/// What an input holds.
pub(super) enum Data {
    /// Random in -1..1.
    Random,
    /// Random below a limit.
    Indices(usize),
    /// Given.
    F32(Vec<f32>),
}

/// A graph of one op on both backends.
pub(super) fn check(seed: u64, op: Op, inputs: Vec<(TensorDesc, Data)>, tolerance: f64) {
    let gpu = gpu();
    let mut random = rng(seed);
    let mut graph = Graph::new();
    let ids: Vec<TensorId> = inputs.iter().map(|(desc, _)| graph.add_tensor(desc.clone())).collect();
    let output = graph.push(op, &ids).expect("the operands fit");
    let mut cpu = CpuBackend::new();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    executor::prepare(&mut cpu, &graph).expect("memory");
    executor::prepare(&mut device, &graph).expect("memory");
    for (&id, (desc, data)) in ids.iter().zip(&inputs) {
        let n = desc.element_count();
        let bytes: Vec<u8> = match data {
            Data::Random => bytemuck::cast_slice(&random.vec(n)).to_vec(),
            Data::Indices(limit) => {
                let indices: Vec<u32> = (0..n).map(|_| random.below(*limit) as u32).collect();
                bytemuck::cast_slice(&indices).to_vec()
            }
            Data::F32(values) => bytemuck::cast_slice(values).to_vec(),
        };
        cpu.write(id, &bytes).expect("written");
        device.write(id, &bytes).expect("written");
    }
    // Poison: an element that is not written shows.
    let shape = graph.tensor(output).expect("there").shape.clone();
    let poison = rocmforge_testkit::data::poison(shape.iter().product());
    device.write_f32(output, &poison).expect("written");
    executor::execute_graph(&mut cpu, &graph).expect("runs on the CPU");
    executor::execute_graph(&mut device, &graph).expect("runs on the device");
    let expected = cpu.read_f32(output).expect("read");
    let found = device.read_f32(output).expect("read");
    assert_close(&found, &widen(&expected), &shape, Tolerance::Absolute(tolerance));
}

pub(super) fn random(shape: impl Into<Vec<usize>>) -> (TensorDesc, Data) {
    (TensorDesc::f32(shape), Data::Random)
}

const SIZES: [usize; 10] = [1, 31, 32, 33, 63, 64, 65, 127, 128, 129];

#[test]
fn test_ggml_get_rows() {
    for n in [1, 33, 129] {
        let ids = (TensorDesc::u32([3, 5]), Data::Indices(7));
        check(n as u64, Op::GetRows, vec![random([7, n]), ids], 0.0);
    }
}

#[test]
fn test_ggml_matmul_both_layouts_and_bias() {
    for (m, k, n) in [(1, 1, 1), (3, 65, 33), (64, 64, 64), (65, 31, 129)] {
        for layout in [Layout::RowMajor, Layout::ColMajor] {
            let b = (TensorDesc::new([k, n], DType::F32, layout), Data::Random);
            check(1, Op::MulMat, vec![random([m, k]), b], 1e-4);
        }
    }
    let b = (TensorDesc::new([31, 33], DType::F32, Layout::ColMajor), Data::Random);
    check(2, Op::MulMat, vec![random([2, 5, 31]), b, random([33])], 1e-4);
}

#[test]
fn test_ggml_elementwise() {
    for n in SIZES {
        check(n as u64, Op::Add, vec![random([3, n]), random([3, n])], 0.0);
        check(n as u64, Op::Scale { factor: -0.3 }, vec![random([n])], 0.0);
    }
    check(3, Op::Add, vec![random([2, 3, 33]), random([33])], 0.0);
    check(3, Op::Add, vec![random([2, 3, 33]), random([1, 3, 33])], 0.0);
    check(4, Op::Mul, vec![random([3, 65]), random([3, 65])], 0.0);
    check(5, Op::SwiGlu, vec![random([3, 65]), random([3, 65])], 1e-5);
    check(6, Op::Unary(Unary::GeluErf), vec![random([3, 65])], 1e-6);
    check(7, Op::Unary(Unary::Gelu), vec![random([3, 65])], 1e-6);
    check(8, Op::Add, vec![random([2, 3, 4, 33]), random([4, 33])], 0.0);
    check(9, Op::Add, vec![random([2, 3, 4, 33]), random([2, 1, 1, 33])], 0.0);
}

#[test]
fn test_ggml_rows() {
    for n in SIZES {
        check(n as u64, Op::Softmax, vec![random([3, n])], 1e-6);
        check(
            n as u64,
            Op::LayerNorm { eps: 1e-5 },
            vec![random([3, n]), random([n]), random([n])],
            1e-5,
        );
        check(
            n as u64,
            Op::RmsNorm { eps: 1e-6 },
            vec![random([3, n]), random([n])],
            1e-5,
        );
        check(n as u64, Op::L2Norm { eps: 1e-12 }, vec![random([3, n])], 1e-6);
    }
    check(1, Op::LayerNorm { eps: 1e-5 }, vec![random([3, 40])], 1e-5);
    check(2, Op::RmsNorm { eps: 1e-6 }, vec![random([3, 40])], 1e-5);
    let weight = (TensorDesc::f32([2, 3]), Data::F32(vec![1.0, 1.0, 0.0, 1.0, 0.0, 0.0]));
    check(3, Op::MeanPool, vec![random([2, 3, 65]), weight], 1e-6);
}

#[test]
fn test_ggml_attention() {
    let attention = |heads, kv_heads, head_dim, causal, mask| {
        Op::Attention(Attention {
            heads,
            kv_heads,
            head_dim,
            scale: 0.2,
            causal,
            mask,
        })
    };
    for (heads, kv_heads, d, seq_q, seq_k) in [(1, 1, 32, 1, 1), (4, 2, 40, 5, 33), (4, 1, 64, 33, 33)] {
        for causal in [false, true] {
            let inputs = || {
                vec![
                    random([2, seq_q, heads * d]),
                    random([2, seq_k, kv_heads * d]),
                    random([2, seq_k, kv_heads * d]),
                ]
            };
            check(
                1,
                attention(heads, kv_heads, d, causal, AttentionMask::None),
                inputs(),
                1e-5,
            );
            let hidden = |i: usize| if i % 3 == 1 { f32::NEG_INFINITY } else { 0.0 };
            let mut masked = inputs();
            masked.push((
                TensorDesc::f32([2, seq_k]),
                Data::F32((0..2 * seq_k).map(hidden).collect()),
            ));
            check(
                2,
                attention(heads, kv_heads, d, causal, AttentionMask::Additive),
                masked,
                1e-5,
            );
        }
    }
}

#[test]
fn test_ggml_rope() {
    for style in [RopeStyle::HalfSplit, RopeStyle::Interleaved] {
        let rope = Rope::new(32, 10000.0, style, 100);
        let positions = (TensorDesc::u32([2, 5]), Data::Indices(100));
        check(1, Op::Rope(rope), vec![random([2, 5, 3, 40]), positions], 1e-5);
        let positions = (TensorDesc::u32([5]), Data::Indices(100));
        check(2, Op::Rope(rope), vec![random([2, 5, 3, 32]), positions], 1e-5);
    }
}

#[test]
fn test_ggml_moves() {
    check(1, Op::Dup, vec![random([3, 33])], 0.0);
    check(2, Op::Transpose, vec![random([2, 33, 65])], 0.0);
}

#[test]
fn test_ggml_matmul_wrapper_synchronization() {
    // Deferred: three products one after the other, waited for once.
    let gpu = gpu();
    let mut graph = Graph::new();
    let x = graph.add_tensor(TensorDesc::f32([4, 4]));
    let mut y = x;
    for _ in 0..3 {
        y = graph.push(Op::MulMat, &[y, x]).expect("square");
    }
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    executor::prepare(&mut device, &graph).expect("memory");
    let shift: Vec<f32> = (0..16)
        .map(|i| if i % 4 == (i / 4 + 1) % 4 { 1.0 } else { 0.0 })
        .collect();
    device.write_f32(x, &shift).expect("written");
    let config = executor::ExecuteConfig::without_optimization().with_deferred_sync();
    let result = executor::execute_graph_with_config(&mut device, &mut graph, config).expect("runs");
    assert_eq!(result.nodes_executed, 3);
    let identity: Vec<f32> = (0..16).map(|i| if i % 5 == 0 { 1.0 } else { 0.0 }).collect();
    assert_eq!(device.read_f32(y).expect("read"), identity);
}

#[test]
fn an_allocation_over_budget_is_an_error_with_figures() {
    let gpu = gpu();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let error = device.alloc(&TensorDesc::f32([1 << 40])).expect_err("4 TiB");
    let GgmlError::Backend { source, at, .. } = &error else {
        panic!("{error}")
    };
    assert!(at.contains("1099511627776"), "{at}");
    assert!(!source.to_string().is_empty());
}

/// Runs a graph whose inputs are given, and returns the error.
fn refused(backend: &mut impl HostAccess, graph: &Graph, words: &[(TensorId, &[u32])]) -> GgmlError {
    executor::prepare(backend, graph).expect("memory");
    for (id, values) in words {
        backend.write_u32(*id, values).expect("written");
    }
    executor::execute_graph(backend, graph).expect_err("an index is out of range")
}

#[test]
fn an_index_out_of_range_is_the_same_error_on_both_backends() {
    let gpu = gpu();
    let rope = Rope::new(4, 10_000.0, RopeStyle::HalfSplit, 8);
    let ids: &[u32] = &[2, 3, 9];
    for (op, x, limit) in [
        (Op::GetRows, TensorDesc::f32([3, 4]), 3),
        (Op::Rope(rope), TensorDesc::f32([1, 3, 1, 4]), 8),
    ] {
        let mut graph = Graph::new();
        let x = graph.add_tensor(x);
        let indices = graph.add_tensor(TensorDesc::u32([3]));
        graph.push(op, &[x, indices]).expect("fits");
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let on_device = refused(&mut device, &graph, &[(indices, ids)]);
        let on_cpu = refused(&mut CpuBackend::new(), &graph, &[(indices, ids)]);
        assert_eq!(on_device.to_string(), on_cpu.to_string());
        let first = if limit == 3 { 1 } else { 2 };
        assert!(
            matches!(on_cpu, GgmlError::IndexOutOfRange { position, limit: l, .. } if position == first && l == limit),
            "{on_cpu}"
        );
        // The backend goes on.
        device.write_u32(indices, &[0, 1, 2]).expect("written");
        executor::execute_graph(&mut device, &graph).expect("runs");
    }
}

#[test]
fn an_id_out_of_range_gives_nan_and_reads_nothing() {
    let gpu = gpu();
    let mut graph = Graph::new();
    let table = graph.add_tensor(TensorDesc::f32([3, 4]));
    let ids = graph.add_tensor(TensorDesc::u32([2]));
    let y = graph.push(Op::GetRows, &[table, ids]).expect("fits");
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    executor::prepare(&mut device, &graph).expect("memory");
    device.write_f32(table, &[1.0; 12]).expect("written");
    device.write_u32(ids, &[2, 3]).expect("written");
    let error = executor::execute_graph(&mut device, &graph).expect_err("there is no row 3");
    let figures = (1, 3, 3);
    assert!(
        matches!(error, GgmlError::IndexOutOfRange { position, index, limit, .. } if (position, index, limit) == figures),
        "{error}"
    );
    let found = device.read_f32(y).expect("read");
    assert_eq!(found[..4], [1.0; 4]);
    assert!(found[4..].iter().all(|v| v.is_nan()), "{found:?}");
}
