//! Functions that answer a value and no status.

use crate::process;
use rocmforge_hip_sys::*;
use std::ffi::c_int;

pub(crate) unsafe extern "C" fn hipCreateChannelDesc(
    x: c_int,
    y: c_int,
    z: c_int,
    w: c_int,
    kind: hipChannelFormatKind,
) -> hipChannelFormatDesc {
    hipChannelFormatDesc { x, y, z, w, f: kind }
}

/// The stream's device; -1 for no stream.
pub(crate) unsafe extern "C" fn hipGetStreamDeviceId(stream: hipStream_t) -> c_int {
    let mut device = -1;
    let _ = process::call(|process| {
        // SAFETY: the machine checks the handle.
        device = unsafe { process.sim.hipGetStreamDeviceId(stream) };
        hipSuccess
    });
    device
}
