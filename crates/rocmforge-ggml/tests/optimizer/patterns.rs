//! Each pass on the smallest graph that it is for, and on what it must leave.

use std::sync::Arc;

use rocmforge_ggml::optimizer::{Constants, GraphOptimizer, OptimizerStats, Pass};
use rocmforge_ggml::{
    CpuBackend, DType, GluKind, Graph, HostAccess, Kernel, Launch, Layout, Op, Rope, RopeStyle, SoftMax, TensorDesc,
    TensorId, Unary, executor, planner,
};
use rocmforge_testkit::data::rng;

const RMS: Op = Op::RmsNorm { eps: 1e-5 };

/// A graph under construction, for which operands always fit.
#[derive(Default)]
pub(super) struct Builder(pub(super) Graph);

impl Builder {
    pub(super) fn f32(&mut self, shape: &[usize]) -> TensorId {
        self.0.add_tensor(TensorDesc::f32(shape))
    }

    fn u32(&mut self, len: usize) -> TensorId {
        self.0.add_tensor(TensorDesc::u32([len]))
    }

    fn matrix(&mut self, k: usize, n: usize) -> TensorId {
        self.0.add_tensor(TensorDesc::new([k, n], DType::F32, Layout::ColMajor))
    }

    pub(super) fn push(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        self.0.push(op, inputs).expect("the operands fit")
    }

    pub(super) fn out(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        let id = self.push(op, inputs);
        self.0.mark_output(id);
        id
    }

    /// The names of the nodes after one pass.
    fn after(&self, pass: Pass) -> Vec<&'static str> {
        self.optimized(GraphOptimizer::none().with(pass))
            .0
            .nodes()
            .iter()
            .map(|node| node.op.name())
            .collect()
    }

    /// The launches after one pass: kernels' names, inputs and outputs.
    pub(super) fn launches_after(&self, pass: Pass) -> (Graph, Vec<Launch>) {
        let (graph, _) = self.optimized(GraphOptimizer::none().with(pass));
        let launches = graph.launches().into_owned();
        (graph, launches)
    }

    fn optimized(&self, optimizer: GraphOptimizer) -> (Graph, OptimizerStats) {
        let mut graph = self.0.clone();
        let stats = optimizer.optimize(&mut graph);
        (graph, stats)
    }

    /// Outputs of the graph with random content: f32 and f16 floats, indices of 0, 1, 2 and so on.
    pub(super) fn run(&self, graph: &Graph) -> Vec<Vec<f32>> {
        let mut cpu = CpuBackend::with_threads(1);
        executor::prepare(&mut cpu, graph).expect("memory");
        let written: Vec<TensorId> = self.0.nodes().iter().flat_map(|node| node.outputs.clone()).collect();
        for desc in self
            .0
            .tensors()
            .filter(|desc| !desc.is_view() && !written.contains(&desc.id))
        {
            let count = desc.element_count();
            let bytes: Vec<u8> = match desc.dtype {
                DType::F32 => bytemuck::cast_slice(&rng(desc.id.0 as u64).vec(count)).to_vec(),
                DType::F16 => {
                    let values = rng(desc.id.0 as u64).vec(count);
                    values
                        .iter()
                        .flat_map(|&x| half::f16::from_f32(x).to_le_bytes())
                        .collect()
                }
                _ => bytemuck::cast_slice(&(0..count as u32).collect::<Vec<_>>()).to_vec(),
            };
            if graph.tensor(desc.id).is_some() && executor_knows(&cpu, desc.id) {
                cpu.write(desc.id, &bytes).expect("written");
            }
        }
        executor::execute_graph(&mut cpu, graph).expect("runs");
        let outputs = self.0.get_outputs().into_iter();
        outputs.map(|id| cpu.read_f32(id).expect("read")).collect()
    }

    #[track_caller]
    fn check_near(&self, graph: &Graph, bound: f32) {
        for (found, expected) in self.run(graph).iter().zip(self.run(&self.0)) {
            let largest = expected.iter().fold(1e-3f32, |most, x| most.max(x.abs()));
            for (f, e) in found.iter().zip(&expected) {
                assert!((f - e).abs() <= bound * largest, "{f}, expected {e}");
            }
        }
    }
}

fn executor_knows(cpu: &CpuBackend, id: TensorId) -> bool {
    use rocmforge_ggml::GgmlBackend;
    cpu.tensor_desc(id).is_some()
}

#[test]
fn a_norm_takes_its_weight_and_its_bias() {
    let mut b = Builder::default();
    let (x, weight, bias) = (b.f32(&[3, 8]), b.f32(&[8]), b.f32(&[8]));
    let normed = b.push(RMS, &[x]);
    b.out(Op::Mul, &[normed, weight]);
    let normed = b.push(Op::LayerNorm { eps: 1e-5 }, &[x]);
    let scaled = b.push(Op::Mul, &[normed, weight]);
    b.out(Op::Add, &[scaled, bias]);
    assert_eq!(b.after(Pass::NormWeight), ["RMS_NORM", "NORM"]);
    let (graph, stats) = b.optimized(GraphOptimizer::new());
    assert_eq!(stats.counts.of(Pass::NormWeight), 3);
    assert_eq!(b.run(&graph), b.run(&b.0));
    assert_eq!(
        stats.to_string(),
        "0 noops, 0 DCE, 0 CSE, 0 layout (0 total), 3 norm-weight"
    );
}

#[test]
fn a_norm_that_is_an_output_or_read_twice_stays() {
    let mut b = Builder::default();
    let (x, weight) = (b.f32(&[3, 8]), b.f32(&[8]));
    let normed = b.out(RMS, &[x]);
    b.out(Op::Mul, &[normed, weight]);
    let other = b.push(Op::RmsNorm { eps: 1e-3 }, &[x]);
    let scaled = b.push(Op::Mul, &[other, weight]);
    b.out(Op::Add, &[scaled, other]);
    assert_eq!(b.after(Pass::NormWeight), ["RMS_NORM", "MUL", "RMS_NORM", "MUL", "ADD"]);
}

#[test]
fn a_sum_and_its_norm_are_two_outputs_of_one_launch() {
    let mut b = Builder::default();
    let (x, y, weight) = (b.f32(&[3, 8]), b.f32(&[3, 8]), b.f32(&[8]));
    let sum = b.push(Op::Add, &[x, y]);
    let normed = b.push(RMS, &[sum, weight]);
    let active = b.push(Op::Unary(Unary::Silu), &[normed]);
    b.out(Op::Add, &[active, sum]);
    let (graph, launches) = b.launches_after(Pass::AddNorm);
    assert_eq!(launches.len(), 3);
    assert_eq!(
        (launches[0].kernel(), launches[0].outputs()),
        (Kernel::AddRmsNorm { eps: 1e-5 }, &[sum, normed][..])
    );
    assert_eq!(b.run(&graph), b.run(&b.0));
    // A sum whose second operand repeats is left.
    let mut b = Builder::default();
    let (x, row) = (b.f32(&[3, 8]), b.f32(&[8]));
    let sum = b.push(Op::Add, &[x, row]);
    b.out(RMS, &[sum]);
    assert_eq!(b.launches_after(Pass::AddNorm).1.len(), 2);
}

#[test]
fn gate_and_up_become_one_launch_in_both_spellings() {
    for (join, spelled) in [(true, 0), (false, 0), (false, 1)] {
        for rows in [1, 3, 9] {
            let mut b = Builder::default();
            let (x, gate, up) = (b.f32(&[rows, 16]), b.matrix(16, 40), b.matrix(16, 40));
            let gate = b.push(Op::MulMat, &[x, gate]);
            let up = b.push(Op::MulMat, &[x, up]);
            if join {
                let kind = GluKind::Swiglu;
                b.out(Op::Glu { kind, swapped: false }, &[gate, up]);
            } else {
                let gate = b.push(Op::Unary(Unary::Silu), &[gate]);
                b.out(Op::Mul, &[[gate, up], [up, gate]][spelled]);
            }
            let (graph, launches) = b.launches_after(Pass::GateUp);
            assert_eq!(launches.len(), 1);
            assert_eq!(launches[0].kernel(), Kernel::MulMatGlu(GluKind::Swiglu));
            assert_eq!(b.run(&graph), b.run(&b.0), "{rows} rows");
        }
    }
}

#[test]
fn products_of_one_input_become_one_launch() {
    for biases in [false, true] {
        for rows in [1, 3, 9] {
            let mut b = Builder::default();
            let x = b.f32(&[rows, 16]);
            for n in [32, 7, 48] {
                let mut inputs = vec![x, b.matrix(16, n)];
                if biases {
                    inputs.push(b.f32(&[n]));
                }
                b.out(Op::MulMat, &inputs);
            }
            let (graph, stats) = b.optimized(GraphOptimizer::new());
            let launches = graph.launches();
            assert_eq!(
                (launches.len(), launches[0].kernel()),
                (1, Kernel::MulMatMany { biases })
            );
            assert_eq!(stats.counts.of(Pass::Qkv), 1);
            assert_eq!(b.run(&graph), b.run(&b.0), "{rows} rows");
        }
    }
}

/// A fused launch is of the nodes as they were: it does not outlive them.
#[test]
fn a_graph_whose_nodes_change_has_a_launch_for_each() {
    let mut b = Builder::default();
    let (x, weight) = (b.f32(&[3, 16]), b.matrix(16, 8));
    let product = b.push(Op::MulMat, &[x, weight]);
    b.out(Op::Unary(Unary::Silu), &[product]);
    let (mut graph, _) = b.optimized(GraphOptimizer::none().with(Pass::Activation));
    assert_eq!((graph.nodes().len(), graph.launches().len()), (2, 1));
    graph.nodes_mut().pop();
    let launches = graph.launches();
    let kernels: Vec<Kernel> = launches.iter().map(|launch| launch.kernel()).collect();
    assert_eq!(kernels, [Kernel::Op(Op::MulMat)]);
}

#[test]
fn a_product_takes_bias_and_activation() {
    let mut b = Builder::default();
    let (x, weight, bias) = (b.f32(&[3, 16]), b.matrix(16, 8), b.f32(&[8]));
    let product = b.push(Op::MulMat, &[x, weight]);
    let sum = b.push(Op::Add, &[product, bias]);
    b.out(Op::Unary(Unary::GeluErf), &[sum]);
    let passes = GraphOptimizer::none().with(Pass::Bias).with(Pass::Activation);
    let (graph, _) = b.optimized(passes);
    let launches = graph.launches();
    assert_eq!((graph.nodes().len(), launches.len()), (2, 1));
    assert_eq!(
        (launches[0].kernel(), launches[0].inputs()),
        (Kernel::MulMatUnary(Unary::GeluErf), &[x, weight, bias][..])
    );
    assert_eq!(b.run(&graph), b.run(&b.0));
}

#[test]
fn only_rows_that_are_read_are_computed() {
    let mut b = Builder::default();
    let (x, ids) = (b.f32(&[10, 16]), b.u32(2));
    let (weight, vector, output) = (b.matrix(16, 16), b.f32(&[16]), b.matrix(16, 40));
    // A residual: both ways lead to x.
    let normed = b.push(RMS, &[x, vector]);
    let product = b.push(Op::MulMat, &[normed, weight]);
    let sum = b.push(Op::Add, &[product, x]);
    let normed = b.push(RMS, &[sum, vector]);
    let logits = b.push(Op::MulMat, &[normed, output]);
    let chosen = b.out(Op::GetRows, &[logits, ids]);
    let (graph, stats) = b.optimized(
        GraphOptimizer::none()
            .with(Pass::LastRows)
            .with(Pass::CommonSubexpressions),
    );
    let names: Vec<_> = graph.nodes().iter().map(|node| node.op.name()).collect();
    assert_eq!(
        names,
        ["GET_ROWS", "RMS_NORM", "MUL_MAT", "ADD", "RMS_NORM", "MUL_MAT"],
        "{stats}"
    );
    assert!(
        graph
            .nodes()
            .iter()
            .all(|node| graph.tensor(node.outputs[0]).expect("there").shape[0] == 2)
    );
    assert_eq!(graph.nodes()[5].outputs, [chosen]);
    b.check_near(&graph, 1e-5);
}

#[test]
fn a_view_of_the_last_rows_moves_too() {
    let mut b = Builder::default();
    let (x, weight) = (b.f32(&[5, 16]), b.matrix(16, 40));
    let scaled = b.push(Op::Scale { factor: 0.5 }, &[x]);
    let logits = b.push(Op::MulMat, &[scaled, weight]);
    let mut last = TensorDesc::view_of(b.0.tensor(logits).expect("there"), 4 * 40 * 4);
    last.set_shape([1, 40]);
    let last = b.0.view(logits, last).expect("inside");
    b.0.mark_output(last);
    assert_eq!(b.after(Pass::LastRows), ["VIEW", "SCALE", "MUL_MAT"]);
    b.check_near(&b.optimized(GraphOptimizer::new()).0, 1e-5);
}

#[test]
fn rows_that_mix_are_all_computed() {
    let mut b = Builder::default();
    let (x, ids) = (b.f32(&[6, 6]), b.u32(1));
    let product = b.push(Op::MulMat, &[x, x]);
    b.out(Op::GetRows, &[product, ids]);
    // The right matrix is x as well: of it every row is read.
    assert_eq!(b.after(Pass::LastRows), ["GET_ROWS", "MUL_MAT"]);
    b.check_near(&b.optimized(GraphOptimizer::new()).0, 1e-5);
    let mut b = Builder::default();
    let (x, ids) = (b.f32(&[6, 6]), b.u32(1));
    let sums = b.push(Op::Cumsum, &[x]);
    let masked = b.push(
        Op::DiagMask {
            n_past: 0,
            fill: rocmforge_ggml::DiagFill::Zero,
        },
        &[sums],
    );
    b.out(Op::GetRows, &[masked, ids]);
    assert_eq!(b.after(Pass::LastRows), ["CUMSUM", "DIAG_MASK_ZERO", "GET_ROWS"]);
}

/// Attention as llama.cpp's graphs without flash attention have it: keys and values of a cache that this graph writes, values
/// transposed, four heads for two of the cache, heads and tokens swapped at the end.
fn attention(values_written_between: bool) -> Builder {
    const HEADS: usize = 4;
    const KV_HEADS: usize = 2;
    const DIM: usize = 8;
    const SLOTS: usize = 6;
    let mut b = Builder::default();
    let n = 3;
    let (q, k, v, ids) = (
        b.f32(&[n, HEADS * DIM]),
        b.f32(&[n, KV_HEADS * DIM]),
        b.f32(&[n, KV_HEADS * DIM]),
        b.u32(n),
    );
    let cache = |b: &mut Builder| {
        let desc = TensorDesc::new([SLOTS, KV_HEADS * DIM], DType::F16, Layout::RowMajor);
        b.0.add_tensor(desc)
    };
    let (keys, values) = (cache(&mut b), cache(&mut b));
    let keys = b.0.set_rows(k, keys, ids).expect("fits");
    let mut written = values;
    if !values_written_between {
        written = b.0.set_rows(v, values, ids).expect("fits");
    }
    // [1, kv_heads, kv, dim]
    let by_head = |b: &mut Builder, cache: TensorId| {
        let split = b.0.reshape(cache, [1, SLOTS, KV_HEADS, DIM]).expect("contiguous");
        b.0.permute(split, &[0, 2, 1, 3]).expect("four dimensions")
    };
    let query = b.0.reshape(q, [1, n, HEADS, DIM]).expect("contiguous");
    let query = b.0.permute(query, &[0, 2, 1, 3]).expect("four dimensions");
    let keys = by_head(&mut b, keys);
    let keys = b.0.transpose(keys).expect("a matrix");
    let scores = b.push(Op::MulMat, &[query, keys]);
    if values_written_between {
        // The mask is then a read of the cache before the write: it must stay there.
        written = b.0.set_rows(v, values, ids).expect("fits");
        let again = b.0.set_rows(v, keys_root(&b), ids).expect("fits");
        let sum = b.push(Op::Cpy { to: Some(DType::F32) }, &[again]);
        b.out(Op::Sum, &[sum]);
    }
    let mask = b.f32(&[n, SLOTS]);
    let s = SoftMax {
        scale: 0.3,
        mask: true,
        ..SoftMax::PLAIN
    };
    let weights = b.push(Op::SoftMax(s), &[scores, mask]);
    let values = by_head(&mut b, written);
    let attended = b.push(Op::MulMat, &[weights, values]);
    let swapped = b.0.permute(attended, &[0, 2, 1, 3]).expect("four dimensions");
    let rows = b.push(Op::Cont, &[swapped]);
    let rows = b.0.reshape(rows, [n, HEADS * DIM]).expect("contiguous");
    b.out(Op::Scale { factor: 1.0 }, &[rows]);
    b
}

/// The cache of the keys: what the first node writes into, through its view.
fn keys_root(b: &Builder) -> TensorId {
    b.0.nodes()[0].outputs[0]
}

#[test]
fn two_products_and_a_softmax_become_attention() {
    let b = attention(false);
    let (graph, stats) = b.optimized(GraphOptimizer::new());
    assert_eq!(stats.counts.of(Pass::Attention), 1);
    let names: Vec<_> = graph.computing_nodes().map(|node| node.op.name()).collect();
    assert_eq!(
        names,
        ["SET_ROWS", "SET_ROWS", "FLASH_ATTN_EXT", "SCALE"],
        "the copy goes, too"
    );
    b.check_near(&graph, 1e-5);
}

#[test]
fn attention_whose_keys_change_in_between_stays() {
    let b = attention(true);
    let (graph, stats) = b.optimized(GraphOptimizer::new());
    assert_eq!(stats.counts.of(Pass::Attention), 0);
    b.check_near(&graph, 1e-5);
}

#[test]
fn rotated_keys_go_straight_into_the_cache() {
    let mut b = Builder::default();
    let (x, positions, ids) = (b.f32(&[3, 32]), b.u32(3), b.u32(3));
    let heads = b.0.reshape(x, [1, 3, 2, 16]).expect("contiguous");
    let rope = Rope::new(16, 10_000.0, RopeStyle::HalfSplit, 8);
    let rotated = b.push(Op::Rope(rope), &[heads, positions]);
    let rows = b.0.reshape(rotated, [3, 32]).expect("contiguous");
    let cache = b.0.add_tensor(TensorDesc::new([5, 32], DType::F16, Layout::RowMajor));
    let written = b.0.set_rows(rows, cache, ids).expect("fits");
    b.out(Op::GetRows, &[written, ids]);
    let (graph, launches) = b.launches_after(Pass::RopeSetRows);
    let names: Vec<_> = launches.iter().map(|launch| launch.kernel().name()).collect();
    assert_eq!(names, ["ROPE_SET_ROWS", "GET_ROWS"]);
    assert_eq!(launches[0].outputs(), [written]);
    assert_eq!(b.run(&graph), b.run(&b.0));
}

#[test]
fn what_follows_from_constants_is_computed_once() {
    let mut b = Builder::default();
    let (x, large) = (b.f32(&[2, 8]), b.f32(&[64]));
    let [v, w] = [0, 1].map(|_| b.f32(&[8]));
    let product = b.push(Op::Mul, &[v, w]);
    let scaled = b.push(Op::Scale { factor: 2.0 }, &[product]);
    let marked = b.out(Op::Scale { factor: 3.0 }, &[product]);
    let doubled = b.push(Op::Scale { factor: 2.0 }, &[large]);
    b.out(Op::Sum, &[doubled]);
    let y = b.out(Op::Add, &[x, scaled]);
    let mut constants = Constants::new();
    let bytes = |values: &[f32]| Arc::new(bytemuck::cast_slice(values).to_vec());
    constants.insert(v, bytes(&[1.5; 8]));
    constants.insert(w, bytes(&[4.0; 8]));
    constants.insert(large, bytes(&[1.0; 64]));
    let mut graph = b.0.clone();
    let stats = GraphOptimizer::none()
        .with(Pass::ConstantFolding)
        .optimize_with(&mut graph, &mut constants);
    // 320 B are given, so 80 B may be added: both vectors of 32 B, not the one of 256 B.
    assert_eq!(stats.counts.of(Pass::ConstantFolding), 2);
    let names: Vec<_> = graph.nodes().iter().map(|node| node.op.name()).collect();
    assert_eq!(
        names,
        ["SCALE", "SCALE", "SUM", "ADD"],
        "an output and what is too large stay"
    );
    let folded: Vec<_> = constants.folded().map(|(id, _)| id).collect();
    assert_eq!(folded, [product, scaled]);
    let mut cpu = CpuBackend::with_threads(1);
    executor::prepare(&mut cpu, &graph).expect("memory");
    cpu.write_f32(x, &[1.0; 16]).expect("written");
    for (id, bytes) in constants.folded() {
        cpu.write(id, bytes.bytes()).expect("written");
    }
    executor::execute_graph(&mut cpu, &graph).expect("runs");
    assert_eq!(cpu.read_f32(y).expect("read"), [13.0; 16]);
    assert_eq!(cpu.read_f32(marked).expect("read"), [18.0; 8]);
}

#[test]
fn a_node_that_fails_is_not_folded() {
    let mut b = Builder::default();
    let (table, ids) = (b.f32(&[40, 4]), b.u32(1));
    let rows = b.push(Op::GetRows, &[table, ids]);
    b.out(Op::Scale { factor: 1.0 }, &[rows]);
    let mut constants = Constants::new();
    constants.insert(table, Arc::new(vec![0; 640]));
    constants.insert(ids, Arc::new(bytemuck::cast_slice(&[40u32]).to_vec()));
    let mut graph = b.0.clone();
    assert!(
        GraphOptimizer::new()
            .optimize_with(&mut graph, &mut constants)
            .is_empty()
    );
}

#[test]
fn a_planned_graph_is_left_as_it_is() {
    let mut b = Builder::default();
    let x = b.f32(&[4]);
    let y = b.push(Op::Scale { factor: 2.0 }, &[x]);
    let again = b.push(Op::Scale { factor: 2.0 }, &[x]);
    b.out(Op::Add, &[y, again]);
    let mut graph = b.0;
    planner::share_memory(&mut graph).expect("a plan");
    let nodes = graph.nodes().to_vec();
    assert!(GraphOptimizer::new().optimize(&mut graph).is_empty());
    assert_eq!(graph.nodes(), nodes);
}

#[test]
fn passes_are_switched_one_by_one() {
    let all = GraphOptimizer::new();
    for pass in Pass::ALL {
        let without = all.without(pass);
        assert!(
            all.has(pass) && !without.has(pass) && without.with(pass) == all,
            "{}",
            pass.name()
        );
        let twins = Pass::ALL.into_iter().filter(|other| other.name() == pass.name());
        assert_eq!(twins.count(), 1, "{}", pass.name());
    }
    assert_eq!(all.without_dce(), all.without(Pass::DeadCode));
}

/// Nodes that only a backend without computations accepts: any op with any number of operands and results.
#[test]
fn nodes_of_any_arity_are_rewritten_or_left_without_panic() {
    let ops = [
        Op::Add,
        Op::Mul,
        Op::MulMat,
        RMS,
        Op::LayerNorm { eps: 1e-5 },
        Op::Unary(Unary::Silu),
        Op::SwiGlu,
        Op::GetRows,
        Op::SetRows,
        Op::Rope(Rope::new(4, 10_000.0, RopeStyle::HalfSplit, 8)),
        Op::Softmax,
        Op::Reshape,
        Op::View,
        Op::Transpose,
        Op::Cont,
    ];
    for seed in 0..3000 {
        let mut random = rng(seed);
        let mut b = Builder::default();
        let mut ids = vec![b.f32(&[4, 4]), b.f32(&[4]), b.matrix(4, 4)];
        for _ in 0..2 + random.below(8) {
            let op = ops[random.below(ops.len())];
            let inputs = (0..random.below(4)).map(|_| ids[random.below(ids.len())]).collect();
            let outputs: Vec<TensorId> = (0..random.below(3))
                .map(|_| match random.below(4) {
                    0 => ids[random.below(ids.len())],
                    1 => {
                        let base = ids[random.below(ids.len())];
                        let view = TensorDesc::view_of(b.0.tensor(base).expect("there"), 0);
                        b.0.add_tensor(view)
                    }
                    _ => b.f32(&[4, 4]),
                })
                .collect();
            ids.extend(&outputs);
            b.0.add_node(op, inputs, outputs);
        }
        let mut constants = Constants::new();
        constants.insert(ids[0], Arc::new(vec![0; 64]));
        GraphOptimizer::new().optimize_with(&mut b.0, &mut constants);
    }
}

/// Queries and keys turned and a cache written, then a product of `rows` rows with the sum after it, its norm and a gated unit. `caches`: for keys
/// and values.
fn layer(rows: usize, dtype: DType, caches: usize) -> Builder {
    let mut b = Builder::default();
    let (positions, slots) = (b.u32(rows), b.u32(rows));
    let [q, k, v] = [64, 32, 32].map(|width| {
        let x = b.f32(&[rows, width]);
        b.push(Op::Scale { factor: 2.0 }, &[x])
    });
    let rope = Op::Rope(Rope::new(16, 10_000.0, RopeStyle::HalfSplit, 8));
    let [turned, keys] = [(q, 4), (k, 2)].map(|(x, heads)| {
        let x = b.0.reshape(x, [1, rows, heads, 16]).expect("contiguous");
        b.push(rope, &[x, positions])
    });
    let keys = b.0.reshape(keys, [rows, 32]).expect("contiguous");
    let cache: Vec<TensorId> = (0..caches).map(|_| b.f32(&[5, 32])).collect();
    for (src, dst) in [(keys, cache[0]), (v, cache[caches - 1])] {
        let written = b.0.set_rows(src, dst, slots).expect("fits");
        b.0.mark_output(written);
    }
    let x = b.0.reshape(turned, [rows, 64]).expect("contiguous");
    let residual = b.f32(&[rows, 64]);
    let residual = b.push(Op::Scale { factor: 0.5 }, &[residual]);
    let [down, gate, up] = [64, 96, 96].map(|n| b.0.add_tensor(TensorDesc::new([64, n], dtype, Layout::ColMajor)));
    let y = b.push(Op::MulMat, &[x, down]);
    let total = b.push(Op::Add, &[y, residual]);
    let normed = b.push(RMS, &[total]);
    let [gate, up] = [gate, up].map(|weight| b.push(Op::MulMat, &[normed, weight]));
    b.out(Op::SwiGlu, &[gate, up]);
    b.out(Op::Scale { factor: 3.0 }, &[total]);
    b
}

/// Heads of queries and keys normed, turned and written to caches. `miss` names what is otherwise.
fn normed_heads(miss: &str) -> Builder {
    let mut b = Builder::default();
    let (positions, slots) = (b.u32(3), b.u32(3));
    let [q, k, v] = [64, 32, 32].map(|width| {
        let x = b.f32(&[3, width]);
        b.push(Op::Scale { factor: 2.0 }, &[x])
    });
    let rope = Op::Rope(Rope::new(16, 10_000.0, RopeStyle::HalfSplit, 8));
    let [turned, keys] =
        [(q, 4, 1e-5), (k, 2, if miss == "other eps" { 1e-6 } else { 1e-5 })].map(|(x, heads, eps)| {
            let x = b.0.reshape(x, [1, 3, heads, 16]).expect("contiguous");
            let mut inputs = vec![x];
            if miss != "no weight" {
                inputs.push(b.f32(&[16]));
            }
            let normed = b.push(Op::RmsNorm { eps }, &inputs);
            if miss == "a norm is marked" {
                b.0.mark_output(normed);
            }
            b.push(rope, &[normed, positions])
        });
    let keys = b.0.reshape(keys, [3, 32]).expect("contiguous");
    for src in [keys, v] {
        let cache = b.f32(&[5, 32]);
        let written = b.0.set_rows(src, cache, slots).expect("fits");
        b.0.mark_output(written);
    }
    b.out(Op::Scale { factor: 0.5 }, &[turned]);
    b
}

#[test]
fn norms_of_heads_are_joined_to_the_rotation_after_them() {
    let optimizer = GraphOptimizer::fusions().without(Pass::RopeSetRows).joining();
    for (miss, joined) in [
        ("nothing", 5),
        ("other eps", 0),
        ("no weight", 0),
        ("a norm is marked", 0),
    ] {
        let (graph, _) = normed_heads(miss).optimized(optimizer);
        let launches = graph.launches();
        let names: Vec<_> = launches
            .iter()
            .filter(|launch| launch.is_joined())
            .map(|launch| launch.kernel().name())
            .collect();
        let all = ["ROPE", "RMS_NORM", "ROPE", "SET_ROWS", "SET_ROWS"];
        assert_eq!(names, all[..joined], "{miss}");
    }
}

/// What a device runs with the launch before, and that a plan lets all of it live at once.
#[test]
fn launches_of_a_layer_are_joined_before_memory_is_planned() {
    let optimizer = GraphOptimizer::fusions().without(Pass::RopeSetRows).joining();
    let joined = |b: &Builder| -> (Graph, Vec<&str>) {
        let (graph, _) = b.optimized(optimizer);
        let launches = graph.launches().into_owned();
        let names = launches
            .iter()
            .filter(|launch| launch.is_joined())
            .map(|launch| launch.kernel().name());
        (graph, names.collect())
    };
    let cache = ["ROPE", "SET_ROWS", "SET_ROWS"];
    let all = ["ROPE", "SET_ROWS", "SET_ROWS", "ADD_RMS_NORM", "MUL_MAT_GLU"];
    let one = layer(1, DType::Q8_0, 2);
    let (mut graph, names) = joined(&one);
    assert_eq!(names, all);
    assert_eq!(joined(&layer(3, DType::Q8_0, 2)).1, cache, "more rows than one");
    assert_eq!(joined(&layer(1, DType::F32, 2)).1, cache, "no packed weights");
    assert_eq!(
        joined(&layer(1, DType::Q8_0, 1)).1,
        all[3..],
        "keys and values in one cache"
    );
    assert_eq!(joined(&layer(0, DType::Q8_0, 2)).1, [""; 0], "nothing to compute");
    assert_eq!(
        one.optimized(GraphOptimizer::fusions())
            .0
            .launches()
            .iter()
            .filter(|l| l.is_joined())
            .count(),
        0
    );

    planner::share_memory(&mut graph).expect("planned");
    let launches = graph.launches();
    let place = |id| (graph.root(id), graph.tensor(id).expect("there").span());
    let mut over = Vec::new();
    for group in launches.chunk_by(|_, next| next.is_joined()) {
        let pairs = group.iter().flat_map(|a| group.iter().map(move |b| (a, b)));
        for (reader, writer) in pairs.filter(|_| group.len() > 1) {
            let named = reader.inputs().iter().chain(reader.outputs());
            for (&x, &y) in named.flat_map(|x| writer.outputs().iter().map(move |y| (x, y))) {
                let ((a, left), (b, right)) = (place(x), place(y));
                let apart = a != b || left.end <= right.start || right.end <= left.start;
                if !apart && one.0.root(x) != one.0.root(y) {
                    assert_eq!(reader, writer, "{x} is under {y}, which another launch writes");
                    over.push(reader.kernel().name());
                }
            }
        }
    }
    assert_eq!(over, ["ROPE", "ADD_RMS_NORM"], "queries, and the residual");
}
