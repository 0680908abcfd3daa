//! H: events.

use super::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

rows! {
    h05_record_on_another_device,
    h15_elapsed_time_between_devices,
    h17_destroy_twice,
    h_x9_use_of_a_destroyed_event_is_reported,
}

fn h05_record_on_another_device(mode: HipVersion) {
    let sim = two_cards(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipSetDevice(1));
    let stream = stream(&sim);
    answers!(hipErrorInvalidHandle, sim.hipEventRecord(event, stream));
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

fn h17_destroy_twice(mode: HipVersion) {
    let sim = machine(mode);
    let event = event(&sim);
    answers!(hipSuccess, sim.hipEventDestroy(event));
    answers!(hipErrorContextIsDestroyed, sim.hipEventDestroy(event));
    only_report(&sim, ReportKind::StaleHandle);
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
