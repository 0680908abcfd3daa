//! Functions that the simulator leaves out on purpose: kernels by host address. Bad arguments get the codes HIP gives them; what is
//! left gets `hipErrorNotSupported`, so that nobody takes a simulated success for a real one.

use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

impl Call<'_> {
    /// Kernels by the address of their host function: nobody can register one here.
    pub(crate) fn launch_kernel(&mut self, function: *const c_void) -> Hip {
        fail_if(function.is_null(), hipErrorInvalidDeviceFunction)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipFuncGetAttributes(&mut self, attributes: *mut hipFuncAttributes, function: *const c_void) -> Hip {
        required(attributes)?;
        self.launch_kernel(function)
    }

    cases! {
        fn hipLaunchKernel(
            function: *const c_void, _grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared_bytes: usize, _stream: hipStream_t,
        ) => |c| c.launch_kernel(function);
        fn hipSetValidDevices(_device_arr: *mut c_int, _len: c_int)
            => |_c| Err(hipErrorNotSupported);
        fn hipProfilerStart() => |_c| Err(hipErrorNotSupported);
        fn hipProfilerStop() => |_c| Err(hipErrorNotSupported);
        fn hipCtxGetApiVersion(_ctx: hipCtx_t, _api_version: *mut c_int)
            => |_c| Err(hipErrorNotSupported);
        fn hipCtxGetFlags(_flags: *mut c_uint) => |_c| Err(hipErrorNotSupported);
        fn hipCtxSynchronize() => |_c| Err(hipErrorNotSupported);
        fn hipCtxGetCacheConfig(_cache_config: *mut hipFuncCache_t)
            => |_c| Err(hipErrorNotSupported);
        fn hipCtxSetSharedMemConfig(_config: hipSharedMemConfig)
            => |_c| Err(hipErrorNotSupported);
    }
}
