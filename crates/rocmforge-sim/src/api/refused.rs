//! Functions that the simulator leaves out on purpose: kernels by host address. Bad arguments get the codes HIP gives them; what is
//! left gets `hipErrorNotSupported`, so that nobody takes a simulated success for a real one.

use super::required;
use crate::calls::call::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::c_void;

impl Call<'_> {
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
