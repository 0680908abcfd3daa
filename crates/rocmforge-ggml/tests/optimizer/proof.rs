//! Proof: 10,000 random graphs, each pass alone and all together, give the same bits or stay within the bound.

use rocmforge_ggml::optimizer::{Bound, Constants, GraphOptimizer, OptimizerStats, Pass};
use rocmforge_ggml::{
    CpuBackend, DType, Graph, HostAccess, Node, Strictness, TensorId, executor, planner, validate_graph,
};

use super::random::Random;

/// Graphs of each of the two tests, which run side by side.
const GRAPHS: u64 = 5000;

/// How often each pass must at least have found something in each test.
const LEAST: usize = 300;

/// How far a bound may grow on its way through the ops that follow: a norm of a short row, some products.
const GROWTH: f32 = 20.0;

/// Rounding of f16, where a graph has a cache of it: a difference in the last bit of f32 may be one in the last bit of f16.
const HALF: f32 = 2e-3;

/// The content of outputs and of memory that nodes change.
type Results = Vec<(TensorId, DType, Vec<u8>)>;

fn results(random: &Random, cpu: &mut CpuBackend) -> Results {
    let ids = random
        .graph
        .get_outputs()
        .into_iter()
        .chain(random.changed.iter().copied());
    ids.map(|id| {
        let dtype = random.graph.tensor(id).expect("in the graph").dtype;
        (id, dtype, cpu.read(id).expect("read"))
    })
    .collect()
}

/// Runs a graph node by node.
fn run(random: &Random, graph: &Graph, constants: &Constants) -> Results {
    let mut cpu = CpuBackend::with_threads(1);
    random.fill(graph, constants, &mut cpu);
    executor::execute_graph(&mut cpu, graph).expect("runs");
    results(random, &mut cpu)
}

/// Plans a graph, and runs it as a program.
fn run_planned(random: &Random, graph: &Graph, constants: &Constants) -> Results {
    let mut graph = graph.clone();
    planner::share_memory(&mut graph).expect("a plan");
    let mut cpu = CpuBackend::with_threads(2);
    random.fill(&graph, constants, &mut cpu);
    let mut program = executor::compile(&mut cpu, &graph).expect("compiles");
    executor::run_program(&mut cpu, &mut program).expect("runs");
    results(random, &mut cpu)
}

/// Nodes with effects, which must stay and keep their order.
fn effects(graph: &Graph) -> Vec<TensorId> {
    let effects = graph.nodes().iter().filter(|node| graph.has_effect(node));
    effects.flat_map(|node: &Node| node.outputs.clone()).collect()
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    match dtype {
        DType::F16 => {
            let halves = bytes.as_chunks::<2>().0.iter();
            halves.map(|&b| half::f16::from_le_bytes(b).to_f32()).collect()
        }
        _ => bytemuck::allocation::pod_collect_to_vec(bytes),
    }
}

#[track_caller]
fn compare(seed: u64, what: &str, random: &Random, graph: &Graph, bound: f32, found: &Results, expected: &Results) {
    for ((id, dtype, found), (_, _, expected)) in found.iter().zip(expected) {
        if found == expected {
            continue;
        }
        let (found, expected) = (floats(*dtype, found), floats(*dtype, expected));
        let largest = expected.iter().fold(1f32, |most, value| most.max(value.abs()));
        let worst = found
            .iter()
            .zip(&expected)
            .map(|(f, e)| if f == e { 0.0 } else { (f - e).abs() / largest });
        let worst = worst.fold(
            0f32,
            |most, value| if value.is_nan() { f32::INFINITY } else { most.max(value) },
        );
        assert!(
            worst <= bound,
            "seed {seed}, {what}: tensor {id} differs by {worst:e} of {largest}, bound {bound:e}\nbefore: {:#?}\nafter: {:#?}",
            random.graph.nodes(),
            graph.nodes(),
        );
    }
}

/// The bound of what passes did, for results that further ops have gone over.
fn bound(stats: &OptimizerStats, random: &Random) -> f32 {
    let did = Pass::ALL.into_iter().filter(|&pass| stats.counts.of(pass) > 0);
    let bounds = did.map(|pass| match pass.bound() {
        Bound::Bits => 0.0,
        Bound::Reordered(bound) => bound * GROWTH + if random.has_halves { HALF } else { 0.0 },
    });
    bounds.fold(0.0, f32::max)
}

fn prove(seeds: impl Iterator<Item = u64>) {
    let mut fired = [0usize; Pass::ALL.len()];
    let reordering = |pass: &Pass| matches!(pass.bound(), Bound::Reordered(_));
    for seed in seeds {
        let random = Random::new(seed);
        validate_graph(&random.graph, Strictness::Strict).expect("a valid graph");
        let expected = run(&random, &random.graph, &Constants::new());
        let check = |what: &str, optimizer: GraphOptimizer, planned: bool| -> OptimizerStats {
            let (mut graph, mut constants) = (random.graph.clone(), random.constants());
            let stats = optimizer.optimize_with(&mut graph, &mut constants);
            if stats.is_empty() {
                assert_eq!(
                    graph.nodes(),
                    random.graph.nodes(),
                    "seed {seed}, {what}: changed and not counted"
                );
                return stats;
            }
            if let Err(error) = validate_graph(&graph, Strictness::Strict) {
                panic!(
                    "seed {seed}, {what}: {error}\nbefore: {:#?}\nafter: {:#?}",
                    random.graph.nodes(),
                    graph.nodes()
                );
            }
            assert_eq!(graph.get_outputs(), random.graph.get_outputs(), "seed {seed}, {what}");
            assert_eq!(effects(&graph), effects(&random.graph), "seed {seed}, {what}");
            let found = if planned {
                run_planned(&random, &graph, &constants)
            } else {
                run(&random, &graph, &constants)
            };
            compare(seed, what, &random, &graph, bound(&stats, &random), &found, &expected);
            let again = optimizer.optimize_with(&mut graph, &mut constants);
            assert!(
                again.is_empty(),
                "seed {seed}, {what}: a second run finds more: {again}"
            );
            stats
        };
        for (pass, fired) in Pass::ALL.into_iter().zip(&mut fired) {
            *fired += check(pass.name(), GraphOptimizer::none().with(pass), false)
                .counts
                .of(pass);
        }
        check("all", GraphOptimizer::new(), true);
        let exact = Pass::ALL
            .into_iter()
            .filter(reordering)
            .fold(GraphOptimizer::new(), |all, pass| all.without(pass));
        check("all that keep bits", exact, true);
    }
    for (pass, fired) in Pass::ALL.into_iter().zip(fired) {
        assert!(
            fired >= LEAST,
            "{} found {fired} in {GRAPHS} graphs: the proof is idle",
            pass.name()
        );
    }
}

#[test]
fn every_pass_on_random_graphs_of_even_seeds() {
    prove((0..GRAPHS).map(|i| 2 * i));
}

#[test]
fn every_pass_on_random_graphs_of_odd_seeds() {
    prove((0..GRAPHS).map(|i| 2 * i + 1));
}
