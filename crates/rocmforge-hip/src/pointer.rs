//! Attributes of pointers, whose kinds of memory HIP 5 numbers otherwise than HIP 6 and 7.

use crate::process;
use crate::settings::Abi;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

/// `hipMemoryTypeHost` and `hipMemoryTypeDevice` of HIP 5.
const HOST_5: hipMemoryType = 0;
const DEVICE_5: hipMemoryType = 1;
const ARRAY_5: hipMemoryType = 2;
const UNIFIED_5: hipMemoryType = 3;

/// The kind of memory that HIP 6 and 7 mean by another number. What is none stays one.
pub(crate) fn from_hip_5(kind: hipMemoryType) -> hipMemoryType {
    match kind {
        HOST_5 => hipMemoryTypeHost,
        DEVICE_5 => hipMemoryTypeDevice,
        ARRAY_5 => hipMemoryTypeArray,
        UNIFIED_5 => hipMemoryTypeUnified,
        other => other,
    }
}

pub(crate) unsafe extern "C" fn hipPointerGetAttributes(
    attributes: *mut hipPointerAttribute_t,
    pointer: *const c_void,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let status = unsafe { process.sim.hipPointerGetAttributes(attributes, pointer) };
        if process.abi != Abi::Hip5 || !status.is_success() {
            return status;
        }
        // SAFETY: the call has succeeded, so that it has written there.
        let Some(found) = (unsafe { attributes.as_mut() }) else {
            return status;
        };
        found.r#type = match found.r#type {
            hipMemoryTypeDevice => DEVICE_5,
            hipMemoryTypeUnregistered => return process.sim.answered("hipPointerGetAttributes", hipErrorInvalidValue),
            _ => HOST_5,
        };
        status
    })
}
