//! J: the last error.

use super::modes::*;
use hip::*;
use std::ffi::CStr;
use std::ptr::{null, null_mut};

rows! {
    j06_the_name_of_an_unknown_code,
    j07_the_driver_name_of_an_unknown_code,
}

#[test]
fn ext_get_last_error_is_the_status_of_the_latest_call() {
    let sim = machine(Hip7);
    answers!(hipErrorInvalidValue, sim.hipMalloc(null_mut(), 1));
    answers!(hipSuccess, sim.hipSetDevice(0));
    answers!(hipSuccess, sim.hipExtGetLastError());
    answers!(hipErrorInvalidValue, sim.hipGetLastError());
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
