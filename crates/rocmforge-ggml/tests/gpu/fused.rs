//! Fused ops on a device, which runs them as their parts: near what the CPU gives for the graph as it was.

use std::sync::Arc;

use rocmforge_ggml::optimizer::{GraphOptimizer, Pass};
use rocmforge_ggml::{
    CpuBackend, DType, GgmlBackend, GgmlError, GluKind, Graph, HipGgmlBackend, HostAccess, Layout, Op, Rope, RopeStyle,
    TensorDesc, TensorId, Unary, executor,
};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::gpu;

use crate::common::weights::weight;

const WIDTH: usize = 32;

struct Fused {
    graph: Graph,
    leafs: Vec<(TensorId, Vec<u8>)>,
    outputs: Vec<TensorId>,
}

impl Fused {
    fn leaf(&mut self, desc: TensorDesc, salt: u64) -> TensorId {
        let bytes = bytemuck::cast_slice(&rng(salt).vec(desc.element_count())).to_vec();
        let id = self.graph.add_tensor(desc);
        self.leafs.push((id, bytes));
        id
    }

    fn words(&mut self, words: &[u32]) -> TensorId {
        let id = self.graph.add_tensor(TensorDesc::u32([words.len()]));
        self.leafs.push((id, bytemuck::cast_slice(words).to_vec()));
        id
    }

    fn product(&mut self, x: TensorId, n: usize, salt: u64) -> TensorId {
        let weight = self.leaf(TensorDesc::new([WIDTH, n], DType::F32, Layout::ColMajor), salt);
        self.push(Op::MulMat, &[x, weight])
    }

    fn push(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        self.graph.push(op, inputs).expect("fits")
    }

    /// Every pattern that becomes a fused op; positions and rows of the cache as given.
    fn new(rows: usize, positions: &[u32], slots: &[u32]) -> Self {
        let mut f = Self {
            graph: Graph::new(),
            leafs: Vec::new(),
            outputs: Vec::new(),
        };
        let [a, b] = [1, 2].map(|salt| f.leaf(TensorDesc::f32([rows, WIDTH]), salt));
        let weight = f.leaf(TensorDesc::f32([WIDTH]), 3);
        let sum = f.push(Op::Add, &[a, b]);
        let x = f.push(Op::RmsNorm { eps: 1e-5 }, &[sum, weight]);
        let gate = f.product(x, WIDTH, 4);
        let up = f.product(x, WIDTH, 5);
        let kind = GluKind::Swiglu;
        let inner = f.push(Op::Glu { kind, swapped: false }, &[gate, up]);
        let x = f.push(Op::Add, &[inner, sum]);
        let [q, k, v] = [6, 7, 8].map(|salt| f.product(x, WIDTH, salt));
        let heads = f.graph.reshape(k, [1, rows, 2, WIDTH / 2]).expect("contiguous");
        let positions = f.words(positions);
        let rope = Rope::new(WIDTH / 2, 10_000.0, RopeStyle::HalfSplit, 16);
        let rotated = f.push(Op::Rope(rope), &[heads, positions]);
        let flat = f.graph.reshape(rotated, [rows, WIDTH]).expect("contiguous");
        let cache = f.leaf(TensorDesc::f32([8, WIDTH]), 9);
        let slots = f.words(slots);
        let written = f.graph.set_rows(flat, cache, slots).expect("fits");
        let read = f.push(Op::GetRows, &[written, slots]);
        let wide = f.product(q, WIDTH, 10);
        let active = f.push(Op::Unary(Unary::Gelu), &[wide]);
        let out = f.push(Op::Add, &[active, v]);
        let out = f.push(Op::Add, &[out, read]);
        f.graph.mark_output(out);
        f.outputs = vec![out, cache];
        f
    }

    fn run<B: GgmlBackend + HostAccess>(&self, graph: &Graph, backend: &mut B) -> Result<Vec<Vec<f32>>, GgmlError> {
        for (id, bytes) in &self.leafs {
            backend.load(graph.tensor(*id).expect("a leaf"), Arc::new(bytes.clone()))?;
        }
        let mut program = executor::compile(backend, graph)?;
        // By itself, captured, replayed.
        for _ in 0..3 {
            executor::run_program(backend, &mut program)?;
        }
        self.outputs.iter().map(|&id| backend.read_f32(id)).collect()
    }

    fn optimized(&self) -> Graph {
        let mut graph = self.graph.clone();
        let stats = GraphOptimizer::new().without(Pass::Layout).optimize(&mut graph);
        for pass in [Pass::GateUp, Pass::Qkv, Pass::RopeSetRows, Pass::Activation] {
            assert_eq!(stats.counts.of(pass), 1, "{}: {stats}", pass.name());
        }
        assert_eq!(stats.counts.of(Pass::AddNorm), 1);
        graph
    }
}

#[test]
fn fused_ops_run_as_their_parts() {
    let gpu = gpu();
    for rows in [1, 3] {
        let fused = Fused::new(rows, &[0, 5, 15][..rows], &[7, 0, 3][..rows]);
        let expected = fused.run(&fused.graph, &mut CpuBackend::new()).expect("runs");
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let found = fused.run(&fused.optimized(), &mut device).expect("runs");
        for (found, expected) in found.iter().zip(&expected) {
            assert_close(found, &widen(expected), &[found.len()], Tolerance::Absolute(1e-3));
        }
        assert_eq!(device.replays(), 2, "a program of parts is captured");
    }
}

/// Heads of queries and keys, each normed and turned, and their keys and values in caches of this type.
fn normed_heads(rows: usize, dtype: DType, dim: usize) -> Fused {
    let mut f = Fused {
        graph: Graph::new(),
        leafs: Vec::new(),
        outputs: Vec::new(),
    };
    let positions: Vec<u32> = (0..rows as u32).map(|row| 3 * row).collect();
    let slots: Vec<u32> = (0..rows as u32).map(|row| 7 - row).collect();
    let (positions, slots) = (f.words(&positions), f.words(&slots));
    let rope = Op::Rope(Rope::new(dim, 10_000.0, RopeStyle::HalfSplit, 64));
    let [turned, keys] = [(128, 1), (64, 2)].map(|(width, salt)| {
        let heads = width / dim;
        let (x, norm) = (
            f.leaf(TensorDesc::f32([1, rows, heads, dim]), salt),
            f.leaf(TensorDesc::f32([dim]), salt + 10),
        );
        let normed = f.push(Op::RmsNorm { eps: 1e-5 }, &[x, norm]);
        f.push(rope, &[normed, positions])
    });
    let keys = f.graph.reshape(keys, [rows, 64]).expect("contiguous");
    let values = f.leaf(TensorDesc::f32([rows, 64]), 5);
    let written = [(keys, 6), (values, 7)].map(|(src, salt)| {
        let desc = TensorDesc::new([8, 64], dtype, Layout::RowMajor);
        let cache = f.graph.add_tensor(desc.clone());
        f.leafs.push((cache, weight(dtype, 8, 64, salt).0));
        f.graph.set_rows(src, cache, slots).expect("fits")
    });
    f.outputs = written.map(|written| f.push(Op::GetRows, &[written, slots])).to_vec();
    f.outputs.push(turned);
    f.outputs.iter().for_each(|&id| f.graph.mark_output(id));
    f
}

#[test]
fn norms_of_heads_rotation_and_cache_are_one_launch() {
    let gpu = gpu();
    // The last ones have a head that is no whole block of the cache: each node is a launch.
    for (dtype, dim, launches) in [
        (DType::F32, 32, 1),
        (DType::F16, 32, 1),
        (DType::Bf16, 32, 1),
        (DType::Q8_0, 32, 1),
        (DType::Q8_0, 16, 6),
    ] {
        for rows in [1, 3] {
            let f = normed_heads(rows, dtype, dim);
            let expected = f.run(&f.graph, &mut CpuBackend::new()).expect("runs");
            let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
            let mut graph = f.graph.clone();
            device.optimizer().optimize(&mut graph);
            let found = f.run(&graph, &mut device).expect("runs");
            // And a read of each cache; three times.
            assert_eq!(device.launches(), 3 * (launches + 2), "{dtype}, {dim}, {rows} rows");
            // A number may be rounded to the neighbour of the CPU's.
            let limit = match dtype {
                DType::F32 => 1e-5,
                DType::Q8_0 => 4e-2,
                _ => 2e-2,
            };
            for (found, expected) in found.iter().zip(&expected) {
                assert_close(found, &widen(expected), &[found.len()], Tolerance::Absolute(limit));
            }
        }
    }
}

#[test]
fn an_index_out_of_range_is_the_error_of_the_part() {
    let gpu = gpu();
    for (positions, slots) in [([16], [0]), ([0], [8])] {
        let fused = Fused::new(1, &positions, &slots);
        let expected = fused
            .run(&fused.graph, &mut CpuBackend::new())
            .expect_err("out of range")
            .to_string();
        let graph = fused.optimized();
        let cpu = fused
            .run(&graph, &mut CpuBackend::new())
            .expect_err("out of range")
            .to_string();
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let device = fused.run(&graph, &mut device).expect_err("out of range").to_string();
        assert_eq!((&cpu, &device), (&expected, &expected));
    }
}

#[test]
fn operands_with_gaps_are_packed() {
    let mut f = Fused {
        graph: Graph::new(),
        leafs: Vec::new(),
        outputs: Vec::new(),
    };
    let rows = 3;
    // The first columns of wider rows.
    let [x, other, heads] = [(1, vec![rows]), (2, vec![rows]), (3, vec![1, rows, 2])].map(|(salt, lead)| {
        let (part, whole) = if lead.len() == 1 { (WIDTH, 48) } else { (16, 24) };
        let whole = f.leaf(TensorDesc::f32([lead.as_slice(), &[whole]].concat()), salt);
        let mut view = TensorDesc::view_of(f.graph.tensor(whole).expect("a leaf"), 0);
        view.shape = [lead.as_slice(), &[part]].concat();
        view.layout = Layout::Strided;
        f.graph.view(whole, view).expect("a part")
    });
    let weights = [4, 5].map(|salt| f.leaf(TensorDesc::new([WIDTH, 7], DType::F32, Layout::ColMajor), salt));
    let biases = [6, 7].map(|salt| f.leaf(TensorDesc::f32([7]), salt));
    let norm = f.leaf(TensorDesc::f32([WIDTH]), 8);
    let product = f.push(Op::MulMat, &[x, weights[0], biases[0]]);
    let mut made = vec![f.push(Op::Unary(Unary::Tanh), &[product])];
    for kind in GluKind::ALL {
        let halves = weights.map(|weight| f.push(Op::MulMat, &[x, weight]));
        made.push(f.push(Op::Glu { kind, swapped: false }, &halves));
    }
    made.extend([0, 1].map(|i| f.push(Op::MulMat, &[x, weights[i], biases[i]])));
    let sum = f.push(Op::Add, &[x, other]);
    made.extend([sum, f.push(Op::RmsNorm { eps: 1e-5 }, &[sum, norm])]);
    let (positions, slots) = (f.words(&[2, 0, 9]), f.words(&[7, 0, 3]));
    let four = f.words(&[2, 0, 9, 4, 4, 1, 15, 0, 0, 3, 2, 1]);
    let four = f.graph.reshape(four, [4, rows]).expect("as many");
    let mrope = RopeStyle::Mrope([2, 1, 3, 0]);
    for (n_dims, style, positions) in [
        (16, RopeStyle::Interleaved, positions),
        (8, RopeStyle::Interleaved, positions),
        (0, RopeStyle::Interleaved, positions),
        (16, mrope, four),
        (8, mrope, four),
    ] {
        let cache = f.leaf(TensorDesc::f32([8, WIDTH]), 9);
        let rope = Rope::new(n_dims, 10_000.0, style, 16);
        let rotated = f.push(Op::Rope(rope), &[heads, positions]);
        let flat = f.graph.reshape(rotated, [rows, WIDTH]).expect("contiguous");
        made.push(f.graph.set_rows(flat, cache, slots).expect("fits"));
    }
    made.iter().for_each(|&id| f.graph.mark_output(id));
    f.outputs = made;
    let gpu = gpu();
    let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let expected = f.run(&f.graph, &mut CpuBackend::new()).expect("runs");
    let mut fused = f.graph.clone();
    GraphOptimizer::fusions().optimize(&mut fused);
    assert_eq!(fused.launches().len(), 8 + GluKind::ALL.len());
    let found = f.run(&fused, &mut device).expect("runs");
    for (found, expected) in found.iter().zip(&expected) {
        assert_close(found, &widen(expected), &[found.len()], Tolerance::Absolute(1e-4));
    }
    assert!(device.packings() > 0, "gaps are no kernel's to read");
}
