//! Calls that enqueue copies and fills.

use super::{Driver, Stream};
use crate::error::HipResult;
use rocmforge_hip_sys::hipMemcpyKind;
use std::ffi::c_void;

/// [`hipMemcpyAsync`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html).
///
/// # Safety
///
/// Both ranges have `bytes` bytes and are of `kind`; until the copy is done neither is freed, nothing writes `from` and nothing
/// uses `to`. Host memory is pinned.
pub(crate) unsafe fn copy(
    driver: &Driver,
    to: *mut c_void,
    from: *const c_void,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: &Stream,
) -> HipResult<()> {
    driver.call("hipMemcpyAsync", |api| {
        // SAFETY: the stream is live (`raw`); the ranges are as the caller promises.
        unsafe { api.hipMemcpyAsync(to, from, bytes, kind, driver.raw(stream)) }
    })
}

/// [`hipMemsetAsync`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html).
///
/// # Safety
///
/// `to` has `bytes` bytes of device memory, which is not freed before the fill is done.
pub(crate) unsafe fn fill(driver: &Driver, to: *mut c_void, byte: u8, bytes: usize, stream: &Stream) -> HipResult<()> {
    driver.call("hipMemsetAsync", |api| {
        // SAFETY: the stream is live (`raw`); the range is as the caller promises.
        unsafe { api.hipMemsetAsync(to, i32::from(byte), bytes, driver.raw(stream)) }
    })
}
