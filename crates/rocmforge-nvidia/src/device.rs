//! Versions, devices and their attributes.

use crate::attributes;
use crate::cuda::CuDevice;
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint};

impl Driver {
    pub(crate) unsafe fn hipInit(&self, flags: c_uint) -> hipError_t {
        // SAFETY: takes no pointer.
        self.call(|cuda| unsafe { (cuda.init)(flags) })
    }

    /// The driver's version (12 080 is CUDA 12.8): this platform has no HIP library that could have one.
    pub(crate) unsafe fn hipRuntimeGetVersion(&self, version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.hipDriverGetVersion(version) }
    }

    pub(crate) unsafe fn hipDriverGetVersion(&self, version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.driver_version)(version) })
    }

    pub(crate) unsafe fn hipGetDeviceCount(&self, count: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_count)(count) })
    }

    pub(crate) unsafe fn hipSetDevice(&self, device: c_int) -> hipError_t {
        self.set_device(device)
    }

    pub(crate) unsafe fn hipGetDevice(&self, device: *mut c_int) -> hipError_t {
        if device.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        unsafe { device.write(self.device()) };
        hipSuccess
    }

    pub(crate) unsafe fn hipDeviceGet(&self, device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_get)(device, ordinal) })
    }

    pub(crate) unsafe fn hipDeviceGetName(&self, name: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t {
        // The driver crashes.
        if name.is_null() || len <= 0 {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null, and not without room; the caller's.
        self.call(|cuda| unsafe { (cuda.device_name)(name, len, device) })
    }

    pub(crate) unsafe fn hipDeviceGetAttribute(
        &self,
        value: *mut c_int,
        attribute: hipDeviceAttribute_t,
        device: c_int,
    ) -> hipError_t {
        let (attribute, device) = match (attributes::device(attribute), self.ordinal(device)) {
            (Some(attribute), Ok(device)) => (attribute, device),
            (None, _) => return remember(hipErrorInvalidValue),
            (_, Err(failure)) => return failure,
        };
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_attribute)(value, attribute, device) })
    }

    pub(crate) unsafe fn hipDeviceTotalMem(&self, bytes: *mut usize, device: hipDevice_t) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_total_memory)(bytes, device) })
    }

    pub(crate) unsafe fn hipDeviceGetPCIBusId(&self, id: *mut c_char, len: c_int, device: c_int) -> hipError_t {
        match self.ordinal(device) {
            // SAFETY: the caller's.
            Ok(device) => self.call(|cuda| unsafe { (cuda.device_pci_bus_id)(id, len, device) }),
            Err(failure) => failure,
        }
    }

    pub(crate) unsafe fn hipDeviceGetStreamPriorityRange(&self, least: *mut c_int, greatest: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.context_priority_range)(least, greatest) })
    }

    /// The device of an ordinal, in the driver's words. The two are the same number in every driver so far, but only the
    /// driver may say so.
    pub(crate) fn ordinal(&self, ordinal: c_int) -> Result<CuDevice, hipError_t> {
        let mut device = 0;
        // SAFETY: `device` is a live out-pointer for the call.
        let found = self.call(|cuda| unsafe { (cuda.device_get)(&mut device, ordinal) });
        if found.is_success() { Ok(device) } else { Err(found) }
    }
}
