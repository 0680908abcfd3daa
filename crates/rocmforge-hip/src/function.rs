//! Kernels: attributes, occupancy and modules, by host address or by handle.

use crate::process::{self, answered};
use crate::registry;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// Does something with the kernel of a host address.
fn with_function(
    api: &'static str,
    host: *const c_void,
    body: impl FnOnce(&Process, hipFunction_t) -> hipError_t,
) -> hipError_t {
    process::call(|process| match registry::function(process, host) {
        Ok(function) => body(process, function),
        Err(status) => process.sim.answered(api, status),
    })
}

pub(crate) unsafe extern "C" fn hipGetFuncBySymbol(function: *mut hipFunction_t, host: *const c_void) -> hipError_t {
    with_function("hipGetFuncBySymbol", host, |process, found| {
        if function.is_null() {
            return process.sim.answered("hipGetFuncBySymbol", hipErrorInvalidValue);
        }
        // SAFETY: promised by the program; not null.
        unsafe { function.write(found) };
        hipSuccess
    })
}

/// An attribute of a kernel; 0 if the machine knows none of this number.
fn attribute(process: &Process, function: hipFunction_t, attribute: hipFunction_attribute) -> c_int {
    let mut value = 0;
    // SAFETY: a live out-pointer; the machine checks the handle.
    let _ = unsafe { process.sim.hipFuncGetAttribute(&raw mut value, attribute, function) };
    value
}

pub(crate) unsafe extern "C" fn hipFuncGetAttributes(
    attributes: *mut hipFuncAttributes,
    host: *const c_void,
) -> hipError_t {
    with_function("hipFuncGetAttributes", host, |process, function| {
        if attributes.is_null() {
            return process.sim.answered("hipFuncGetAttributes", hipErrorInvalidValue);
        }
        let of = |number| attribute(process, function, number);
        let size = |number| usize::try_from(of(number)).unwrap_or_default();
        let found = hipFuncAttributes {
            binaryVersion: of(HIP_FUNC_ATTRIBUTE_BINARY_VERSION),
            cacheModeCA: of(HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA),
            constSizeBytes: size(HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES),
            localSizeBytes: size(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            maxDynamicSharedSizeBytes: of(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES),
            maxThreadsPerBlock: of(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
            numRegs: of(HIP_FUNC_ATTRIBUTE_NUM_REGS),
            preferredShmemCarveout: 0,
            ptxVersion: of(HIP_FUNC_ATTRIBUTE_PTX_VERSION),
            sharedSizeBytes: size(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
        };
        // SAFETY: promised by the program; not null.
        unsafe { attributes.write(found) };
        hipSuccess
    })
}

pub(crate) unsafe extern "C" fn hipFuncSetAttribute(host: *const c_void, which: c_int, value: c_int) -> hipError_t {
    /// `hipFuncAttributeMaxDynamicSharedMemorySize` and `hipFuncAttributePreferredSharedMemoryCarveout`.
    const LDS: c_int = 8;
    const CARVEOUT: c_int = 9;
    with_function("hipFuncSetAttribute", host, |process, function| {
        let most = attribute(process, function, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
        let fits = match which {
            LDS => (0..=most).contains(&value),
            CARVEOUT => (-1..=100).contains(&value),
            _ => false,
        };
        let status = if fits { hipSuccess } else { hipErrorInvalidValue };
        process.sim.answered("hipFuncSetAttribute", status)
    })
}

/// Caches and banks of LDS have one mode on AMD's cards.
pub(crate) unsafe extern "C" fn hipFuncSetCacheConfig(_host: *const c_void, _config: c_int) -> hipError_t {
    answered("hipFuncSetCacheConfig", |_| Ok(()))
}

pub(crate) unsafe extern "C" fn hipFuncSetSharedMemConfig(_host: *const c_void, _config: c_int) -> hipError_t {
    answered("hipFuncSetSharedMemConfig", |_| Ok(()))
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessor(
    blocks: *mut c_int,
    host: *const c_void,
    block_size: c_int,
    lds: usize,
) -> hipError_t {
    with_function(
        "hipOccupancyMaxActiveBlocksPerMultiprocessor",
        host,
        |process, function| {
            // SAFETY: promised by the program.
            unsafe {
                process
                    .sim
                    .hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, block_size, lds)
            }
        },
    )
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    blocks: *mut c_int,
    host: *const c_void,
    block_size: c_int,
    lds: usize,
    flags: c_uint,
) -> hipError_t {
    with_function(
        "hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags",
        host,
        |process, function| {
            // SAFETY: promised by the program.
            unsafe {
                process.sim.hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                    blocks, function, block_size, lds, flags,
                )
            }
        },
    )
}

pub(crate) unsafe extern "C" fn hipOccupancyMaxPotentialBlockSize(
    grid: *mut c_int,
    block: *mut c_int,
    host: *const c_void,
    lds: usize,
    limit: c_int,
) -> hipError_t {
    with_function("hipOccupancyMaxPotentialBlockSize", host, |process, function| {
        // SAFETY: promised by the program.
        unsafe {
            process
                .sim
                .hipModuleOccupancyMaxPotentialBlockSize(grid, block, function, lds, limit)
        }
    })
}

/// Options are for compilers of intermediate code, which a code object is not.
pub(crate) unsafe extern "C" fn hipModuleLoadDataEx(
    module: *mut hipModule_t,
    image: *const c_void,
    _count: c_uint,
    _options: *mut c_int,
    _values: *mut *mut c_void,
) -> hipError_t {
    // SAFETY: promised by the program.
    process::call(|process| unsafe { process.sim.hipModuleLoadData(module, image) })
}

pub(crate) unsafe extern "C" fn hipModuleLoadFatBinary(module: *mut hipModule_t, image: *const c_void) -> hipError_t {
    // SAFETY: promised by the program.
    process::call(|process| unsafe { process.sim.hipModuleLoadData(module, image) })
}
