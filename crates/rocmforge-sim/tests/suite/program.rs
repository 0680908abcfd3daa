//! Host programs as data are safe code: whatever they say, they stay in their own memory.

use rocmforge_hip_sys::*;
use rocmforge_sim::program::{Arg, Op, Task, run};
use rocmforge_sim::{ReportKind, Schedule, SimConfig};
use std::time::Duration;

const IMAGE: &[u8] = include_bytes!("../kernels/steps-gfx1100.co");

fn strict() -> SimConfig {
    SimConfig {
        schedule: Schedule::Lazy,
        strict: true,
        ..SimConfig::default()
    }
}

#[test]
fn a_copy_beyond_host_memory_is_refused() {
    const MUCH: usize = 64 << 20;
    let copies = [
        Op::Upload {
            host: 0,
            buffer: 0,
            at: 0,
            size: MUCH,
            stream: 0,
        },
        Op::UploadSync {
            host: 0,
            buffer: 0,
            at: 0,
            size: MUCH,
        },
        Op::Download {
            buffer: 0,
            host: 0,
            at: 0,
            size: MUCH,
            stream: 0,
        },
        Op::DownloadSync {
            buffer: 0,
            host: 0,
            at: 0,
            size: MUCH,
        },
    ];
    for memory in [Op::HostVec { host: 0, size: 64 }, Op::HostMalloc { host: 0, size: 64 }] {
        let mut ops = vec![memory, Op::Malloc { buffer: 0, size: MUCH }];
        ops.extend(copies.clone());
        assert_eq!(run(&ops, strict(), &[]).statuses[2..], [hipErrorInvalidValue; 4]);
    }
}

#[test]
fn a_launch_with_too_few_arguments_is_refused() {
    let ops = [
        Op::Load { module: 0, image: 0 },
        Op::Function {
            function: 0,
            module: 0,
            kernel: "add",
        },
        Op::Launch {
            function: 0,
            grid: [1; 3],
            block: [1; 3],
            args: vec![Arg::U32(1)],
            stream: 0,
        },
    ];
    let run = run(&ops, strict(), &[IMAGE]);
    assert_eq!(run.statuses[2], hipErrorInvalidValue);
    assert_eq!(run.reports[0].kind, ReportKind::BadLaunch, "{}", run.reports[0]);
}

#[test]
fn an_image_that_is_cut_off_is_refused() {
    for length in (0..IMAGE.len()).step_by(97) {
        let run = run(&[Op::Load { module: 0, image: 0 }], strict(), &[&IMAGE[..length]]);
        assert_eq!(run.statuses, [hipErrorInvalidImage], "{length}");
    }
}

#[test]
fn memory_that_goes_under_queued_work_is_not_touched() {
    // A host function, and copies to memory that loses its name.
    let pinned = [
        Op::HostMalloc { host: 0, size: 1 << 20 },
        Op::HostFunction {
            stream: 0,
            task: Task::Writes(0),
        },
        Op::HostFree { host: 0 },
        Op::SyncDevice,
    ];
    assert_eq!(run(&pinned, strict(), &[]).statuses, [hipSuccess; 4]);
    let own = [
        Op::HostVec { host: 0, size: 1 << 20 },
        Op::Malloc {
            buffer: 0,
            size: 1 << 20,
        },
        Op::FillSync {
            buffer: 0,
            at: 0,
            size: 1 << 20,
        },
        Op::Download {
            buffer: 0,
            host: 0,
            at: 0,
            size: 1 << 20,
            stream: 0,
        },
        Op::HostMalloc { host: 0, size: 64 },
        Op::SyncDevice,
        Op::Free { buffer: 0 },
    ];
    let run = run(&own, strict(), &[]);
    assert_eq!((run.statuses, run.reports.len()), (vec![hipSuccess; 7], 0));
}

/// Longer than a query waits for a host function by itself.
#[test]
fn polling_a_stream_waits_for_a_slow_host_function() {
    let ops = [
        Op::Stream {
            stream: 1,
            blocking: false,
        },
        Op::HostFunction {
            stream: 1,
            task: Task::Takes(Duration::from_millis(300)),
        },
        Op::PollStream { stream: 1 },
        Op::DestroyStream { stream: 1 },
    ];
    let run = run(&ops, SimConfig::default(), &[]);
    assert_eq!(run.statuses, [hipSuccess; 4]);
}
