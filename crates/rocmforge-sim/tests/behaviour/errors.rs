//! J: the last error.

use crate::support::*;
use hip::*;
use std::ptr::null_mut;

#[test]
fn j01_last_error_is_returned_once() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
    answers!(hipSuccess, sim.hipGetLastError());
}

#[test]
fn j01_a_later_success_overwrites_it_in_hip_6_and_not_in_hip_7() {
    for (sim, expected) in [(machine(), hipSuccess), (hip7(), hipErrorInvalidValue)] {
        answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
        answers!(hipSuccess, sim.hipSetDevice(0));
        answers!(expected, sim.hipGetLastError());
    }
}

#[test]
fn j01_hip_7_never_stores_not_ready() {
    for (sim, expected) in [(machine(), hipErrorNotReady), (hip7(), hipSuccess)] {
        let stream = stream(&sim);
        keep_busy(&sim, stream);
        answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
        answers!(expected, sim.hipGetLastError());
    }
}

#[test]
fn ext_get_last_error_is_the_status_of_the_latest_call() {
    let sim = hip7();
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, sim.hipSetDevice(0));
    answers!(hipSuccess, sim.hipExtGetLastError());
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
}

#[test]
fn j02_last_error_is_thread_local() {
    let sim = machine();
    std::thread::scope(|scope| {
        scope.spawn(|| answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1)));
    });
    answers!(hipSuccess, sim.hipGetLastError());
}

#[test]
fn j03_peek_does_not_clear() {
    let sim = machine();
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(9));
    answers!(hipErrorInvalidDevice, sim.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, sim.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, sim.hipGetLastError());
    answers!(hipSuccess, sim.hipPeekAtLastError());
}

#[test]
fn j04_the_latest_error_wins() {
    let sim = machine();
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(9));
    answers!(hipErrorInvalidDevice, sim.hipGetLastError());
}
