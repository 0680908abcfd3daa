//! Fills of elements in rows, numbers of streams, streams that are left, records with flags (all since HIP 6.4), coherency of memory, memory
//! of signals.

use super::graphs::{add_fill, fill, graph, instantiate, run};
use crate::support::{N, answers, call, clean, machine, malloc};
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

#[test]
fn fills_of_elements_leave_the_rest_of_a_row() {
    let sim = machine();
    let (pitch, rows) = (16, 3);
    let memory = malloc(&sim, pitch * rows);
    let mut bytes = vec![0u8; pitch * rows];
    let mut expect = |row: &[u8]| {
        answers!(
            hipSuccess,
            sim.hipMemcpy(bytes.as_mut_ptr().cast(), memory, bytes.len(), hipMemcpyDeviceToHost)
        );
        assert_eq!(bytes, row.repeat(rows));
    };
    answers!(hipSuccess, sim.hipMemset(memory, 0, pitch * rows));
    answers!(hipSuccess, sim.hipMemsetD2D8(memory, pitch, 9, 12, rows));
    expect(&[9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0]);
    answers!(hipSuccess, sim.hipMemsetD2D16(memory, pitch, 0x102, 4, rows));
    expect(&[2, 1, 2, 1, 2, 1, 2, 1, 9, 9, 9, 9, 0, 0, 0, 0]);
    answers!(
        hipSuccess,
        sim.hipMemsetD2D32Async(memory, pitch, 0x0403_0201, 1, rows, null_mut())
    );
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    expect(&[1, 2, 3, 4, 2, 1, 2, 1, 9, 9, 9, 9, 0, 0, 0, 0]);
    answers!(hipErrorInvalidValue, sim.hipMemsetD2D32(memory, pitch, 0, 5, rows));
    answers!(hipErrorInvalidValue, sim.hipMemsetD2D32(memory, 10, 0, 1, rows));
    assert!(sim.reports().is_empty());
}

#[test]
fn streams_have_numbers() {
    let sim = machine();
    let number = |stream| {
        let mut found = 0;
        answers!(hipSuccess, sim.hipStreamGetId(stream, &raw mut found));
        found
    };
    let mut stream = null_mut();
    answers!(hipSuccess, sim.hipStreamCreate(&raw mut stream));
    let first = number(stream);
    assert_ne!(first, number(null_mut()));
    assert_eq!(first, number(stream));
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipSuccess, sim.hipStreamCreate(&raw mut stream));
    assert_ne!(first, number(stream), "a new stream has a new number");
    answers!(hipErrorInvalidValue, sim.hipStreamGetId(stream, null_mut()));
}

#[test]
fn records_have_flags() {
    let sim = machine();
    let (mut stream, mut event) = (null_mut(), null_mut());
    answers!(hipSuccess, sim.hipStreamCreate(&raw mut stream));
    answers!(hipSuccess, sim.hipEventCreate(&raw mut event));
    for flags in [0, 1] {
        answers!(hipSuccess, sim.hipEventRecordWithFlags(event, stream, flags));
        answers!(hipSuccess, sim.hipEventSynchronize(event));
    }
    answers!(hipErrorInvalidValue, sim.hipEventRecordWithFlags(event, stream, 2));
    let mode = hipStreamCaptureModeRelaxed;
    answers!(hipSuccess, sim.hipStreamBeginCapture(stream, mode));
    answers!(hipErrorNotSupported, sim.hipEventRecordWithFlags(event, stream, 1));
    let mut graph = null_mut();
    answers!(hipSuccess, sim.hipStreamEndCapture(stream, &raw mut graph));
}

#[test]
fn device_memory_is_coarse_grained() {
    let sim = machine();
    let mode = |pointer| {
        let mut found = 77u32;
        answers!(
            hipSuccess,
            sim.hipMemRangeGetAttribute(
                (&raw mut found).cast(),
                4,
                hipMemRangeAttributeCoherencyMode,
                pointer,
                4
            )
        );
        found
    };
    let mut managed = null_mut();
    answers!(
        hipSuccess,
        sim.hipMallocManaged(&raw mut managed, 4, hipMemAttachGlobal)
    );
    assert_eq!(mode(malloc(&sim, 4)), hipMemRangeCoherencyModeCoarseGrain);
    assert_eq!(mode(managed), hipMemRangeCoherencyModeFineGrain);
}

#[test]
fn the_host_reaches_signal_memory() {
    let sim = machine();
    let mut signal = null_mut();
    answers!(
        hipSuccess,
        sim.hipExtMallocWithFlags(&raw mut signal, 8, hipMallocSignalMemory)
    );
    let value = signal.cast::<u64>();
    // SAFETY: the simulator gave 8 bytes of host memory.
    unsafe { value.write(0) };
    answers!(hipSuccess, sim.hipStreamWriteValue64(null_mut(), signal, 7, 0));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    // SAFETY: as above.
    assert_eq!(unsafe { value.read() }, 7);
    answers!(hipSuccess, sim.hipFree(signal));
    assert!(sim.reports().is_empty(), "{:?}", sim.reports());
}

/// Each launch of a graph with branches makes streams of its own.
#[test]
fn launches_of_a_graph_with_branches_leave_no_streams() {
    let sim = machine();
    let (graph, x, y) = (graph(&sim), malloc(&sim, N), malloc(&sim, N));
    add_fill(&sim, graph, &[], fill(x, 3, N));
    add_fill(&sim, graph, &[], fill(y, 4, N));
    let exec = instantiate(&sim, graph);
    for _ in 0..50 {
        run(&sim, exec);
    }
    let kept = sim.counters().ordered_streams;
    assert!(kept <= 4, "{kept} streams are kept");
    clean(&sim);
}
