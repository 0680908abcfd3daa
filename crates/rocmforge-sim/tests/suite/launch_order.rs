//! Launches among streams and the host: races with both places in the source, frees and recycled memory under a queued
//! launch, and pipelines that are right.

use rocmforge_amdgcn::Tools;
use rocmforge_sim::program::{Arg, Name, Op, Run, Task, run};
use rocmforge_sim::{AllocationState, ReportKind, Schedule, SimConfig};

const IMAGES: [&[u8]; 1] = [include_bytes!("../kernels/steps-gfx1100.co")];
const SIZE: usize = 256;
const FILL: Name = 0;
const ADD: Name = 1;
const COUNT: Name = 2;

fn schedules() -> Vec<Schedule> {
    let mut all = vec![Schedule::Lazy, Schedule::Eager, Schedule::Reverse];
    all.extend((0..20).map(Schedule::Random));
    all.extend((0..10).map(|seed| Schedule::Pct { seed, depth: 3 }));
    all
}

/// Runs a program with kernels and streams 1 to 3 under every schedule in a strict simulation.
fn everywhere(program: &[Op]) -> Vec<(Schedule, Run)> {
    let mut ops = vec![Op::Load { module: 0, image: 0 }];
    for (function, kernel) in ["fill", "add", "count"].into_iter().enumerate() {
        let function = function as Name;
        ops.push(Op::Function {
            function,
            module: 0,
            kernel,
        });
    }
    ops.extend([1, 2, 3].map(|stream| Op::Stream {
        stream,
        blocking: false,
    }));
    ops.extend(program.iter().cloned());
    let run = |schedule| {
        let config = SimConfig {
            schedule,
            strict: true,
            // A host function that has run would count as seen by the host.
            separate_threads: true,
            tools: Tools::all(),
            ..SimConfig::default()
        };
        (schedule, run(&ops, config, &IMAGES))
    };
    schedules().into_iter().map(run).collect()
}

fn malloc(buffer: Name) -> Op {
    Op::Malloc { buffer, size: SIZE }
}

fn set(buffer: Name, stream: Name) -> Op {
    Op::Fill {
        buffer,
        at: 0,
        size: SIZE,
        stream,
    }
}

fn launch(function: Name, args: Vec<Arg>, stream: Name) -> Op {
    Op::Launch {
        function,
        grid: [2, 1, 1],
        block: [32, 1, 1],
        args,
        stream,
    }
}

fn fill(buffer: Name, stream: Name) -> Op {
    launch(FILL, vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(64)], stream)
}

fn add(a: Name, b: Name, out: Name, stream: Name) -> Op {
    let buffers = [a, b, out].map(|buffer| Arg::Buffer(buffer, 0));
    launch(ADD, [&buffers[..], &[Arg::U32(64)]].concat(), stream)
}

fn count(from: Name, total: Name, stream: Name) -> Op {
    let args = vec![Arg::Buffer(from, 0), Arg::Buffer(total, 0), Arg::U32(64)];
    launch(COUNT, args, stream)
}

#[test]
fn two_launches_race_and_both_lines_are_named() {
    let program = [
        malloc(1),
        malloc(2),
        set(1, 1),
        Op::SyncDevice,
        fill(1, 1),
        add(1, 1, 2, 2),
        Op::SyncDevice,
    ];
    for (schedule, run) in everywhere(&program) {
        // `add` reads the buffer at two instructions.
        assert!(!run.reports.is_empty(), "{schedule:?}");
        for report in &run.reports {
            assert_eq!((report.kind, report.kernel.as_deref()), (ReportKind::Race, Some("add")));
            let other = report.other.as_ref().expect("two sides");
            assert_eq!(other.kernel.as_deref(), Some("fill"), "{report}");
            for (side, frames) in [(report.pc, &report.frames), (other.pc, &other.frames)] {
                assert!(side.is_some(), "{report}");
                assert!(
                    frames.iter().any(|f| f.file.ends_with("steps.hip") && f.line > 0),
                    "{report}"
                );
            }
            assert_eq!(report.size, SIZE as u64, "{report}");
        }
    }
}

#[test]
fn updates_by_atomics_do_not_race_with_each_other() {
    let program = |reader: Op| {
        vec![
            malloc(1),
            malloc(2),
            set(1, 1),
            set(2, 1),
            Op::SyncDevice,
            count(1, 2, 1),
            count(1, 2, 2),
            reader,
            Op::SyncDevice,
        ]
    };
    for (schedule, run) in everywhere(&program(count(1, 2, 3))) {
        assert!(run.reports.is_empty(), "{schedule:?}: {:#?}", run.reports);
    }
    for (schedule, run) in everywhere(&program(set(2, 3))) {
        assert!(run.reports.iter().all(|r| r.kind == ReportKind::Race), "{schedule:?}");
        assert_eq!(run.reports.len(), 1, "{schedule:?}: {:#?}", run.reports);
    }
}

#[test]
fn a_launch_never_runs_on_memory_that_changed_hands() {
    let stale = [
        malloc(1),
        fill(1, 1),
        Op::Free { buffer: 1 },
        malloc(2),
        set(2, 2),
        Op::SyncDevice,
        Op::HostVec { host: 1, size: SIZE },
        Op::DownloadSync {
            buffer: 2,
            host: 1,
            at: 0,
            size: SIZE,
        },
    ];
    for (schedule, run) in everywhere(&stale) {
        assert_eq!(run.reports.len(), 1, "{schedule:?}: {:#?}", run.reports);
        let report = &run.reports[0];
        assert_eq!(
            (report.kind, report.kernel.as_deref()),
            (ReportKind::UseAfterFree, Some("fill"))
        );
        let by = report.other.as_ref().expect("who freed it");
        assert_eq!(by.api, "hipFree", "{report}");
        assert!(
            run.memory[&1].iter().all(|byte| *byte == run.memory[&1][0]),
            "the successor's memory is whole"
        );
    }
    // The pointer was stale already when the launch was queued; by the time it runs, somebody else is there.
    let staler = [malloc(1), Op::Free { buffer: 1 }, fill(1, 1), malloc(2), Op::SyncDevice];
    for (schedule, run) in everywhere(&staler) {
        let report = run.reports.first().unwrap_or_else(|| panic!("{schedule:?}"));
        assert_eq!(report.kind, ReportKind::UseAfterFree, "{schedule:?}: {report}");
        let state = report.allocation.as_ref().expect("the freed allocation").state;
        assert!(matches!(state, AllocationState::Freed(_)), "{schedule:?}: {report}");
    }
}

/// Uploads, computes and downloads in turns on three streams with two sets of buffers, as double buffering does.
fn pipeline(rounds: u32) -> Vec<Op> {
    let mut ops = Vec::new();
    for slot in [0, 10] {
        ops.extend([malloc(1 + slot), malloc(2 + slot)]);
        for host in [1 + slot, 2 + slot] {
            ops.push(Op::HostMalloc { host, size: SIZE });
        }
        ops.extend([1, 2, 3].map(|event| Op::Event { event: event + slot }));
    }
    for round in 0..rounds {
        let slot = 10 * (round % 2);
        let [uploaded, computed, downloaded] = [1 + slot, 2 + slot, 3 + slot];
        let (input, output) = (1 + slot, 2 + slot);
        let record = |event, stream| Op::Record { event, stream };
        let wait = |stream, event| Op::Wait { stream, event };
        let copy = (0, SIZE);
        ops.extend([
            // The set is free when its last download has been seen.
            Op::SyncEvent { event: downloaded },
            Op::HostRead { host: output },
            Op::HostWrite { host: input },
            Op::Upload {
                host: input,
                buffer: input,
                at: copy.0,
                size: copy.1,
                stream: 1,
            },
            record(uploaded, 1),
            wait(2, uploaded),
            add(input, input, output, 2),
            record(computed, 2),
            wait(3, computed),
            Op::Download {
                buffer: output,
                host: output,
                at: copy.0,
                size: copy.1,
                stream: 3,
            },
            Op::HostFunction {
                stream: 3,
                task: Task::Reads(output),
            },
            record(downloaded, 3),
        ]);
    }
    ops.push(Op::SyncDevice);
    for slot in [0, 10] {
        ops.extend([1, 2].map(|buffer| Op::Free { buffer: buffer + slot }));
        ops.extend([1, 2].map(|host| Op::HostFree { host: host + slot }));
    }
    ops
}

#[test]
fn a_pipeline_is_clean_and_each_of_its_edges_is_needed() {
    let right = pipeline(6);
    for (schedule, run) in everywhere(&right) {
        assert!(run.reports.is_empty(), "{schedule:?}: {:#?}", run.reports);
        assert!(run.leaks.is_empty());
    }
    // Any wait between the first rounds taken away.
    let waits = right
        .iter()
        .enumerate()
        .filter(|(_, op)| matches!(op, Op::Wait { .. }) || matches!(op, Op::SyncEvent { .. }));
    // The first wait for each set comes before anything was recorded: it is not needed.
    for (index, op) in waits.filter(|(index, _)| *index > 40) {
        let mut wrong = right.clone();
        wrong.remove(index);
        for (schedule, run) in everywhere(&wrong) {
            assert!(
                run.reports.iter().any(|report| report.kind == ReportKind::Race),
                "{schedule:?} without {op:?} (operation {index})"
            );
        }
    }
}

#[test]
fn a_module_must_outlive_every_launch_of_it() {
    let on = |stream| [malloc(stream), fill(stream, stream)];
    let unloaded: Vec<Op> = [1, 2, 3]
        .into_iter()
        .flat_map(on)
        .chain([Op::Unload { module: 0 }])
        .collect();
    for (schedule, run) in everywhere(&unloaded) {
        let mut launches: Vec<u64> = run.reports.iter().map(|report| report.call).collect();
        launches.sort_unstable();
        launches.dedup();
        assert_eq!(
            (launches.len(), run.reports.len()),
            (3, 3),
            "{schedule:?}: {:#?}",
            run.reports
        );
        assert!(run.reports.iter().all(|report| report.kind == ReportKind::UseAfterFree));
    }
    let mut waited = unloaded;
    waited.insert(waited.len() - 1, Op::SyncDevice);
    for (schedule, run) in everywhere(&waited) {
        assert!(run.reports.is_empty(), "{schedule:?}: {:#?}", run.reports);
    }
}

#[test]
fn a_free_under_a_launch_is_found_without_racecheck_too() {
    let ops = [
        Op::Load { module: 0, image: 0 },
        Op::Function {
            function: FILL,
            module: 0,
            kernel: "fill",
        },
        Op::Stream {
            stream: 1,
            blocking: false,
        },
        malloc(1),
        fill(1, 1),
        Op::Free { buffer: 1 },
        Op::SyncDevice,
    ];
    for schedule in schedules() {
        let config = SimConfig {
            schedule,
            strict: true,
            ..SimConfig::default()
        };
        let reports = run(&ops, config, &IMAGES).reports;
        let found = reports.first().unwrap_or_else(|| panic!("{schedule:?}"));
        assert_eq!(
            (found.kind, found.kernel.as_deref()),
            (ReportKind::UseAfterFree, Some("fill")),
            "{found}"
        );
        let by = found.other.as_ref().expect("who freed it");
        assert_eq!(by.api, "hipFree", "{schedule:?}: {found}");
    }
}
