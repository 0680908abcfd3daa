//! Calls that allocate and free memory.

use super::{Address, Driver};
use crate::error::{HipError, HipResult};
use rocmforge_hip_sys::*;
use rocmforge_memory::Bytes;

/// [`hipMalloc`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html). `None`: out of memory.
pub(crate) fn malloc(driver: &Driver, bytes: Bytes) -> HipResult<Option<Address>> {
    let Some(bytes) = bytes.to_usize() else { return Ok(None) };
    let allocated = driver.make("hipMalloc", |api, raw| {
        // SAFETY: `raw` is a live out-pointer for the call (`make`).
        unsafe { api.hipMalloc(raw, bytes) }
    });
    match allocated {
        Err(HipError::Call {
            call: "hipMalloc",
            status,
        }) if status == hipErrorOutOfMemory => Ok(None),
        allocated => allocated.map(Some),
    }
}

/// [`hipFree`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html). May wait for the device.
///
/// # Safety
///
/// The address is from [`malloc`], and nobody uses the memory from now on.
pub(crate) unsafe fn free(driver: &Driver, memory: Address) -> HipResult<()> {
    // SAFETY: from `hipMalloc` and freed once, as the caller promises.
    driver.call("hipFree", |api| unsafe { api.hipFree(memory.0) })
}

/// [`hipHostMalloc`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html): pinned host memory.
pub(crate) fn host_malloc(driver: &Driver, bytes: usize) -> HipResult<Address> {
    driver.make("hipHostMalloc", |api, raw| {
        // SAFETY: `raw` is a live out-pointer for the call (`make`).
        unsafe { api.hipHostMalloc(raw, bytes, hipHostMallocDefault) }
    })
}

/// [`hipHostFree`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html). May wait for the device.
///
/// # Safety
///
/// The address is from [`host_malloc`], and nobody uses the memory from now on.
pub(crate) unsafe fn host_free(driver: &Driver, memory: Address) -> HipResult<()> {
    // SAFETY: from `hipHostMalloc` and freed once, as the caller promises.
    driver.call("hipHostFree", |api| unsafe { api.hipHostFree(memory.0) })
}

/// [`hipMemGetInfo`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html): free and total.
pub(crate) fn info(driver: &Driver) -> HipResult<(Bytes, Bytes)> {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are live out-pointers for the call.
    driver.call("hipMemGetInfo", |api| unsafe {
        api.hipMemGetInfo(&mut free, &mut total)
    })?;
    Ok((Bytes::from_usize(free), Bytes::from_usize(total)))
}
