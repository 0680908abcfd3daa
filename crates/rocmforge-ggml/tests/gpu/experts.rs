//! Packed experts: products near the CPU's with weights in ggml's order, one token in two launches, each id's fault named.

use std::sync::Arc;

use rocmforge_ggml::optimizer::GraphOptimizer;
use rocmforge_ggml::{
    Activations, CpuBackend, DType, ExpertUnit, GgmlBackend, GgmlError, GluKind, Graph, HostAccess, Layout, Op,
    TensorDesc, TensorId, Unary, executor,
};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::gpu;

use super::packed::{PACKED, nmse, on};
use crate::common::latent::columns;
use crate::common::weights::weight;

const EXPERTS: usize = 5;
const SWIGLU: ExpertUnit = ExpertUnit::Glu(GluKind::Swiglu);
/// With biases.
const BOUNDED: ExpertUnit = ExpertUnit::Bounded { bound: 0.75 };

/// Gate and up of `used` of the experts for each token, their unit, and the sum of the last products times factors.
struct Layer {
    graph: Graph,
    weights: Vec<(TensorId, Arc<Vec<u8>>)>,
    x: TensorId,
    ids: TensorId,
    factors: TensorId,
    out: TensorId,
}

impl Layer {
    fn new(dtype: DType, dims: [usize; 2], widths: [usize; 2], unit: ExpertUnit) -> Self {
        Self::with(dtype, dims, widths, unit, false)
    }

    /// Perhaps with rows times the sigmoid of a number, and a residual, added to the sum.
    fn with(dtype: DType, [tokens, used]: [usize; 2], [k, inner]: [usize; 2], unit: ExpertUnit, adds: bool) -> Self {
        let (mut graph, mut weights) = (Graph::new(), Vec::new());
        let x = graph.add_tensor(TensorDesc::f32([tokens, 1, k]));
        let ids = graph.add_tensor(TensorDesc::u32([tokens, used]));
        let factors = graph.add_tensor(TensorDesc::f32([tokens, 1, used]));
        let mut stack = |graph: &mut Graph, [n, k]: [usize; 2], salt| {
            let id = graph.add_tensor(TensorDesc::new([EXPERTS, k, n], dtype, Layout::ColMajor));
            weights.push((id, Arc::new(weight(dtype, EXPERTS * n, k, salt).0)));
            id
        };
        let shapes = [([inner, k], 1), ([inner, k], 2), ([33, inner], 3)];
        let [gate, up, down] = shapes.map(|(shape, salt)| stack(&mut graph, shape, salt));
        let mut bias = |n, salt| {
            let id = graph.add_tensor(TensorDesc::f32([EXPERTS, n]));
            weights.push((id, Arc::new(weight(DType::F32, EXPERTS, n, salt).0)));
            id
        };
        let biases = match unit {
            ExpertUnit::Glu(_) => [None; 3],
            ExpertUnit::Bounded { .. } => [(inner, 4), (inner, 5), (33, 6)].map(|(n, salt)| Some(bias(n, salt))),
        };
        let mut push = |op, inputs: &[TensorId]| graph.push(op, inputs).expect("fits");
        let mut product = |x, weights, bias: Option<TensorId>| {
            let product = push(Op::MulMatId, &[x, weights, ids]);
            bias.map_or(product, |bias| push(Op::AddId, &[product, bias, ids]))
        };
        let (gate, up) = (product(x, gate, biases[0]), product(x, up, biases[1]));
        let mut push = |op, inputs: &[TensorId]| graph.push(op, inputs).expect("fits");
        let (kind, gate, up) = match unit {
            ExpertUnit::Glu(kind) => (kind, gate, up),
            ExpertUnit::Bounded { bound: max } => {
                let (min, factor, bias) = (f32::NEG_INFINITY, 1.0, 1.0);
                let gate = push(Op::Clamp { min, max }, &[gate]);
                let up = push(Op::Clamp { min: -max, max }, &[up]);
                let up = push(Op::ScaleBias { factor, bias }, &[up]);
                (ExpertUnit::BOUNDED_KIND, gate, up)
            }
        };
        let inner = push(Op::Glu { kind, swapped: false }, &[gate, up]);
        let results = push(Op::MulMatId, &[inner, down, ids]);
        let results = biases[2].map_or(results, |bias| push(Op::AddId, &[results, bias, ids]));
        let mut out = push(Op::MulMat, &[factors, results]);
        if adds {
            let mut rows = |graph: &mut Graph, n, salt| {
                let id = graph.add_tensor(TensorDesc::f32([tokens, n]));
                weights.push((id, Arc::new(weight(DType::F32, tokens, n, salt).0)));
                id
            };
            let [beside, gate, residual] = [(33, 7), (1, 8), (33, 9)].map(|(n, salt)| rows(&mut graph, n, salt));
            out = graph.reshape(out, [tokens, 33]).expect("contiguous");
            let mut push = |op, inputs: &[TensorId]| graph.push(op, inputs).expect("fits");
            let factor = push(Op::Unary(Unary::Sigmoid), &[gate]);
            let gated = push(Op::Mul, &[beside, factor]);
            out = push(Op::Add, &[out, gated]);
            out = push(Op::Add, &[out, residual]);
        }
        graph.mark_output(out);
        Self {
            graph,
            weights,
            x,
            ids,
            factors,
            out,
        }
    }

    fn load<B: HostAccess>(&self, backend: &mut B) -> Result<(), GgmlError> {
        for (id, bytes) in &self.weights {
            backend.load_weight(self.graph.tensor(*id).expect("there"), bytes.clone())?;
        }
        Ok(())
    }

    /// The result of each of three runs, with other tokens each time.
    fn run<B: HostAccess>(&self, backend: &mut B, optimizer: GraphOptimizer) -> Result<Vec<Vec<f32>>, GgmlError> {
        self.load(backend)?;
        let mut graph = self.graph.clone();
        optimizer.optimize(&mut graph);
        let mut program = executor::compile(backend, &graph)?;
        let count = |id: TensorId| graph.tensor(id).expect("there").element_count();
        let run = |run: usize| {
            backend.write_f32(self.x, &rng(10 + run as u64).vec(count(self.x)))?;
            backend.write_f32(self.factors, &rng(20 + run as u64).vec(count(self.factors)))?;
            let ids: Vec<u32> = (0..count(self.ids))
                .map(|at| ((at * 7 + run) % EXPERTS) as u32)
                .collect();
            backend.write_u32(self.ids, &ids)?;
            executor::run_program(backend, &mut program)?;
            backend.read_f32(self.out)
        };
        (0..3).map(run).collect()
    }
}

#[test]
fn a_layer_of_every_type_is_near_the_cpus() {
    let gpu = gpu();
    for (index, &dtype) in PACKED.iter().enumerate() {
        let k = dtype.block_len().max(64);
        // Units that the kernel of one token has, and one that it has not.
        let units = [SWIGLU, BOUNDED, ExpertUnit::Glu(GluKind::Reglu)];
        let unit = units[index % 2 + index / 6 % 2];
        for tokens in [1, [2, 5, 41][index % 3]] {
            let layer = Layer::new(dtype, [tokens, 1 + index % 3], [k, 2 * k], unit);
            let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
            let expected = layer.run(&mut cpu, GraphOptimizer::none()).expect("runs");
            for optimizer in [device.optimizer(), GraphOptimizer::none()] {
                let found = layer.run(&mut device, optimizer).expect("runs");
                for (found, expected) in found.iter().zip(&expected) {
                    let error = nmse(found, expected);
                    assert!(error <= 2e-3, "{dtype}, {tokens} tokens, {unit:?}: {error:.1e}");
                }
                assert_eq!(device.packed_weights(), 3, "{dtype}");
            }
            // As it was loaded.
            for (id, bytes) in &layer.weights {
                assert_eq!(device.read(*id).expect("read"), **bytes);
            }
        }
    }
}

#[test]
fn one_token_takes_two_launches() {
    let gpu = gpu();
    let launches = |unit, tokens, used, inner| {
        let layer = Layer::new(DType::Q8_0, [tokens, used], [64, inner], unit);
        let mut device = on(&gpu, Activations::Int8);
        let optimizer = device.optimizer();
        layer.run(&mut device, optimizer).expect("runs");
        assert_eq!(device.replays(), 2);
        device.launches() / 3
    };
    assert_eq!(launches(SWIGLU, 1, 4, 96), 2);
    assert_eq!(launches(BOUNDED, 1, 4, 96), 2);
    // The last product of more columns than one launch holds: rounding, product, sum.
    assert_eq!(launches(SWIGLU, 1, 4, 4128), 4);
    // Rounding, two products and their unit; rounding, product, sum.
    assert_eq!(launches(SWIGLU, 2, 4, 96), 7);
    // And two biases, two bounds and + 1.
    assert_eq!(launches(BOUNDED, 2, 4, 96), 12);
}

/// What is added to the sum of one token is in its launch. Stacks that are not packed, and sums of more columns than one launch holds, have launches for each part.
#[test]
fn what_is_added_to_a_sum() {
    let gpu = gpu();
    for (dtype, tokens, unit, inner, launches) in [
        (DType::Q8_0, 1, SWIGLU, 96, 2),
        (DType::Q4_0, 1, BOUNDED, 96, 2),
        (DType::Q8_0, 1, SWIGLU, 4128, 8),
        (DType::F16, 1, SWIGLU, 96, 9),
        (DType::Q8_0, 2, SWIGLU, 96, 11),
    ] {
        let layer = Layer::with(dtype, [tokens, 4], [64, inner], unit, true);
        let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
        let optimizer = device.optimizer();
        let expected = layer.run(&mut cpu, GraphOptimizer::none()).expect("runs");
        let found = layer.run(&mut device, optimizer).expect("runs");
        assert_eq!(device.launches() / 3, launches, "{dtype}, {tokens} tokens, {inner}");
        for (found, expected) in found.iter().zip(&expected) {
            let error = nmse(found, expected);
            assert!(error <= 2e-3, "{dtype}, {tokens} tokens, {inner}: {error:.1e}");
        }
    }
}

/// Matrices of heads lie as those of experts do, and are products of their own; rows of such a table, too.
#[test]
fn three_dimensions_that_are_no_experts_are_read_in_ggmls_order() {
    let gpu = gpu();
    let mut graph = Graph::new();
    let w = graph.add_tensor(TensorDesc::new([2, 64, 32], DType::Q8_0, Layout::ColMajor));
    let x = graph.add_tensor(TensorDesc::f32([2, 3, 64]));
    let y = graph.push(Op::MulMat, &[x, w]).expect("fits");
    graph.mark_output(y);
    let (bytes, _) = weight(DType::Q8_0, 2 * 32, 64, 1);
    let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
    let expected = product(&graph, [w, x, y], None, &bytes, &mut cpu);
    let found = product(&graph, [w, x, y], None, &bytes, &mut device);
    assert!(nmse(&found, &expected) <= 1e-9);
}

/// A copy of parts of rows is no launch where the product rounds them: the bits are those of the launches apart.
#[test]
fn parts_of_rows_are_rounded_where_they_lie() {
    let gpu = gpu();
    let (k, n, heads) = (64, 33, EXPERTS);
    // What else reads the copy; activations; launches of a run, and of one without joined launches.
    for (tokens, marked, activations, launches) in [
        (1, false, Activations::Int8, [2, 3]),
        (7, false, Activations::Int8, [2, 3]),
        (7, true, Activations::Int8, [3, 3]),
        (7, false, Activations::F32, [2, 2]),
        // Products in tiles, whose list is a launch, take rows of f16, which are made of the copy.
        (400, false, Activations::Int8, [4, 4]),
    ] {
        let mut graph = Graph::new();
        let w = graph.add_tensor(TensorDesc::new([EXPERTS, k, n], DType::Q8_0, Layout::ColMajor));
        let x = graph.add_tensor(TensorDesc::f32([tokens, heads, k + 7]));
        let ids = graph.add_tensor(TensorDesc::u32([tokens, heads]));
        let part = columns(&mut graph, x, 3, k).expect("fits");
        let y = graph.push(Op::MulMatId, &[part, w, ids]).expect("fits");
        graph.mark_output(y);
        if marked {
            graph.mark_output(part);
        }
        let (bytes, _) = weight(DType::Q8_0, EXPERTS * n, k, 1);
        let words: Vec<u32> = (0..tokens * heads).map(|at| (at % EXPERTS) as u32).collect();
        let mut run = |joins: bool| {
            let mut device = on(&gpu, activations);
            let mut graph = graph.clone();
            if joins {
                device.optimizer().optimize(&mut graph);
            }
            let found = product(&graph, [w, x, y], Some((ids, &words)), &bytes, &mut device);
            (found, device.launches())
        };
        let ([joined, apart], case) = ([true, false].map(&mut run), (tokens, marked, activations));
        assert_eq!([joined.1, apart.1], launches, "{case:?}");
        assert!(
            joined.0 == apart.0 && joined.0.iter().all(|y| y.is_finite()),
            "{case:?}"
        );
        let expected = product(&graph, [w, x, y], Some((ids, &words)), &bytes, &mut CpuBackend::new());
        // In tiles activations have 11 bits, else 8 or all.
        let limit = if tokens == 400 { 1e-6 } else { 2e-3 };
        assert!(nmse(&joined.0, &expected) <= limit, "{case:?}");
    }
}

/// The result `y` of a graph of one product.
fn product<B: HostAccess>(
    graph: &Graph,
    [w, x, y]: [TensorId; 3],
    ids: Option<(TensorId, &[u32])>,
    bytes: &[u8],
    backend: &mut B,
) -> Vec<f32> {
    let desc = graph.tensor(w).expect("there");
    backend.load_weight(desc, Arc::new(bytes.to_vec())).expect("room");
    let mut program = executor::compile(backend, graph).expect("compiles");
    let count = graph.tensor(x).expect("there").element_count();
    backend.write_f32(x, &rng(3).vec(count)).expect("written");
    if let Some((id, words)) = ids {
        backend.write_u32(id, words).expect("written");
    }
    executor::run_program(backend, &mut program).expect("runs");
    backend.read_f32(y).expect("read")
}

/// Gate packed and up not, a row-major stack, and factors with gaps: run three times, when scratch memory is there already.
#[test]
fn stacks_of_several_kinds_and_factors_with_gaps() {
    let gpu = gpu();
    let (tokens, used, k, inner) = (3, 2, 64, 96);
    let (mut graph, mut weights) = (Graph::new(), Vec::new());
    let mut stack = |graph: &mut Graph, dtype, layout, [n, k]: [usize; 2], salt| {
        let id = graph.add_tensor(TensorDesc::new([EXPERTS, k, n], dtype, layout));
        weights.push((id, Arc::new(weight(dtype, EXPERTS * n, k, salt).0)));
        id
    };
    let gate = stack(&mut graph, DType::Q8_0, Layout::ColMajor, [inner, k], 1);
    let up = stack(&mut graph, DType::F16, Layout::ColMajor, [inner, k], 2);
    let down = stack(&mut graph, DType::F32, Layout::RowMajor, [33, inner], 3);
    let x = graph.add_tensor(TensorDesc::f32([tokens, 1, k]));
    let ids = graph.add_tensor(TensorDesc::u32([tokens, used]));
    let turned = graph.add_tensor(TensorDesc::f32([used, tokens]));
    let factors = graph.push(Op::Transpose, &[turned]).expect("fits");
    let factors = graph.push(Op::Scale { factor: 1.0 }, &[factors]).expect("fits");
    let factors = graph.reshape(factors, [tokens, 1, used]).expect("contiguous");
    let mut push = |op, inputs: &[TensorId]| graph.push(op, inputs).expect("fits");
    let [gate, up] = [gate, up].map(|w| push(Op::MulMatId, &[x, w, ids]));
    let kind = GluKind::Swiglu;
    let inner = push(Op::Glu { kind, swapped: false }, &[gate, up]);
    let results = push(Op::MulMatId, &[inner, down, ids]);
    let out = push(Op::MulMat, &[factors, results]);
    graph.mark_output(out);
    let layer = Layer {
        graph,
        weights,
        x,
        ids,
        factors: turned,
        out,
    };
    let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
    let expected = layer.run(&mut cpu, GraphOptimizer::none()).expect("runs");
    let optimizer = device.optimizer();
    let found = layer.run(&mut device, optimizer).expect("runs");
    assert_eq!(device.packed_weights(), 1);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(nmse(found, expected) <= 2e-3);
    }
}

/// More pairs than a launch counts.
#[test]
fn a_long_batch_is_several_launches() {
    let gpu = gpu();
    let tokens = (1 << 15) + 5;
    let mut graph = Graph::new();
    let w = graph.add_tensor(TensorDesc::new([2, 32, 1], DType::Q8_0, Layout::ColMajor));
    let x = graph.add_tensor(TensorDesc::f32([tokens, 1, 32]));
    let ids = graph.add_tensor(TensorDesc::u32([tokens, 2]));
    let y = graph.push(Op::MulMatId, &[x, w, ids]).expect("fits");
    graph.mark_output(y);
    let (bytes, _) = weight(DType::Q8_0, 2, 32, 1);
    let chosen: Vec<u32> = (0..2 * tokens as u32).map(|at| at / 3 % 2).collect();
    let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
    let expected = product(&graph, [w, x, y], Some((ids, &chosen)), &bytes, &mut cpu);
    let found = product(&graph, [w, x, y], Some((ids, &chosen)), &bytes, &mut device);
    // A rounding and a product each; the pairs of the first are sorted into tiles before.
    assert_eq!(device.launches(), 5);
    // All, and those of the second launch by themselves.
    for first in [0, 1 << 16] {
        assert!(nmse(&found[first..], &expected[first..]) <= 2e-3);
    }
}

#[test]
fn exact_products_pack_no_experts() {
    let gpu = gpu();
    let layer = Layer::new(DType::Q4_0, [3, 2], [64, 96], SWIGLU);
    let (mut cpu, mut exact) = (CpuBackend::with_threads(1), on(&gpu, Activations::F32));
    let expected = layer.run(&mut cpu, GraphOptimizer::none()).expect("runs");
    let optimizer = exact.optimizer();
    let found = layer.run(&mut exact, optimizer).expect("runs");
    assert_eq!(exact.packed_weights(), 0);
    for (found, expected) in found.iter().zip(&expected) {
        assert!(nmse(found, expected) <= 1e-9);
    }
}

/// The error is that of MUL_MAT_ID on the CPU, in each form that the device has.
#[test]
fn an_expert_that_is_not_there_is_named() {
    let gpu = gpu();
    for tokens in [1, 3] {
        let layer = Layer::new(DType::Q8_0, [tokens, 2], [64, 96], SWIGLU);
        let mut ids = vec![1u32; 2 * tokens];
        ids[2 * tokens - 1] = 9;
        let mut cpu = CpuBackend::with_threads(1);
        let expected = fails(&layer, &mut cpu, GraphOptimizer::none(), &ids);
        let mut device = on(&gpu, Activations::Int8);
        let all = device.optimizer();
        for optimizer in [all, GraphOptimizer::none()] {
            let found = fails(&layer, &mut device, optimizer, &ids);
            assert_eq!(found, expected, "{tokens} tokens");
        }
        let mut cpu = CpuBackend::with_threads(1);
        let fused = fails(&layer, &mut cpu, GraphOptimizer::new(), &ids);
        assert_eq!(fused, expected, "{tokens} tokens");
    }
}

/// The error of a run with these experts.
fn fails<B: HostAccess>(layer: &Layer, backend: &mut B, optimizer: GraphOptimizer, ids: &[u32]) -> String {
    let mut graph = layer.graph.clone();
    optimizer.optimize(&mut graph);
    let mut run = || {
        layer.load(backend)?;
        let mut program = executor::compile(backend, &graph)?;
        backend.write_u32(layer.ids, ids)?;
        executor::run_program(backend, &mut program)?;
        backend.read(layer.out)
    };
    run().expect_err("out of range").to_string()
}

/// A router, the gate of a shared expert beside it, and a packed matrix, of one input: one launch for both matrices of floats.
#[test]
fn two_matrices_of_floats_with_few_rows_take_one_launch() {
    let gpu = gpu();
    for (dtype, tokens) in [(DType::F32, 1), (DType::F32, 3), (DType::Bf16, 2)] {
        let (k, mut graph) = (64, Graph::new());
        let x = graph.add_tensor(TensorDesc::f32([tokens, k]));
        let rows = [(dtype, 9), (DType::Q8_0, 33), (dtype, 1)];
        let weights = rows.map(|(dtype, n)| graph.add_tensor(TensorDesc::new([k, n], dtype, Layout::ColMajor)));
        let outputs = weights.map(|w| graph.push(Op::MulMat, &[x, w]).expect("fits"));
        outputs.iter().for_each(|&y| graph.mark_output(y));
        let values = rng(3).vec(tokens * k);
        let (mut cpu, mut device) = (CpuBackend::with_threads(1), on(&gpu, Activations::Int8));
        let expected = few(
            &graph,
            &mut cpu,
            GraphOptimizer::none(),
            (x, &values),
            (weights, rows),
            outputs,
        );
        let optimizer = device.optimizer();
        let found = few(&graph, &mut device, optimizer, (x, &values), (weights, rows), outputs);
        // A product of several rows rounds them before.
        assert_eq!(
            device.launches(),
            if tokens == 1 { 2 } else { 3 },
            "{dtype}, {tokens} tokens"
        );
        for ((found, expected), limit) in found.iter().zip(&expected).zip([1e-10, 2e-3, 1e-10]) {
            assert!(nmse(found, expected) <= limit, "{dtype}, {tokens} tokens");
        }
    }
}

/// The products of `x` with the weights.
fn few<B: HostAccess>(
    graph: &Graph,
    backend: &mut B,
    optimizer: GraphOptimizer,
    (x, values): (TensorId, &[f32]),
    (weights, rows): ([TensorId; 3], [(DType, usize); 3]),
    outputs: [TensorId; 3],
) -> Vec<Vec<f32>> {
    let k = graph.tensor(x).expect("there").shape[1];
    for (salt, (id, (dtype, n))) in (1..).zip(weights.into_iter().zip(rows)) {
        let bytes = Arc::new(weight(dtype, n, k, salt).0);
        let desc = graph.tensor(id).expect("there");
        backend.load_weight(desc, bytes).expect("loaded");
    }
    let mut graph = graph.clone();
    optimizer.optimize(&mut graph);
    let mut program = executor::compile(backend, &graph).expect("compiles");
    backend.write_f32(x, values).expect("written");
    executor::run_program(backend, &mut program).expect("runs");
    outputs.map(|y| backend.read_f32(y).expect("read")).to_vec()
}
