//! Random graphs: planned or not, as single ops or as programs, on the CPU, the device and both together, they give the same.

use std::sync::Arc;

use rocmforge_ggml::{
    CpuBackend, DType, Graph, HipGgmlBackend, HostAccess, HybridBackend, Layout, Op, TensorDesc, TensorGroup, TensorId,
    Unary, executor, planner,
};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{LeaseOptions, gpu_with};

const COLS: usize = 40;
const GRAPHS: u64 = 60;

/// A graph over one input, with weights.
struct Random {
    graph: Graph,
    input: TensorId,
    weights: Vec<TensorDesc>,
    rows: usize,
    seed: u64,
}

impl Random {
    fn new(seed: u64) -> Self {
        let mut random = rng(seed);
        let rows = [1, 3, 7][random.below(3)];
        let mut graph = Graph::new();
        let input = graph.add_tensor(TensorDesc::f32([rows, COLS]));
        let mut known = vec![input];
        let mut weights = Vec::new();
        for _ in 0..4 + random.below(20) {
            // Mostly what was made last: graphs of models are deep.
            let any = |random: &mut rocmforge_testkit::data::Rng| {
                let back = random.below(known.len()).min(random.below(known.len()));
                known[known.len() - 1 - back]
            };
            let (x, y) = (any(&mut random), any(&mut random));
            let made = match random.below(8) {
                0 => graph.push(Op::Add, &[x, y]),
                1 => graph.push(Op::Mul, &[x, y]),
                2 => graph.push(Op::Scale { factor: -0.75 }, &[x]),
                3 => graph.push(Op::RmsNorm { eps: 1e-5 }, &[x]),
                4 => graph.push(Op::Unary(Unary::Silu), &[x]),
                5 => graph.push(Op::SwiGlu, &[x, y]),
                6 => {
                    let flat = graph.reshape(x, [rows * COLS]).expect("contiguous");
                    let scaled = graph.push(Op::Scale { factor: 0.5 }, &[flat]).expect("fits");
                    graph.reshape(scaled, [rows, COLS])
                }
                _ => {
                    let weight = graph.add_tensor(TensorDesc::new([COLS, COLS], DType::F32, Layout::ColMajor));
                    weights.push(graph.tensor(weight).expect("there").clone());
                    let product = graph.push(Op::MulMat, &[x, weight]).expect("fits");
                    // So that no value grows without end.
                    graph.push(Op::RmsNorm { eps: 1e-5 }, &[product])
                }
            };
            known.push(made.expect("fits"));
        }
        graph.mark_output(known[known.len() - 1]);
        graph.mark_output(known[1 + random.below(known.len() - 1)]);
        Self {
            graph,
            input,
            weights,
            rows,
            seed,
        }
    }

    fn fill<B: HostAccess>(&self, backend: &mut B) {
        for desc in &self.weights {
            let bytes: Vec<u8> = bytemuck::cast_slice(&rng(desc.id.0 as u64).vec(COLS * COLS)).to_vec();
            backend.load(desc, Arc::new(bytes)).expect("room");
        }
    }

    fn results<B: HostAccess>(&self, backend: &mut B) -> Vec<Vec<f32>> {
        let outputs = self.graph.get_outputs().into_iter();
        outputs.map(|id| backend.read_f32(id).expect("read")).collect()
    }

    /// The outputs for three inputs, of a program of `graph`, which is this one or a planned copy.
    fn program<B: HostAccess>(&self, graph: &Graph, backend: &mut B) -> Vec<Vec<Vec<f32>>> {
        let program = &mut executor::compile(backend, graph).expect("compiles");
        let run = |salt: u64| {
            backend
                .write_f32(self.input, &rng(self.seed ^ salt << 32).vec(self.rows * COLS))
                .expect("written");
            executor::run_program(backend, program).expect("runs");
            self.results(backend)
        };
        [1, 2, 3].map(run).to_vec()
    }

    /// What single ops on the CPU give, without a plan.
    fn expected(&self) -> Vec<Vec<Vec<f32>>> {
        let mut cpu = CpuBackend::new();
        self.fill(&mut cpu);
        executor::prepare(&mut cpu, &self.graph).expect("memory");
        let run = |salt: u64| {
            cpu.write_f32(self.input, &rng(self.seed ^ salt << 32).vec(self.rows * COLS))
                .expect("written");
            executor::execute_graph(&mut cpu, &self.graph).expect("runs");
            self.results(&mut cpu)
        };
        [1, 2, 3].map(run).to_vec()
    }

    #[track_caller]
    fn close(&self, what: &str, found: &[Vec<Vec<f32>>], expected: &[Vec<Vec<f32>>]) {
        let pairs = found.iter().flatten().zip(expected.iter().flatten());
        for (found, expected) in pairs {
            let largest = expected.iter().fold(0f32, |most, value| most.max(value.abs()));
            for (at, (f, e)) in found.iter().zip(expected).enumerate() {
                let near = (f - e).abs() <= 1e-4 * largest + 1e-5;
                assert!(
                    near,
                    "seed {}, {what}, element {at}: {f}, expected {e}\n{:#?}",
                    self.seed, self.graph.nodes
                );
            }
        }
    }
}

#[test]
fn a_random_graph_gives_the_same_everywhere() {
    for seed in 0..GRAPHS {
        let random = Random::new(seed);
        let expected = random.expected();
        let mut planned = random.graph.clone();
        planner::share_memory(&mut planned).expect("a plan");

        let mut cpu = CpuBackend::with_threads(1);
        random.fill(&mut cpu);
        let found = random.program(&planned, &mut cpu);
        assert_eq!(
            found, expected,
            "seed {seed}: the plan changed a bit\n{:#?}",
            random.graph.nodes
        );

        // Room for nothing, for some of the weights, or for all.
        let wanted = 20_000 + random.weights.len() * COLS * COLS * 4;
        let budget = wanted * rng(seed + 1000).below(5) / 4 * 2;
        let gpu = gpu_with(LeaseOptions {
            policy: Policy::fixed(Bytes(budget as u64)),
            ..LeaseOptions::default()
        });
        let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let mut hybrid = HybridBackend::new(device, CpuBackend::new());
        let groups: Vec<TensorGroup> = random
            .weights
            .iter()
            .map(|desc| TensorGroup {
                name: format!("weight {}", desc.id),
                tensors: vec![desc.clone()],
            })
            .collect();
        hybrid.place(&groups, 20_000).expect("a budget");
        random.fill(&mut hybrid);
        let found = random.program(&planned, &mut hybrid);
        random.close(&format!("hybrid with {budget} B"), &found, &expected);
        let held = gpu.backend().card().budget();
        assert!(held.peak <= held.budget, "seed {seed}: {held:?}");
    }
}

#[test]
fn a_random_graph_gives_the_same_on_the_device_alone() {
    let gpu = gpu_with(LeaseOptions::default());
    for seed in 0..GRAPHS {
        let random = Random::new(seed);
        let mut planned = random.graph.clone();
        planner::share_memory(&mut planned).expect("a plan");
        let mut device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        random.fill(&mut device);
        let found = random.program(&planned, &mut device);
        random.close("device", &found, &random.expected());
        assert!(device.replays() > 0 || random.graph.nodes.is_empty(), "seed {seed}");
    }
}
