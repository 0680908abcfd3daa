//! Hybrid backend: graphs without groups, nodes that a device cannot run, and groups that find no room.

use std::time::Duration;

use rocmforge_ggml::{
    Attention, AttentionMask, CpuBackend, DType, FlashAttnExt, GgmlBackend, Graph, HipGgmlBackend, HostAccess,
    HybridBackend, Layout, Op, TensorDesc, TensorGroup, TensorId, TensorLocation, Unary, executor,
};
use rocmforge_hip_sys::{HipClock, hipErrorOutOfMemory};
use rocmforge_runtime::{Bytes, DeviceTensor, Policy};
use rocmforge_sim::{CardConfig, Client, DesktopConfig, FaultPlan, SimConfig, When};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{rng, widen};
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu, gpu_with, skip};

fn hybrid(gpu: &GpuLease) -> HybridBackend {
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    HybridBackend::new(device, CpuBackend::new())
}

/// `x * w + x`, three times.
pub(super) struct Products {
    pub(super) graph: Graph,
    pub(super) x: TensorId,
    pub(super) weights: Vec<TensorDesc>,
    pub(super) output: TensorId,
}

impl Products {
    pub(super) const SIDE: usize = 48;

    pub(super) fn new() -> Self {
        let mut graph = Graph::new();
        let side = Self::SIDE;
        let x = graph.add_tensor(TensorDesc::f32([5, side]));
        let mut output = x;
        let mut weights = Vec::new();
        for _ in 0..3 {
            let weight = graph.add_tensor(TensorDesc::new([side, side], DType::F32, Layout::ColMajor));
            weights.push(graph.tensor(weight).expect("there").clone());
            let product = graph.push(Op::MatMul, &[output, weight]).expect("fits");
            output = graph.push(Op::Add, &[product, output]).expect("fits");
        }
        graph.mark_output(output);
        Self {
            graph,
            x,
            weights,
            output,
        }
    }

    fn load<B: HostAccess>(&self, backend: &mut B) {
        let mut random = rng(30);
        for desc in &self.weights {
            let values = random.vec(Self::SIDE * Self::SIDE);
            let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
            backend.load(desc, std::sync::Arc::new(bytes)).expect("room");
        }
    }

    fn run<B: HostAccess>(&self, backend: &mut B, program: &mut B::Program, seed: u64) -> Vec<f32> {
        let x = rng(seed).vec(5 * Self::SIDE);
        backend.write_f32(self.x, &x).expect("written");
        executor::run_program(backend, program).expect("runs");
        backend.read_f32(self.output).expect("read")
    }

    /// Three runs on a backend with so many groups on the device give what the CPU gives.
    #[track_caller]
    fn check(&self, backend: &mut HybridBackend, on_gpu: usize) {
        let mut cpu = CpuBackend::new();
        self.load(&mut cpu);
        let expected = &mut executor::compile(&mut cpu, &self.graph).expect("compiles");
        let program = &mut executor::compile(backend, &self.graph).expect("compiles");
        for seed in 40..44 {
            let found = self.run(backend, program, seed);
            let expected = self.run(&mut cpu, expected, seed);
            assert_close(&found, &widen(&expected), &[5, Self::SIDE], Tolerance::Absolute(1e-2));
        }
        assert_eq!(backend.groups_on_gpu().0, on_gpu);
    }

    pub(super) fn groups(&self) -> Vec<TensorGroup> {
        let group = |(index, desc): (usize, &TensorDesc)| TensorGroup {
            name: format!("product {index}"),
            tensors: vec![desc.clone()],
        };
        self.weights.iter().enumerate().map(group).collect()
    }
}

#[test]
fn a_graph_without_groups_runs_on_the_device() {
    let gpu = gpu();
    let products = Products::new();
    let mut backend = hybrid(&gpu);
    products.load(&mut backend);
    products.check(&mut backend, 0);
    let statistics = backend.statistics();
    assert_eq!(
        (statistics.gpu_nodes, statistics.cpu_nodes),
        (4 * 6, 0),
        "{statistics:?}"
    );
    assert!(backend.gpu().replays() > 0);
}

#[test]
fn a_graph_without_groups_and_without_room_runs_on_the_cpu() {
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(0)),
        ..LeaseOptions::default()
    });
    let products = Products::new();
    let mut backend = hybrid(&gpu);
    products.load(&mut backend);
    products.check(&mut backend, 0);
    assert_eq!(backend.statistics().gpu_nodes, 0);
}

#[test]
fn groups_that_fit_lie_on_the_device_in_their_order() {
    let products = Products::new();
    let weight = products.weights[0].byte_size() as u64;
    for room in 0..=3 {
        let gpu = gpu_with(LeaseOptions {
            policy: Policy::fixed(Bytes(room * weight + 20_000)),
            ..LeaseOptions::default()
        });
        let mut backend = hybrid(&gpu);
        let scratch = 20_000;
        backend.place(&products.groups(), scratch).expect("a budget");
        products.load(&mut backend);
        for (index, desc) in products.weights.iter().enumerate() {
            let expected = match index < room as usize {
                true => TensorLocation::Gpu(0),
                false => TensorLocation::Cpu,
            };
            assert_eq!(
                backend.location(desc.id),
                Some(expected),
                "weight {index} with room for {room}"
            );
        }
        products.check(&mut backend, room as usize);
        let budget = gpu.backend().card().budget();
        assert!(budget.peak <= budget.budget, "{budget:?}");
    }
}

const ONE_REAL_CARD: &str = "several cards are tested on simulated ones";

/// Simulated cards whose budgets are `bytes`; `None` where the device is a real one.
fn cards(bytes: &[u64]) -> Option<Vec<GpuLease>> {
    let lease = |&bytes: &u64| {
        let policy = Policy::fixed(Bytes(bytes));
        let lease = gpu_with(LeaseOptions {
            policy,
            ..LeaseOptions::default()
        });
        lease.sim().is_some().then_some(lease)
    };
    bytes.iter().map(lease).collect()
}

fn hybrid_of(cards: &[GpuLease]) -> HybridBackend {
    let (first, others) = cards.split_first().expect("a card");
    let others = others.iter();
    let device = |card: &GpuLease| HipGgmlBackend::new(card.backend()).expect("kernels");
    others.fold(hybrid(first), |backend, card| {
        backend.with_card(device(card)).expect("few")
    })
}

#[test]
fn groups_lie_on_the_first_card_that_has_room() {
    let products = Products::new();
    let weight = products.weights[0].byte_size() as u64;
    let scratch = 20_000;
    for (rooms, expected) in [
        ([3, 3, 3], [Some(0), Some(0), Some(0)]),
        ([1, 1, 1], [Some(0), Some(1), Some(2)]),
        ([0, 2, 1], [Some(1), Some(1), Some(2)]),
        ([1, 0, 1], [Some(0), Some(2), None]),
        ([0, 0, 0], [None, None, None]),
    ] {
        let Some(cards) = cards(&rooms.map(|room| room * weight + scratch)) else {
            skip!("{ONE_REAL_CARD}");
        };
        let mut backend = hybrid_of(&cards);
        let room = backend.fast_bytes(scratch as usize);
        assert_eq!(
            room,
            Some((rooms.iter().sum::<u64>() * weight) as usize),
            "each card keeps its own scratch"
        );
        backend.place(&products.groups(), scratch as usize).expect("budgets");
        products.load(&mut backend);
        let found = [0, 1, 2].map(|weight| backend.location(products.weights[weight].id));
        let expected = expected.map(|card| Some(card.map_or(TensorLocation::Cpu, TensorLocation::Gpu)));
        assert_eq!(found, expected, "rooms {rooms:?}");
        let on_cards = expected.iter().filter(|place| **place != Some(TensorLocation::Cpu));
        products.check(&mut backend, on_cards.count());
        let used = backend.cards().iter().zip(0..).map(|(card, index)| {
            let is_used = expected.contains(&Some(TensorLocation::Gpu(index)));
            assert_eq!(card.launches() > 0, is_used, "card {index} of {rooms:?}");
        });
        assert_eq!(used.count(), 3);
        for card in &cards {
            let budget = card.backend().card().budget();
            assert!(budget.peak <= budget.budget, "{rooms:?}: {budget:?}");
        }
    }
}

/// The second card reads what the first has written: over the host, which then has it too, and in later runs as well.
#[test]
fn what_one_card_computes_another_gets_over_the_host() {
    let products = Products::new();
    let weight = products.weights[0].byte_size() as u64;
    let Some(cards) = cards(&[2 * weight + 20_000, weight + 20_000]) else {
        skip!("{ONE_REAL_CARD}");
    };
    let mut backend = hybrid_of(&cards);
    backend.place(&products.groups(), 20_000).expect("budgets");
    products.load(&mut backend);
    products.check(&mut backend, 3);
    let statistics = backend.statistics();
    let row = 5 * Products::SIDE as u64 * 4;
    // In each of four runs: x to the first card, its result to the host and the second, the result to the host.
    assert_eq!(
        (statistics.to_gpu_bytes, statistics.to_cpu_bytes, statistics.cpu_nodes),
        (4 * 2 * row, 4 * 2 * row, 0),
        "{statistics:?}"
    );
    assert!(backend.cards().iter().all(|card| card.replays() > 0));
}

/// A node of no group runs on the card that has its operand; a card without memory and without groups computes nothing.
#[test]
fn a_card_without_room_and_groups_is_left_out() {
    let products = Products::new();
    let weight = products.weights[0].byte_size() as u64;
    let Some(cards) = cards(&[100, 3 * weight + 40_000]) else {
        skip!("{ONE_REAL_CARD}");
    };
    let mut graph = products.graph.clone();
    // Its operand is current on the host, which wrote it, and on the second card, which has multiplied it.
    let doubled = graph.push(Op::Scale { factor: 2.0 }, &[products.x]).expect("fits");
    // The host wrote its operands, and no card has read them.
    let [a, b] = [(); 2].map(|()| graph.add_tensor(TensorDesc::f32([5, Products::SIDE])));
    let sum = graph.push(Op::Add, &[a, b]).expect("fits");
    graph.mark_output(doubled);
    graph.mark_output(sum);
    let mut backend = hybrid_of(&cards);
    backend.place(&products.groups(), 0).expect("budgets");
    products.load(&mut backend);
    let places = products.weights.iter().map(|weight| backend.location(weight.id));
    assert!(places.into_iter().all(|place| place == Some(TensorLocation::Gpu(1))));
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    for seed in 90..94 {
        let values = [seed, seed + 10, seed + 20].map(|seed| rng(seed).vec(5 * Products::SIDE));
        for (id, values) in [products.x, a, b].into_iter().zip(&values) {
            backend.write_f32(id, values).expect("written");
        }
        executor::run_program(&mut backend, program).expect("runs");
        let pairs = values[1].iter().zip(&values[2]);
        let expected: [Vec<f64>; 2] = [
            values[0].iter().map(|&x| 2.0 * f64::from(x)).collect(),
            pairs.map(|(&a, &b)| f64::from(a) + f64::from(b)).collect(),
        ];
        for (id, expected) in [doubled, sum].into_iter().zip(&expected) {
            let found = backend.read_f32(id).expect("read");
            assert_close(&found, expected, &[5, Products::SIDE], Tolerance::Absolute(1e-6));
        }
    }
    assert_eq!(backend.cards()[0].launches(), 0);
    assert!(backend.cards()[1].launches() > 0);
}

const GIB: u64 = 1 << 30;

/// A simulated card of 5 GiB whose desktop holds so many bytes from so many seconds on; `None` where the device is a real one.
fn card_with_desktop(holds: &[(u64, u64)]) -> Option<GpuLease> {
    let steps = holds.iter();
    let steps = steps.map(|&(second, bytes)| (Duration::from_secs(second), Bytes(bytes)));
    let desktop = DesktopConfig {
        preemption_failure: 0.0,
        ..DesktopConfig::with([Client::steps("game", steps.collect())])
    };
    let lease = gpu_with(LeaseOptions {
        sim: SimConfig {
            cards: vec![CardConfig {
                vram: Bytes(5 * GIB),
                desktop: Some(desktop),
                ..CardConfig::default()
            }],
            ..LeaseOptions::default().sim
        },
        policy: Policy::desktop(),
        ..LeaseOptions::default()
    });
    lease.sim().is_some().then_some(lease)
}

/// Runs products, half a second of the cards' time apart, and gives after each run the places of the weights.
fn runs_over_time(
    products: &Products,
    backend: &mut HybridBackend,
    cards: &[GpuLease],
    runs: u64,
) -> Vec<[TensorLocation; 3]> {
    let mut cpu = CpuBackend::new();
    products.load(&mut cpu);
    let on_cpu = &mut executor::compile(&mut cpu, &products.graph).expect("compiles");
    let program = &mut executor::compile(backend, &products.graph).expect("compiles");
    let run = |seed| {
        let found = products.run(backend, program, seed);
        let expected = products.run(&mut cpu, on_cpu, seed);
        let shape = [5, Products::SIDE];
        assert_close(&found, &widen(&expected), &shape, Tolerance::Absolute(1e-2));
        for card in cards {
            card.sim().expect("simulated").pause(Duration::from_millis(500));
        }
        [0, 1, 2].map(|weight| backend.location(products.weights[weight].id).expect("of a group"))
    };
    (0..runs).map(run).collect()
}

#[test]
fn groups_return_to_a_card_while_another_has_no_memory() {
    let quiet = [(0, GIB / 4)];
    let taken = [(0, GIB / 4), (2, GIB / 4 + 4 * GIB)];
    let cards = [card_with_desktop(&taken), card_with_desktop(&quiet)];
    let [Some(first), Some(second)] = cards else {
        skip!("{ONE_REAL_CARD}");
    };
    let cards = [first, second];
    let products = Products::new();
    let mut backend = hybrid_of(&cards);
    backend.place(&products.groups(), 0).expect("budgets");
    products.load(&mut backend);
    // It does not go, so that the first card's budget stays exceeded.
    let kept = DeviceTensor::from_host(cards[0].backend(), &[1.0; 64], &[64]).expect("room");
    let places = runs_over_time(&products, &mut backend, &cards, 40);
    drop(kept);
    assert_eq!(places[0], [TensorLocation::Gpu(0); 3]);
    assert!(places.contains(&[TensorLocation::Cpu; 3]), "{places:?}");
    assert_eq!(places[39], [TensorLocation::Gpu(1); 3], "{places:?}");
}

/// A card whose driver has no memory, whatever its budget says, is tried again and again: the others must not wait for it.
#[test]
fn groups_return_to_a_card_while_another_refuses_memory() {
    // Nothing has room at first.
    let holds = [(0, 57 * GIB / 16), (2, GIB / 4)];
    let cards = [card_with_desktop(&holds), card_with_desktop(&holds)];
    let [Some(first), Some(second)] = cards else {
        skip!("{ONE_REAL_CARD}");
    };
    let cards = [first, second];
    let products = Products::new();
    let mut backend = hybrid_of(&cards);
    backend.place(&products.groups(), 0).expect("budgets");
    products.load(&mut backend);
    let no_memory = FaultPlan::new().call("hipMalloc", When::From(1), hipErrorOutOfMemory);
    cards[0].sim().expect("simulated").set_fault_plan(no_memory);
    let places = runs_over_time(&products, &mut backend, &cards, 150);
    assert_eq!(places[0], [TensorLocation::Cpu; 3]);
    assert_eq!(places[149], [TensorLocation::Gpu(1); 3], "{places:?}");
}

#[test]
fn a_group_returns_only_where_its_graphs_have_room_beside_it() {
    // The program may have 0 bytes from the second second on, half a gigabyte from the fourth and seven eighths from the fortieth.
    let holds = [(0, 4), (2, 57), (4, 47), (40, 4)].map(|(second, parts)| (second, parts * GIB / 16));
    let Some(card) = card_with_desktop(&holds) else {
        skip!("the memory of a real desktop cannot be controlled");
    };
    let cards = [card];
    let products = Products::new();
    let mut backend = hybrid_of(&cards);
    backend
        .place(&products.groups(), 11 * GIB as usize / 16)
        .expect("a budget");
    products.load(&mut backend);
    let places = runs_over_time(&products, &mut backend, &cards, 150);
    assert_eq!(places[0], [TensorLocation::Gpu(0); 3]);
    assert_eq!(places[8..78], [[TensorLocation::Cpu; 3]; 70], "{places:?}");
    assert_eq!(places[149], [TensorLocation::Gpu(0); 3], "{places:?}");
}

/// A node that needs the caches of two cards runs on the host, and both stay there.
#[test]
fn a_node_with_caches_of_two_cards_runs_on_the_host() {
    let side = 64;
    let Some(cards) = cards(&[20_000, 20_000]) else {
        skip!("{ONE_REAL_CARD}");
    };
    let mut graph = Graph::new();
    let caches = [(); 2].map(|()| graph.add_tensor(TensorDesc::f32([side, side])));
    let sum = graph.push(Op::Add, &caches).expect("fits");
    graph.mark_output(sum);
    let mut backend = hybrid_of(&cards);
    let group = |id: TensorId| TensorGroup {
        name: format!("cache {id}"),
        tensors: vec![graph.tensor(id).expect("there").clone()],
    };
    backend.place(&caches.map(group), 3_000).expect("budgets");
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    let places = caches.map(|id| backend.location(id));
    assert_eq!(places, [Some(TensorLocation::Gpu(0)), Some(TensorLocation::Gpu(1))]);
    for run in 1..=6 {
        let values = [run, run + 100].map(|seed| rng(seed).vec(side * side));
        for (id, values) in caches.iter().zip(&values) {
            backend.write_f32(*id, values).expect("written");
        }
        executor::run_program(&mut backend, program).expect("runs");
        let expected: Vec<f64> = values[0]
            .iter()
            .zip(&values[1])
            .map(|(a, b)| f64::from(a + b))
            .collect();
        let found = backend.read_f32(sum).expect("read");
        assert_close(&found, &expected, &[side, side], Tolerance::Absolute(1e-6));
        assert!(
            caches
                .iter()
                .all(|&id| backend.location(id) == Some(TensorLocation::Cpu))
        );
    }
}

/// A graph with `x [6, 5]` and a view of its first three columns.
fn graph_of_columns() -> (Graph, TensorId, TensorId) {
    let mut graph = Graph::new();
    let x = graph.add_tensor(TensorDesc::f32([6, 5]));
    let part = graph.add_tensor(TensorDesc {
        shape: vec![6, 3],
        layout: Layout::Strided,
        view_of: Some(x),
        ..TensorDesc::f32([6, 5])
    });
    (graph, x, part)
}

#[test]
fn a_node_that_the_device_cannot_run_is_run_by_the_cpu_and_counted() {
    let gpu = gpu();
    let (mut graph, x, part) = graph_of_columns();
    let doubled = graph.push(Op::Scale { factor: 2.0 }, &[x]).expect("fits");
    // No kernel converts to integers, or from them.
    let to = |dtype| Op::Cpy { to: Some(dtype) };
    let whole = graph.push(to(DType::I32), &[part]).expect("fits");
    let back = graph.push(to(DType::F32), &[whole]).expect("fits");
    let silu = graph.push(Op::Unary(Unary::Silu), &[back]).expect("fits");
    graph.mark_output(doubled);
    graph.mark_output(silu);
    let mut backend = hybrid(&gpu);
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    let values = rng(50).vec_in(30, -5.0, 5.0);
    for run in 1..=3 {
        backend.write_f32(x, &values).expect("written");
        executor::run_program(&mut backend, program).expect("runs");
        let expected: Vec<f64> = values.iter().map(|&v| 2.0 * f64::from(v)).collect();
        assert_close(
            &backend.read_f32(doubled).expect("read"),
            &expected,
            &[6, 5],
            Tolerance::Absolute(1e-6),
        );
        let rows = values.chunks(5).flat_map(|row| &row[..3]);
        let expected: Vec<f64> = rows
            .map(|&v| f64::from(v).trunc())
            .map(|v| v / (1.0 + (-v).exp()))
            .collect();
        assert_close(
            &backend.read_f32(silu).expect("read"),
            &expected,
            &[6, 3],
            Tolerance::Absolute(1e-5),
        );
        assert_eq!(backend.statistics().cpu_nodes, 2 * run);
    }
    let unsupported = &backend.statistics().unsupported;
    assert_eq!(unsupported.values().sum::<u64>(), 2, "asked once: {unsupported:?}");
    assert!(
        unsupported
            .keys()
            .all(|reason| reason.contains("hip backend does not do")),
        "{unsupported:?}"
    );
    assert!(backend.buffer(x).is_some());
}

/// The device is asked before it gets an operand: only what the other node reads is copied.
#[test]
fn nothing_is_copied_for_a_node_that_the_device_refuses() {
    let gpu = gpu();
    let (mut graph, x, part) = graph_of_columns();
    let y = graph.add_tensor(TensorDesc::f32([7]));
    // No kernel computes in f64.
    let refused = graph.push(Op::Cpy { to: Some(DType::F64) }, &[part]).expect("fits");
    let doubled = graph.push(Op::Scale { factor: 2.0 }, &[y]).expect("fits");
    graph.mark_output(refused);
    graph.mark_output(doubled);
    let mut backend = hybrid(&gpu);
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    for run in 1..=3 {
        let (wide, values) = (rng(50 + run).vec(30), rng(60 + run).vec(7));
        backend.write_f32(x, &wide).expect("written");
        backend.write_f32(y, &values).expect("written");
        executor::run_program(&mut backend, program).expect("runs");
        let expected: Vec<f64> = values.iter().map(|&v| 2.0 * f64::from(v)).collect();
        assert_close(
            &backend.read_f32(doubled).expect("read"),
            &expected,
            &[7],
            Tolerance::Absolute(1e-6),
        );
        let found: Vec<f64> = bytemuck::pod_collect_to_vec(&backend.read(refused).expect("read"));
        let expected: Vec<f64> = wide
            .chunks(5)
            .flat_map(|row| &row[..3])
            .map(|&v| f64::from(v))
            .collect();
        assert_eq!(found, expected);
        let statistics = backend.statistics();
        assert_eq!(
            (statistics.gpu_nodes, statistics.cpu_nodes, statistics.to_gpu_bytes),
            (run, run, run * 7 * 4),
            "{statistics:?}"
        );
    }
    assert!(backend.gpu().tensor_desc(x).is_none(), "x has memory on the device");
}

/// Nodes of more dimensions than the grid of a launch has blocks run on the CPU, each with its reason.
#[test]
fn nodes_beyond_the_limits_of_a_launch_run_on_the_cpu() {
    const MANY: usize = 65_536;
    let gpu = gpu();
    let mut graph = Graph::new();
    let input = |graph: &mut Graph, shape: &[usize]| graph.add_tensor(TensorDesc::f32(shape));
    let heads = input(&mut graph, &[1, MANY, 1, 4]);
    let [k, v] = [(); 2].map(|()| input(&mut graph, &[1, 1, 2, 4]));
    let matrices = input(&mut graph, &[MANY, 1, 2]);
    let right = input(&mut graph, &[1, 2, 3]);
    let batch = input(&mut graph, &[MANY, 2, 3]);
    let weights = input(&mut graph, &[MANY, 2]);
    let [q, keys] = [(); 2].map(|()| input(&mut graph, &[MANY, 1, 4]));
    let flash = Op::FlashAttnExt(FlashAttnExt {
        scale: 0.5,
        max_bias: 0.0,
        softcap: 0.0,
        mask: false,
        sinks: false,
    });
    let attention = Op::Attention(Attention {
        heads: 1,
        kv_heads: 1,
        head_dim: 4,
        scale: 0.5,
        causal: false,
        mask: AttentionMask::None,
    });
    let outputs = [
        graph.push(flash, &[heads, k, v]),
        graph.push(Op::MulMat, &[matrices, right]),
        graph.push(Op::MeanPool, &[batch, weights]),
        graph.push(attention, &[q, keys, keys]),
    ]
    .map(|output| output.expect("fits"));
    // A transposition that is a copy, and not a view.
    let turned = graph.add_tensor(TensorDesc::f32([MANY, 3, 2]));
    graph.add_node(Op::Transpose, vec![batch], vec![turned]);
    let outputs: Vec<TensorId> = outputs.into_iter().chain([turned]).collect();
    for &output in &outputs {
        graph.mark_output(output);
    }
    let (mut backend, mut cpu) = (hybrid(&gpu), CpuBackend::new());
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    let on_cpu = &mut executor::compile(&mut cpu, &graph).expect("compiles");
    for (seed, id) in (80..).zip([heads, k, v, matrices, right, batch, weights, q, keys]) {
        let values = rng(seed).vec(graph.tensor(id).expect("there").element_count());
        backend.write_f32(id, &values).expect("written");
        cpu.write_f32(id, &values).expect("written");
    }
    executor::run_program(&mut backend, program).expect("runs");
    executor::run_program(&mut cpu, on_cpu).expect("runs");
    for &output in &outputs {
        let (found, expected) = (backend.read_f32(output), cpu.read_f32(output));
        assert!(found.expect("read") == expected.expect("read"), "{output}");
    }
    let statistics = backend.statistics();
    assert_eq!(
        (statistics.gpu_nodes, statistics.cpu_nodes, statistics.to_gpu_bytes),
        (0, 5, 0),
        "{statistics:?}"
    );
    let reasons: Vec<&String> = statistics.unsupported.keys().collect();
    assert_eq!(statistics.unsupported.values().sum::<u64>(), 5, "{reasons:?}");
    assert!(
        reasons
            .iter()
            .all(|reason| reason.contains("65536, and a launch takes 65535")),
        "{reasons:?}"
    );
}

/// A cache on the device and a weight that found no room there: the cache goes to the host, where all weights are.
#[test]
fn a_node_with_operands_of_two_groups_in_two_places_runs_on_the_host() {
    let side = 64;
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(20_000)),
        ..LeaseOptions::default()
    });
    let mut graph = Graph::new();
    let cache = graph.add_tensor(TensorDesc::f32([side]));
    let weight = graph.add_tensor(TensorDesc::f32([side, side]));
    let sum = graph.push(Op::Add, &[weight, cache]).expect("fits");
    let doubled = graph.push(Op::Scale { factor: 2.0 }, &[cache]).expect("fits");
    graph.mark_output(sum);
    graph.mark_output(doubled);
    let mut backend = hybrid(&gpu);
    let group = |name: &str, id: TensorId| TensorGroup {
        name: name.to_owned(),
        tensors: vec![graph.tensor(id).expect("there").clone()],
    };
    backend
        .place(&[group("cache", cache), group("weight", weight)], 15_000)
        .expect("a budget");
    let values = rng(70).vec(side * side);
    let bytes: Vec<u8> = bytemuck::cast_slice(&values).to_vec();
    let desc = graph.tensor(weight).expect("there");
    backend.load(desc, std::sync::Arc::new(bytes)).expect("on the host");
    let program = &mut executor::compile(&mut backend, &graph).expect("compiles");
    let places = [cache, weight].map(|id| backend.location(id));
    assert_eq!(places, [Some(TensorLocation::Gpu(0)), Some(TensorLocation::Cpu)]);
    for run in 1..=6 {
        let own = rng(70 + run).vec(side);
        backend.write_f32(cache, &own).expect("written");
        executor::run_program(&mut backend, program).expect("runs");
        let at = |i: usize| f64::from(values[i]) + f64::from(own[i % side]);
        let expected: Vec<f64> = (0..side * side).map(at).collect();
        let found = backend.read_f32(sum).expect("read");
        assert_close(&found, &expected, &[side, side], Tolerance::Absolute(1e-6));
        let expected: Vec<f64> = own.iter().map(|&v| 2.0 * f64::from(v)).collect();
        let found = backend.read_f32(doubled).expect("read");
        assert_close(&found, &expected, &[side], Tolerance::Absolute(1e-6));
        assert_eq!(backend.location(cache), Some(TensorLocation::Cpu));
    }
}
