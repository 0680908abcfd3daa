//! J: the last error.

use crate::modes::*;
use hip::*;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

rows! {
    j01_last_error_is_returned_once,
    j01_a_later_success_overwrites_it_in_hip_6_and_not_in_hip_7,
    j01_hip_7_never_stores_not_ready,
    j02_last_error_is_thread_local,
    j03_peek_does_not_clear,
    j04_the_latest_error_wins,
    j06_the_name_of_an_unknown_code,
    j07_the_driver_name_of_an_unknown_code,
}

fn j01_last_error_is_returned_once(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
    answers!(hipSuccess, sim.hipGetLastError());
}

fn j01_a_later_success_overwrites_it_in_hip_6_and_not_in_hip_7(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, sim.hipSetDevice(0));
    answers!(by_mode(mode, hipSuccess, hipErrorInvalidValue), sim.hipGetLastError());
}

fn j01_hip_7_never_stores_not_ready(mode: HipVersion) {
    let sim = machine(mode);
    let stream = stream(&sim);
    keep_busy(&sim, stream);
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    answers!(by_mode(mode, hipErrorNotReady, hipSuccess), sim.hipGetLastError());
}

#[test]
fn ext_get_last_error_is_the_status_of_the_latest_call() {
    let sim = machine(Hip7);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, sim.hipSetDevice(0));
    answers!(hipSuccess, sim.hipExtGetLastError());
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
}

fn j02_last_error_is_thread_local(mode: HipVersion) {
    let sim = machine(mode);
    std::thread::scope(|scope| {
        scope.spawn(|| answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1)));
    });
    answers!(hipSuccess, sim.hipGetLastError());
}

fn j03_peek_does_not_clear(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(9));
    answers!(hipErrorInvalidDevice, sim.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, sim.hipPeekAtLastError());
    answers!(hipErrorInvalidDevice, sim.hipGetLastError());
    answers!(hipSuccess, sim.hipPeekAtLastError());
}

fn j04_the_latest_error_wins(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipErrorInvalidDevice, sim.hipSetDevice(9));
    answers!(hipErrorInvalidDevice, sim.hipGetLastError());
}

/// A status no HIP has.
const UNKNOWN: hipError_t = hipError_t(u32::MAX);

fn j06_the_name_of_an_unknown_code(mode: HipVersion) {
    let sim = machine(mode);
    for (status, expected) in [
        (UNKNOWN, c"hipErrorUnknown"),
        (hipErrorOutOfMemory, c"hipErrorOutOfMemory"),
    ] {
        let name = sim.hipGetErrorName(status);
        assert!(!name.is_null());
        // SAFETY: the function answers a text that lives as long as the program.
        assert_eq!(unsafe { CStr::from_ptr(name) }, expected);
    }
}

fn j07_the_driver_name_of_an_unknown_code(mode: HipVersion) {
    let sim = machine(mode);
    let mut name = null();
    answers!(hipErrorInvalidValue, sim.hipDrvGetErrorName(UNKNOWN, &raw mut name));
    assert!(name.is_null(), "not written");
    answers!(
        hipErrorInvalidValue,
        sim.hipDrvGetErrorName(hipErrorNotReady, null_mut())
    );
    answers!(hipSuccess, sim.hipDrvGetErrorName(hipErrorNotReady, &raw mut name));
    // SAFETY: the function answers a text that lives as long as the program.
    assert_eq!(unsafe { CStr::from_ptr(name) }, c"hipErrorNotReady");
}
