//! Launches that are stopped in the middle of a run: the desktop takes all of the card's memory after any call of HIP, and the run goes on on the
//! host with the right result.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rocmforge_ggml::{
    Activations, CpuBackend, DType, GgmlBackend, Graph, HipGgmlBackend, HostAccess, HybridBackend, Kernel, Layout, Op,
    TensorDesc, TensorId, executor, planner,
};
use rocmforge_hip_sys::HipClock;
use rocmforge_runtime::Policy;
use rocmforge_sim::SimHost;
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu_with, skip};

use super::hybrid::Products;
use super::packed::{Layer, nmse, on};

/// More than a card has.
const ALL: u64 = 1 << 40;
/// Runs in which the desktop takes the memory: the first decides node by node where each runs, the second launches each, the third captures a graph,
/// and the later ones replay it. Without groups all of it is a run later: the second finds weights on the card.
const PRESSED: usize = 5;
/// Runs of a trial; in the last of them the memory is gone.
const RUNS: usize = PRESSED + 2;

pub(super) const REAL_DESKTOP: &str = "the memory of a real desktop cannot be controlled";

/// A simulated card that reads at every launch what the desktop holds.
pub(super) fn card() -> Option<GpuLease> {
    let gpu = gpu_with(LeaseOptions {
        policy: Policy {
            reread_every: Duration::ZERO,
            ..Policy::desktop()
        },
        ..LeaseOptions::default()
    });
    gpu.sim().is_some().then_some(gpu)
}

/// Counts calls of HIP from now on. Once so many have begun, the desktop takes all of the card's memory.
pub(super) fn take_after(sim: &Arc<SimHost>, calls: u64) -> Arc<AtomicU64> {
    let made = Arc::new(AtomicU64::new(0));
    let (count, weak) = (Arc::clone(&made), Arc::downgrade(sim));
    sim.set_observer(move |call| {
        if call.status.is_none()
            && count.fetch_add(1, Ordering::Relaxed) == calls
            && let Some(sim) = weak.upgrade()
        {
            sim.set_desktop_used(0, ALL);
        }
    });
    made
}

/// A graph, and how it is run.
struct Trial<'a> {
    name: &'a str,
    graph: &'a Graph,
    outputs: &'a [TensorId],
    /// A backend with the graph's weights.
    loaded: &'a dyn Fn(&GpuLease) -> HybridBackend,
    /// Writes a run's inputs.
    write: &'a dyn Fn(&mut HybridBackend, usize),
    /// The largest [`nmse`] of an output; 0: the same bits.
    limit: f64,
}

impl Trial<'_> {
    fn run(&self, backend: &mut HybridBackend, program: &mut <HybridBackend as GgmlBackend>::Program) -> Vec<Vec<f32>> {
        executor::run_program(backend, program).unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let read = |&id: &TensorId| backend.read_f32(id).expect("read");
        self.outputs.iter().map(read).collect()
    }

    /// The outputs of [`RUNS`] runs; in one of them the desktop takes the memory after so many calls. And whether it did, and how many nodes of that run
    /// the card and the CPU ran.
    fn runs(&self, gpu: &GpuLease, pressed: Option<(usize, u64)>) -> (Vec<Vec<Vec<f32>>>, bool, [u64; 2]) {
        let sim = gpu.sim().expect("simulated");
        let mut backend = (self.loaded)(gpu);
        let mut program = executor::compile(&mut backend, self.graph).expect("compiles");
        let (mut taken, mut nodes) = (false, [0; 2]);
        let outputs = (0..RUNS).map(|run| {
            (self.write)(&mut backend, run);
            let Some((_, calls)) = pressed.filter(|(pressed, _)| *pressed == run) else {
                return self.run(&mut backend, &mut program);
            };
            let before = backend.statistics().clone();
            let made = take_after(sim, calls);
            let outputs = self.run(&mut backend, &mut program);
            sim.clear_observer();
            taken = made.load(Ordering::Relaxed) > calls;
            let after = backend.statistics();
            nodes = [after.gpu_nodes - before.gpu_nodes, after.cpu_nodes - before.cpu_nodes];
            outputs
        });
        (outputs.collect(), taken, nodes)
    }

    /// The memory is taken after each call of each of the first runs.
    fn check(&self) {
        let Some(gpu) = card() else {
            skip!("{REAL_DESKTOP}");
        };
        let (expected, ..) = self.runs(&gpu, None);
        drop(gpu);
        for pressed in 0..PRESSED {
            let mut on_both = 0;
            for calls in 0.. {
                let gpu = card().expect("simulated");
                let (found, taken, nodes) = self.runs(&gpu, Some((pressed, calls)));
                for (run, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    for (output, (found, expected)) in found.iter().zip(expected).enumerate() {
                        let error = nmse(found, expected);
                        assert!(
                            error <= self.limit,
                            "{}, output {output} of run {run}, taken in run {pressed} after {calls} calls: {error:.1e}",
                            self.name
                        );
                    }
                }
                if !taken {
                    break;
                }
                on_both += usize::from(nodes.iter().all(|&count| count > 0));
            }
            assert!(on_both > 0 || pressed > 1, "{}, run {pressed}", self.name);
        }
    }
}

/// Lets the desktop give back what it has taken, and waits until its peak is forgotten.
fn give_back(gpu: &GpuLease, sim: &SimHost) {
    sim.set_desktop_used(0, 0);
    for _ in 0..40 {
        sim.pause(Duration::from_secs(30));
        gpu.backend().card().look();
    }
}

fn hybrid(device: HipGgmlBackend, activations: Activations) -> HybridBackend {
    HybridBackend::new(device, CpuBackend::with_threads(1).activations(activations))
}

/// Small integers, whose sums of products are exact in any order.
fn integers(seed: u64, len: usize, most: usize) -> Vec<f32> {
    let mut random = rng(seed).quiet();
    (0..len)
        .map(|_| random.below(2 * most + 1) as f32 - most as f32)
        .collect()
}

fn check_products(grouped: bool, planned: bool) {
    let products = Products::new();
    let mut graph = products.graph.clone();
    if planned {
        planner::share_memory(&mut graph).expect("a plan");
    }
    Trial {
        name: &format!("products, grouped {grouped}, planned {planned}"),
        graph: &graph,
        outputs: &[products.output],
        loaded: &|gpu| {
            let mut backend = hybrid(on(gpu, Activations::F32), Activations::F32);
            if grouped {
                backend.place(&products.groups(), 1 << 20).expect("a budget");
            }
            for (seed, desc) in (1..).zip(&products.weights) {
                let values = integers(seed, Products::SIDE * Products::SIDE, 1);
                let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
                backend.load(desc, Arc::new(bytes)).expect("room");
            }
            backend
        },
        write: &|backend, run| {
            let x = integers(100 + run as u64, 5 * Products::SIDE, 2);
            backend.write_f32(products.x, &x).expect("written");
        },
        limit: 0.0,
    }
    .check();
}

#[test]
fn products_go_on_on_the_host() {
    check_products(true, false);
}

#[test]
fn products_in_planned_memory_go_on_on_the_host() {
    check_products(true, true);
}

#[test]
fn products_without_groups_go_on_on_the_host() {
    check_products(false, true);
}

/// A layer with packed weights, whose products add the residual and compute the norm, and its planned graph.
fn layer_of(rows: usize, gpu: &GpuLease) -> (Layer, Graph) {
    let layer = Layer::new(DType::Q4_0, rows, 64);
    let mut graph = layer.graph.clone();
    on(gpu, Activations::Int8).optimizer().optimize(&mut graph);
    planner::share_memory(&mut graph).expect("a plan");
    (layer, graph)
}

/// A backend that has places for a layer's weights, each in a group of its own.
fn places_for(layer: &Layer, gpu: &GpuLease) -> HybridBackend {
    let mut backend = hybrid(on(gpu, Activations::Int8), Activations::Int8);
    backend.place(&layer.groups(), 1 << 20).expect("a budget");
    backend
}

/// The largest [`nmse`] between a layer on the card and on the CPU, both with 8-bit activations.
const OF_LAYERS: f64 = 1e-3;

fn check_layer(rows: usize) {
    let Some(gpu) = card() else {
        skip!("{REAL_DESKTOP}");
    };
    let (layer, graph) = layer_of(rows, &gpu);
    drop(gpu);
    Trial {
        name: &format!("a layer, {rows} rows"),
        graph: &graph,
        outputs: &layer.outputs,
        loaded: &|gpu| {
            let mut backend = places_for(&layer, gpu);
            layer.load(&mut backend);
            backend
        },
        write: &|backend, run| {
            let tokens = layer.tokens(run as u32);
            backend.write_u32(layer.ids, &tokens).expect("written");
        },
        limit: OF_LAYERS,
    }
    .check();
}

#[test]
fn a_layer_of_one_row_goes_on_on_the_host() {
    check_layer(1);
}

#[test]
fn a_layer_of_three_rows_goes_on_on_the_host() {
    check_layer(3);
}

/// A layer and what each run gives.
struct Layers {
    layer: Layer,
    graph: Graph,
    expected: Vec<Vec<Vec<f32>>>,
}

impl Layers {
    /// The outputs of so many runs of a layer of one row.
    fn new(runs: u32) -> Option<Self> {
        let gpu = card()?;
        let (layer, graph) = layer_of(1, &gpu);
        let mut cpu = CpuBackend::with_threads(1).activations(Activations::Int8);
        layer.load(&mut cpu);
        let optimizer = cpu.optimizer();
        let expected = layer.run(&mut cpu, optimizer, runs);
        Some(Self { layer, graph, expected })
    }

    fn run(&self, backend: &mut HybridBackend, program: &mut <HybridBackend as GgmlBackend>::Program, run: usize) {
        let tokens = self.layer.tokens(run as u32);
        backend.write_u32(self.layer.ids, &tokens).expect("written");
        executor::run_program(backend, program).unwrap_or_else(|error| panic!("run {run}: {error}"));
        for (&id, expected) in self.layer.outputs.iter().zip(&self.expected[run]) {
            let error = nmse(&backend.read_f32(id).expect("read"), expected);
            assert!(error <= OF_LAYERS, "run {run}: {error:.1e}");
        }
    }
}

/// Weights are packed by a kernel as they are loaded: those that find launches stopped are on the host.
#[test]
fn weights_are_loaded_while_launches_are_stopped() {
    let Some(layers) = Layers::new(3) else {
        skip!("{REAL_DESKTOP}");
    };
    for calls in 0.. {
        let gpu = card().expect("simulated");
        let sim = gpu.sim().expect("simulated");
        let mut backend = places_for(&layers.layer, &gpu);
        let made = take_after(sim, calls);
        layers.layer.load(&mut backend);
        let taken = made.load(Ordering::Relaxed) > calls;
        let mut program = executor::compile(&mut backend, &layers.graph).expect("compiles");
        (0..3).for_each(|run| layers.run(&mut backend, &mut program, run));
        if !taken {
            break;
        }
    }
}

/// Weights that return to the card are packed by a kernel: they stay on the host when that is stopped, and return later.
#[test]
fn a_return_that_is_stopped_is_given_up() {
    const RUNS: usize = 60;
    let Some(layers) = Layers::new(RUNS as u32) else {
        skip!("{REAL_DESKTOP}");
    };
    for calls in (0..).step_by(3) {
        let gpu = card().expect("simulated");
        let sim = gpu.sim().expect("simulated");
        let mut backend = places_for(&layers.layer, &gpu);
        layers.layer.load(&mut backend);
        let mut program = executor::compile(&mut backend, &layers.graph).expect("compiles");
        layers.run(&mut backend, &mut program, 0);
        sim.set_desktop_used(0, ALL);
        layers.run(&mut backend, &mut program, 1);
        assert_eq!(backend.groups_on_gpu().0, 0);
        give_back(&gpu, sim);
        let made = take_after(sim, calls);
        let mut run = 2;
        // Two have returned, or the desktop has taken the memory.
        while backend.statistics().returns < 2 && made.load(Ordering::Relaxed) <= calls {
            layers.run(&mut backend, &mut program, run);
            run += 1;
        }
        sim.clear_observer();
        if made.load(Ordering::Relaxed) <= calls {
            break;
        }
        layers.run(&mut backend, &mut program, run);
        give_back(&gpu, sim);
        let returns = backend.statistics().returns;
        for run in run + 1..run + 10 {
            layers.run(&mut backend, &mut program, run);
        }
        assert!(backend.statistics().returns > returns, "after {calls} calls");
    }
}

/// A capture that is stopped is made later.
#[test]
fn a_graph_is_captured_when_launches_are_not_stopped_any_more() {
    let Some(layers) = Layers::new(5) else {
        skip!("{REAL_DESKTOP}");
    };
    let mut stopped = 0;
    for calls in 0.. {
        let gpu = card().expect("simulated");
        let sim = gpu.sim().expect("simulated");
        let mut device = on(&gpu, Activations::Int8);
        layers.layer.load(&mut device);
        let mut program = executor::compile(&mut device, &layers.graph).expect("compiles");
        let tokens = layers.layer.tokens(0);
        device.write_u32(layers.layer.ids, &tokens).expect("written");
        executor::run_program(&mut device, &mut program).expect("runs");
        let made = take_after(sim, calls);
        let second = executor::run_program(&mut device, &mut program);
        sim.clear_observer();
        let taken = made.load(Ordering::Relaxed) > calls;
        assert!(taken || second.is_ok(), "{second:?}");
        stopped += usize::from(second.is_err());
        assert!(program.not_captured_because().is_none(), "{program:?}");
        give_back(&gpu, sim);
        executor::run_program(&mut device, &mut program).expect("runs");
        assert!(program.is_captured() && device.replays() > 0, "after {calls} calls");
        for (&id, expected) in layers.layer.outputs.iter().zip(&layers.expected[0]) {
            assert!(nmse(&device.read_f32(id).expect("read"), expected) <= OF_LAYERS);
        }
        if !taken {
            break;
        }
    }
    assert!(stopped > 5, "{stopped}");
}

/// A sum over the memory of what it adds to, and its norm: two launches on the card, because the other operand has gaps.
#[test]
fn a_sum_in_place_is_added_once() {
    let [rows, cols] = [3, 32];
    let mut graph = Graph::new();
    let x = graph.add_tensor(TensorDesc::f32([rows, cols]));
    let wide = graph.add_tensor(TensorDesc::f32([rows, 2 * cols]));
    let part = TensorDesc {
        shape: vec![rows, cols],
        layout: Layout::Strided,
        view_of: Some(wide),
        ..TensorDesc::f32([rows, 2 * cols])
    };
    let part = graph.view(wide, part).expect("inside");
    let a = graph.push(Op::Scale { factor: 2.0 }, &[x]).expect("fits");
    let sum = graph.push(Op::Add, &[a, part]).expect("fits");
    let normed = graph.push(Op::RmsNorm { eps: 1e-5 }, &[sum]).expect("fits");
    // The norm has memory of its own, so the sum is what lies over `a`.
    let outputs = [normed, graph.push(Op::Scale { factor: 4.0 }, &[sum]).expect("fits")];
    outputs.iter().for_each(|&id| graph.mark_output(id));
    let Some(gpu) = card() else {
        skip!("{REAL_DESKTOP}");
    };
    on(&gpu, Activations::F32).optimizer().optimize(&mut graph);
    drop(gpu);
    planner::share_memory(&mut graph).expect("a plan");
    let fused = |kernel| matches!(kernel, Kernel::AddRmsNorm { .. });
    assert!(graph.launches().iter().any(|launch| fused(launch.kernel())));
    let place = |id: TensorId| graph.tensor(id).map(|desc| (desc.view_of, desc.byte_offset));
    assert_eq!(place(sum), place(a), "in place");
    Trial {
        name: "a sum in place",
        graph: &graph,
        outputs: &outputs,
        loaded: &|gpu| hybrid(on(gpu, Activations::F32), Activations::F32),
        write: &|backend, run| {
            let seed = 10 * run as u64;
            let values = integers(seed, rows * cols, 3);
            backend.write_f32(x, &values).expect("written");
            let values = integers(seed + 1, 2 * rows * cols, 3);
            backend.write_f32(wide, &values).expect("written");
        },
        limit: 1e-12,
    }
    .check();
}
