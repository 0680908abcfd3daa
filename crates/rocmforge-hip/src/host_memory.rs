//! Allocation of pinned memory under its newer name.

use crate::forwarded;
use rocmforge_hip_sys::hipError_t;
use std::ffi::{c_uint, c_void};

/// `hipHostMalloc`: the headers of HIP 6.3 and later call this one in its place.
pub(crate) unsafe extern "C" fn hipExtHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t {
    // SAFETY: the same function under another name.
    unsafe { forwarded::hipHostMalloc(ptr, size, flags) }
}
