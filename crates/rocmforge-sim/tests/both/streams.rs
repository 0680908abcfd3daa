//! G: streams.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};
use std::time::{Duration, Instant};

both! {
    g02_create_with_flags_null,
    g03_create_with_an_unknown_flag,
    g04_flags_and_priority_read_back,
    g05_the_null_stream_is_busy_with_blocking_streams_only,
    g14_query_of_the_null_stream_sees_a_blocking_stream,
    g06_create_with_priority_null_or_bad_flag,
    g07_priorities_are_clamped,
    g08_destroy_null,
    g11_destroy_the_per_thread_stream,
    g10_destroying_a_busy_stream_lets_its_work_complete,
    g12_query_idle,
    g13_query_busy_then_done,
    g17_synchronize_idle,
    g18_synchronize_busy_streams_of_every_kind,
    g19_synchronizing_the_null_stream_waits_for_all_blocking_streams,
    g20_synchronizing_one_stream_does_not_imply_another,
    g22_synchronizing_the_null_stream_waits_for_the_per_thread_stream,
    g23_wait_for_a_null_event,
    g24_wait_with_flags,
    g26_a_waiting_stream_stays_busy_until_the_event_is_done,
    g27_get_flags_null,
    g28_get_priority_null,
    g29_get_device_null,
    g30_host_function_null,
    g31_a_host_function_runs_once_in_stream_order,
}

/// The stream that each thread has of its own.
fn per_thread() -> hipStream_t {
    without_provenance_mut(2)
}

fn g02_create_with_flags_null(rig: &Rig) {
    answers!(
        hipErrorInvalidValue,
        rig.hipStreamCreateWithFlags(null_mut(), hipStreamNonBlocking)
    );
}

fn g03_create_with_an_unknown_flag(rig: &Rig) {
    let mut stream = null_mut();
    answers!(
        hipErrorInvalidValue,
        rig.hipStreamCreateWithFlags(&raw mut stream, 0xFF)
    );
    assert!(stream.is_null());
}

fn g04_flags_and_priority_read_back(rig: &Rig) {
    for wanted in [hipStreamDefault, hipStreamNonBlocking] {
        let stream = rig.stream_with(wanted);
        let (mut flags, mut priority) = (99, 99);
        answers!(hipSuccess, rig.hipStreamGetFlags(stream, &raw mut flags));
        answers!(hipSuccess, rig.hipStreamGetPriority(stream, &raw mut priority));
        assert_eq!((flags, priority), (wanted, 0));
    }
}

fn g05_the_null_stream_is_busy_with_blocking_streams_only(rig: &Rig) {
    for (flags, expected) in [(hipStreamDefault, hipErrorNotReady), (hipStreamNonBlocking, hipSuccess)] {
        let stream = rig.stream_with(flags);
        let busy = rig.keep_busy(stream);
        answers!(expected, rig.hipStreamQuery(null_mut()));
        busy.end();
        rig.wait(stream);
    }
}

fn g14_query_of_the_null_stream_sees_a_blocking_stream(rig: &Rig) {
    let stream = rig.stream_with(hipStreamDefault);
    let busy = rig.keep_busy(stream);
    answers!(hipErrorNotReady, rig.hipStreamQuery(null_mut()));
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    answers!(hipSuccess, rig.hipStreamQuery(null_mut()));
}

fn g06_create_with_priority_null_or_bad_flag(rig: &Rig) {
    let mut stream = null_mut();
    answers!(hipErrorInvalidValue, rig.hipStreamCreateWithPriority(null_mut(), 0, 0));
    answers!(
        hipErrorInvalidValue,
        rig.hipStreamCreateWithPriority(&raw mut stream, 0xFF, 0)
    );
}

fn g07_priorities_are_clamped(rig: &Rig) {
    let (mut least, mut greatest) = (0, 0);
    answers!(
        hipSuccess,
        rig.hipDeviceGetStreamPriorityRange(&raw mut least, &raw mut greatest)
    );
    assert!(greatest < least, "lower numbers are higher priorities");
    for (asked, got) in [(-100, greatest), (100, least), (0, 0)] {
        let (mut stream, mut priority) = (null_mut(), 99);
        answers!(
            hipSuccess,
            rig.hipStreamCreateWithPriority(&raw mut stream, hipStreamNonBlocking, asked)
        );
        answers!(hipSuccess, rig.hipStreamGetPriority(stream, &raw mut priority));
        assert_eq!(priority, got);
    }
}

fn g08_destroy_null(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipStreamDestroy(null_mut()));
}

fn g11_destroy_the_per_thread_stream(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipStreamDestroy(per_thread()));
    rig.keep_busy(per_thread()).ends_soon();
    answers!(hipSuccess, rig.hipStreamSynchronize(per_thread()));
}

fn g10_destroying_a_busy_stream_lets_its_work_complete(rig: &Rig) {
    let stream = rig.stream();
    let (busy, host) = (rig.keep_busy(stream), rig.pinned(1));
    fill_host(host, 1, 0);
    answers!(hipSuccess, rig.hipLaunchHostFunc(stream, Some(count), host.cast()));
    let filled = busy.filled;
    answers!(hipSuccess, rig.hipStreamDestroy(stream));
    busy.end();
    rig.simulated(|sim| answers!(hipSuccess, sim.hipDeviceSynchronize()));
    // Nobody can wait for a stream that is gone; its last work tells that it was done.
    let start = Instant::now();
    while peek(host, 0) == 0 && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((peek(host, 0), rig.download(filled, N)), (1, vec![1; N]));
}

fn g12_query_idle(rig: &Rig) {
    let stream = rig.stream();
    for handle in [stream, null_mut(), per_thread()] {
        answers!(hipSuccess, rig.hipStreamQuery(handle));
    }
}

fn g13_query_busy_then_done(rig: &Rig) {
    let stream = rig.stream();
    let busy = rig.keep_busy(stream);
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    answers!(hipSuccess, rig.hipStreamQuery(stream));
}

fn g17_synchronize_idle(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
}

fn g18_synchronize_busy_streams_of_every_kind(rig: &Rig) {
    let stream = rig.stream();
    for handle in [stream, null_mut(), per_thread()] {
        let busy = rig.keep_busy(handle);
        answers!(hipErrorNotReady, rig.hipStreamQuery(handle));
        busy.ends_soon();
        answers!(hipSuccess, rig.hipStreamSynchronize(handle));
        answers!(hipSuccess, rig.hipStreamQuery(handle));
    }
}

fn g19_synchronizing_the_null_stream_waits_for_all_blocking_streams(rig: &Rig) {
    let streams: Vec<_> = (0..10).map(|_| rig.stream_with(hipStreamDefault)).collect();
    let busy: Vec<_> = streams.iter().map(|stream| rig.keep_busy(*stream)).collect();
    for busy in busy {
        busy.ends_soon();
    }
    answers!(hipSuccess, rig.hipStreamSynchronize(null_mut()));
    for stream in streams {
        answers!(hipSuccess, rig.hipStreamQuery(stream));
    }
}

fn g20_synchronizing_one_stream_does_not_imply_another(rig: &Rig) {
    let (one, other) = (rig.stream(), rig.stream());
    let still = rig.keep_busy(other);
    answers!(hipSuccess, rig.hipMemsetAsync(rig.malloc(N), 1, N, one));
    answers!(hipSuccess, rig.hipStreamSynchronize(one));
    answers!(hipErrorNotReady, rig.hipStreamQuery(other));
    still.end();
    rig.wait(other);
}

fn g22_synchronizing_the_null_stream_waits_for_the_per_thread_stream(rig: &Rig) {
    rig.keep_busy(per_thread()).ends_soon();
    answers!(hipSuccess, rig.hipStreamSynchronize(null_mut()));
    answers!(hipSuccess, rig.hipStreamQuery(per_thread()));
}

fn g23_wait_for_a_null_event(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipErrorInvalidHandle, rig.hipStreamWaitEvent(stream, null_mut(), 0));
}

fn g24_wait_with_flags(rig: &Rig) {
    let (stream, event) = (rig.stream(), rig.event());
    answers!(hipErrorInvalidValue, rig.hipStreamWaitEvent(stream, event, 1));
}

fn g26_a_waiting_stream_stays_busy_until_the_event_is_done(rig: &Rig) {
    let (worker, waiter, done) = (rig.stream(), rig.stream(), rig.event());
    let busy = rig.keep_busy(worker);
    answers!(hipSuccess, rig.hipEventRecord(done, worker));
    answers!(hipSuccess, rig.hipStreamWaitEvent(waiter, done, 0));
    answers!(hipErrorNotReady, rig.hipStreamQuery(waiter));
    busy.ends_soon();
    answers!(hipSuccess, rig.hipStreamSynchronize(waiter));
    answers!(hipSuccess, rig.hipEventQuery(done));
    answers!(hipSuccess, rig.hipStreamQuery(worker));
}

fn g27_get_flags_null(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipErrorInvalidValue, rig.hipStreamGetFlags(stream, null_mut()));
}

fn g28_get_priority_null(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipErrorInvalidValue, rig.hipStreamGetPriority(stream, null_mut()));
}

fn g29_get_device_null(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipErrorInvalidValue, rig.hipStreamGetDevice(stream, null_mut()));
}

fn g30_host_function_null(rig: &Rig) {
    let stream = rig.stream();
    answers!(hipErrorInvalidValue, rig.hipLaunchHostFunc(stream, None, null_mut()));
}

unsafe extern "C" fn count(user: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { *user.cast::<u8>() += 1 };
}

fn g31_a_host_function_runs_once_in_stream_order(rig: &Rig) {
    let (stream, host) = (rig.stream(), rig.pinned(4));
    let device = rig.malloc(4);
    fill_host(host, 4, 5);
    let busy = rig.keep_busy(stream);
    answers!(hipSuccess, rig.hipMemsetAsync(device, 0, 4, stream));
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(host.cast(), device, 4, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipSuccess, rig.hipLaunchHostFunc(stream, Some(count), host.cast()));
    assert_eq!(peek(host, 0), 5, "not before the stream gets there");
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 1);
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    assert_eq!(peek(host, 0), 1, "once");
}
