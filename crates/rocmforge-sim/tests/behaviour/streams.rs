//! G: streams.

use crate::support::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

const PER_THREAD: usize = 2;

fn per_thread() -> hipStream_t {
    std::ptr::without_provenance_mut(PER_THREAD)
}

fn bad(handle: usize) -> hipStream_t {
    std::ptr::without_provenance_mut(handle)
}

#[test]
fn g01_g02_create_null() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipStreamCreate(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipStreamCreateWithFlags(null_mut(), 0));
}

#[test]
fn g03_create_with_an_unknown_flag() {
    let sim = machine();
    let mut stream = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamCreateWithFlags(&raw mut stream, 0xFF)
    );
    assert!(stream.is_null());
}

#[test]
fn g04_flags_and_priority_read_back() {
    let sim = machine();
    for wanted in [hipStreamDefault, hipStreamNonBlocking] {
        let stream = stream_with(&sim, wanted);
        let (mut flags, mut priority) = (99, 99);
        answers!(hipSuccess, sim.hipStreamGetFlags(stream, &raw mut flags));
        answers!(hipSuccess, sim.hipStreamGetPriority(stream, &raw mut priority));
        assert_eq!((flags, priority), (wanted, 0));
    }
}

#[test]
fn g05_g14_the_null_stream_is_busy_while_a_blocking_stream_is() {
    for (flags, expected) in [(hipStreamDefault, hipErrorNotReady), (hipStreamNonBlocking, hipSuccess)] {
        let sim = machine();
        let stream = stream_with(&sim, flags);
        keep_busy(&sim, stream);
        answers!(expected, sim.hipStreamQuery(null_mut()));
    }
}

#[test]
fn g06_create_with_priority_null_or_bad_flag() {
    let sim = machine();
    let mut stream = null_mut();
    answers!(hipErrorInvalidValue, sim.hipStreamCreateWithPriority(null_mut(), 0, 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamCreateWithPriority(&raw mut stream, 0xFF, 0)
    );
}

#[test]
fn g07_priorities_are_clamped() {
    let sim = machine();
    let (mut least, mut greatest) = (0, 0);
    answers!(
        hipSuccess,
        sim.hipDeviceGetStreamPriorityRange(&raw mut least, &raw mut greatest)
    );
    assert!(greatest < least, "lower numbers are higher priorities");
    for (asked, got) in [(-100, greatest), (100, least), (0, 0)] {
        let (mut stream, mut priority) = (null_mut(), 99);
        answers!(
            hipSuccess,
            sim.hipStreamCreateWithPriority(&raw mut stream, hipStreamNonBlocking, asked)
        );
        answers!(hipSuccess, sim.hipStreamGetPriority(stream, &raw mut priority));
        assert_eq!(priority, got);
    }
}

#[test]
fn g08_g11_special_streams_cannot_be_destroyed() {
    let sim = machine();
    answers!(hipErrorInvalidHandle, sim.hipStreamDestroy(null_mut()));
    answers!(hipErrorInvalidHandle, sim.hipStreamDestroy(per_thread()));
}

#[test]
fn g09_destroy_twice() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipStreamDestroy(stream));
    only_report(&sim, ReportKind::StaleHandle);
}

#[test]
fn g09_a_stale_handle_never_reaches_the_stream_that_took_its_place() {
    let sim = machine();
    let old = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(old));
    let new = stream(&sim);
    assert_ne!(old, new);
    answers!(hipErrorContextIsDestroyed, sim.hipStreamDestroy(old));
    answers!(hipSuccess, sim.hipStreamQuery(new));
}

#[test]
fn g10_destroying_a_busy_stream_lets_its_work_complete() {
    let sim = machine();
    let stream = stream(&sim);
    let ptr = keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(download(&sim, ptr, N), vec![1; N]);
}

#[test]
fn g12_query_idle() {
    let sim = machine();
    let stream = stream(&sim);
    for handle in [stream, null_mut(), per_thread()] {
        answers!(hipSuccess, sim.hipStreamQuery(handle));
    }
}

#[test]
fn g13_query_busy_then_done() {
    let sim = machine();
    let stream = stream(&sim);
    keep_busy(&sim, stream);
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipStreamQuery(stream));
}

#[test]
fn g15_g16_query_of_a_bad_handle() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipStreamQuery(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipStreamQuery(bad(0xFFFF)));
    assert_eq!(sim.take_reports().len(), 2);
}

#[test]
fn g17_synchronize_idle() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
}

#[test]
fn g18_synchronize_busy_streams_of_every_kind() {
    let sim = machine();
    let stream = stream(&sim);
    for handle in [stream, null_mut(), per_thread()] {
        keep_busy(&sim, handle);
        answers!(hipErrorNotReady, sim.hipStreamQuery(handle));
        answers!(hipSuccess, sim.hipStreamSynchronize(handle));
        answers!(hipSuccess, sim.hipStreamQuery(handle));
    }
}

#[test]
fn g19_synchronizing_the_null_stream_waits_for_all_blocking_streams() {
    let sim = machine();
    let streams: Vec<_> = (0..10).map(|_| stream_with(&sim, hipStreamDefault)).collect();
    for stream in &streams {
        keep_busy(&sim, *stream);
    }
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    for stream in streams {
        answers!(hipSuccess, sim.hipStreamQuery(stream));
    }
}

#[test]
fn g20_synchronizing_one_stream_does_not_imply_another() {
    let sim = machine();
    let (one, other) = (stream(&sim), stream(&sim));
    keep_busy(&sim, one);
    keep_busy(&sim, other);
    answers!(hipSuccess, sim.hipStreamSynchronize(one));
    answers!(hipErrorNotReady, sim.hipStreamQuery(other));
}

#[test]
fn g21_synchronize_an_uninitialised_handle() {
    let sim = machine();
    answers!(hipErrorContextIsDestroyed, sim.hipStreamSynchronize(bad(0xDEAD_BEE0)));
    only_report(&sim, ReportKind::StaleHandle);
}

#[test]
fn g22_synchronizing_the_null_stream_waits_for_the_per_thread_stream() {
    let sim = machine();
    keep_busy(&sim, per_thread());
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    answers!(hipSuccess, sim.hipStreamQuery(per_thread()));
}

#[test]
fn g23_wait_for_a_null_event() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipErrorInvalidHandle, sim.hipStreamWaitEvent(stream, null_mut(), 0));
}

#[test]
fn g24_wait_with_flags() {
    let sim = machine();
    let (stream, event) = (stream(&sim), event(&sim));
    answers!(hipErrorInvalidValue, sim.hipStreamWaitEvent(stream, event, 1));
}

#[test]
fn g25_wait_on_an_uninitialised_stream() {
    let sim = machine();
    let event = event(&sim);
    answers!(
        hipErrorInvalidHandle,
        sim.hipStreamWaitEvent(bad(0xDEAD_BEE0), event, 0)
    );
}

#[test]
fn g26_a_waiting_stream_stays_busy_until_the_event_is_done() {
    let sim = machine();
    let (worker, waiter, done) = (stream(&sim), stream(&sim), event(&sim));
    keep_busy(&sim, worker);
    answers!(hipSuccess, sim.hipEventRecord(done, worker));
    answers!(hipSuccess, sim.hipStreamWaitEvent(waiter, done, 0));
    answers!(hipErrorNotReady, sim.hipStreamQuery(waiter));
    answers!(hipSuccess, sim.hipStreamSynchronize(waiter));
    answers!(hipSuccess, sim.hipEventQuery(done));
    answers!(hipSuccess, sim.hipStreamQuery(worker));
}

#[test]
fn g27_g28_g29_queries_without_an_answer_pointer() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipStreamGetFlags(stream, null_mut()));
    answers!(hipErrorInvalidValue, sim.hipStreamGetPriority(stream, null_mut()));
    answers!(hipErrorInvalidValue, sim.hipStreamGetDevice(stream, null_mut()));
}

#[test]
fn streams_belong_to_the_device_that_was_current() {
    let sim = two_cards();
    answers!(hipSuccess, sim.hipSetDevice(1));
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipSetDevice(0));
    let mut device = -1;
    answers!(hipSuccess, sim.hipStreamGetDevice(stream, &raw mut device));
    assert_eq!(device, 1);
}

#[test]
fn g30_host_function_null() {
    let sim = machine();
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipLaunchHostFunc(stream, None, null_mut()));
}

unsafe extern "C" fn count(user: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { *user.cast::<u32>() += 1 };
}

#[test]
fn g31_a_host_function_runs_once_in_stream_order() {
    let sim = machine();
    let (stream, host) = (stream(&sim), pinned(&sim, 4));
    let device = malloc(&sim, 4);
    fill_host(host, 4, 0);
    answers!(hipSuccess, sim.hipMemsetAsync(device, 0, 4, stream));
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(host.cast(), device, 4, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipSuccess, sim.hipLaunchHostFunc(stream, Some(count), host.cast()));
    assert_eq!(peek(host, 0), 0, "not before the stream gets there");
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 1);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 1, "once");
}

unsafe extern "C" fn calls_hip(user: *mut c_void) {
    // SAFETY: the test passes the machine, which outlives the stream's work.
    let sim = unsafe { &*user.cast::<rocmforge_sim::SimHost>() };
    answers!(hipErrorIllegalState, sim.hipSetDevice(0));
}

#[test]
fn g31_a_host_function_that_calls_hip_is_reported() {
    let sim = machine();
    let stream = stream(&sim);
    let user = std::sync::Arc::as_ptr(&sim).cast_mut().cast();
    answers!(hipSuccess, sim.hipLaunchHostFunc(stream, Some(calls_hip), user));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(only_report(&sim, ReportKind::InvalidCall).api, "hipSetDevice");
}

#[test]
fn polling_alone_gets_everything_done_and_time_passes() {
    let sim = machine();
    let stream = stream(&sim);
    let ptr = malloc(&sim, N);
    for _ in 0..1000 {
        answers!(hipSuccess, sim.hipMemsetAsync(ptr, 1, N, stream));
    }
    let start = sim.now();
    let mut polls = 0;
    while call!(sim.hipStreamQuery(stream)) == hipErrorNotReady {
        sim.pause(std::time::Duration::from_micros(10));
        polls += 1;
        assert!(polls < 100, "1000 operations must not take 100 polls");
    }
    assert!(sim.now() > start + std::time::Duration::from_micros(10 * polls));
}
