//! H: events.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    h01_create_null,
    h02_interprocess_without_disable_timing,
    h03_unknown_flags,
    h04_record_null,
    h06_synchronize_with_an_event_never_recorded_is_success_and_a_warning,
    h07_synchronize_waits_for_the_work_before,
    h08_query_until_done,
    h09_query_and_synchronize_null,
    h10_elapsed_time_null_answer,
    h11_elapsed_time_of_null_events,
    h12_elapsed_time_without_timing,
    h13_elapsed_time_of_an_event_never_recorded,
    h14_elapsed_time_before_the_end,
    h16_destroy_null,
    h18_destroying_an_event_lets_the_work_complete,
    h_x8_waiting_for_an_event_never_recorded_orders_nothing,
}

fn h01_create_null(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipEventCreateWithFlags(null_mut(), 0));
    rig.simulated(|sim| answers!(hipErrorInvalidValue, sim.hipEventCreate(null_mut())));
}

fn h02_interprocess_without_disable_timing(rig: &Rig) {
    let mut event = null_mut();
    answers!(
        hipErrorInvalidValue,
        rig.hipEventCreateWithFlags(&raw mut event, hipEventInterprocess)
    );
    let both = hipEventInterprocess | hipEventDisableTiming;
    answers!(hipSuccess, rig.hipEventCreateWithFlags(&raw mut event, both));
}

fn h03_unknown_flags(rig: &Rig) {
    let mut event = null_mut();
    for flags in [u32::MAX, 0x10, hipEventReleaseToDevice | hipEventReleaseToSystem] {
        answers!(hipErrorInvalidValue, rig.hipEventCreateWithFlags(&raw mut event, flags));
    }
}

fn h04_record_null(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipEventRecord(null_mut(), null_mut()));
}

fn h06_synchronize_with_an_event_never_recorded_is_success_and_a_warning(rig: &Rig) {
    let event = rig.event();
    answers!(hipSuccess, rig.hipEventSynchronize(event));
    answers!(hipSuccess, rig.hipEventQuery(event));
    rig.simulated(|sim| assert_eq!(sim.warnings().len(), 2));
    rig.clean();
}

fn h07_synchronize_waits_for_the_work_before(rig: &Rig) {
    let (stream, event, host) = (rig.stream(), rig.event(), rig.pinned(N));
    let before = rig.keep_busy(stream);
    answers!(
        hipSuccess,
        rig.hipMemcpyAsync(host.cast(), before.filled, N, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipSuccess, rig.hipEventRecord(event, stream));
    let behind = rig.keep_busy(stream);
    before.ends_soon();
    answers!(hipSuccess, rig.hipEventSynchronize(event));
    assert_eq!(peek(host, N - 1), 1);
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    behind.end();
    rig.wait(stream);
}

fn h08_query_until_done(rig: &Rig) {
    let (stream, event) = (rig.stream(), rig.event());
    let busy = rig.keep_busy(stream);
    answers!(hipSuccess, rig.hipEventRecord(event, stream));
    answers!(hipErrorNotReady, rig.hipEventQuery(event));
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    answers!(hipSuccess, rig.hipEventQuery(event));
}

fn h09_query_and_synchronize_null(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipEventQuery(null_mut()));
    answers!(hipErrorInvalidHandle, rig.hipEventSynchronize(null_mut()));
}

fn h10_elapsed_time_null_answer(rig: &Rig) {
    let event = rig.event();
    answers!(hipErrorInvalidValue, rig.hipEventElapsedTime(null_mut(), event, event));
}

fn h11_elapsed_time_of_null_events(rig: &Rig) {
    let (event, mut ms) = (rig.event(), 0.0);
    answers!(
        hipErrorInvalidHandle,
        rig.hipEventElapsedTime(&raw mut ms, null_mut(), event)
    );
    answers!(
        hipErrorInvalidHandle,
        rig.hipEventElapsedTime(&raw mut ms, event, null_mut())
    );
}

fn h12_elapsed_time_without_timing(rig: &Rig) {
    let (timed, untimed, mut ms) = (rig.event(), rig.event_with(hipEventDisableTiming), 0.0);
    for event in [timed, untimed] {
        answers!(hipSuccess, rig.hipEventRecord(event, null_mut()));
    }
    rig.wait(null_mut());
    answers!(
        hipErrorInvalidHandle,
        rig.hipEventElapsedTime(&raw mut ms, timed, untimed)
    );
    answers!(
        hipErrorInvalidHandle,
        rig.hipEventElapsedTime(&raw mut ms, untimed, timed)
    );
}

fn h13_elapsed_time_of_an_event_never_recorded(rig: &Rig) {
    let (recorded, never, mut ms) = (rig.event(), rig.event(), 0.0);
    answers!(hipSuccess, rig.hipEventRecord(recorded, null_mut()));
    rig.wait(null_mut());
    answers!(
        hipErrorInvalidHandle,
        rig.hipEventElapsedTime(&raw mut ms, recorded, never)
    );
    answers!(hipErrorInvalidHandle, rig.hipGetLastError());
}

fn h14_elapsed_time_before_the_end(rig: &Rig) {
    let (start, stop, mut ms) = (rig.event(), rig.event(), 0.0);
    answers!(hipSuccess, rig.hipEventRecord(start, null_mut()));
    let busy = rig.keep_busy(null_mut());
    answers!(hipSuccess, rig.hipEventRecord(stop, null_mut()));
    answers!(hipErrorNotReady, rig.hipEventElapsedTime(&raw mut ms, start, stop));
    busy.ends_soon();
    answers!(hipSuccess, rig.hipEventSynchronize(stop));
    answers!(hipSuccess, rig.hipEventElapsedTime(&raw mut ms, start, stop));
    assert!(ms > 0.0);
}

fn h16_destroy_null(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipEventDestroy(null_mut()));
}

fn h18_destroying_an_event_lets_the_work_complete(rig: &Rig) {
    let (stream, event) = (rig.stream(), rig.event());
    let busy = rig.keep_busy(stream);
    let filled = busy.filled;
    answers!(hipSuccess, rig.hipEventRecord(event, stream));
    answers!(hipSuccess, rig.hipEventDestroy(event));
    busy.end();
    answers!(hipSuccess, rig.hipStreamSynchronize(stream));
    assert_eq!(rig.download(filled, N), vec![1; N]);
}

fn h_x8_waiting_for_an_event_never_recorded_orders_nothing(rig: &Rig) {
    let (stream, event) = (rig.stream(), rig.event());
    answers!(hipSuccess, rig.hipStreamWaitEvent(stream, event, 0));
    answers!(hipSuccess, rig.hipStreamQuery(stream));
    rig.simulated(|sim| assert_eq!(sim.warnings().len(), 1));
}
