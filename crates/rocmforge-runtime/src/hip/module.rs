//! Calls on modules and kernels.

use super::{Driver, Function, Module, Stream};
use crate::error::HipResult;
use std::ffi::{CStr, c_void};

/// [`hipModuleLoadData`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___module.html).
///
/// # Safety
///
/// `image` is a whole code object, or text that ends with a zero, and is kept as long as the module.
pub(crate) unsafe fn load(driver: &Driver, image: &[u64]) -> HipResult<Module> {
    driver.make("hipModuleLoadData", |api, raw| {
        // SAFETY: `raw` is a live out-pointer (`make`); the image is as the caller promises.
        unsafe { api.hipModuleLoadData(raw, image.as_ptr().cast()) }
    })
}

/// [`hipModuleUnload`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___module.html).
pub(crate) fn unload(driver: &Driver, module: Module) -> HipResult<()> {
    // SAFETY: loaded and this driver's (`raw`), and nobody has it from now on; none of its kernels runs: the callers of
    // `launch` promised that.
    driver.call("hipModuleUnload", |api| unsafe {
        api.hipModuleUnload(driver.raw(&module))
    })
}

/// [`hipModuleGetFunction`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___module.html).
pub(crate) fn function(driver: &Driver, module: &Module, name: &CStr) -> HipResult<Function> {
    driver.make("hipModuleGetFunction", |api, raw| {
        // SAFETY: `raw` is a live out-pointer (`make`), the module is loaded and this driver's (`raw`), a `CStr` ends with NUL.
        unsafe { api.hipModuleGetFunction(raw, driver.raw(module), name.as_ptr()) }
    })
}

/// [`hipModuleLaunchKernel`](https://rocm.docs.amd.com/projects/HIP/en/latest/doxygen/html/group___module.html). `size` is the
/// grid in blocks, the block in threads, and the bytes of dynamic LDS.
///
/// # Safety
///
/// The function's module is loaded until the kernel is done. Each of `params` points at as many bytes as the kernel declares for
/// that argument, and the kernel may run with these arguments and this size.
pub(crate) unsafe fn launch(
    driver: &Driver,
    function: &Function,
    ([gx, gy, gz], [bx, by, bz], lds): ([u32; 3], [u32; 3], u32),
    stream: &Stream,
    params: &mut [*mut c_void],
) -> HipResult<()> {
    driver.call("hipModuleLaunchKernel", |api| {
        let (params, none) = (params.as_mut_ptr(), std::ptr::null_mut());
        let (function, stream) = (driver.raw(function), driver.raw(stream));
        // SAFETY: the stream is live (`raw`); the rest is promised by the caller. HIP copies what `params` points at before it
        // returns.
        unsafe { api.hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, lds, stream, params, none) }
    })
}
