//! J: the last error.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    j01_last_error_is_returned_once,
    j01_a_later_success_overwrites_it_in_hip_6_and_not_in_hip_7,
    j01_hip_7_never_stores_not_ready,
    j02_last_error_is_thread_local,
    j03_peek_does_not_clear,
    j04_the_latest_error_wins,
}

fn j01_last_error_is_returned_once(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidValue, rig.hipGetLastError());
    answers!(hipSuccess, rig.hipGetLastError());
}

fn j01_a_later_success_overwrites_it_in_hip_6_and_not_in_hip_7(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, rig.hipSetDevice(rig.ordinal));
    answers!(rig.by_version(hipSuccess, hipErrorInvalidValue), rig.hipGetLastError());
}

fn j01_hip_7_never_stores_not_ready(rig: &Rig) {
    let stream = rig.stream();
    let busy = rig.keep_busy(stream);
    answers!(hipErrorNotReady, rig.hipStreamQuery(stream));
    answers!(rig.by_version(hipErrorNotReady, hipSuccess), rig.hipGetLastError());
    busy.end();
    rig.wait(stream);
}

fn j02_last_error_is_thread_local(rig: &Rig) {
    std::thread::scope(|scope| {
        scope.spawn(|| answers!(hipErrorInvalidValue, rig.hipMalloc(null_mut(), 1)));
    });
    answers!(hipSuccess, rig.hipGetLastError());
}

fn j03_peek_does_not_clear(rig: &Rig) {
    answers!(hipErrorInvalidDevice, rig.hipSetDevice(rig.no_device()));
    answers!(hipErrorInvalidDevice, rig.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, rig.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, rig.hipGetLastError());
    answers!(hipSuccess, rig.hipPeekAtLastError());
}

fn j04_the_latest_error_wins(rig: &Rig) {
    answers!(hipErrorInvalidValue, rig.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidDevice, rig.hipSetDevice(rig.no_device()));
    answers!(hipErrorInvalidDevice, rig.hipGetLastError());
}
