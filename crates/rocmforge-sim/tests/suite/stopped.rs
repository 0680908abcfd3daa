//! Launches that are stopped because they have as many faults as are kept of one launch.

use rocmforge_amdgcn::Tools;
use rocmforge_hip_sys::{hipErrorLaunchFailure, hipSuccess};
use rocmforge_sim::program::{Arg, Name, Op, Run, run};
use rocmforge_sim::{ReportKind, SimConfig};

const IMAGES: [&[u8]; 1] = [include_bytes!("../kernels/steps-gfx1100.co")];
const ADD: Name = 0;

/// Adds buffers 1 and 2, which nobody has written, into 3: two reads are faults, and neither stops the card.
fn add_twice(max_faults: usize) -> Run {
    let mut ops = vec![
        Op::Load { module: 0, image: 0 },
        Op::Function {
            function: ADD,
            module: 0,
            kernel: "add",
        },
        Op::Stream {
            stream: 1,
            blocking: false,
        },
    ];
    ops.extend([1, 2, 3].map(|buffer| Op::Malloc { buffer, size: 256 }));
    for _ in 0..2 {
        let mut args: Vec<Arg> = [1, 2, 3].map(|buffer| Arg::Buffer(buffer, 0)).to_vec();
        args.push(Arg::U32(64));
        ops.push(Op::Launch {
            function: ADD,
            grid: [2, 1, 1],
            block: [32, 1, 1],
            args,
            stream: 1,
        });
    }
    ops.push(Op::SyncDevice);
    let config = SimConfig {
        max_faults,
        tools: Tools::default(),
        ..SimConfig::default()
    };
    run(&ops, config, &IMAGES)
}

#[test]
fn the_last_report_of_a_launch_that_was_stopped_says_so_and_nothing_runs_after_it() {
    let whole = add_twice(64);
    assert_eq!(whole.reports.len(), 4, "two of each launch: {:?}", whole.reports);
    assert!(whole.reports.iter().all(|report| !report.stopped));
    let waits = |run: &Run| run.statuses.last().copied();
    assert_eq!(
        waits(&whole),
        Some(hipSuccess),
        "reads of what nobody has written stop no card"
    );
    for max_faults in [1, 2] {
        let run = add_twice(max_faults);
        // Both reads are done before anybody looks at the limit.
        let stopped: Vec<bool> = run.reports.iter().map(|report| report.stopped).collect();
        assert_eq!(
            stopped,
            [false, true],
            "the second launch did not run: {:?}",
            run.reports
        );
        let last = run.reports.last().expect("one at least");
        assert_eq!(last.kind, ReportKind::Uninitialised);
        assert!(last.to_string().contains("the launch was stopped here"), "{last}");
        assert_eq!(waits(&run), Some(hipErrorLaunchFailure));
    }
}
