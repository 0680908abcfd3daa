//! G: streams.

use crate::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

rows! {
    g01_create_null,
    g02_create_with_flags_null,
    g03_create_with_an_unknown_flag,
    g04_flags_and_priority_read_back,
    g05_the_null_stream_is_busy_with_blocking_streams_only,
    g14_query_of_the_null_stream_sees_a_blocking_stream,
    g06_create_with_priority_null_or_bad_flag,
    g07_priorities_are_clamped,
    g08_destroy_null,
    g11_destroy_the_per_thread_stream,
    g09_destroy_twice,
    g09_a_stale_handle_never_reaches_the_stream_that_took_its_place,
    g10_destroying_a_busy_stream_lets_its_work_complete,
    g12_query_idle,
    g13_query_busy_then_done,
    g15_query_of_a_destroyed_stream,
    g16_query_of_what_never_was_a_stream,
    g17_synchronize_idle,
    g18_synchronize_busy_streams_of_every_kind,
    g19_synchronizing_the_null_stream_waits_for_all_blocking_streams,
    g20_synchronizing_one_stream_does_not_imply_another,
    g21_synchronize_an_uninitialised_handle,
    g22_synchronizing_the_null_stream_waits_for_the_per_thread_stream,
    g23_wait_for_a_null_event,
    g24_wait_with_flags,
    g25_wait_on_an_uninitialised_stream,
    g26_a_waiting_stream_stays_busy_until_the_event_is_done,
    g27_get_flags_null,
    g28_get_priority_null,
    g29_get_device_null,
    g30_host_function_null,
    g31_a_host_function_runs_once_in_stream_order,
    g31_a_host_function_that_calls_hip_is_reported,
    g32_add_callback_null_or_with_flags,
    g33_wait_for_a_value_in_null,
    g34_wait_for_a_value_on_an_uninitialised_stream,
    g35_cu_mask_null_or_empty,
}

const PER_THREAD: usize = 2;

fn per_thread() -> hipStream_t {
    std::ptr::without_provenance_mut(PER_THREAD)
}

fn bad(handle: usize) -> hipStream_t {
    std::ptr::without_provenance_mut(handle)
}

fn g01_create_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipStreamCreate(null_mut()));
}

fn g02_create_with_flags_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamCreateWithFlags(null_mut(), hipStreamNonBlocking)
    );
}

fn g03_create_with_an_unknown_flag(mode: HipVersion) {
    let sim = machine(mode);
    let mut stream = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamCreateWithFlags(&raw mut stream, 0xFF)
    );
    assert!(stream.is_null());
}

fn g04_flags_and_priority_read_back(mode: HipVersion) {
    let sim = machine(mode);
    for wanted in [hipStreamDefault, hipStreamNonBlocking] {
        let stream = stream_with(&sim, wanted);
        let (mut flags, mut priority) = (99, 99);
        answers!(hipSuccess, sim.hipStreamGetFlags(stream, &raw mut flags));
        answers!(hipSuccess, sim.hipStreamGetPriority(stream, &raw mut priority));
        assert_eq!((flags, priority), (wanted, 0));
    }
}

fn g05_the_null_stream_is_busy_with_blocking_streams_only(mode: HipVersion) {
    for (flags, expected) in [(hipStreamDefault, hipErrorNotReady), (hipStreamNonBlocking, hipSuccess)] {
        let sim = machine(mode);
        let stream = stream_with(&sim, flags);
        keep_busy(&sim, stream);
        answers!(expected, sim.hipStreamQuery(null_mut()));
    }
}

fn g14_query_of_the_null_stream_sees_a_blocking_stream(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream_with(&sim, hipStreamDefault);
    keep_busy(&sim, stream);
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

fn g06_create_with_priority_null_or_bad_flag(mode: HipVersion) {
    let sim = machine(mode);
    let mut stream = null_mut();
    answers!(hipErrorInvalidValue, sim.hipStreamCreateWithPriority(null_mut(), 0, 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamCreateWithPriority(&raw mut stream, 0xFF, 0)
    );
}

fn g07_priorities_are_clamped(mode: HipVersion) {
    let sim = machine(mode);
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

fn g08_destroy_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidHandle, sim.hipStreamDestroy(null_mut()));
}

fn g11_destroy_the_per_thread_stream(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidHandle, sim.hipStreamDestroy(per_thread()));
    keep_busy(&sim, per_thread());
    answers!(hipSuccess, sim.hipStreamSynchronize(per_thread()));
}

fn g09_destroy_twice(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipErrorContextIsDestroyed, sim.hipStreamDestroy(stream));
    only_report(&sim, ReportKind::StaleHandle);
}

fn g09_a_stale_handle_never_reaches_the_stream_that_took_its_place(mode: HipVersion) {
    let sim = machine(mode);
    let old = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(old));
    let new = stream(&sim);
    assert_ne!(old, new);
    answers!(hipErrorContextIsDestroyed, sim.hipStreamDestroy(old));
    answers!(hipSuccess, sim.hipStreamQuery(new));
}

fn g10_destroying_a_busy_stream_lets_its_work_complete(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    let ptr = keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(download(&sim, ptr, N), vec![1; N]);
}

fn g12_query_idle(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    for handle in [stream, null_mut(), per_thread()] {
        answers!(hipSuccess, sim.hipStreamQuery(handle));
    }
}

fn g13_query_busy_then_done(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    keep_busy(&sim, stream);
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipStreamQuery(stream));
}

fn g15_query_of_a_destroyed_stream(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamDestroy(stream));
    // HIP 7 crashes; the simulator reports and answers as HIP 6 does.
    answers!(hipErrorContextIsDestroyed, sim.hipStreamQuery(stream));
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("destroyed"));
}

fn g16_query_of_what_never_was_a_stream(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorContextIsDestroyed, sim.hipStreamQuery(bad(0xFFFF)));
    assert!(only_report(&sim, ReportKind::StaleHandle).message.contains("never was"));
}

fn g17_synchronize_idle(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
}

fn g18_synchronize_busy_streams_of_every_kind(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    for handle in [stream, null_mut(), per_thread()] {
        keep_busy(&sim, handle);
        answers!(hipErrorNotReady, sim.hipStreamQuery(handle));
        answers!(hipSuccess, sim.hipStreamSynchronize(handle));
        answers!(hipSuccess, sim.hipStreamQuery(handle));
    }
}

fn g19_synchronizing_the_null_stream_waits_for_all_blocking_streams(mode: HipVersion) {
    let sim = machine(mode);
    let streams: Vec<_> = (0..10).map(|_| stream_with(&sim, hipStreamDefault)).collect();
    for stream in &streams {
        keep_busy(&sim, *stream);
    }
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    for stream in streams {
        answers!(hipSuccess, sim.hipStreamQuery(stream));
    }
}

fn g20_synchronizing_one_stream_does_not_imply_another(mode: HipVersion) {
    let sim = machine(mode);
    let (one, other) = (stream(&sim), stream(&sim));
    keep_busy(&sim, one);
    keep_busy(&sim, other);
    answers!(hipSuccess, sim.hipStreamSynchronize(one));
    answers!(hipErrorNotReady, sim.hipStreamQuery(other));
}

fn g21_synchronize_an_uninitialised_handle(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorContextIsDestroyed, sim.hipStreamSynchronize(bad(0xDEAD_BEE0)));
    only_report(&sim, ReportKind::StaleHandle);
}

fn g22_synchronizing_the_null_stream_waits_for_the_per_thread_stream(mode: HipVersion) {
    let sim = machine(mode);
    keep_busy(&sim, per_thread());
    answers!(hipSuccess, sim.hipStreamSynchronize(null_mut()));
    answers!(hipSuccess, sim.hipStreamQuery(per_thread()));
}

fn g23_wait_for_a_null_event(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipErrorInvalidHandle, sim.hipStreamWaitEvent(stream, null_mut(), 0));
}

fn g24_wait_with_flags(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event) = (stream(&sim), event(&sim));
    answers!(hipErrorInvalidValue, sim.hipStreamWaitEvent(stream, event, 1));
}

fn g25_wait_on_an_uninitialised_stream(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(
        hipErrorInvalidHandle,
        sim.hipStreamWaitEvent(bad(0xDEAD_BEE0), event, 0)
    );
}

fn g26_a_waiting_stream_stays_busy_until_the_event_is_done(mode: HipVersion) {
    let sim = machine(mode);
    let (worker, waiter, done) = (stream(&sim), stream(&sim), event(&sim));
    keep_busy(&sim, worker);
    answers!(hipSuccess, sim.hipEventRecord(done, worker));
    answers!(hipSuccess, sim.hipStreamWaitEvent(waiter, done, 0));
    answers!(hipErrorNotReady, sim.hipStreamQuery(waiter));
    answers!(hipSuccess, sim.hipStreamSynchronize(waiter));
    answers!(hipSuccess, sim.hipEventQuery(done));
    answers!(hipSuccess, sim.hipStreamQuery(worker));
}

fn g27_get_flags_null(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipStreamGetFlags(stream, null_mut()));
}

fn g28_get_priority_null(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipStreamGetPriority(stream, null_mut()));
}

fn g29_get_device_null(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipStreamGetDevice(stream, null_mut()));
}

#[test]
fn streams_belong_to_the_device_that_was_current() {
    let sim = two_cards(Hip6);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let stream = stream(&sim);
    answers!(hipSuccess, sim.hipSetDevice(0));
    let mut device = -1;
    answers!(hipSuccess, sim.hipStreamGetDevice(stream, &raw mut device));
    assert_eq!(device, 1);
}

fn g30_host_function_null(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    answers!(hipErrorInvalidValue, sim.hipLaunchHostFunc(stream, None, null_mut()));
}

unsafe extern "C" fn count(user: *mut c_void) {
    // SAFETY: the test passes a counter that outlives the stream's work.
    unsafe { *user.cast::<u32>() += 1 };
}

fn g31_a_host_function_runs_once_in_stream_order(mode: HipVersion) {
    let sim = machine(mode);
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

fn g31_a_host_function_that_calls_hip_is_reported(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    let user = std::sync::Arc::as_ptr(&sim).cast_mut().cast();
    answers!(hipSuccess, sim.hipLaunchHostFunc(stream, Some(calls_hip), user));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(only_report(&sim, ReportKind::InvalidCall).api, "hipSetDevice");
}

#[test]
fn polling_alone_gets_everything_done_and_time_passes() {
    let sim = machine(Hip6);
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

unsafe extern "C" fn note_stream(stream: hipStream_t, status: hipError_t, user: *mut c_void) {
    assert_eq!(status, hipSuccess);
    // SAFETY: the test passes a place that outlives the stream's work.
    unsafe { user.cast::<hipStream_t>().write(stream) };
}

fn g32_add_callback_null_or_with_flags(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, mut seen): (_, hipStream_t) = (stream(&sim), null_mut());
    let user = (&raw mut seen).cast();
    answers!(hipErrorInvalidValue, sim.hipStreamAddCallback(stream, None, user, 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamAddCallback(stream, Some(note_stream), user, 1)
    );
    keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipStreamAddCallback(stream, Some(note_stream), user, 0));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(seen, stream, "it ran, once its turn had come");
    clean(&sim);
}

fn g33_wait_for_a_value_in_null(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), malloc(&sim, 8));
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamWaitValue32(stream, null_mut(), 1, 0, u32::MAX)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamWaitValue64(stream, null_mut(), 1, 0, u64::MAX)
    );
    // Not supported on purpose: what would write the value is outside of what the simulator orders.
    answers!(
        hipErrorNotSupported,
        sim.hipStreamWaitValue32(stream, ptr, 1, 0, u32::MAX)
    );
    answers!(
        hipErrorNotSupported,
        sim.hipStreamWaitValue64(stream, ptr, 1, 0, u64::MAX)
    );
}

fn g34_wait_for_a_value_on_an_uninitialised_stream(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, stream) = (malloc(&sim, 8), bad(0xDEAD_BEE0));
    answers!(
        hipErrorContextIsDestroyed,
        sim.hipStreamWaitValue32(stream, ptr, 1, 0, u32::MAX)
    );
    answers!(
        hipErrorContextIsDestroyed,
        sim.hipStreamWaitValue64(stream, ptr, 1, 0, u64::MAX)
    );
    assert_eq!(sim.take_reports().len(), 2);
}

fn g35_cu_mask_null_or_empty(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, mut mask) = (stream(&sim), [0u32; 4]);
    answers!(hipErrorInvalidValue, sim.hipExtStreamGetCUMask(stream, 4, null_mut()));
    answers!(
        hipErrorInvalidValue,
        sim.hipExtStreamGetCUMask(stream, 0, mask.as_mut_ptr())
    );
    answers!(hipSuccess, sim.hipExtStreamGetCUMask(stream, 4, mask.as_mut_ptr()));
    assert_eq!(mask, [u32::MAX, u32::MAX, (1 << 20) - 1, 0], "84 compute units");
}
