//! K: what a capturing stream forbids. And what becomes of captures and graphs, for which the table has no rows.

use super::modes::*;
use hip::*;
use rocmforge_sim::{ReportKind, Schedule, SimHost};
use std::ptr::null_mut;

rows! {
    k01_synchronize_while_capturing,
    k02_query_while_capturing,
    k03_device_synchronize_while_capturing,
    k04_events_recorded_while_capturing,
    k05_malloc_while_capturing,
    k06_copies_and_fills_while_capturing,
}

const MODES: [hipStreamCaptureMode; 3] = [
    hipStreamCaptureModeGlobal,
    hipStreamCaptureModeThreadLocal,
    hipStreamCaptureModeRelaxed,
];

/// A stream that captures.
fn capturing(sim: &SimHost, mode: hipStreamCaptureMode) -> hipStream_t {
    let stream = stream(sim);
    begin(sim, stream, mode);
    stream
}

fn begin(sim: &SimHost, stream: hipStream_t, mode: hipStreamCaptureMode) {
    answers!(hipSuccess, sim.hipStreamBeginCapture(stream, mode));
    is_capturing(sim, stream, hipStreamCaptureStatusActive);
}

#[track_caller]
fn is_capturing(sim: &SimHost, stream: hipStream_t, expected: hipStreamCaptureStatus) {
    let mut status = 99;
    answers!(hipSuccess, sim.hipStreamIsCapturing(stream, &raw mut status));
    assert_eq!(status, expected);
}

/// Ends a capture that a forbidden call has invalidated.
#[track_caller]
fn ends_invalidated(sim: &SimHost, stream: hipStream_t) {
    is_capturing(sim, stream, hipStreamCaptureStatusInvalidated);
    let mut graph = null_mut();
    answers!(
        hipErrorStreamCaptureInvalidated,
        sim.hipStreamEndCapture(stream, &raw mut graph)
    );
    assert!(graph.is_null());
}

#[track_caller]
fn end(sim: &SimHost, stream: hipStream_t) -> hipGraph_t {
    let mut graph = null_mut();
    answers!(hipSuccess, sim.hipStreamEndCapture(stream, &raw mut graph));
    is_capturing(sim, stream, hipStreamCaptureStatusNone);
    graph
}

#[track_caller]
fn instantiate(sim: &SimHost, graph: hipGraph_t) -> hipGraphExec_t {
    let mut exec = null_mut();
    answers!(
        hipSuccess,
        sim.hipGraphInstantiate(&raw mut exec, graph, null_mut(), null_mut(), 0)
    );
    exec
}

fn k01_synchronize_while_capturing(mode: HipVersion) {
    for capture in MODES {
        let sim = machine(mode);
        let stream = capturing(&sim, capture);
        answers!(hipErrorStreamCaptureUnsupported, sim.hipStreamSynchronize(stream));
        ends_invalidated(&sim, stream);
    }
}

fn k02_query_while_capturing(mode: HipVersion) {
    for capture in MODES {
        let sim = machine(mode);
        let stream = capturing(&sim, capture);
        answers!(hipErrorStreamCaptureUnsupported, sim.hipStreamQuery(stream));
        ends_invalidated(&sim, stream);
    }
}

fn k03_device_synchronize_while_capturing(mode: HipVersion) {
    for capture in MODES {
        let sim = machine(mode);
        let stream = capturing(&sim, capture);
        answers!(hipErrorStreamCaptureUnsupported, sim.hipDeviceSynchronize());
        ends_invalidated(&sim, stream);
    }
}

fn k04_events_recorded_while_capturing(mode: HipVersion) {
    for wait in [false, true] {
        let sim = machine(mode);
        let (stream, event) = (capturing(&sim, hipStreamCaptureModeRelaxed), event(&sim));
        answers!(hipSuccess, sim.hipEventRecord(event, stream));
        if wait {
            answers!(hipErrorCapturedEvent, sim.hipEventSynchronize(event));
        } else {
            answers!(hipErrorCapturedEvent, sim.hipEventQuery(event));
        }
        ends_invalidated(&sim, stream);
    }
}

fn k05_malloc_while_capturing(mode: HipVersion) {
    for capture in [hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal] {
        let sim = machine(mode);
        let (stream, mut ptr) = (capturing(&sim, capture), null_mut());
        answers!(hipErrorStreamCaptureUnsupported, sim.hipMalloc(&raw mut ptr, N));
        ends_invalidated(&sim, stream);
    }
    // A relaxed capture minds nobody's business but its own.
    let sim = machine(mode);
    let stream = capturing(&sim, hipStreamCaptureModeRelaxed);
    malloc(&sim, N);
    end(&sim, stream);
}

fn k06_copies_and_fills_while_capturing(mode: HipVersion) {
    for capture in [hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal] {
        for fill in [false, true] {
            let sim = machine(mode);
            let (ptr, mut bytes) = (malloc(&sim, N), [0u8; N]);
            let stream = capturing(&sim, capture);
            if fill {
                answers!(hipErrorStreamCaptureImplicit, sim.hipMemset(ptr, 0, N));
            } else {
                answers!(
                    hipErrorStreamCaptureImplicit,
                    sim.hipMemcpy(ptr, bytes.as_mut_ptr().cast(), N, hipMemcpyHostToDevice)
                );
            }
            ends_invalidated(&sim, stream);
        }
    }
}

#[test]
fn a_graph_runs_when_it_is_launched_and_as_often() {
    let sim = machine(Hip6);
    let (stream, x, y) = (stream(&sim), filled(&sim, N, 1), filled(&sim, N, 2));
    begin(&sim, stream, hipStreamCaptureModeRelaxed);
    answers!(hipSuccess, sim.hipMemcpyAsync(y, x, N, hipMemcpyDeviceToDevice, stream));
    answers!(hipSuccess, sim.hipMemsetAsync(x, 3, N, stream));
    let graph = end(&sim, stream);
    assert_eq!((download(&sim, x, N), download(&sim, y, N)), (vec![1; N], vec![2; N]));
    let exec = instantiate(&sim, graph);
    answers!(hipSuccess, sim.hipGraphDestroy(graph));
    for expected in [1, 3] {
        answers!(hipSuccess, sim.hipGraphLaunch(exec, stream));
        answers!(hipSuccess, sim.hipStreamSynchronize(stream));
        assert_eq!(download(&sim, y, N), vec![expected; N]);
    }
    answers!(hipSuccess, sim.hipGraphExecDestroy(exec));
    clean(&sim);
    assert_eq!(sim.leaks().len(), 3, "the stream and two allocations");
    answers!(hipErrorInvalidValue, sim.hipGraphLaunch(exec, stream));
    only_report(&sim, ReportKind::StaleHandle);
    answers!(hipErrorInvalidValue, sim.hipGraphDestroy(graph));
    only_report(&sim, ReportKind::StaleHandle);
}

/// Two branches: one fills x, the other y; joined, z gets a copy of x and then of y.
fn fork(sim: &SimHost, join: bool) -> (hipStream_t, hipStream_t, [*mut std::ffi::c_void; 3]) {
    let (first, second) = (stream(sim), stream(sim));
    let [x, y, z] = [malloc(sim, N), malloc(sim, N), malloc(sim, 2 * N)];
    let (forked, joined) = (event(sim), event(sim));
    begin(sim, first, hipStreamCaptureModeRelaxed);
    answers!(hipSuccess, sim.hipEventRecord(forked, first));
    answers!(hipSuccess, sim.hipStreamWaitEvent(second, forked, 0));
    is_capturing(sim, second, hipStreamCaptureStatusActive);
    answers!(hipSuccess, sim.hipMemsetAsync(x, 5, N, first));
    answers!(hipSuccess, sim.hipMemsetAsync(y, 6, N, second));
    if join {
        answers!(hipSuccess, sim.hipEventRecord(joined, second));
        answers!(hipSuccess, sim.hipStreamWaitEvent(first, joined, 0));
    }
    answers!(hipSuccess, sim.hipMemcpyAsync(z, x, N, hipMemcpyDeviceToDevice, first));
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(at(z, N), y, N, hipMemcpyDeviceToDevice, first)
    );
    (first, second, [x, y, z])
}

#[test]
fn branches_of_a_graph_run_in_any_order() {
    let mut hashes = std::collections::BTreeSet::new();
    for seed in 0..32 {
        let sim = machine_with(Hip6, |config| {
            (config.seed, config.schedule, config.strict) = (seed, Schedule::Random(0), true);
        });
        let (first, second, [.., z]) = fork(&sim, true);
        let graph = end(&sim, first);
        is_capturing(&sim, second, hipStreamCaptureStatusNone);
        let exec = instantiate(&sim, graph);
        answers!(hipSuccess, sim.hipGraphLaunch(exec, second));
        answers!(hipSuccess, sim.hipStreamSynchronize(second));
        let expected = [[5u8; N], [6u8; N]].concat();
        assert_eq!(download(&sim, z, 2 * N), expected);
        clean(&sim);
        answers!(hipSuccess, sim.hipGraphExecDestroy(exec));
        clean(&sim);
        hashes.insert(sim.trace_hash());
    }
    assert!(hashes.len() > 1, "every seed ran the branches in the same order");
}

#[test]
fn a_capture_with_work_of_a_stream_that_nobody_waits_for_does_not_end() {
    let sim = machine(Hip6);
    let (first, second, _) = fork(&sim, false);
    let (mut graph, joined) = (null_mut(), event(&sim));
    answers!(
        hipErrorStreamCaptureUnjoined,
        sim.hipStreamEndCapture(first, &raw mut graph)
    );
    answers!(
        hipErrorStreamCaptureUnmatched,
        sim.hipStreamEndCapture(second, &raw mut graph)
    );
    is_capturing(&sim, first, hipStreamCaptureStatusActive);
    answers!(hipSuccess, sim.hipEventRecord(joined, second));
    answers!(hipSuccess, sim.hipStreamWaitEvent(first, joined, 0));
    let graph = end(&sim, first);
    answers!(hipSuccess, sim.hipGraphDestroy(graph));
    clean(&sim);
}

#[test]
fn a_branch_that_nothing_joins_is_a_race() {
    let sim = machine_with(Hip6, |config| config.tools.racecheck = true);
    let (first, second, _) = fork(&sim, false);
    let joined = event(&sim);
    // Too late: the copy of y was captured before.
    answers!(hipSuccess, sim.hipEventRecord(joined, second));
    answers!(hipSuccess, sim.hipStreamWaitEvent(first, joined, 0));
    let exec = instantiate(&sim, end(&sim, first));
    answers!(hipSuccess, sim.hipGraphLaunch(exec, first));
    answers!(hipSuccess, sim.hipStreamSynchronize(first));
    let reports = sim.take_reports();
    assert!(
        reports.iter().any(|report| report.kind == ReportKind::Race),
        "{reports:#?}"
    );
}

#[test]
fn a_capture_that_ended_badly_leaves_its_streams_to_the_next_one() {
    let sim = machine(Hip6);
    let (first, second, _) = fork(&sim, true);
    answers!(hipErrorStreamCaptureUnsupported, sim.hipStreamQuery(second));
    answers!(
        hipErrorStreamCaptureInvalidated,
        sim.hipMemsetAsync(malloc(&sim, N), 0, N, first)
    );
    ends_invalidated(&sim, first);
    // The first stream works, but cannot be waited for; the second still captures.
    keep_busy(&sim, first);
    answers!(hipErrorStreamCaptureUnsupported, sim.hipStreamSynchronize(first));
    clean(&sim);
    answers!(
        hipErrorStreamCaptureInvalidated,
        sim.hipMemsetAsync(malloc(&sim, N), 0, N, second)
    );
    only_report(&sim, ReportKind::InvalidCall);
    begin(&sim, first, hipStreamCaptureModeRelaxed);
    answers!(hipSuccess, sim.hipGraphDestroy(end(&sim, first)));
    for stream in [first, second] {
        is_capturing(&sim, stream, hipStreamCaptureStatusNone);
        keep_busy(&sim, stream);
        answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    }
    clean(&sim);
}

#[test]
fn captures_do_not_wait_for_what_is_outside() {
    let sim = machine(Hip6);
    let (inside, outside, mark) = (stream(&sim), stream(&sim), event(&sim));
    keep_busy(&sim, outside);
    answers!(hipSuccess, sim.hipEventRecord(mark, outside));
    begin(&sim, inside, hipStreamCaptureModeRelaxed);
    answers!(hipErrorStreamCaptureIsolation, sim.hipStreamWaitEvent(inside, mark, 0));
    ends_invalidated(&sim, inside);
    // AMD refuses to wait for an event of a stream that captures, though it was recorded before.
    let (earlier, begun) = (event(&sim), stream(&sim));
    answers!(hipSuccess, sim.hipEventRecord(earlier, begun));
    begin(&sim, begun, hipStreamCaptureModeRelaxed);
    answers!(
        hipErrorStreamCaptureIsolation,
        sim.hipStreamWaitEvent(outside, earlier, 0)
    );
    end(&sim, begun);
    answers!(hipSuccess, sim.hipStreamWaitEvent(outside, earlier, 0));
    // Two captures do not mix.
    let (a, b, of_a) = (stream(&sim), stream(&sim), event(&sim));
    begin(&sim, a, hipStreamCaptureModeRelaxed);
    begin(&sim, b, hipStreamCaptureModeRelaxed);
    answers!(
        hipErrorIllegalState,
        sim.hipStreamBeginCapture(b, hipStreamCaptureModeRelaxed)
    );
    answers!(hipSuccess, sim.hipEventRecord(of_a, a));
    answers!(hipErrorStreamCaptureMerge, sim.hipStreamWaitEvent(b, of_a, 0));
    ends_invalidated(&sim, a);
    ends_invalidated(&sim, b);
    clean(&sim);
}

#[test]
fn a_capture_begins_and_ends_where_it_may() {
    let sim = machine(Hip6);
    let (stream, mut graph) = (stream(&sim), null_mut());
    answers!(
        hipErrorStreamCaptureUnsupported,
        sim.hipStreamBeginCapture(null_mut(), hipStreamCaptureModeGlobal)
    );
    answers!(hipErrorInvalidValue, sim.hipStreamBeginCapture(stream, 3));
    answers!(hipErrorIllegalState, sim.hipStreamEndCapture(stream, &raw mut graph));
    sim.as_thread(1, || begin(&sim, stream, hipStreamCaptureModeThreadLocal));
    sim.as_thread(2, || {
        malloc(&sim, N);
        answers!(
            hipErrorStreamCaptureWrongThread,
            sim.hipStreamEndCapture(stream, &raw mut graph)
        );
    });
    sim.as_thread(1, || end(&sim, stream));
    clean(&sim);
}

#[test]
fn an_executable_graph_becomes_another_of_the_same_shape() {
    let sim = machine_with(Hip6, |config| config.strict = true);
    let (stream, x, y) = (stream(&sim), filled(&sim, N, 1), filled(&sim, N, 2));
    let capture = |fills: &[(*mut std::ffi::c_void, i32)], copy: bool| {
        begin(&sim, stream, hipStreamCaptureModeRelaxed);
        for (ptr, value) in fills {
            answers!(hipSuccess, sim.hipMemsetAsync(*ptr, *value, N, stream));
        }
        if copy {
            answers!(hipSuccess, sim.hipMemcpyAsync(y, x, N, hipMemcpyDeviceToDevice, stream));
        }
        end(&sim, stream)
    };
    let exec = instantiate(&sim, capture(&[(x, 4), (y, 4)], false));
    let (mut node, mut result) = (null_mut(), 99);
    let mut update = |graph, status, expected| {
        answers!(
            status,
            sim.hipGraphExecUpdate(exec, graph, &raw mut node, &raw mut result)
        );
        assert_eq!(result, expected);
    };
    update(capture(&[(y, 8), (x, 9)], false), hipSuccess, hipGraphExecUpdateSuccess);
    let failure = hipErrorGraphExecUpdateFailure;
    update(
        capture(&[(x, 4)], false),
        failure,
        hipGraphExecUpdateErrorTopologyChanged,
    );
    answers!(hipSuccess, sim.hipGraphLaunch(exec, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!((download(&sim, x, N), download(&sim, y, N)), (vec![9; N], vec![8; N]));
    update(
        capture(&[(x, 7)], true),
        failure,
        hipGraphExecUpdateErrorNodeTypeChanged,
    );
    clean(&sim);
    // Half of that update has happened, as with AMD's implementation.
    answers!(hipSuccess, sim.hipGraphLaunch(exec, stream));
    answers!(hipSuccess, sim.hipGraphExecDestroy(exec));
    only_report(&sim, ReportKind::UseAfterFree);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!((download(&sim, x, N)), vec![9; N]);
}

#[test]
fn a_graph_that_outlives_its_memory_is_reported() {
    let sim = machine(Hip6);
    let (stream, x) = (stream(&sim), malloc(&sim, N));
    begin(&sim, stream, hipStreamCaptureModeRelaxed);
    answers!(hipSuccess, sim.hipMemsetAsync(x, 3, N, stream));
    let exec = instantiate(&sim, end(&sim, stream));
    answers!(hipSuccess, sim.hipFree(x));
    answers!(hipSuccess, sim.hipGraphLaunch(exec, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    only_report(&sim, ReportKind::UseAfterFree);
}

#[test]
fn the_default_stream_is_not_asked_while_a_stream_captures_for_all_threads() {
    let sim = machine_with(Hip6, |_| {});
    let first = capturing(&sim, hipStreamCaptureModeRelaxed);
    is_capturing(&sim, null_mut(), hipStreamCaptureStatusNone);
    end(&sim, first);
    let second = capturing(&sim, hipStreamCaptureModeGlobal);
    let mut status = 99;
    answers!(
        hipErrorStreamCaptureImplicit,
        sim.hipStreamIsCapturing(null_mut(), &raw mut status)
    );
    assert_eq!(status, 99);
    is_capturing(&sim, second, hipStreamCaptureStatusActive);
    end(&sim, second);
    is_capturing(&sim, null_mut(), hipStreamCaptureStatusNone);
}
