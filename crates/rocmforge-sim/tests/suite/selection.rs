//! Launches that are not selected: they run as others do, and what is found in them is counted.

use rocmforge_amdgcn::Tools;
use rocmforge_hip_sys::{hipError_t, hipErrorIllegalAddress, hipSuccess};
use rocmforge_sim::program::{Arg, Name, Op, run};
use rocmforge_sim::{LaunchSelection, NameFilter, Report, ReportKind, Schedule, SimConfig};

const IMAGES: [&[u8]; 1] = [include_bytes!("../kernels/steps-gfx1100.co")];
const FILL: Name = 0;
const ADD: Name = 1;
const SIZE: usize = 256;

fn launch(function: Name, args: Vec<Arg>, stream: Name) -> Op {
    Op::Launch {
        function,
        grid: [2, 1, 1],
        block: [32, 1, 1],
        args,
        stream,
    }
}

fn fill(buffer: Name, elements: u32, stream: Name) -> Op {
    launch(
        FILL,
        vec![Arg::Buffer(buffer, 0), Arg::U32(1), Arg::U32(elements)],
        stream,
    )
}

/// Adds a buffer to itself.
fn add(from: Name, to: Name, stream: Name) -> Op {
    let buffers = [from, from, to].map(|buffer| Arg::Buffer(buffer, 0));
    launch(ADD, [&buffers[..], &[Arg::U32(64)]].concat(), stream)
}

fn only(kernel: &str) -> LaunchSelection {
    LaunchSelection {
        names: vec![NameFilter::Exact(kernel.to_owned())],
        ..LaunchSelection::default()
    }
}

fn config(selection: LaunchSelection) -> SimConfig {
    SimConfig {
        tools: Tools::all(),
        selection,
        ..SimConfig::default()
    }
}

/// Runs a program over buffers 1 to 3 and streams 1 and 2, and waits. What is reported, what the wait answers, and buffer 3.
fn check(program: &[Op], config: SimConfig) -> (Vec<Report>, hipError_t, Vec<u8>) {
    let mut ops = vec![Op::Load { module: 0, image: 0 }];
    for (function, kernel) in [(FILL, "fill"), (ADD, "add")] {
        ops.push(Op::Function {
            function,
            module: 0,
            kernel,
        });
    }
    ops.extend([1, 2].map(|stream| Op::Stream {
        stream,
        blocking: false,
    }));
    ops.extend([1, 2, 3].map(|buffer| Op::Malloc { buffer, size: SIZE }));
    ops.extend(program.iter().cloned());
    ops.push(Op::SyncDevice);
    let wait = ops.len() - 1;
    ops.push(Op::HostVec { host: 1, size: SIZE });
    ops.push(Op::DownloadSync {
        buffer: 3,
        host: 1,
        at: 0,
        size: SIZE,
    });
    let mut ran = run(&ops, config, &IMAGES);
    (
        ran.reports,
        ran.statuses[wait],
        ran.memory.remove(&1).unwrap_or_default(),
    )
}

fn kinds(reports: &[Report]) -> Vec<(ReportKind, Option<&str>)> {
    reports
        .iter()
        .map(|report| (report.kind, report.kernel.as_deref()))
        .collect()
}

#[test]
fn what_an_unselected_launch_has_written_counts_as_written() {
    let program = [fill(1, 64, 1), add(1, 3, 1)];
    let (reports, status, sums) = check(&program, config(only("add")));
    assert_eq!((kinds(&reports), status), (vec![], hipSuccess));
    let expected: Vec<u8> = (0..64u32).flat_map(|i| (2 * (1 + i)).to_le_bytes()).collect();
    assert_eq!(sums, expected);
}

#[test]
fn findings_of_an_unselected_launch_are_not_reported_and_do_not_stop_it() {
    // Nobody has written buffer 1.
    let program = [add(1, 2, 1), add(1, 3, 1), fill(3, 64, 1)];
    let limited = |selection| SimConfig {
        max_faults: 2,
        ..config(selection)
    };
    let (reports, status, _) = check(&program, limited(LaunchSelection::default()));
    assert_eq!(kinds(&reports), [(ReportKind::Uninitialised, Some("add")); 2]);
    assert_ne!(status, hipSuccess, "the first launch was stopped");
    let (reports, status, filled) = check(&program, limited(only("fill")));
    assert_eq!((kinds(&reports), status), (vec![], hipSuccess));
    assert_eq!(filled[..8], [1, 0, 0, 0, 2, 0, 0, 0]);
    // The second of the two: both of its reads are found, at the instructions at which the first would have been.
    let second = LaunchSelection { skip: 1, ..only("add") };
    let (reports, ..) = check(&program, config(second));
    assert_eq!(kinds(&reports), [(ReportKind::Uninitialised, Some("add")); 2]);
    assert!(reports.iter().all(|report| report.call == reports[0].call));
}

#[test]
fn launches_count_in_the_order_of_their_calls() {
    // Under `Reverse` the second stream runs first.
    let program = [add(2, 3, 1), add(2, 1, 2)];
    let calls = |schedule, selection| {
        let config = SimConfig {
            schedule,
            ..config(selection)
        };
        let (reports, ..) = check(&program, config);
        let mut calls: Vec<u64> = reports.iter().map(|report| report.call).collect();
        calls.sort_unstable();
        calls.dedup();
        calls
    };
    for schedule in [Schedule::Lazy, Schedule::Eager, Schedule::Reverse] {
        let all = calls(schedule, LaunchSelection::default());
        assert_eq!(all.len(), 2);
        for skip in [0, 1] {
            let selection = LaunchSelection {
                skip,
                count: 1,
                ..only("add")
            };
            assert_eq!(calls(schedule, selection), [all[skip as usize]], "{schedule:?}");
        }
    }
}

#[test]
fn a_race_is_reported_if_one_of_its_launches_is_selected() {
    let program = [fill(1, 64, 1), Op::SyncDevice, add(1, 3, 1), fill(1, 64, 2)];
    let race_of = |selection| {
        let (reports, ..) = check(&program, config(selection));
        assert!(
            reports.iter().all(|report| report.kind == ReportKind::Race),
            "{reports:#?}"
        );
        !reports.is_empty()
    };
    assert!(race_of(LaunchSelection::default()));
    assert!(race_of(only("add")));
    assert!(race_of(only("fill")));
    assert!(!race_of(only("count")));
}

#[test]
fn a_race_that_was_not_reported_is_reported_of_a_later_launch() {
    let mut program = vec![fill(1, 64, 1), Op::SyncDevice];
    for _ in 0..2 {
        program.extend([add(1, 3, 1), fill(1, 64, 2), Op::SyncDevice]);
    }
    let second = LaunchSelection { skip: 1, ..only("add") };
    let (reports, ..) = check(&program, config(second));
    assert!(!reports.is_empty());
}

#[test]
fn what_stops_the_card_is_reported_of_every_launch() {
    let program = [fill(1, 65, 1), add(1, 3, 1)];
    let program = program.map(|op| match op {
        Op::Launch {
            function,
            block,
            args,
            stream,
            ..
        } => Op::Launch {
            function,
            grid: [3, 1, 1],
            block,
            args,
            stream,
        },
        other => other,
    });
    let (reports, status, _) = check(&program, config(only("add")));
    assert_eq!(kinds(&reports), [(ReportKind::OutOfBounds, Some("fill"))]);
    assert_eq!(status, hipErrorIllegalAddress);
}
