//! K: what a capturing stream forbids. Graphs are not supported, on purpose: a stream never captures, which is what each
//! row's test shows before the call the row is about.

use crate::modes::*;
use hip::*;
use rocmforge_sim::SimHost;
use std::ptr::null_mut;

rows! {
    k01_synchronize_while_capturing,
    k02_query_while_capturing,
    k03_device_synchronize_while_capturing,
    k04_events_recorded_while_capturing,
    k05_malloc_while_capturing,
    k06_copies_and_fills_while_capturing,
}

/// A stream that was asked to capture, and does not.
fn capturing(sim: &SimHost, mode: hipStreamCaptureMode) -> hipStream_t {
    let (stream, mut status) = (stream(sim), 99);
    answers!(hipErrorNotSupported, sim.hipStreamBeginCapture(stream, mode));
    answers!(hipErrorNotSupported, sim.hipGetLastError());
    answers!(hipSuccess, sim.hipStreamIsCapturing(stream, &raw mut status));
    assert_eq!(status, hipStreamCaptureStatusNone);
    stream
}

fn k01_synchronize_while_capturing(mode: HipVersion) {
    let sim = machine(mode);
    let stream = capturing(&sim, hipStreamCaptureModeGlobal);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
}

fn k02_query_while_capturing(mode: HipVersion) {
    let sim = machine(mode);
    let stream = capturing(&sim, hipStreamCaptureModeGlobal);
    answers!(hipSuccess, sim.hipStreamQuery(stream));
}

fn k03_device_synchronize_while_capturing(mode: HipVersion) {
    let sim = machine(mode);
    capturing(&sim, hipStreamCaptureModeGlobal);
    answers!(hipSuccess, sim.hipDeviceSynchronize());
}

fn k04_events_recorded_while_capturing(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event) = (capturing(&sim, hipStreamCaptureModeGlobal), event(&sim));
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    answers!(hipSuccess, sim.hipEventSynchronize(event));
    answers!(hipSuccess, sim.hipEventQuery(event));
}

fn k05_malloc_while_capturing(mode: HipVersion) {
    for capture in [hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal] {
        let sim = machine(mode);
        capturing(&sim, capture);
        malloc(&sim, N);
    }
}

fn k06_copies_and_fills_while_capturing(mode: HipVersion) {
    for capture in [hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal] {
        let sim = machine(mode);
        capturing(&sim, capture);
        let ptr = filled(&sim, N, 3);
        assert_eq!(download(&sim, ptr, N), vec![3; N]);
    }
}

#[test]
fn the_rest_of_the_graph_functions_is_refused() {
    let sim = machine(Hip6);
    let (mut graph, mut exec, stream) = (null_mut(), null_mut(), stream(&sim));
    answers!(hipErrorNotSupported, sim.hipStreamEndCapture(stream, &raw mut graph));
    answers!(
        hipErrorNotSupported,
        sim.hipGraphInstantiate(&raw mut exec, graph, null_mut(), null_mut(), 0)
    );
    answers!(hipErrorNotSupported, sim.hipGraphLaunch(exec, stream));
    answers!(hipErrorNotSupported, sim.hipGraphExecDestroy(exec));
    answers!(hipErrorNotSupported, sim.hipGraphDestroy(graph));
    answers!(hipErrorNotSupported, sim.hipGetLastError());
}
