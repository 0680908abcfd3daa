//! The campaign: random host programs with one planted mistake each, and correct ones.
//!
//! A mistake counts as found if the first thing found is of its class and names its place. CI runs a tenth of the seeds;
//! `cargo xtask campaign` runs them all and prints a table. `docs/simulator.md` lists the classes that are tested
//! elsewhere.

#![allow(clippy::print_stderr)] // the table, and the seeds that failed

mod config;
mod plant;
mod program;

use config::{IMAGES, machine};
use plant::{CLASSES, Expected};
use program::{Rng, Writer, clean};
use rocmforge_hip_sys::hipSuccess;
use rocmforge_sim::program::{Op, Run, run, shrink};
use rocmforge_sim::{Report, SimConfig};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A program with one mistake in it: all of a seed.
struct Faulty {
    class: usize,
    ops: Vec<Op>,
    config: SimConfig,
    expected: Expected,
}

fn faulty(seed: u64, ops: usize) -> Faulty {
    let class = (seed % CLASSES.len() as u64) as usize;
    let mut writer = Writer::new(seed);
    let at = Rng::new(!seed).below(ops);
    while writer.ops.len() < at {
        writer.step();
    }
    let expected = CLASSES[class].plant(&mut writer);
    while writer.ops.len() < ops {
        writer.step();
    }
    let mut config = machine(seed);
    CLASSES[class].prepare(&mut config);
    Faulty {
        class,
        ops: writer.finish(),
        config,
        expected,
    }
}

/// How a mistake fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing was found.
    Missed,
    /// Something was found, of another class or in another place.
    Misjudged,
    Found,
}

fn judge(run: &Run, expected: &Expected) -> Verdict {
    let first = |kinds: &[_], sites: &[usize]| match run.reports.first() {
        None => Verdict::Missed,
        Some(report) if kinds.contains(&report.kind) && names(run, report, sites) => Verdict::Found,
        Some(_) => Verdict::Misjudged,
    };
    match expected {
        Expected::Report(kinds, sites) => first(kinds, sites),
        Expected::Dead(kinds, sites, from) => match first(kinds, sites) {
            Verdict::Found if run.statuses[*from] == hipSuccess => Verdict::Misjudged,
            verdict => verdict,
        },
        Expected::Leak(site) if run.reports.is_empty() && run.leaks == [*site] => Verdict::Found,
        Expected::Leak(_) if run.leaks.is_empty() => Verdict::Missed,
        Expected::Leak(_) => Verdict::Misjudged,
        Expected::Status(site, status) if run.statuses[*site] == *status && run.reports.is_empty() => Verdict::Found,
        Expected::Status(site, _) if run.statuses[*site] == hipSuccess => Verdict::Missed,
        Expected::Status(..) => Verdict::Misjudged,
    }
}

/// Whether one side of a report is one of these operations; no sites means that any will do.
fn names(run: &Run, report: &Report, sites: &[usize]) -> bool {
    let calls = [Some(report.call), report.other.as_ref().map(|other| other.call)];
    sites.is_empty()
        || calls
            .iter()
            .flatten()
            .any(|call| run.op_of_call(*call).is_some_and(|op| sites.contains(&op)))
}

/// What a number of seeds came to, by class.
#[derive(Clone, Copy, Default)]
struct Tally {
    runs: u64,
    found: u64,
    misjudged: u64,
    missed: u64,
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}

fn jobs() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    setting("ROCMFORGE_CAMPAIGN_JOBS", cores as u64).max(1) as usize
}

/// Does `work` for 0..n on several threads.
fn spread(n: u64, what: &str, work: impl Fn(u64) + Sync) {
    let next = AtomicU64::new(0);
    let loud = std::env::var_os("ROCMFORGE_CAMPAIGN_PROGRESS").is_some();
    std::thread::scope(|scope| {
        for _ in 0..jobs() {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= n {
                        break;
                    }
                    if loud && n >= 20 && i.is_multiple_of(n / 20) {
                        eprintln!("{what}: {i} of {n}");
                    }
                    work(i);
                }
            });
        }
    });
}

/// Prints a failing seed with its program cut down.
fn explain(seed: u64, faulty: &Faulty, verdict: Verdict, run_of_it: &Run) {
    let class = &CLASSES[faulty.class];
    eprintln!("seed {seed}: {} ({}): {verdict:?}", class.id, class.what);
    eprintln!("expected: {:?}", faulty.expected);
    if let Expected::Status(site, _) | Expected::Leak(site) = faulty.expected {
        let (status, leaks) = (run_of_it.statuses[site], &run_of_it.leaks);
        eprintln!("found: status {status:?}, leaks {leaks:?}");
    }
    for report in run_of_it.reports.iter().take(3) {
        eprintln!("{report}");
    }
    if let Some(report) = run_of_it.reports.first() {
        let kind = report.kind;
        let small = shrink(&faulty.ops, |ops| {
            let again = run(ops, faulty.config.clone(), &IMAGES);
            again.reports.first().is_some_and(|report| report.kind == kind)
        });
        eprintln!(
            "{:?}, strict {}: {small:#?}",
            faulty.config.schedule, faulty.config.strict
        );
    }
}

#[test]
fn every_planted_mistake_is_found() {
    // The full campaign is 10 000 seeds of 1 000 operations.
    let seeds = setting("ROCMFORGE_CAMPAIGN_SEEDS", 1_000);
    let ops = setting("ROCMFORGE_CAMPAIGN_OPS", 1_000) as usize;
    let first = setting("ROCMFORGE_CAMPAIGN_FIRST", 0);
    let tallies = Mutex::new(vec![Tally::default(); CLASSES.len()]);
    let explained = AtomicU64::new(0);
    spread(seeds, "planted mistakes", |index| {
        let seed = first + index;
        let faulty = faulty(seed, ops);
        let run = run(&faulty.ops, faulty.config.clone(), &IMAGES);
        let verdict = judge(&run, &faulty.expected);
        {
            let tally = &mut tallies.lock().expect("no thread panics")[faulty.class];
            tally.runs += 1;
            match verdict {
                Verdict::Found => tally.found += 1,
                Verdict::Misjudged => tally.misjudged += 1,
                Verdict::Missed => tally.missed += 1,
            }
        }
        if verdict != Verdict::Found && explained.fetch_add(1, Ordering::Relaxed) < 5 {
            explain(seed, &faulty, verdict, &run);
        }
    });
    let tallies = tallies.into_inner().expect("no thread panics");
    eprintln!("{seeds} seeds of {ops} operations with one mistake each, from seed {first}");
    eprintln!("class  runs   found  misjudged  missed  what");
    let mut all = Tally::default();
    for (class, tally) in CLASSES.iter().zip(&tallies) {
        eprintln!(
            "{}  {:5}  {:5}  {:9}  {:6}  {}",
            class.id, tally.runs, tally.found, tally.misjudged, tally.missed, class.what
        );
        all.found += tally.found;
        all.misjudged += tally.misjudged;
        all.missed += tally.missed;
    }
    eprintln!(
        "all: found {}, misjudged {}, missed {}",
        all.found, all.misjudged, all.missed
    );
    assert_eq!(all.missed, 0, "mistakes that nothing found");
    assert!(all.misjudged * 100 <= seeds, "more than 1 % misjudged");
}

#[test]
fn correct_programs_make_no_report() {
    // The full campaign is 100 programs under 1 000 seeds each.
    let seeds = setting("ROCMFORGE_CAMPAIGN_CLEAN_SEEDS", 100);
    let programs: Vec<Vec<Op>> = (0..100).map(|program| clean(program, 150)).collect();
    let wrong = Mutex::new(Vec::new());
    spread(100 * seeds, "correct programs", |index| {
        let (program, seed) = (index / seeds, index % seeds);
        let mut config = machine(seed * 1_000_003 + program);
        config.separate_threads = seed.is_multiple_of(2);
        let run = run(&programs[program as usize], config.clone(), &IMAGES);
        let failed = run.statuses.iter().position(|status| *status != hipSuccess);
        if !run.reports.is_empty() || !run.leaks.is_empty() || failed.is_some() {
            let mut wrong = wrong.lock().expect("no thread panics");
            if wrong.len() < 3 {
                eprintln!(
                    "program {program}, seed {seed}: {:?} strict {}",
                    config.schedule, config.strict
                );
                let failed = failed.map(|op| (op, &programs[program as usize][op], run.statuses[op]));
                eprintln!("leaks {:?}, failed {failed:?}", run.leaks);
                if let Some(report) = run.reports.first() {
                    let (kind, op) = (report.kind, run.op_of_call(report.call));
                    eprintln!("{report}\nat operation {op:?}");
                    let ops = &programs[program as usize];
                    let again = |ops: &[Op]| crate::run(ops, config.clone(), &IMAGES).reports;
                    let small = shrink(ops, |ops| again(ops).first().is_some_and(|report| report.kind == kind));
                    eprintln!("{small:#?}");
                }
            }
            wrong.push((program, seed));
        }
    });
    let wrong = wrong.into_inner().expect("no thread panics");
    eprintln!(
        "100 correct programs under {seeds} seeds: {} wrongly reported",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_thousand_seeds_replay() {
    spread(1_000, "replays", |seed| {
        let Faulty { ops, config, .. } = faulty(seed, 200);
        let [first, second] = [(), ()].map(|()| run(&ops, config.clone(), &IMAGES));
        assert_eq!(first.trace, second.trace, "seed {seed}");
        let kinds = |run: &Run| run.reports.iter().map(|report| report.kind).collect::<Vec<_>>();
        assert_eq!(kinds(&first), kinds(&second), "seed {seed}");
    });
}

#[test]
fn a_failing_program_shrinks_to_few_operations() {
    let mut sizes = Vec::new();
    for seed in (0..CLASSES.len() as u64).filter(|seed| !["FC45", "FC07", "FC08"].contains(&CLASSES[*seed as usize].id))
    {
        let Faulty { ops, config, .. } = faulty(seed, 1_000);
        let full = run(&ops, config.clone(), &IMAGES);
        let Some(kind) = full.reports.first().map(|report| report.kind) else {
            continue;
        };
        let fails = |ops: &[Op]| {
            let reports = run(ops, config.clone(), &IMAGES).reports;
            reports.iter().any(|report| report.kind == kind)
        };
        let small = shrink(&ops, fails);
        assert!(fails(&small) && small.len() <= 20, "seed {seed}: {small:#?}");
        sizes.push(small.len());
    }
    sizes.sort_unstable();
    assert!(sizes.len() > 25, "{sizes:?}");
    assert!(sizes[sizes.len() / 2] <= 8, "{sizes:?}");
}

/// The host gives freed memory out again at once, most often.
#[test]
fn pinned_memory_that_was_freed_is_no_leak_at_its_old_address() {
    let mut ops = Vec::new();
    for host in 1..20 {
        ops.push(Op::HostMalloc { host, size: 300 });
        ops.push(Op::HostFree { host });
    }
    ops.push(Op::HostMalloc { host: 20, size: 300 });
    let last = ops.len() - 1;
    assert_eq!(run(&ops, machine(0), &IMAGES).leaks, [last]);
}
