//! H: events.

use crate::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

rows! {
    h01_create_null,
    h02_interprocess_without_disable_timing,
    h03_unknown_flags,
    h04_record_null,
    h05_record_on_another_device,
    h06_synchronize_with_an_event_never_recorded_is_success_and_a_warning,
    h07_synchronize_waits_for_the_work_before,
    h08_query_until_done,
    h09_query_and_synchronize_null,
    h10_elapsed_time_null_answer,
    h11_elapsed_time_of_null_events,
    h12_elapsed_time_without_timing,
    h13_elapsed_time_of_an_event_never_recorded,
    h14_elapsed_time_before_the_end,
    h15_elapsed_time_between_devices,
    h16_destroy_null,
    h17_destroy_twice,
    h18_destroying_an_event_lets_the_work_complete,
    h_x8_waiting_for_an_event_never_recorded_orders_nothing,
    h_x9_use_of_a_destroyed_event_is_reported,
}

fn h01_create_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipEventCreate(null_mut()));
    answers!(hipErrorInvalidValue, sim.hipEventCreateWithFlags(null_mut(), 0));
}

fn h02_interprocess_without_disable_timing(mode: HipVersion) {
    let sim = machine(mode);
    let mut event = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipEventCreateWithFlags(&raw mut event, hipEventInterprocess)
    );
    let both = hipEventInterprocess | hipEventDisableTiming;
    answers!(hipSuccess, sim.hipEventCreateWithFlags(&raw mut event, both));
}

fn h03_unknown_flags(mode: HipVersion) {
    let sim = machine(mode);
    let mut event = null_mut();
    for flags in [u32::MAX, 0x10, hipEventReleaseToDevice | hipEventReleaseToSystem] {
        answers!(hipErrorInvalidValue, sim.hipEventCreateWithFlags(&raw mut event, flags));
    }
}

fn h04_record_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidHandle, sim.hipEventRecord(null_mut(), null_mut()));
}

fn h05_record_on_another_device(mode: HipVersion) {
    let sim = two_cards(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let stream = stream(&sim);
    answers!(hipErrorInvalidHandle, sim.hipEventRecord(event, stream));
}

fn h06_synchronize_with_an_event_never_recorded_is_success_and_a_warning(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipEventSynchronize(event));
    answers!(hipSuccess, sim.hipEventQuery(event));
    assert_eq!(sim.warnings().len(), 2);
    clean(&sim);
}

fn h07_synchronize_waits_for_the_work_before(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event, host) = (stream(&sim), event(&sim), pinned(&sim, N));
    let ptr = keep_busy(&sim, stream);
    answers!(
        hipSuccess,
        sim.hipMemcpyAsync(host.cast(), ptr, N, hipMemcpyDeviceToHost, stream)
    );
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipEventSynchronize(event));
    assert_eq!(peek(host, N - 1), 1);
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
}

fn h08_query_until_done(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event) = (stream(&sim), event(&sim));
    keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    answers!(hipErrorNotReady, sim.hipEventQuery(event));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    answers!(hipSuccess, sim.hipEventQuery(event));
}

fn h09_query_and_synchronize_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidHandle, sim.hipEventQuery(null_mut()));
    answers!(hipErrorInvalidHandle, sim.hipEventSynchronize(null_mut()));
}

fn h10_elapsed_time_null_answer(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(hipErrorInvalidValue, sim.hipEventElapsedTime(null_mut(), event, event));
}

fn h11_elapsed_time_of_null_events(mode: HipVersion) {
    let sim = machine(mode);
    let (event, mut ms) = (event(&sim), 0.0);
    answers!(
        hipErrorInvalidHandle,
        sim.hipEventElapsedTime(&raw mut ms, null_mut(), event)
    );
    answers!(
        hipErrorInvalidHandle,
        sim.hipEventElapsedTime(&raw mut ms, event, null_mut())
    );
}

fn h12_elapsed_time_without_timing(mode: HipVersion) {
    let sim = machine(mode);
    let (timed, untimed, mut ms) = (event(&sim), event_with(&sim, hipEventDisableTiming), 0.0);
    for event in [timed, untimed] {
        answers!(hipSuccess, sim.hipEventRecord(event, null_mut()));
    }
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    answers!(
        hipErrorInvalidHandle,
        sim.hipEventElapsedTime(&raw mut ms, timed, untimed)
    );
    answers!(
        hipErrorInvalidHandle,
        sim.hipEventElapsedTime(&raw mut ms, untimed, timed)
    );
}

fn h13_elapsed_time_of_an_event_never_recorded(mode: HipVersion) {
    let sim = machine(mode);
    let (recorded, never, mut ms) = (event(&sim), event(&sim), 0.0);
    answers!(hipSuccess, sim.hipEventRecord(recorded, null_mut()));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    answers!(
        hipErrorInvalidHandle,
        sim.hipEventElapsedTime(&raw mut ms, recorded, never)
    );
    answers!(hipErrorInvalidHandle, sim.hipGetLastError());
}

fn h14_elapsed_time_before_the_end(mode: HipVersion) {
    let sim = machine(mode);
    let (start, stop, mut ms) = (event(&sim), event(&sim), 0.0);
    answers!(hipSuccess, sim.hipEventRecord(start, null_mut()));
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipEventRecord(stop, null_mut()));
    answers!(hipErrorNotReady, sim.hipEventElapsedTime(&raw mut ms, start, stop));
    answers!(hipSuccess, sim.hipEventSynchronize(stop));
    answers!(hipSuccess, sim.hipEventElapsedTime(&raw mut ms, start, stop));
    assert!(ms > 0.0);
}

fn h15_elapsed_time_between_devices(mode: HipVersion) {
    let sim = two_cards(mode);
    let (one, mut ms) = (event(&sim), 0.0);
    answers!(hipSuccess, sim.hipEventRecord(one, null_mut()));
    answers!(hipSuccess, sim.hipSetDevice(1));
    let other = event(&sim);
    answers!(hipSuccess, sim.hipEventRecord(other, null_mut()));
    answers!(hipErrorInvalidHandle, sim.hipEventElapsedTime(&raw mut ms, one, other));
}

fn h16_destroy_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidHandle, sim.hipEventDestroy(null_mut()));
}

fn h17_destroy_twice(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipEventDestroy(event));
    answers!(hipErrorContextIsDestroyed, sim.hipEventDestroy(event));
    only_report(&sim, ReportKind::StaleHandle);
}

fn h18_destroying_an_event_lets_the_work_complete(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event) = (stream(&sim), event(&sim));
    let ptr = keep_busy(&sim, stream);
    answers!(hipSuccess, sim.hipEventRecord(event, stream));
    answers!(hipSuccess, sim.hipEventDestroy(event));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(download(&sim, ptr, N), vec![1; N]);
}

fn h_x8_waiting_for_an_event_never_recorded_orders_nothing(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, event) = (stream(&sim), event(&sim));
    answers!(hipSuccess, sim.hipStreamWaitEvent(stream, event, 0));
    answers!(hipSuccess, sim.hipStreamQuery(stream));
    assert_eq!(sim.warnings().len(), 1);
}

fn h_x9_use_of_a_destroyed_event_is_reported(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipEventDestroy(event));
    answers!(hipErrorInvalidHandle, sim.hipEventRecord(event, null_mut()));
    answers!(hipErrorInvalidHandle, sim.hipEventQuery(event));
    assert!(
        sim.take_reports()
            .iter()
            .all(|report| report.kind == ReportKind::StaleHandle)
    );
}
