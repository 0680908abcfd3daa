//! The promise of `docs/streams.md`: a program on several streams and threads gives the result of doing one operation after
//! the other, under every schedule of the simulated card, with nothing to report and nothing left.
//!
//! CI runs a part. `cargo xtask programs` runs 2,000 programs under 200 seeds each.

#![allow(clippy::print_stderr)] // a failing program, cut down

mod common;
mod programs {
    pub(crate) mod machine;
    mod model;
    pub(crate) mod program;
}

use programs::machine::{Outcome, run};
use programs::program::{Program, Step, generate};
use rocmforge_hip_sys::hipSuccess;
use rocmforge_runtime::{Bytes, PoolOptions};
use rocmforge_sim::program::shrink;
use rocmforge_sim::{CardConfig, FaultPlan, HipVersion, Schedule, SimConfig, SimHost, Tools, When};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The machine of a seed: each schedule class, strict or not, HIP 6 or 7.
fn machine(seed: u64) -> SimConfig {
    let own = seed / 20;
    SimConfig {
        cards: vec![CardConfig::with_vram(Bytes(1 << 30))],
        seed: own,
        schedule: match seed % 5 {
            0 => Schedule::Lazy,
            1 => Schedule::Eager,
            2 => Schedule::Reverse,
            3 => Schedule::Random(1),
            _ => Schedule::Pct {
                seed: 2,
                depth: 1 + (own % 3) as u32,
            },
        },
        strict: (seed / 5).is_multiple_of(2),
        hip_version: if (seed / 10).is_multiple_of(2) {
            HipVersion::Hip6
        } else {
            HipVersion::Hip7
        },
        tools: Tools {
            racecheck: true,
            ..Tools::default()
        },
        ..SimConfig::default()
    }
}

/// A panic is a failure like any other: a failing program is to be cut down.
fn attempt(program: &Program, seed: u64, prepare: impl Fn(&SimHost)) -> Outcome {
    // Half of the seeds use memory again without asking the driver.
    let pool = if (seed / 20).is_multiple_of(2) {
        PoolOptions::OFF
    } else {
        PoolOptions::ON
    };
    let ran = catch_unwind(AssertUnwindSafe(|| run(program, machine(seed), pool, &prepare)));
    ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("it panics: {}", text.unwrap_or_default()))
    })
}

/// Cuts a failing program down: first its steps, then what made them up stays as it is.
fn smallest(program: &Program, seed: u64, prepare: &impl Fn(&SimHost)) -> Program {
    let rebuilt = |steps: &[(bool, Step)]| Program {
        prelude: steps.iter().filter(|(prelude, _)| *prelude).count(),
        steps: steps.iter().map(|(_, step)| *step).collect(),
    };
    let marked: Vec<(bool, Step)> = program
        .steps
        .iter()
        .enumerate()
        .map(|(index, step)| (index < program.prelude, *step))
        .collect();
    rebuilt(&shrink(&marked, |steps| {
        attempt(&rebuilt(steps), seed, prepare).is_err()
    }))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

#[test]
fn every_schedule_gives_the_result_of_one_operation_after_the_other() {
    let programs = setting("ROCMFORGE_PROGRAMS", 80);
    let seeds = setting("ROCMFORGE_PROGRAM_SEEDS", 40);
    let (first, first_seed) = (
        setting("ROCMFORGE_PROGRAMS_FIRST", 0),
        setting("ROCMFORGE_PROGRAM_SEEDS_FIRST", 0),
    );
    let loud = std::env::var_os("ROCMFORGE_PROGRAMS_PROGRESS").is_some();
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let (next, runs, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..setting("ROCMFORGE_PROGRAMS_JOBS", cores).max(1) {
            scope.spawn(|| {
                while !failed.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= programs {
                        break;
                    }
                    if loud && index.is_multiple_of(100) {
                        eprintln!("program {index} of {programs}");
                    }
                    let number = first + index;
                    let program = generate(number);
                    for seed in first_seed..first_seed + seeds {
                        runs.fetch_add(1, Ordering::Relaxed);
                        if let Err(why) = attempt(&program, seed, |_| {}) {
                            failed.store(true, Ordering::Relaxed);
                            explain(number, seed, &program, &why);
                            break;
                        }
                    }
                }
            });
        }
    });
    eprintln!("{} runs of {programs} programs", runs.into_inner());
    assert!(!failed.into_inner(), "the failing program is above");
}

/// Prints a failing program, cut down.
fn explain(number: u64, seed: u64, program: &Program, why: &str) {
    eprintln!("program {number}, seed {seed}: {why}");
    let small = smallest(program, seed, &|_: &SimHost| {});
    let again = attempt(&small, seed, |_| {}).err().unwrap_or_default();
    eprintln!("cut down to {} steps, which fail with: {again}", small.steps.len());
    for step in &small.steps {
        eprintln!("    {} {:?}", step.thread, step.op);
    }
    eprintln!("repeat with `cargo xtask programs --first {number} --programs 1 --first-seed {seed} --seeds 1`");
}

/// The same family finds a runtime that forgets its orders: here the card ignores some of its calls.
#[test]
fn an_order_that_is_forgotten_is_found() {
    for (api, when) in [
        ("hipStreamWaitEvent", When::Every(1)),
        ("hipStreamWaitEvent", When::Every(3)),
        ("hipEventRecord", When::Every(1)),
        // "It is done": a wait that ends too early.
        ("hipStreamQuery", When::Every(2)),
    ] {
        let forget = |sim: &SimHost| sim.set_fault_plan(FaultPlan::new().call(api, when, hipSuccess));
        let fails = |number: u64| {
            let program = generate(number);
            (0..20)
                .find(|seed| attempt(&program, *seed, forget).is_err())
                .map(|seed| (program, seed))
        };
        let found: Vec<(Program, u64)> = (0..40).filter_map(fails).collect();
        assert!(found.len() >= 4, "{api} {when:?}: only {} of 40 programs", found.len());
        let (program, seed) = &found[0];
        let small = smallest(program, *seed, &forget);
        assert!(attempt(&small, *seed, forget).is_err());
        assert!(small.steps.len() <= 14, "{api}: {small:#?}");
    }
}

/// What the programs are made of: none of it may become rare.
#[test]
fn the_family_does_everything_it_is_said_to_do() {
    let programs: Vec<Program> = (0..500).map(generate).collect();
    let mut counts = std::collections::BTreeMap::new();
    for step in programs.iter().flat_map(|program| &program.steps) {
        let text = format!("{:?}", step.op);
        let name = text.split(['(', ' ']).next().unwrap_or_default().to_owned();
        *counts.entry(name).or_insert(0) += 1;
    }
    let rare: Vec<_> = counts.iter().filter(|(_, count)| **count < 40).collect();
    assert!(rare.is_empty() && counts.len() == 28, "{counts:#?}");
    let threads = |program: &Program| program.steps.iter().map(|step| step.thread).max();
    for most in 0..3 {
        assert!(programs.iter().filter(|program| threads(program) == Some(most)).count() > 50);
    }
}
