//! Modules and launches.

use crate::attributes::{self, MAX_SHARED};
use crate::cuda::{Handle, LaunchAttribute, LaunchConfig};
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};

impl Driver {
    /// The image is PTX text that ends with a NUL byte, or a cubin.
    pub(crate) unsafe fn hipModuleLoadData(&self, module: *mut hipModule_t, image: *const c_void) -> hipError_t {
        if module.is_null() || image.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: none is null; the caller's.
        let loaded = self.on_device(|cuda| unsafe { (cuda.module_load)(module.cast(), image) });
        if !loaded.is_success() {
            return loaded;
        }
        // SAFETY: not null, and the driver has just read more than a byte of it.
        let is_text = matches!(unsafe { image.cast::<u8>().read() }, b'/' | b'.' | b' ' | b'\n');
        if is_text {
            // SAFETY: a text, which ends with a NUL byte as the driver wants it.
            let ptx = unsafe { CStr::from_ptr(image.cast()) };
            // SAFETY: the driver has just written it.
            let module: Handle = unsafe { *module }.cast();
            self.early.load(module, &ptx.to_string_lossy());
        }
        loaded
    }

    pub(crate) unsafe fn hipModuleUnload(&self, module: hipModule_t) -> hipError_t {
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // First: another thread may get the address for a module of its own.
        self.early.unload(module.cast());
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.module_unload)(module.cast()) })
    }

    /// A launch of the function may ask for as much dynamic shared memory as a block of the device can have beside what the
    /// function declares, as HIP has it on AMD's cards. The driver keeps a function to 48 KiB until the limit is raised.
    pub(crate) unsafe fn hipModuleGetFunction(
        &self,
        function: *mut hipFunction_t,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        if function.is_null() || name.is_null() {
            return remember(hipErrorInvalidValue);
        }
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: none is null; the caller's.
        let found = self.on_device(|cuda| unsafe { (cuda.module_function)(function.cast(), module.cast(), name) });
        if !found.is_success() {
            return found;
        }
        // SAFETY: the driver has just written it.
        let handle: Handle = unsafe { *function }.cast();
        // SAFETY: not null, and a text that ends with a NUL byte: the driver has found it.
        let name = unsafe { CStr::from_ptr(name) };
        self.early.found(handle, module.cast(), &name.to_string_lossy());
        self.allow_dynamic_shared(handle)
    }

    fn allow_dynamic_shared(&self, function: Handle) -> hipError_t {
        let device = match self.ordinal(self.device()) {
            Ok(device) => device,
            Err(failure) => return failure,
        };
        let (mut most, mut declared) = (0, 0);
        // SAFETY: `most` is a live out-pointer for the call.
        let asked = self.call(|cuda| unsafe { (cuda.device_attribute)(&mut most, MAX_SHARED, device) });
        if !asked.is_success() {
            return asked;
        }
        let declares = HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES as c_int;
        // SAFETY: `declared` is a live out-pointer for the call, the function is the driver's.
        let asked = self.call(|cuda| unsafe { (cuda.function_attribute)(&mut declared, declares, function) });
        if !asked.is_success() {
            return asked;
        }
        let attribute = HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_int;
        let dynamic = most.saturating_sub(declared).max(0);
        // SAFETY: the function is the driver's; the rest are numbers.
        self.call(|cuda| unsafe { (cuda.function_set_attribute)(function, attribute, dynamic) })
    }

    pub(crate) unsafe fn hipModuleGetGlobal(
        &self,
        global: *mut hipDeviceptr_t,
        bytes: *mut usize,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: the module is not null; the caller's. Device addresses have the representation of pointers.
        self.on_device(|cuda| unsafe { (cuda.module_global)(global.cast(), bytes, module.cast(), name) })
    }

    pub(crate) unsafe fn hipFuncGetAttribute(
        &self,
        value: *mut c_int,
        attribute: hipFunction_attribute,
        function: hipFunction_t,
    ) -> hipError_t {
        if function.is_null() {
            return remember(hipErrorInvalidDeviceFunction);
        }
        let Some(attribute) = attributes::function(attribute) else {
            return remember(hipErrorInvalidValue);
        };
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.function_attribute)(value, attribute, function.cast()) })
    }

    pub(crate) unsafe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        &self,
        blocks: *mut c_int,
        function: hipFunction_t,
        block_size: c_int,
        dynamic_lds: usize,
    ) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.function_occupancy)(blocks, function.cast(), block_size, dynamic_lds) })
    }

    pub(crate) unsafe fn hipModuleLaunchKernel(
        &self,
        function: hipFunction_t,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: hipStream_t,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> hipError_t {
        if function.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // The two platforms end the list of `extra` with different values; this project passes `params`.
        if !extra.is_null() {
            return remember(hipErrorNotSupported);
        }
        if self.early.has(function.cast()) && self.is_capturing(stream) {
            let mut early = LaunchAttribute::EARLY;
            let config = LaunchConfig {
                grid: [grid_x, grid_y, grid_z],
                block: [block_x, block_y, block_z],
                shared_bytes,
                stream: stream.cast(),
                attributes: &mut early,
                attribute_count: 1,
            };
            // SAFETY: `config` lives for the call; the function is not null and waits for the launches before by itself; the caller's.
            return self.on_device(|cuda| unsafe {
                (cuda.launch_with)(&config, function.cast(), params, std::ptr::null_mut())
            });
        }
        // SAFETY: the function is not null; the caller's.
        self.on_device(|cuda| unsafe {
            (cuda.launch)(
                function.cast(),
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared_bytes,
                stream.cast(),
                params,
                std::ptr::null_mut(),
            )
        })
    }
}
