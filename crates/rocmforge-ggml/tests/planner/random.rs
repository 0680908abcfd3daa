//! The planner on random graphs and random problems, each from a printed seed.

use rocmforge_ggml::graph_file::{Entry, GraphFile, Kind};
use rocmforge_ggml::planner::{BufferKind, InPlace, Plan, PlanError, Problem, verify};
pub(crate) use rocmforge_test_support::Random;

fn tensor(id: usize, op: &str, elements: u64) -> Entry {
    Entry {
        id: id as u64,
        kind: if op == "NONE" { Kind::Leaf } else { Kind::Node },
        op: op.to_owned(),
        dtype: "f32".to_owned(),
        shape: [elements, 1, 1, 1],
        nb: [4, 4 * elements, 4 * elements, 4 * elements],
        nbytes: 4 * elements,
        ..Entry::default()
    }
}

/// A graph of a few inputs and 10 to 200 nodes. Sizes go over five powers of 4; a node reads what is recent more often than what is old.
pub(crate) fn graph(random: &mut Random) -> GraphFile {
    let size = |random: &mut Random| 64 << (2 * random.below(5)) << random.below(2);
    let inputs = 1 + random.below(4) as usize;
    let nodes = 10 + random.below(191) as usize;
    let mut entries: Vec<Entry> = Vec::new();
    for id in 0..inputs {
        let mut input = tensor(id, "NONE", size(random));
        input.is_input = true;
        entries.push(input);
    }
    for id in inputs..inputs + nodes {
        let mut pick = || {
            let back = if random.below(8) == 0 { id as u64 } else { 6 };
            id - 1 - random.below(back.min(id as u64)) as usize
        };
        let (a, b) = (pick(), pick());
        let elements = entries[a].shape[0];
        let mut entry = match random.below(10) {
            0 | 1 => tensor(id, "SCALE", elements),
            2 | 3 if entries[b].shape[0] == elements => tensor(id, "ADD", elements),
            2 => tensor(id, "SWIGLU", elements),
            4 => {
                let mut view = tensor(id, "RESHAPE", elements);
                let root = entries[a].view_of.unwrap_or(a as u32);
                (view.view_of, view.view_offs) = (Some(root), Some(entries[a].view_offs.unwrap_or(0)));
                view
            }
            5 if elements >= 128 => {
                let mut view = tensor(id, "VIEW", elements / 2);
                let root = entries[a].view_of.unwrap_or(a as u32);
                let offset = entries[a].view_offs.unwrap_or(0) + 2 * elements * random.below(2);
                (view.view_of, view.view_offs) = (Some(root), Some(offset));
                view
            }
            _ => tensor(id, "MUL_MAT", size(random)),
        };
        entry.srcs = vec![a as u32];
        if matches!(entry.op.as_str(), "ADD" | "SWIGLU" | "MUL_MAT") {
            entry.srcs.push(b as u32);
        }
        entry.is_output = id == inputs + nodes - 1 || random.below(40) == 0;
        entries.push(entry);
    }
    GraphFile::from_entries(entries).unwrap()
}

#[test]
fn random_graphs_take_at_most_2_percent_more_than_their_bound() {
    let (mut at_bound, mut worst) = (0, 1.0f64);
    for seed in 0..500 {
        let file = graph(&mut Random(seed));
        let planned = file.problem(BufferKind::unlimited(128), InPlace::Full);
        let plan = Plan::new(&planned.problem).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let ratio = plan.peak_bytes as f64 / plan.bound_bytes as f64;
        at_bound += usize::from(plan.peak_bytes == plan.bound_bytes);
        worst = worst.max(ratio);
        assert!(
            ratio <= 1.02,
            "seed {seed}: {} B of {} B, {ratio:.4}",
            plan.peak_bytes,
            plan.bound_bytes
        );
    }
    assert!(
        at_bound >= 490,
        "{at_bound} of 500 at their bound, the worst at {worst:.4} of it"
    );
}

/// Items with any lives and sizes, of two kinds, one of them with a limit.
fn problem(random: &mut Random) -> Problem {
    let nodes = 1 + random.below(60) as u32;
    let mut problem = Problem::new(nodes, BufferKind::unlimited(16));
    problem.kinds.push(BufferKind {
        alignment: 64,
        max_bytes: Some(4096),
    });
    for _ in 0..random.below(80) {
        let first = random.below(u64::from(nodes)) as u32;
        let last = first + random.below(u64::from(nodes - first)) as u32;
        let item = problem.add(random.below(6000) as usize, first, last) as usize;
        problem.items[item].kind = random.below(2) as u32;
    }
    for item in 0..problem.items.len() as u32 {
        for over in 0..problem.items.len() as u32 {
            let (y, x) = (problem.items[item as usize], problem.items[over as usize]);
            if item != over && x.last == y.first && y.bytes <= x.bytes && random.below(2) == 0 {
                problem.pairs.push(rocmforge_ggml::planner::InPlacePair { item, over });
            }
        }
    }
    problem.pairs_across_kinds = random.below(2) == 0;
    problem
}

#[test]
fn every_plan_of_a_random_problem_is_right_and_no_smaller_than_its_bound() {
    for seed in 0..150 {
        let problem = problem(&mut Random(seed));
        let plan = Plan::new(&problem).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(plan.peak_bytes >= plan.bound_bytes, "seed {seed}");
        // Byte by byte: who owns it at each node. Pairs share it at the one node where both live.
        for node in 0..problem.nodes {
            let mut owners = vec![vec![None::<u32>; 0]; plan.buffers.len()];
            for (owner, buffer) in owners.iter_mut().zip(&plan.buffers) {
                owner.resize(buffer.bytes / 16, None);
            }
            for (index, (item, place)) in problem.items.iter().zip(&plan.places).enumerate() {
                if item.first > node || item.last < node || item.bytes == 0 {
                    continue;
                }
                let cells = place.offset / 16..(place.offset + item.bytes).div_ceil(16);
                for cell in &mut owners[place.buffer as usize][cells] {
                    let allowed = cell.is_none_or(|owner| {
                        place.over == Some(owner) || plan.places[owner as usize].over == Some(index as u32)
                    });
                    assert!(allowed, "seed {seed}: items {index} and {cell:?} at node {node}");
                    *cell = Some(index as u32);
                }
            }
        }
    }
}

#[test]
fn verification_finds_every_moved_item() {
    let mut found = 0;
    for seed in 0..50 {
        let random = &mut Random(seed);
        let problem = problem(random);
        let good = Plan::new(&problem).unwrap();
        for index in 0..problem.items.len() {
            if problem.items[index].bytes == 0 {
                continue;
            }
            let mut plan = good.clone();
            let change = random.below(3);
            match change {
                0 => plan.places[index].offset += 1,
                1 => plan.places[index].buffer = plan.buffers.len() as u32,
                _ => plan.buffers[plan.places[index].buffer as usize].bytes = problem.items[index].bytes - 1,
            }
            let error = verify(&problem, &plan).unwrap_err();
            assert!(matches!(error, PlanError::Place { .. }), "seed {seed}: {error}");
            // On top of an item that lives at the same time and is no partner.
            let other = (0..problem.items.len()).find(|&other| {
                let (a, b) = (&problem.items[index], &problem.items[other]);
                let partners =
                    good.places[index].over == Some(other as u32) || good.places[other].over == Some(index as u32);
                let together = a.first <= b.last && b.first <= a.last;
                other != index
                    && together
                    && !partners
                    && a.kind == b.kind
                    && b.bytes >= a.bytes
                    && good.buffers[good.places[other].buffer as usize].kind == a.kind
            });
            if let Some(other) = other {
                let mut plan = good.clone();
                (plan.places[index].buffer, plan.places[index].offset) =
                    (good.places[other].buffer, good.places[other].offset);
                let error = verify(&problem, &plan).unwrap_err();
                // Or the buffer was as large as an item that is no longer in it.
                let limit = matches!(error, PlanError::Limit { .. });
                assert!(
                    limit || matches!(error, PlanError::Overlap { .. }),
                    "seed {seed}: {error}"
                );
                found += 1;
            }
        }
    }
    assert!(found > 500, "{found}");
}

#[test]
fn problems_that_contradict_themselves_are_refused() {
    let good = || {
        let mut problem = Problem::new(4, BufferKind::unlimited(16));
        problem.add(32, 0, 2);
        problem.add(32, 2, 3);
        problem
    };
    Plan::new(&good()).unwrap();
    let refused = |change: &dyn Fn(&mut Problem)| {
        let mut problem = good();
        change(&mut problem);
        Plan::new(&problem).unwrap_err()
    };
    let pair = |item, over| rocmforge_ggml::planner::InPlacePair { item, over };
    assert!(matches!(
        refused(&|p| p.items[0].last = 4),
        PlanError::Life { last: 4, .. }
    ));
    assert!(matches!(refused(&|p| p.items[1].last = 1), PlanError::Life { .. }));
    assert!(matches!(refused(&|p| p.items[0].kind = 1), PlanError::Kind { .. }));
    assert!(matches!(
        refused(&|p| p.kinds[0].alignment = 24),
        PlanError::Alignment { .. }
    ));
    assert!(matches!(
        refused(&|p| p.items[0].alignment = 3),
        PlanError::ItemAlignment { .. }
    ));
    assert!(matches!(
        refused(&|p| p.items[0].alignment = 32),
        PlanError::ItemAlignment { .. }
    ));
    assert!(matches!(
        refused(&|p| p.items[0].bytes = usize::MAX),
        PlanError::TooLarge { item: 0, .. }
    ));
    let half = isize::MAX as usize / 2;
    assert!(matches!(
        refused(&|p| p.items.iter_mut().for_each(|item| item.bytes = half)),
        PlanError::TooLarge { item: 1, .. }
    ));
    assert!(matches!(refused(&|p| p.nodes = u32::MAX), PlanError::Nodes { .. }));
    assert!(matches!(refused(&|p| p.pairs.push(pair(0, 1))), PlanError::Pair { .. }));
    assert!(matches!(refused(&|p| p.pairs.push(pair(1, 9))), PlanError::Pair { .. }));
    assert!(matches!(
        refused(&|p| {
            p.items[1].bytes = 33;
            p.pairs.push(pair(1, 0));
        }),
        PlanError::Pair { .. }
    ));
    // Two items of one node that would overwrite each other, and a chain through one that comes later in the list.
    let mut circle = Problem::new(1, BufferKind::unlimited(16));
    circle.add(16, 0, 0);
    circle.add(16, 0, 0);
    circle.pairs.extend([pair(0, 1), pair(1, 0)]);
    assert_eq!(Plan::new(&circle).unwrap().peak_bytes, 16);
}

/// As many tensors as a file may have, all of which live to the end: the slow path of the placement.
#[test]
#[ignore = "half a minute"]
fn many_long_lives_are_planned() {
    let nodes = 1 << 15;
    let mut problem = Problem::new(nodes, BufferKind::unlimited(16));
    for node in 0..nodes {
        problem.add(16 + (node as usize * 7919) % 4096, node, nodes - 1);
    }
    let plan = Plan::new(&problem).unwrap();
    assert_eq!(plan.peak_bytes, plan.bound_bytes);
}
