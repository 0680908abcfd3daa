//! Functions that the simulator leaves out on purpose: virtual memory, kernels by host address. Bad arguments get the codes HIP gives
//! them; what is left gets
//! `hipErrorNotSupported`, so that nobody takes a simulated success for a real one.

use super::required;
use crate::machine::sim::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::c_void;

/// What virtual memory is given out in.
const GRANULARITY: usize = 4096;

impl Call<'_> {
    pub(crate) fn mem_address_reserve(&mut self, pointer: *mut *mut c_void, size: usize) -> Hip {
        required(pointer)?;
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(hipErrorOutOfMemory);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_create(
        &mut self,
        handle: *mut hipMemGenericAllocationHandle_t,
        size: usize,
        properties: *const hipMemAllocationProp,
    ) -> Hip {
        required(handle)?;
        required(properties)?;
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(hipErrorInvalidValue);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_unmap(&mut self, pointer: *mut c_void) -> Hip {
        required(pointer)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_release(&mut self, handle: hipMemGenericAllocationHandle_t) -> Hip {
        required(handle)?;
        Err(hipErrorNotSupported)
    }

    /// Kernels by the address of their host function: nobody can register one here.
    pub(crate) fn launch_kernel(&mut self, function: *const c_void) -> Hip {
        if function.is_null() {
            return Err(hipErrorInvalidDeviceFunction);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn func_get_attributes(&mut self, attributes: *mut hipFuncAttributes, function: *const c_void) -> Hip {
        required(attributes)?;
        self.launch_kernel(function)
    }
}
