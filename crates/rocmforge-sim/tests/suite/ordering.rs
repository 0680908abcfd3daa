//! Orders: what the simulator may do, and what it must not.

use rocmforge_hip_sys::*;
use rocmforge_sim::{FreedMemory, ReportKind, Schedule, SimConfig, SimHost};
use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::Arc;

const N: usize = 256;

/// Calls a HIP function that must succeed.
macro_rules! ok {
    ($sim:ident . $function:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: the tests pass valid pointers and live handles.
        let status = unsafe { $sim.$function($($arg),*) };
        assert_eq!(status, hipSuccess, stringify!($function));
    }};
}

fn machine(schedule: Schedule) -> Arc<SimHost> {
    SimHost::new(SimConfig {
        schedule,
        ..SimConfig::default()
    })
}

fn malloc(sim: &SimHost) -> *mut c_void {
    let mut ptr = null_mut();
    ok!(sim.hipMalloc(&raw mut ptr, N));
    ptr
}

fn stream(sim: &SimHost) -> hipStream_t {
    let mut stream = null_mut();
    ok!(sim.hipStreamCreateWithFlags(&raw mut stream, hipStreamNonBlocking));
    stream
}

fn event(sim: &SimHost) -> hipEvent_t {
    let mut event = null_mut();
    ok!(sim.hipEventCreateWithFlags(&raw mut event, hipEventDisableTiming));
    event
}

fn first_byte(sim: &SimHost, ptr: *mut c_void) -> u8 {
    let mut byte = 0u8;
    ok!(sim.hipMemcpy((&raw mut byte).cast(), ptr, 1, hipMemcpyDeviceToHost));
    byte
}

fn schedules() -> Vec<Schedule> {
    let mut all = vec![Schedule::Lazy, Schedule::Eager, Schedule::Reverse];
    all.extend((0..50).map(Schedule::Random));
    all.extend((0..50).map(|seed| Schedule::Pct { seed, depth: 3 }));
    all
}

/// Writes 1 on one stream and 2 on another; what is there in the end?
fn race(schedule: Schedule, with_event: bool) -> u8 {
    let sim = machine(schedule);
    let (a, b, ptr, done) = (stream(&sim), stream(&sim), malloc(&sim), event(&sim));
    ok!(sim.hipMemsetAsync(ptr, 1, N, a));
    if with_event {
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
    }
    ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    ok!(sim.hipDeviceSynchronize());
    assert!(sim.take_reports().is_empty());
    first_byte(&sim, ptr)
}

#[test]
fn without_an_event_both_orders_happen() {
    let seen: std::collections::BTreeSet<u8> = schedules().into_iter().map(|s| race(s, false)).collect();
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [1, 2]);
    assert_eq!(race(Schedule::Reverse, false), 1, "the youngest stream goes first");
}

#[test]
fn an_event_orders_under_every_schedule() {
    for schedule in schedules() {
        assert_eq!(race(schedule, true), 2, "{schedule:?}");
    }
}

#[test]
fn an_event_means_its_record_at_the_time_of_the_wait() {
    for schedule in schedules() {
        let sim = machine(schedule);
        let (a, b, c) = (stream(&sim), stream(&sim), stream(&sim));
        let (ptr, done) = (malloc(&sim), event(&sim));
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipEventRecord(done, a));
        ok!(sim.hipStreamWaitEvent(b, done, 0));
        // Recorded again elsewhere: b still waits for the first record.
        ok!(sim.hipEventRecord(done, c));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
        ok!(sim.hipStreamSynchronize(b));
        assert_eq!(first_byte(&sim, ptr), 2, "{schedule:?}");
        ok!(sim.hipDeviceSynchronize());
        assert_eq!(first_byte(&sim, ptr), 2, "{schedule:?}");
    }
}

#[test]
fn edges_are_transitive() {
    for schedule in schedules() {
        let sim = machine(schedule);
        let streams: Vec<_> = (0..6).map(|_| stream(&sim)).collect();
        let ptr = malloc(&sim);
        for (i, pair) in streams.windows(2).enumerate() {
            ok!(sim.hipMemsetAsync(ptr, i as i32 + 1, N, pair[0]));
            let done = event(&sim);
            ok!(sim.hipEventRecord(done, pair[0]));
            ok!(sim.hipStreamWaitEvent(pair[1], done, 0));
            ok!(sim.hipEventDestroy(done));
        }
        ok!(sim.hipStreamSynchronize(streams[5]));
        assert_eq!(first_byte(&sim, ptr), 5, "{schedule:?}");
    }
}

#[test]
fn a_lazy_wait_runs_its_past_and_nothing_else() {
    let sim = machine(Schedule::Lazy);
    let (a, b, ptr) = (stream(&sim), stream(&sim), malloc(&sim));
    for _ in 0..3 {
        ok!(sim.hipMemsetAsync(ptr, 1, N, a));
        ok!(sim.hipMemsetAsync(ptr, 2, N, b));
    }
    assert_eq!(sim.counters().operations, 0, "nothing runs when it is queued");
    ok!(sim.hipStreamSynchronize(b));
    assert_eq!(sim.counters().operations, 3);
}

#[test]
fn the_null_stream_and_blocking_streams_wait_for_each_other() {
    for schedule in schedules() {
        let sim = machine(schedule);
        let (mut blocking, ptr) = (null_mut(), malloc(&sim));
        ok!(sim.hipStreamCreate(&raw mut blocking));
        ok!(sim.hipMemsetAsync(ptr, 1, N, blocking));
        ok!(sim.hipMemset(ptr, 2, N));
        ok!(sim.hipMemsetAsync(ptr, 3, N, blocking));
        ok!(sim.hipStreamSynchronize(blocking));
        assert_eq!(first_byte(&sim, ptr), 3, "{schedule:?}");
    }
}

#[test]
fn the_null_stream_does_not_order_non_blocking_streams() {
    let results: std::collections::BTreeSet<u8> = schedules()
        .into_iter()
        .map(|schedule| {
            let sim = machine(schedule);
            let (other, ptr) = (stream(&sim), malloc(&sim));
            ok!(sim.hipMemset(ptr, 1, N));
            ok!(sim.hipMemsetAsync(ptr, 2, N, other));
            ok!(sim.hipDeviceSynchronize());
            first_byte(&sim, ptr)
        })
        .collect();
    assert_eq!(results.len(), 2, "the classic race must show: {results:?}");
}

#[test]
fn a_source_freed_under_a_queued_copy_is_found() {
    let sim = SimHost::new(SimConfig {
        strict: true,
        ..SimConfig::default()
    });
    let (work, ptr, mut host) = (stream(&sim), malloc(&sim), null_mut());
    ok!(sim.hipHostMalloc(&raw mut host, N, 0));
    ok!(sim.hipMemcpyAsync(ptr, host, N, hipMemcpyHostToDevice, work));
    ok!(sim.hipHostFree(host));
    ok!(sim.hipStreamSynchronize(work));
    let reports = sim.take_reports();
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert_eq!(
        (reports[0].kind, reports[0].api),
        (ReportKind::UseAfterFree, "hipMemcpyAsync")
    );
}

#[test]
fn a_recycled_address_does_not_hide_a_stale_copy() {
    let sim = SimHost::new(SimConfig {
        strict: true,
        freed: FreedMemory::ReusedAtOnce,
        ..SimConfig::default()
    });
    let (work, old) = (stream(&sim), malloc(&sim));
    ok!(sim.hipMemsetAsync(old, 1, N, work));
    ok!(sim.hipFree(old));
    let new = malloc(&sim);
    assert_eq!(old, new);
    ok!(sim.hipStreamSynchronize(work));
    let reports = sim.take_reports();
    assert_eq!(reports.len(), 1, "the fill was meant for the old allocation");
    assert_eq!(reports[0].kind, ReportKind::UseAfterFree);
}

/// A program with enough freedom that a schedule shows in its trace.
fn program(config: SimConfig) -> (u64, Vec<u8>) {
    let sim = SimHost::new(config);
    let streams: Vec<_> = (0..4).map(|_| stream(&sim)).collect();
    let buffers: Vec<_> = (0..3).map(|_| malloc(&sim)).collect();
    for i in 0..60 {
        ok!(sim.hipMemsetAsync(buffers[i % 3], i as i32, N, streams[i % 4]));
        if i % 7 == 0 {
            let done = event(&sim);
            ok!(sim.hipEventRecord(done, streams[i % 4]));
            ok!(sim.hipStreamWaitEvent(streams[(i + 1) % 4], done, 0));
        }
        if i % 11 == 0 {
            // SAFETY: the stream is alive.
            let _ = unsafe { sim.hipStreamQuery(streams[i % 4]) };
        }
    }
    ok!(sim.hipDeviceSynchronize());
    (
        sim.trace_hash(),
        buffers.iter().map(|ptr| first_byte(&sim, *ptr)).collect(),
    )
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut hashes = std::collections::BTreeSet::new();
    for schedule in schedules() {
        let config = SimConfig {
            schedule,
            ..SimConfig::default()
        };
        let first = program(config.clone());
        assert_eq!(first, program(config), "{schedule:?}");
        hashes.insert(first.0);
    }
    assert!(hashes.len() > 60, "schedules differ: {}", hashes.len());
}

#[test]
fn the_trace_sees_a_different_call() {
    let trace = |value: usize| {
        let sim = machine(Schedule::Lazy);
        let mut ptr = null_mut();
        ok!(sim.hipMalloc(&raw mut ptr, value));
        ok!(sim.hipMalloc(&raw mut ptr, value));
        sim.trace_hash()
    };
    assert_eq!(trace(16), trace(16));
    assert_ne!(trace(16), trace(4096));
}

unsafe extern "C" fn wait_for_flag(user: *mut c_void) {
    // SAFETY: the test passes a flag that outlives the call.
    let flag = unsafe { &*user.cast::<std::sync::atomic::AtomicBool>() };
    while !flag.load(std::sync::atomic::Ordering::Acquire) {
        std::thread::yield_now();
    }
}

#[test]
fn a_host_function_may_wait_for_a_thread_that_calls_hip() {
    let sim = machine(Schedule::Lazy);
    let flag = std::sync::atomic::AtomicBool::new(false);
    let work = stream(&sim);
    let user = (&raw const flag).cast_mut().cast();
    ok!(sim.hipLaunchHostFunc(work, Some(wait_for_flag), user));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Not hipFree: that waits for the stream, on a real card too.
            malloc(&sim);
            flag.store(true, std::sync::atomic::Ordering::Release);
        });
        ok!(sim.hipStreamSynchronize(work));
    });
    assert!(sim.take_reports().is_empty());
}
