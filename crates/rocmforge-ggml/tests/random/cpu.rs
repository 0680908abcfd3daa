//! Random graphs on the CPU: single ops beside the reference, programs of planned graphs beside single ops.

use std::collections::BTreeMap;

use rocmforge_ggml::{CpuBackend, GgmlResult, executor};

use crate::common::random_graph::Case;
use crate::common::random_graph::check::{
    Compared, Failure, Outputs, failed, load_weights, outputs, planned, program, same_bits, single_ops, write_inputs,
};
use crate::common::random_graph::generator::generate;
use crate::common::random_graph::report::{self, Seeds};

const GRAPHS: u64 = 2000;

/// A case of 8 to 47 nodes.
fn case(seed: u64) -> Case {
    generate(seed, 8 + (seed % 40) as usize, &mut |_, _| true)
}

/// The outputs of each run of single ops without a plan.
fn alone(case: &Case, runs: &[u64]) -> GgmlResult<Vec<Outputs>> {
    let mut cpu = CpuBackend::with_threads(1);
    load_weights(case, &mut cpu)?;
    executor::prepare(&mut cpu, &case.graph)?;
    let run = |&run: &u64| {
        write_inputs(case, &mut cpu, run)?;
        executor::execute_graph(&mut cpu, &case.graph)?;
        outputs(case, &mut cpu)
    };
    runs.iter().map(run).collect()
}

/// Single ops beside the reference; a program of the planned graph has the bits of single ops, in each run.
pub(crate) fn check(case: &Case) -> Result<Compared, Failure> {
    let compared = single_ops(case, &mut CpuBackend::with_threads(1))?;
    let runs = [0, 1, 0];
    let alone = alone(case, &runs).map_err(failed("single ops"))?;
    let found = program(case, &planned(case)?, &mut CpuBackend::with_threads(2), &runs)?;
    same_bits(case, "planned program", &found, &alone)?;
    Ok(compared)
}

#[test]
fn random_graphs_are_near_the_reference_on_the_cpu() {
    let seeds = Seeds::of(GRAPHS);
    let (mut ops, mut compared) = (BTreeMap::new(), Compared::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let part = |first: u64| {
        let (mut ops, mut compared) = (BTreeMap::new(), Compared::default());
        for seed in seeds.clone().skip(first as usize).step_by(threads as usize) {
            let case = case(seed);
            case.count_ops(&mut ops);
            compared.add(report::assert_passes(&case, "cpu", &mut check));
        }
        (ops, compared)
    };
    std::thread::scope(|scope| {
        let part = &part;
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        for done in parts {
            let (own, found) = done.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            compared.add(found);
            for (name, count) in own {
                *ops.entry(name).or_default() += count;
            }
        }
    });
    report::say(&format!("{compared:?}\n{ops:?}"));
    if seeds.is_all() {
        report::assert_every_op(&ops, 40);
        report::assert_sharp(compared);
    }
}

#[test]
fn a_graph_file_is_replayed() {
    if let Some(case) = report::file() {
        let compared = report::assert_passes(&case, "cpu", &mut check);
        report::say(&format!("{compared:?}"));
    }
}
