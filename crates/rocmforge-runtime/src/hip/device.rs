//! Calls on devices.

use super::Driver;
use crate::error::{HipError, HipResult};
use rocmforge_hip_sys::*;
use rocmforge_memory::Bytes;
use std::ffi::{c_char, c_int};

/// [`hipInit`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html) and
/// [`hipGetDeviceCount`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html): initialises HIP and
/// counts its devices.
pub(crate) fn count(api: &dyn HipApi) -> HipResult<i32> {
    // SAFETY: takes no pointer.
    let status = unsafe { api.hipInit(0) };
    // Old versions say InvalidDevice, new ones NoDevice.
    if status == hipErrorNoDevice || status == hipErrorInvalidDevice {
        return Err(HipError::DeviceNotFound { ordinal: 0, count: 0 });
    }
    if !status.is_success() {
        let call = "hipInit";
        return Err(HipError::Call { call, status });
    }
    let mut count = 0;
    // SAFETY: `count` is a live out-pointer for the call.
    let status = unsafe { api.hipGetDeviceCount(&mut count) };
    if status == hipErrorNoDevice {
        return Ok(0);
    }
    if !status.is_success() {
        let call = "hipGetDeviceCount";
        return Err(HipError::Call { call, status });
    }
    Ok(count)
}

/// [`hipDeviceGet`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html): the driver's device.
pub(crate) fn get(driver: &Driver) -> HipResult<hipDevice_t> {
    let mut device = 0;
    // SAFETY: `device` is a live out-pointer for the call.
    driver.call("hipDeviceGet", |api| unsafe {
        api.hipDeviceGet(&mut device, driver.ordinal())
    })?;
    Ok(device)
}

/// [`hipDeviceGetAttribute`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html). A negative
/// value counts as 0.
pub(crate) fn attribute(driver: &Driver, attribute: hipDeviceAttribute_t) -> HipResult<u32> {
    let mut value = 0;
    driver.call("hipDeviceGetAttribute", |api| {
        // SAFETY: `value` is a live out-pointer for the call.
        unsafe { api.hipDeviceGetAttribute(&mut value, attribute, driver.ordinal()) }
    })?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// [`hipDeviceGetName`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html).
pub(crate) fn name(driver: &Driver, device: hipDevice_t) -> HipResult<String> {
    text::<256>(|buffer, len| {
        // SAFETY: `buffer` has `len` writable bytes (`text`).
        driver.call("hipDeviceGetName", |api| unsafe {
            api.hipDeviceGetName(buffer, len, device)
        })
    })
}

/// [`hipDeviceGetPCIBusId`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html).
pub(crate) fn pci_address(driver: &Driver) -> HipResult<String> {
    text::<64>(|buffer, len| {
        driver.call("hipDeviceGetPCIBusId", |api| {
            // SAFETY: `buffer` has `len` writable bytes (`text`).
            unsafe { api.hipDeviceGetPCIBusId(buffer, len, driver.ordinal()) }
        })
    })
}

/// [`hipDeviceTotalMem`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html).
pub(crate) fn total_memory(driver: &Driver, device: hipDevice_t) -> HipResult<Bytes> {
    let mut total = 0;
    // SAFETY: `total` is a live out-pointer for the call.
    driver.call("hipDeviceTotalMem", |api| unsafe {
        api.hipDeviceTotalMem(&mut total, device)
    })?;
    Ok(Bytes::from_usize(total))
}

/// [`hipRuntimeGetVersion`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___driver.html).
pub(crate) fn version(driver: &Driver) -> HipResult<i32> {
    let mut version = 0;
    // SAFETY: `version` is a live out-pointer for the call.
    driver.call("hipRuntimeGetVersion", |api| unsafe {
        api.hipRuntimeGetVersion(&mut version)
    })?;
    Ok(version)
}

/// [`hipGetDeviceProperties`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___device.html): `gcnArchName`
/// of the struct whose layout is known by the symbol's name: R0600 if the library has it, else the old one.
pub(crate) fn arch_name(driver: &Driver) -> HipResult<String> {
    const ARCH_LEN: usize = 256;
    /// Larger than any version of the struct: a library that writes more than it should does no harm.
    #[repr(C, align(8))]
    struct Room<T>(T, [u8; 2624]);

    let mut new = Room(hipDeviceProp_tR0600([0; 1472]), [0; 2624]);
    let status = driver.status(|api| {
        let properties: *mut hipDeviceProp_tR0600 = (&raw mut new).cast();
        // SAFETY: `properties` points at the start of 4 KiB that live for the call.
        unsafe { api.hipGetDevicePropertiesR0600(properties, driver.ordinal()) }
    })?;
    if status != hipErrorNotSupported {
        driver.check("hipGetDevicePropertiesR0600", status)?;
        let at = hipDeviceProp_tR0600::GCN_ARCH_NAME;
        return Ok(c_text(&new.0.0[at..at + ARCH_LEN]));
    }
    let mut old = Room(hipDeviceProp_tR0000([0; 792]), [0; 2624]);
    driver.call("hipGetDeviceProperties", |api| {
        let properties: *mut hipDeviceProp_tR0000 = (&raw mut old).cast();
        // SAFETY: `properties` points at the start of more than 3 KiB that live for the call.
        unsafe { api.hipGetDeviceProperties(properties, driver.ordinal()) }
    })?;
    let at = hipDeviceProp_tR0000::GCN_ARCH_NAME;
    Ok(c_text(&old.0.0[at..at + ARCH_LEN]))
}

/// Calls something that writes a C string.
fn text<const N: usize>(call: impl FnOnce(*mut c_char, c_int) -> HipResult<()>) -> HipResult<String> {
    let mut buffer = [0u8; N];
    // One byte less than there is: whatever the library does, the last byte stays 0.
    call(buffer.as_mut_ptr().cast(), (N - 1) as c_int)?;
    Ok(c_text(&buffer))
}

fn c_text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).trim().to_owned()
}
