//! The properties struct, of which HIP's users read what no attribute gives: the processor's name.

use crate::attributes::{MAJOR, MINOR};
use crate::cuda::CuDevice;
use crate::driver::CudaDriver;
use rocmforge_hip_sys::{hipDeviceProp_tR0600, hipError_t, hipErrorInvalidValue};
use std::ffi::c_int;

impl CudaDriver {
    /// The device of an ordinal, in the driver's words. The two are the same number in every driver so far, but only the
    /// driver may say so.
    pub(crate) fn ordinal(&self, ordinal: c_int) -> Result<CuDevice, hipError_t> {
        let mut device = 0;
        // SAFETY: `device` is a live out-pointer for the call.
        let found = self.call(|cuda| unsafe { (cuda.device_get)(&mut device, ordinal) });
        if found.is_success() { Ok(device) } else { Err(found) }
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

    /// Fills the struct with zeros but for the name (offset 0, 256 bytes) and the processor, `sm_90`. Everything else that
    /// HIP has in it is asked for as an attribute by this project.
    ///
    /// # Safety
    /// `properties` is null or points to a whole struct that may be written.
    pub(crate) unsafe fn properties(
        &self,
        properties: *mut hipDeviceProp_tR0600,
        ordinal: c_int,
    ) -> Result<(), hipError_t> {
        if properties.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let device = self.ordinal(ordinal)?;
        let (major, minor) = self.capability(device)?;
        let mut filled = hipDeviceProp_tR0600([0; 1472]);
        let name: *mut u8 = filled.0.as_mut_ptr();
        // SAFETY: the struct has more than 255 bytes, and the last of them stays 0.
        let named = self.call(|cuda| unsafe { (cuda.device_name)(name.cast(), 255, device) });
        if !named.is_success() {
            return Err(named);
        }
        let processor = format!("sm_{major}{minor}");
        let at = hipDeviceProp_tR0600::GCN_ARCH_NAME;
        filled.0[at..at + processor.len()].copy_from_slice(processor.as_bytes());
        // SAFETY: not null, and the caller promises a whole struct.
        unsafe { properties.write(filled) };
        Ok(())
    }
}
