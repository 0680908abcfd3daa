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
pub(crate) fn free(driver: &Driver, memory: Address) -> HipResult<()> {
    // SAFETY: from this driver's `hipMalloc` (`raw`), and nobody has it from now on; no work uses it: whoever enqueued some
    // promised that.
    driver.call("hipFree", |api| unsafe { api.hipFree(driver.raw(&memory)) })
}

/// Pinned host memory. The host may use it only while no work on the device does: the callers of `copy::copy` promise that.
pub(crate) struct HostMemory {
    address: Address,
    bytes: usize,
}

impl HostMemory {
    pub(crate) fn ptr(&self) -> *mut u8 {
        self.address.address().cast()
    }

    /// All of it.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: `host_malloc` got and initialised as many bytes. Callers of `copy::copy` promise that nothing else uses the range
        // until the copy is done; `Staging` hands out slots whose copies are done (`Slot::wait`, `Slot::is_idle`).
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.bytes) }
    }
}

/// [`hipHostMalloc`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html): pinned host memory, of
/// zero bytes.
pub(crate) fn host_malloc(driver: &Driver, bytes: usize) -> HipResult<HostMemory> {
    let address = driver.make("hipHostMalloc", |api, raw| {
        // SAFETY: `raw` is a live out-pointer for the call (`make`).
        unsafe { api.hipHostMalloc(raw, bytes, hipHostMallocDefault) }
    })?;
    // SAFETY: just allocated with that many bytes, and nobody else knows it.
    unsafe { address.address().cast::<u8>().write_bytes(0, bytes) };
    Ok(HostMemory { address, bytes })
}

/// [`hipHostFree`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___memory.html). May wait for the device.
pub(crate) fn host_free(driver: &Driver, memory: HostMemory) -> HipResult<()> {
    // SAFETY: as for `free`, from this driver's `hipHostMalloc`.
    driver.call("hipHostFree", |api| unsafe {
        api.hipHostFree(driver.raw(&memory.address))
    })
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
