//! Modules and launches.

use crate::sim::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_void};

impl Call<'_> {
    pub(crate) unsafe fn module_load_data(&mut self, _module: *mut hipModule_t, _image: *const c_void) -> Hip {
        Err(hipErrorNotSupported)
    }

    pub(crate) fn module_unload(&mut self, _module: hipModule_t) -> Hip {
        Err(hipErrorNotSupported)
    }

    pub(crate) unsafe fn module_get_function(
        &mut self,
        _function: *mut hipFunction_t,
        _module: hipModule_t,
        _name: *const c_char,
    ) -> Hip {
        Err(hipErrorNotSupported)
    }

    pub(crate) unsafe fn func_get_attribute(
        &mut self,
        _value: *mut c_int,
        _attribute: hipFunction_attribute,
        _function: hipFunction_t,
    ) -> Hip {
        Err(hipErrorNotSupported)
    }

    pub(crate) unsafe fn module_launch_kernel(
        &mut self,
        _function: hipFunction_t,
        _grid: [u32; 3],
        _block: [u32; 3],
        _shared: u32,
        _stream: hipStream_t,
        _params: *mut *mut c_void,
        _extra: *mut *mut c_void,
    ) -> Hip {
        Err(hipErrorNotSupported)
    }
}
