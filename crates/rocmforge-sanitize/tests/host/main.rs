//! Host programs with one fault each, and the same programs without it. They call HIP as a C program does.
//!
//! The faulty lines are marked: `FAULT: Kind` must be reported of the call on that line under every schedule, `ALSO: Kind`
//! may be. Nothing else may be reported, and nothing at all of the corrected program.

#![allow(
    unused_must_use,
    reason = "a C program that looks at no status: the reports say what is wrong"
)]

mod bounds;
mod launches;
mod leaks;
mod lifetime;
mod machine;
mod ordering;

use machine::Host;
use rocmforge_amdgcn::Tools;
use rocmforge_memory::Bytes;
use rocmforge_sim::{CardConfig, HipVersion, Report, Schedule, SimConfig};
use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A program with a fault, and the same without.
pub(crate) struct Program {
    name: &'static str,
    source: &'static str,
    faulty: fn(&Host),
    correct: fn(&Host),
    /// The fault is one in HIP 6 and 7, with and without the accidents of today's implementation; or only without.
    strict_only: bool,
}

/// `programs! { "this_file.rs"; double_free, double_free_correct; ... }`
macro_rules! programs {
    ($source:literal; $($faulty:ident, $correct:ident $(, $strict:ident)?;)*) => {
        pub(crate) const PROGRAMS: &[crate::Program] = &[$(crate::Program {
            name: stringify!($faulty),
            source: include_str!($source),
            faulty: $faulty,
            correct: $correct,
            strict_only: false $(|| stringify!($strict).len() == 6)?,
        }),*];
    };
}
pub(crate) use programs;

/// A line marked with a kind, and whether it must be reported.
type Marker = (u32, String, bool);

impl Program {
    /// The marked lines of the faulty function.
    fn markers(&self) -> Vec<Marker> {
        let start = format!("fn {}(", self.name);
        let mut markers = Vec::new();
        let lines = self.source.lines().enumerate();
        for (index, line) in lines.skip_while(|(_, line)| !line.starts_with(&start)) {
            if line == "}" {
                break;
            }
            let words: Vec<&str> = line.split_whitespace().collect();
            for pair in words.windows(2) {
                if matches!(pair[0], "FAULT:" | "ALSO:") {
                    markers.push((index as u32 + 1, pair[1].to_owned(), pair[0] == "FAULT:"));
                }
            }
        }
        assert!(markers.iter().any(|m| m.2), "{} marks no fault", self.name);
        markers
    }
}

fn all_programs() -> impl Iterator<Item = &'static Program> {
    [
        bounds::PROGRAMS,
        launches::PROGRAMS,
        leaks::PROGRAMS,
        lifetime::PROGRAMS,
        ordering::PROGRAMS,
    ]
    .into_iter()
    .flatten()
}

fn schedules(seeds: u64) -> Vec<Schedule> {
    let mut all = vec![Schedule::Lazy, Schedule::Eager, Schedule::Reverse];
    all.extend((0..seeds).map(Schedule::Random));
    all.extend((0..seeds / 2).map(|seed| Schedule::Pct { seed, depth: 3 }));
    all
}

fn config(schedule: Schedule, strict: bool, hip_version: HipVersion) -> SimConfig {
    let card = |pci: &str| CardConfig {
        pci: pci.to_owned(),
        ..CardConfig::with_vram(Bytes(64 << 20))
    };
    SimConfig {
        cards: vec![card("0000:03:00.0"), card("0000:04:00.0")],
        schedule,
        strict,
        hip_version,
        tools: Tools::all(),
        instruction_budget: 10_000,
        ..SimConfig::default()
    }
}

/// Runs a program; what it leaves behind is reported too.
fn run(program: fn(&Host), config: SimConfig) -> (Host, Vec<Report>) {
    let host = Host::new(config);
    program(&host);
    let mut reports = host.sim.take_reports();
    reports.extend(host.sim.leaks());
    (host, reports)
}

/// Every configuration a program runs under, with its name.
fn configs(seeds: u64) -> Vec<(String, SimConfig)> {
    let mut all = Vec::new();
    for schedule in schedules(seeds) {
        for (strict, version) in [
            (true, HipVersion::Hip6),
            (false, HipVersion::Hip6),
            (true, HipVersion::Hip7),
        ] {
            let name = format!("{schedule:?} strict {strict} {version:?}");
            all.push((name, config(schedule, strict, version)));
        }
    }
    all
}

/// The lines of a report's sides: of the calls, and of host accesses.
fn sides(host: &Host, report: &Report) -> Vec<Option<u32>> {
    let line = |call, frames: &[rocmforge_amdgcn::Frame]| {
        let access = frames.iter().find(|frame| frame.file.ends_with(".rs"));
        access.map(|frame| frame.line).or_else(|| host.line(call))
    };
    let other = report.other.as_ref().map(|other| line(other.call, &other.frames));
    std::iter::once(line(report.call, &report.frames))
        .chain(other)
        .collect()
}

fn judge(program: &Program, host: &Host, reports: &[Report]) -> Vec<String> {
    let markers = program.markers();
    let mut wrong = Vec::new();
    let mut hit = BTreeSet::new();
    for report in reports {
        let kind = format!("{:?}", report.kind);
        for line in sides(host, report) {
            let marker = markers.iter().find(|(at, what, _)| Some(*at) == line && *what == kind);
            match marker {
                Some((at, what, _)) => {
                    hit.insert((*at, what.as_str()));
                }
                None => wrong.push(format!("line {line:?} is not marked {kind}: {report}")),
            }
        }
    }
    for (line, kind, _) in markers.iter().filter(|marker| marker.2) {
        if !hit.contains(&(*line, kind.as_str())) {
            wrong.push(format!("{kind} in line {line} is not reported"));
        }
    }
    wrong
}

/// Runs every program on all processors and gives what went wrong.
fn in_parallel(work: impl Fn(&Program) -> Vec<String> + Sync) -> Vec<String> {
    let programs: Vec<&Program> = all_programs().collect();
    let next = AtomicUsize::new(0);
    let wrong: Mutex<Vec<String>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    wrong.lock().unwrap().extend(work(program));
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    wrong
}

#[test]
fn every_fault_is_found_at_its_line_under_every_schedule() {
    let wrong = in_parallel(|program| {
        for (name, config) in configs(10) {
            if program.strict_only && !config.strict {
                continue;
            }
            let judged = std::panic::catch_unwind(|| {
                let (host, reports) = run(program.faulty, config);
                judge(program, &host, &reports)
            });
            let problems = judged.unwrap_or_else(|_| vec!["panicked".to_owned()]);
            if !problems.is_empty() {
                return vec![format!("{} under {name}: {}", program.name, problems.join("\n  "))];
            }
        }
        Vec::new()
    });
    assert!(wrong.is_empty(), "{} programs:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_corrected_program_gives_a_report_under_any_schedule() {
    let seeds = std::env::var("ROCMFORGE_SANITIZE_SEEDS").map_or(120, |n| n.parse().expect("a number of seeds"));
    let wrong = in_parallel(|program| {
        // Three configurations for each schedule, and half as many of the second kind of seeded ones.
        for (name, config) in configs(seeds * 2 / 9) {
            let (_, reports) = run(program.correct, config);
            if let Some(report) = reports.first() {
                return vec![format!("{} under {name}: {report}", program.name)];
            }
        }
        Vec::new()
    });
    assert!(wrong.is_empty(), "{} programs:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn there_are_at_least_forty() {
    let names: BTreeSet<&str> = all_programs().map(|program| program.name).collect();
    assert_eq!(names.len(), all_programs().count(), "each has a name of its own");
    assert!(names.len() >= 40, "{}", names.len());
}
