//! Random graphs on the device, and on the device and the CPU together, beside the f64 reference.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use rocmforge_ggml::{
    CpuBackend, GgmlBackend, GgmlError, HipGgmlBackend, HostAccess, HybridBackend, Node, TensorGroup, TensorId,
};
use rocmforge_runtime::{Bytes, Policy};
use rocmforge_testkit::data::rng;
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu_with, skip};

use super::stopped::{REAL_DESKTOP, card, take_after};
use crate::common::random_graph::Case;
use crate::common::random_graph::check::{Compared, Failure, near, planned, program, same_bits, single_ops};
use crate::common::random_graph::generator::generate;
use crate::common::random_graph::report::{self, Seeds};

const GRAPHS: u64 = 180;
/// Runs of a program, by their data: the first is launched node by node, the second is captured, the third a replay of the first.
const RUNS: [u64; 3] = [0, 1, 0];

/// A device that has run the nodes of a graph so far, and knows what it does not run.
struct Asked {
    device: HipGgmlBackend,
    /// How often each op ran, by name.
    ran: BTreeMap<&'static str, usize>,
}

impl Asked {
    /// Whether the device runs a node, whose operands it has.
    fn accepts(&mut self, case: &Case, node: &Node) -> bool {
        for &id in &node.inputs {
            self.provide(case, id);
        }
        for output in node.outputs.iter().map(|&id| case.desc(id)) {
            let memory = match output.is_view() {
                true => self.device.bind_view(output),
                false => self.device.alloc(output),
            };
            memory.expect("room");
        }
        if case.graph.is_alias(node) {
            return true;
        }
        let done = self
            .device
            .execute_op(&node.op, &node.inputs, &node.outputs)
            .and_then(|()| self.device.synchronize());
        match done {
            Ok(()) => {
                *self.ran.entry(node.op.name()).or_default() += 1;
                true
            }
            Err(GgmlError::Unimplemented { .. }) => false,
            // Another error is a failure, which the comparison finds and shrinks.
            Err(_) => true,
        }
    }

    /// Gives the device a leaf, or a view of what it has.
    fn provide(&mut self, case: &Case, id: TensorId) {
        if self.device.tensor_desc(id).is_some() {
            return;
        }
        let desc = case.desc(id);
        match desc.view_of {
            Some(base) => {
                self.provide(case, base);
                self.device.bind_view(desc).expect("its base is there");
            }
            None => {
                self.device.alloc(desc).expect("room");
                self.device.write(id, &case.bytes(id, 0)).expect("written");
            }
        }
    }
}

/// A case of 8 to 31 nodes that the device runs, by asking it for each.
fn case_for(gpu: &GpuLease, seed: u64, ran: &mut BTreeMap<&'static str, usize>) -> Case {
    let mut asked = Asked {
        device: HipGgmlBackend::new(gpu.backend()).expect("kernels"),
        ran: std::mem::take(ran),
    };
    let case = generate(seed, 8 + (seed % 24) as usize, &mut |case, node| {
        asked.accepts(case, node)
    });
    *ran = asked.ran;
    case
}

/// Single ops node by node, and the outputs of a program of the planned graph.
fn on_device(gpu: &GpuLease, case: &Case, replayed: &mut usize) -> Result<Compared, Failure> {
    let device = || HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let mut compared = single_ops(case, &mut device())?;
    let mut backend = device();
    let found = program(case, &planned(case)?, &mut backend, &RUNS)?;
    same_bits(case, "a replay beside launches", &found[2..], &found[..1])?;
    compared.add(near(case, "device, program", &found[..2], &RUNS[..2])?);
    *replayed += usize::from(backend.replays() > 0);
    Ok(compared)
}

#[test]
fn random_graphs_are_near_the_reference_on_the_device() {
    let gpu = gpu_with(LeaseOptions::default());
    let seeds = Seeds::of(GRAPHS);
    let (mut ran, mut compared, mut replayed) = (BTreeMap::new(), Compared::default(), 0);
    let mut run = |seed: u64, ran: &mut BTreeMap<&'static str, usize>| {
        let case = case_for(&gpu, seed, ran);
        let check = &mut |case: &Case| on_device(&gpu, case, &mut replayed);
        compared.add(report::assert_passes(&case, "device", check));
    };
    seeds.clone().for_each(|seed| run(seed, &mut ran));
    // Until every op that the device runs has run a few times.
    let rare = |ran: &BTreeMap<&'static str, usize>| ran.values().any(|&count| count < 4);
    for seed in GRAPHS..4 * GRAPHS {
        if !seeds.is_all() || !rare(&ran) {
            break;
        }
        run(seed, &mut ran);
    }
    report::say(&format!("{compared:?}, {replayed} programs replayed\n{ran:?}"));
    if seeds.is_all() {
        assert!(
            replayed as u64 * 10 >= GRAPHS * 7,
            "{replayed} programs of {GRAPHS} were captured and replayed"
        );
        assert!(!rare(&ran), "{ran:?}");
        report::assert_sharp(compared);
    }
}

/// Groups of a graph's leafs.
fn groups_of(case: &Case) -> Vec<TensorGroup> {
    // Weights in groups of their own, with a cache or an input here and there.
    let mut groups: Vec<TensorGroup> = Vec::new();
    for (&id, leaf) in &case.leafs {
        let desc = case.desc(id).clone();
        match groups.last_mut() {
            Some(last) if !leaf.is_weight && leaf.salt.is_multiple_of(3) => last.tensors.push(desc),
            _ if leaf.is_weight => groups.push(TensorGroup {
                name: format!("weight {id}"),
                tensors: vec![desc],
            }),
            _ => {}
        }
    }
    groups
}

/// A program of the planned graph with a random part of the memory that it wants.
fn on_both(case: &Case, nodes: &mut [u64; 2]) -> Result<Compared, Failure> {
    let groups = groups_of(case);
    let grouped = groups.iter().flat_map(|group| &group.tensors);
    let wanted = 20_000 + grouped.map(|desc| desc.byte_size()).sum::<usize>();
    let budget = wanted * rng(case.seed + 1000).quiet().below(5) / 4 * 2;
    let gpu = gpu_with(LeaseOptions {
        policy: Policy::fixed(Bytes(budget as u64)),
        ..LeaseOptions::default()
    });
    let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
    let mut hybrid = HybridBackend::new(device, CpuBackend::with_threads(1));
    hybrid.place(&groups, 20_000).expect("a budget");
    let found = program(case, &planned(case)?, &mut hybrid, &RUNS)?;
    let compared = near(case, &format!("hybrid with {budget} B"), &found, &RUNS)?;
    let statistics = hybrid.statistics();
    *nodes = [nodes[0] + statistics.gpu_nodes, nodes[1] + statistics.cpu_nodes];
    let held = gpu.backend().card().budget();
    assert!(held.peak <= held.budget, "seed {}: {held:?}", case.seed);
    Ok(compared)
}

#[test]
fn random_graphs_are_near_the_reference_on_the_device_and_the_cpu_together() {
    let seeds = Seeds::of(GRAPHS);
    let (mut ops, mut compared, mut nodes) = (BTreeMap::new(), Compared::default(), [0; 2]);
    for seed in seeds.clone() {
        // All ops: what the device does not run, the CPU does.
        let case = generate(seed, 8 + (seed % 24) as usize, &mut |_, _| true);
        case.count_ops(&mut ops);
        compared.add(report::assert_passes(&case, "hybrid", &mut |case| {
            on_both(case, &mut nodes)
        }));
    }
    report::say(&format!(
        "{compared:?}, {nodes:?} nodes on the device and on the CPU\n{ops:?}"
    ));
    if seeds.is_all() {
        assert!(nodes.iter().all(|&count| count > 500), "{nodes:?}");
        report::assert_every_op(&ops, 1);
        report::assert_sharp(compared);
    }
}

/// A program of the planned graph while the desktop takes all memory after a random call.
fn while_memory_is_taken(case: &Case, on_both: &mut usize) -> Result<Compared, Failure> {
    let run = |calls: u64| {
        let gpu = card().expect("simulated");
        let device = HipGgmlBackend::new(gpu.backend()).expect("kernels");
        let mut hybrid = HybridBackend::new(device, CpuBackend::with_threads(1));
        hybrid.place(&groups_of(case), 20_000).expect("a budget");
        let made = take_after(gpu.sim().expect("simulated"), calls);
        let found = program(case, &planned(case)?, &mut hybrid, &RUNS)?;
        let statistics = hybrid.statistics().clone();
        Ok((found, statistics, made.load(Ordering::Relaxed)))
    };
    let (_, undisturbed, made) = run(u64::MAX)?;
    let calls = rng(case.seed + 2000).quiet().below(made as usize) as u64;
    let (found, statistics, _) = run(calls)?;
    *on_both += usize::from(0 < statistics.gpu_nodes && statistics.gpu_nodes < undisturbed.gpu_nodes);
    near(case, &format!("memory taken after {calls} calls"), &found, &RUNS)
}

#[test]
fn random_graphs_are_near_the_reference_while_memory_is_taken() {
    if card().is_none() {
        skip!("{REAL_DESKTOP}");
    }
    let seeds = Seeds::of(GRAPHS);
    let (mut compared, mut on_both) = (Compared::default(), 0);
    for seed in seeds.clone() {
        let case = generate(seed, 8 + (seed % 24) as usize, &mut |_, _| true);
        compared.add(report::assert_passes(&case, "memory taken", &mut |case| {
            while_memory_is_taken(case, &mut on_both)
        }));
    }
    report::say(&format!("{compared:?}, {on_both} programs on both"));
    if seeds.is_all() {
        assert!(on_both as u64 * 2 > GRAPHS, "{on_both}");
        report::assert_sharp(compared);
    }
}

#[test]
fn a_graph_file_is_replayed() {
    if let Some(case) = report::file() {
        let gpu = gpu_with(LeaseOptions::default());
        // The device may not run all of it.
        let check = &mut |case: &Case| on_device(&gpu, case, &mut 0);
        match check(&case) {
            Err(Failure::Error { error, .. }) if matches!(*error, GgmlError::Unimplemented { .. }) => {
                report::say(&error.to_string())
            }
            _ => report::say(&format!("{:?}", report::assert_passes(&case, "device", check))),
        }
        drop(gpu);
        report::say(&format!(
            "{:?}",
            report::assert_passes(&case, "hybrid", &mut |case| on_both(case, &mut [0; 2]))
        ));
    }
}
