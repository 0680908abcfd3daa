//! Packed weights: products and rows of tables near the CPU's with weights in ggml's order, alone and on both sides.

use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Activations, CpuBackend, DType, GgmlBackend, GluKind, Graph, HipGgmlBackend, HostAccess, HybridBackend, Layout, Op,
    TensorDesc, TensorGroup, TensorId, executor,
};
use rocmforge_runtime::{Bytes, Elems, HipBuffer, Policy};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu, gpu_with};

use crate::common::weights::weight;

pub(super) const PACKED: [DType; 13] = [
    DType::Q4_0,
    DType::Q4_1,
    DType::Q5_0,
    DType::Q5_1,
    DType::Q8_0,
    DType::Q2K,
    DType::Q3K,
    DType::Q4K,
    DType::Q5K,
    DType::Q6K,
    DType::Iq4Nl,
    DType::Iq4Xs,
    DType::Mxfp4,
];

pub(super) fn on(gpu: &GpuLease, activations: Activations) -> HipGgmlBackend {
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    device.activations(activations)
}

/// Rows of a table, normed, times several matrices, gated, times one more, and their sum, normed, times the table: as a decoder has them.
pub(super) struct Layer {
    pub(super) graph: Graph,
    pub(super) ids: TensorId,
    pub(super) weights: Vec<(TensorId, Arc<Vec<u8>>)>,
    pub(super) outputs: Vec<TensorId>,
}

impl Layer {
    pub(super) const VOCAB: usize = 37;

    /// With `rows` tokens, matrices of `dtype` of `k` columns.
    pub(super) fn new(dtype: DType, rows: usize, k: usize) -> Self {
        Self::with_inner(dtype, rows, [k, k], GluKind::Swiglu)
    }

    /// The same with `inner` columns between gate and down, and another unit.
    fn with_inner(dtype: DType, rows: usize, [k, inner]: [usize; 2], kind: GluKind) -> Self {
        let (mut graph, mut weights) = (Graph::new(), Vec::new());
        let mut salt = 0;
        let mut add = |graph: &mut Graph, desc: TensorDesc, [n, k]: [usize; 2]| {
            salt += 1;
            let id = graph.add_tensor(desc.clone());
            weights.push((id, Arc::new(weight(desc.dtype, n, k, salt).0)));
            id
        };
        let ids = graph.add_tensor(TensorDesc::u32([rows]));
        let table = TensorDesc::new([Self::VOCAB, k], dtype, Layout::RowMajor);
        let embedding = add(&mut graph, table.clone(), [Self::VOCAB, k]);
        let tied = graph
            .view(
                embedding,
                TensorDesc {
                    view_of: Some(embedding),
                    ..TensorDesc::new([k, Self::VOCAB], dtype, Layout::ColMajor)
                },
            )
            .expect("the same bytes");
        let mut matrix = |graph: &mut Graph, [n, k]: [usize; 2]| {
            let desc = TensorDesc::new([k, n], dtype, Layout::ColMajor);
            add(graph, desc, [n, k])
        };
        let shapes = [[33, k], [7, k], [k, k], [inner, k], [inner, k], [k, inner]];
        let [q, second, v, gate, up, down] = shapes.map(|shape| matrix(&mut graph, shape));
        let norm = add(&mut graph, TensorDesc::f32([k]), [1, k]);
        let bias = add(&mut graph, TensorDesc::f32([33]), [1, 33]);
        let mut push = |op, inputs: &[TensorId]| graph.push(op, inputs).expect("fits");
        let x = push(Op::GetRows, &[embedding, ids]);
        let h = push(Op::RmsNorm { eps: 1e-5 }, &[x, norm]);
        let q = push(Op::MulMat, &[h, q, bias]);
        let second = push(Op::MulMat, &[h, second]);
        let v = push(Op::MulMat, &[h, v]);
        let x = push(Op::Add, &[v, x]);
        let h = push(Op::RmsNorm { eps: 1e-5 }, &[x, norm]);
        let [gate, up] = [gate, up].map(|w| push(Op::MulMat, &[h, w]));
        let inner = push(Op::Glu { kind, swapped: false }, &[gate, up]);
        let out = push(Op::MulMat, &[inner, down]);
        let x = push(Op::Add, &[out, x]);
        let h = push(Op::RmsNorm { eps: 1e-5 }, &[x, norm]);
        let logits = push(Op::MulMat, &[h, tied]);
        let outputs = vec![q, second, logits];
        outputs.iter().for_each(|&id| graph.mark_output(id));
        Self {
            graph,
            ids,
            weights,
            outputs,
        }
    }

    pub(super) fn load<B: HostAccess>(&self, backend: &mut B) {
        for (id, bytes) in &self.weights {
            let desc = self.graph.tensor(*id).expect("there");
            backend.load_weight(desc, bytes.clone()).expect("room");
        }
    }

    /// A group for each weight.
    pub(super) fn groups(&self) -> Vec<TensorGroup> {
        let group = |(index, (id, _)): (usize, &(TensorId, Arc<Vec<u8>>))| TensorGroup {
            name: format!("weight {index}"),
            tensors: vec![self.graph.tensor(*id).expect("there").clone()],
        };
        self.weights.iter().enumerate().map(group).collect()
    }

    /// The tokens of a run.
    pub(super) fn tokens(&self, run: u32) -> Vec<u32> {
        let rows = self.graph.tensor(self.ids).expect("there").shape[0] as u32;
        (0..rows).map(|row| (row * 5 + run * 11) % Self::VOCAB as u32).collect()
    }

    /// The outputs of each of so many runs, with other tokens each time.
    pub(super) fn run<B: HostAccess>(
        &self,
        backend: &mut B,
        optimizer: GraphOptimizer,
        runs: u32,
    ) -> Vec<Vec<Vec<f32>>> {
        let mut graph = self.graph.clone();
        optimizer.optimize(&mut graph);
        let mut program = executor::compile(backend, &graph).expect("compiles");
        let run = |run: u32| {
            backend.write_u32(self.ids, &self.tokens(run)).expect("written");
            executor::run_program(backend, &mut program).expect("runs");
            self.outputs
                .iter()
                .map(|&id| backend.read_f32(id).expect("read"))
                .collect()
        };
        (0..runs).map(run).collect()
    }
}

/// The mean square of a difference over that of what is expected.
pub(super) fn nmse(found: &[f32], expected: &[f32]) -> f64 {
    let square = |v: f32| f64::from(v).powi(2);
    let error: f64 = found.iter().zip(expected).map(|(f, e)| square(f - e)).sum();
    error / expected.iter().map(|&e| square(e)).sum::<f64>().max(1e-30)
}

#[test]
fn a_layer_of_every_type_is_near_the_cpus() {
    let gpu = gpu();
    for (index, &dtype) in PACKED.iter().enumerate() {
        let k = dtype.block_len().max(64);
        for rows in [1, [2, 5, 8][index % 3], [9, 17, 33][index % 3], 129] {
            let layer = Layer::new(dtype, rows, k);
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            layer.load(&mut cpu);
            layer.load(&mut device);
            assert_eq!(device.packed_weights(), 7, "{dtype}");
            let expected = layer.run(&mut cpu, GraphOptimizer::none(), 3);
            let optimizer = device.optimizer();
            let found = layer.run(&mut device, optimizer, 3);
            assert_eq!(device.replays(), 2, "{dtype}, {rows} rows");
            for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                let error = nmse(found, expected);
                // More than 8 rows are products of f16, up to 128 of them with scales and minima in f16.
                let limit = match rows {
                    ..=8 => 2e-3,
                    9..=128 => 4e-6,
                    _ => 1e-6,
                };
                assert!(error <= limit, "{dtype}, {rows} rows: {error:.1e}");
            }
            // As it was loaded, and still packed.
            for (id, bytes) in &layer.weights {
                assert_eq!(device.read(*id).expect("read"), **bytes);
            }
            assert_eq!(device.packed_weights(), 7);
        }
    }
}

#[test]
fn exact_products_pack_nothing() {
    let gpu = gpu();
    let layer = Layer::new(DType::Q4_0, 1, 64);
    let (mut cpu, mut exact) = (CpuBackend::with_threads(1), on(&gpu, Activations::F32));
    layer.load(&mut cpu);
    layer.load(&mut exact);
    assert_eq!(exact.packed_weights(), 0);
    let expected = layer.run(&mut cpu, GraphOptimizer::none(), 3);
    let optimizer = exact.optimizer();
    for (found, expected) in layer
        .run(&mut exact, optimizer, 3)
        .iter()
        .flatten()
        .zip(expected.iter().flatten())
    {
        assert!(nmse(found, expected) <= 1e-9);
    }
}

#[test]
fn fused_launches_change_nothing_but_the_order_of_sums() {
    let gpu = gpu();
    // In the second, a launch of its own rounds the input of the last product. Of many rows the norms leave rows of f16, which two products without biases share in one
    // launch, and so do gate and up; their unit leaves rows of f16 for the last product. A unit that has no such kernel, and columns that are no whole blocks, are rounded
    // apart. Of more rows, and of f16, products are launches each.
    for (dtype, rows, inner, kind, launches) in [
        (DType::Q4_1, 1, 96, GluKind::Swiglu, 7),
        (DType::Q4_1, 1, 8224, GluKind::Swiglu, 8),
        (DType::Q4_1, 17, 96, GluKind::Swiglu, 10),
        (DType::Q4_1, 17, 96, GluKind::Geglu, 10),
        (DType::Q4_1, 17, 96, GluKind::Reglu, 11),
        (DType::Q4_1, 129, 96, GluKind::Swiglu, 19),
        (DType::F16, 17, 96, GluKind::Swiglu, 12),
        (DType::F16, 17, 40, GluKind::Swiglu, 13),
    ] {
        let layer = Layer::with_inner(dtype, rows, [96, inner], kind);
        let run = |optimizer| {
            let mut device = on(&gpu, Activations::Int8);
            layer.load(&mut device);
            let outputs = layer.run(&mut device, optimizer, 3);
            (outputs, device.launches() / 3)
        };
        let (alone, _) = run(GraphOptimizer::none());
        let (fused, found) = run(on(&gpu, Activations::Int8).optimizer());
        assert_eq!(found, launches, "{dtype}, {rows} rows, {inner}, {kind:?}");
        for (found, expected) in fused.iter().flatten().zip(alone.iter().flatten()) {
            let size = expected.iter().fold(1.0, |a: f32, b| a.max(b.abs()));
            let limit = Tolerance::Absolute(1e-3 * f64::from(size));
            assert_close(found, &widen(expected), &[found.len()], limit);
        }
    }
}

#[test]
fn an_op_that_reads_a_weight_in_another_way_gets_ggmls_order() {
    let gpu = gpu();
    let mut graph = Graph::new();
    let w = graph.add_tensor(TensorDesc::new([64, 6], DType::Q8_0, Layout::ColMajor));
    let x = graph.add_tensor(TensorDesc::f32([1, 64]));
    let y = graph.push(Op::MulMat, &[x, w]).expect("fits");
    // The last two of its rows.
    let part = TensorDesc {
        view_of: Some(w),
        byte_offset: 4 * 2 * 34,
        ..TensorDesc::new([64, 2], DType::Q8_0, Layout::ColMajor)
    };
    let part = graph.view(w, part).expect("inside");
    let last = graph.push(Op::MulMat, &[x, part]).expect("fits");
    [y, last].iter().for_each(|&id| graph.mark_output(id));
    let mut device = on(&gpu, Activations::Int8);
    let (bytes, values) = weight(DType::Q8_0, 6, 64, 3);
    let desc = graph.tensor(w).expect("there");
    device.load_weight(desc, Arc::new(bytes.clone())).expect("room");
    let mut program = executor::compile(&mut device, &graph).expect("compiles");
    let input = rng(4).vec(64);
    device.write_f32(x, &input).expect("written");
    for _ in 0..4 {
        executor::run_program(&mut device, &mut program).expect("runs");
        let expected: Vec<f32> = values
            .chunks(64)
            .map(|row| row.iter().zip(&input).map(|(w, x)| w * x).sum())
            .collect();
        assert!(nmse(&device.read_f32(y).expect("read"), &expected) <= 5e-4);
        assert!(nmse(&device.read_f32(last).expect("read"), &expected[4..]) <= 1e-9);
        assert_eq!(device.read(w).expect("read"), bytes);
    }
    assert_eq!(device.packed_weights(), 0);
    assert!(program.is_captured());
    // Other bytes take the place of what was loaded.
    device.load_weight(desc, Arc::new(bytes.clone())).expect("room");
    assert_eq!(device.packed_weights(), 1);
    let (other, _) = weight(DType::Q8_0, 6, 64, 9);
    device.write(w, &other).expect("written");
    assert_eq!((device.read(w).expect("read"), device.packed_weights()), (other, 0));
    assert!(device.load_weight(desc, Arc::new(vec![0; 5])).is_err());
}

#[test]
fn groups_that_come_to_the_device_are_packed() {
    let layer = Layer::new(DType::Q4_0, 2, 64);
    let all: usize = layer.weights.iter().map(|(_, bytes)| bytes.len()).sum();
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(8 << 20)),
        ..LeaseOptions::default()
    });
    let hip = on(&gpu, Activations::Int8);
    let mut hybrid = HybridBackend::new(hip, CpuBackend::with_threads(1).activations(Activations::Int8));
    let groups = layer.groups();
    // No room at first except for the third group and those of its size.
    let left = gpu.backend().safe_alloc_size().expect("asked");
    let label = "what is in the way";
    let in_the_way = HipBuffer::<u8>::zeroed(gpu.backend().stream(), Elems(left - all), label).expect("room");
    hybrid
        .place(&groups, all - 2 * layer.weights[1].1.len())
        .expect("asked");
    layer.load(&mut hybrid);
    let mut in_the_way = Some(in_the_way);
    assert!((1..7).contains(&hybrid.gpu().packed_weights()));
    let mut cpu = CpuBackend::with_threads(1);
    layer.load(&mut cpu);
    let expected = layer.run(&mut cpu, GraphOptimizer::none(), 40);
    let mut graph = layer.graph.clone();
    hybrid.optimizer().optimize(&mut graph);
    let mut program = executor::compile(&mut hybrid, &graph).expect("compiles");
    for (run, expected) in expected.iter().enumerate() {
        if run == 3 {
            drop(in_the_way.take());
            // What was on another stream than the backend's is given back when that has ended.
            gpu.backend().synchronize().expect("ended");
            gpu.backend().trim_memory(Bytes(0)).expect("given back");
        }
        hybrid.write_u32(layer.ids, &layer.tokens(run as u32)).expect("written");
        executor::run_program(&mut hybrid, &mut program).expect("runs");
        for (&id, expected) in layer.outputs.iter().zip(expected) {
            let error = nmse(&hybrid.read_f32(id).expect("read"), expected);
            assert!(error <= 2e-3, "run {run}: {error:.1e}");
        }
    }
    assert!(hybrid.statistics().returns > 0);
    assert_eq!(hybrid.gpu().packed_weights(), 7, "{:?}", hybrid.statistics());
}
