//! The properties structs, of which HIP's users read what no attribute gives: the processor's name.

use crate::attributes::{MAJOR, MINOR};
use crate::cuda::CuDevice;
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::c_int;

impl Driver {
    pub(crate) unsafe fn hipGetDevicePropertiesR0600(
        &self,
        properties: *mut hipDeviceProp_tR0600,
        device: c_int,
    ) -> hipError_t {
        let filled = self.properties(device, hipDeviceProp_tR0600::GCN_ARCH_NAME);
        // SAFETY: the caller's.
        unsafe { answer(properties, filled.map(hipDeviceProp_tR0600)) }
    }

    pub(crate) unsafe fn hipGetDeviceProperties(
        &self,
        properties: *mut hipDeviceProp_tR0000,
        device: c_int,
    ) -> hipError_t {
        let filled = self.properties(device, hipDeviceProp_tR0000::GCN_ARCH_NAME);
        // SAFETY: the caller's.
        unsafe { answer(properties, filled.map(hipDeviceProp_tR0000)) }
    }

    /// A struct of zeros except for the name (offset 0, 256 bytes) and the processor, `sm_90`. Everything else that HIP has in it
    /// is asked for as an attribute by this project.
    fn properties<const SIZE: usize>(&self, ordinal: c_int, processor_at: usize) -> Result<[u8; SIZE], hipError_t> {
        let device = self.ordinal(ordinal)?;
        let (major, minor) = self.capability(device)?;
        let mut filled = [0; SIZE];
        let name: *mut u8 = filled.as_mut_ptr();
        // SAFETY: both structs have more than 255 bytes, and the last of them stays 0.
        let named = self.call(|cuda| unsafe { (cuda.device_name)(name.cast(), 255, device) });
        if !named.is_success() {
            return Err(named);
        }
        let processor = format!("sm_{major}{minor}");
        filled[processor_at..processor_at + processor.len()].copy_from_slice(processor.as_bytes());
        Ok(filled)
    }

    fn capability(&self, device: CuDevice) -> Result<(c_int, c_int), hipError_t> {
        let mut numbers = [0, 0];
        for (number, attribute) in numbers.iter_mut().zip([MAJOR, MINOR]) {
            // SAFETY: `number` is a live out-pointer for the call.
            let asked = self.call(|cuda| unsafe { (cuda.device_attribute)(number, attribute, device) });
            if !asked.is_success() {
                return Err(asked);
            }
        }
        Ok((numbers[0], numbers[1]))
    }
}

/// # Safety
/// `to` is null or points to a whole struct that may be written.
unsafe fn answer<T>(to: *mut T, properties: Result<T, hipError_t>) -> hipError_t {
    match properties {
        _ if to.is_null() => remember(hipErrorInvalidValue),
        Ok(properties) => {
            // SAFETY: not null, and the caller promises a whole struct.
            unsafe { to.write(properties) };
            hipSuccess
        }
        Err(failure) => remember(failure),
    }
}
