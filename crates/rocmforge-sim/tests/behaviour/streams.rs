//! G: streams.

use super::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ffi::c_void;
use std::ptr::null_mut;

rows! {
    g01_create_null,
    g09_destroy_twice,
    g09_a_stale_handle_never_reaches_the_stream_that_took_its_place,
    g15_query_of_a_destroyed_stream,
    g16_query_of_what_never_was_a_stream,
    g21_synchronize_an_uninitialised_handle,
    g25_wait_on_an_uninitialised_stream,
    g31_a_host_function_that_calls_hip_is_reported,
    g32_add_callback_null_or_with_flags,
    g33_wait_for_a_value_in_null,
    g34_wait_for_a_value_on_an_uninitialised_stream,
    g35_cu_mask_null_or_empty,
}

fn bad(handle: usize) -> hipStream_t {
    std::ptr::without_provenance_mut(handle)
}

fn g01_create_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipStreamCreate(null_mut()));
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

fn g21_synchronize_an_uninitialised_handle(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorContextIsDestroyed, sim.hipStreamSynchronize(bad(0xDEAD_BEE0)));
    only_report(&sim, ReportKind::StaleHandle);
}

fn g25_wait_on_an_uninitialised_stream(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(
        hipErrorInvalidHandle,
        sim.hipStreamWaitEvent(bad(0xDEAD_BEE0), event, 0)
    );
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
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamWaitValue32(stream, ptr, 1, 4, u32::MAX)
    );
    answers!(hipSuccess, sim.hipStreamWaitValue32(stream, ptr, 1, 0, u32::MAX));
    answers!(hipSuccess, sim.hipStreamWaitValue64(stream, ptr, 1, 0, u64::MAX));
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
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
    assert_eq!(mask, [u32::MAX, (1 << 10) - 1, 0, 0], "42 workgroup processors");
    answers!(
        hipErrorInvalidValue,
        sim.hipExtStreamGetCUMask(stream, 1, mask.as_mut_ptr())
    );
}
