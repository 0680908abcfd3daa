//! Launches of kernels by the host addresses that compiled programs have for them.

use crate::process;
use crate::registry;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// A launch, in workgroups and work-items.
#[derive(Clone, Copy)]
struct Launch {
    grid: dim3,
    block: dim3,
    lds: usize,
    stream: hipStream_t,
    cooperative: bool,
}

fn size([x, y, z]: [c_uint; 3]) -> dim3 {
    dim3 { x, y, z }
}

impl Launch {
    /// A launch whose workgroups do not wait for each other.
    fn new(grid: dim3, block: dim3, lds: usize, stream: hipStream_t) -> Self {
        Self {
            grid,
            block,
            lds,
            stream,
            cooperative: false,
        }
    }

    /// Queues a kernel.
    ///
    /// # Safety
    /// `params` and `extra` are as `hipModuleLaunchKernel` asks.
    unsafe fn queue(
        self,
        process: &Process,
        function: hipFunction_t,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> hipError_t {
        let Ok(lds) = c_uint::try_from(self.lds) else {
            return process.sim.answered("hipLaunchKernel", hipErrorInvalidValue);
        };
        let Self {
            grid, block, stream, ..
        } = self;
        process.with_stack(|| {
            if self.cooperative {
                // SAFETY: promised by the caller.
                unsafe {
                    process.sim.hipModuleLaunchCooperativeKernel(
                        function, grid.x, grid.y, grid.z, block.x, block.y, block.z, lds, stream, params,
                    )
                }
            } else {
                // SAFETY: promised by the caller.
                unsafe {
                    process.sim.hipModuleLaunchKernel(
                        function, grid.x, grid.y, grid.z, block.x, block.y, block.z, lds, stream, params, extra,
                    )
                }
            }
        })
    }

    /// Queues the kernel of a host address.
    ///
    /// # Safety
    /// `params` has a valid pointer for each argument of the kernel.
    unsafe fn queue_by_address(self, api: &'static str, host: *const c_void, params: *mut *mut c_void) -> hipError_t {
        process::call(|process| match registry::function(process, host) {
            // SAFETY: promised by the caller.
            Ok(function) => unsafe { self.queue(process, function, params, std::ptr::null_mut()) },
            Err(status) => process.sim.answered(api, status),
        })
    }
}

pub(crate) unsafe extern "C" fn hipLaunchKernel(
    host: *const c_void,
    grid: dim3,
    block: dim3,
    params: *mut *mut c_void,
    lds: usize,
    stream: hipStream_t,
) -> hipError_t {
    let launch = Launch::new(grid, block, lds, stream);
    // SAFETY: promised by the program.
    unsafe { launch.queue_by_address("hipLaunchKernel", host, params) }
}

pub(crate) unsafe extern "C" fn hipLaunchCooperativeKernel(
    host: *const c_void,
    grid: dim3,
    block: dim3,
    params: *mut *mut c_void,
    lds: c_uint,
    stream: hipStream_t,
) -> hipError_t {
    let launch = Launch {
        cooperative: true,
        ..Launch::new(grid, block, lds as usize, stream)
    };
    // SAFETY: promised by the program.
    unsafe { launch.queue_by_address("hipLaunchCooperativeKernel", host, params) }
}

/// `hipLaunchConfig_t`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    grid: dim3,
    block: dim3,
    lds: usize,
    stream: hipStream_t,
    attributes: *const LaunchAttribute,
    count: c_uint,
}

/// `hipLaunchAttribute`: a number and a union of 64 bytes.
#[repr(C)]
pub(crate) struct LaunchAttribute {
    id: c_int,
    pad: [u8; 4],
    value: [u32; 16],
}

/// `hipLaunchAttributeCooperative`.
const COOPERATIVE: c_int = 2;

/// # Safety
/// `attributes` is null or has `count` elements.
unsafe fn is_cooperative(attributes: *const LaunchAttribute, count: c_uint) -> bool {
    if attributes.is_null() {
        return false;
    }
    // SAFETY: promised by the caller; not null.
    let attributes = unsafe { std::slice::from_raw_parts(attributes, count as usize) };
    attributes
        .iter()
        .any(|attribute| attribute.id == COOPERATIVE && attribute.value[0] != 0)
}

pub(crate) unsafe extern "C" fn hipLaunchKernelExC(
    config: *const LaunchConfig,
    host: *const c_void,
    params: *mut *mut c_void,
) -> hipError_t {
    // SAFETY: promised by the program: null, or a configuration.
    let Some(config) = (unsafe { config.as_ref() }) else {
        return process::call(|process| process.sim.answered("hipLaunchKernelExC", hipErrorInvalidValue));
    };
    let launch = Launch {
        grid: config.grid,
        block: config.block,
        lds: config.lds,
        stream: config.stream,
        // SAFETY: promised by the program.
        cooperative: unsafe { is_cooperative(config.attributes, config.count) },
    };
    // SAFETY: promised by the program.
    unsafe { launch.queue_by_address("hipLaunchKernelExC", host, params) }
}

/// `HIP_LAUNCH_CONFIG`.
#[repr(C)]
pub(crate) struct DriverLaunchConfig {
    grid: [c_uint; 3],
    block: [c_uint; 3],
    lds: c_uint,
    stream: hipStream_t,
    attributes: *const LaunchAttribute,
    count: c_uint,
}

pub(crate) unsafe extern "C" fn hipDrvLaunchKernelEx(
    config: *const DriverLaunchConfig,
    function: hipFunction_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program: null, or a configuration.
        let Some(config) = (unsafe { config.as_ref() }) else {
            return process.sim.answered("hipDrvLaunchKernelEx", hipErrorInvalidValue);
        };
        let launch = Launch {
            grid: size(config.grid),
            block: size(config.block),
            lds: config.lds as usize,
            stream: config.stream,
            // SAFETY: promised by the program.
            cooperative: unsafe { is_cooperative(config.attributes, config.count) },
        };
        // SAFETY: promised by the program.
        unsafe { launch.queue(process, function, params, extra) }
    })
}

/// Records an event that may be missing.
fn record(process: &Process, event: hipEvent_t, stream: hipStream_t) -> hipError_t {
    if event.is_null() {
        return hipSuccess;
    }
    // SAFETY: the machine checks handles.
    unsafe { process.sim.hipEventRecord(event, stream) }
}

pub(crate) unsafe extern "C" fn hipExtLaunchKernel(
    host: *const c_void,
    grid: dim3,
    block: dim3,
    params: *mut *mut c_void,
    lds: usize,
    stream: hipStream_t,
    start: hipEvent_t,
    stop: hipEvent_t,
    _flags: c_int,
) -> hipError_t {
    process::call(|process| {
        let function = match registry::function(process, host) {
            Ok(function) => function,
            Err(status) => return process.sim.answered("hipExtLaunchKernel", status),
        };
        let launch = Launch::new(grid, block, lds, stream);
        // SAFETY: promised by the program.
        between(process, start, stop, stream, || unsafe {
            launch.queue(process, function, params, std::ptr::null_mut())
        })
    })
}

/// Launches between the records of two events.
fn between(
    process: &Process,
    start: hipEvent_t,
    stop: hipEvent_t,
    stream: hipStream_t,
    launch: impl FnOnce() -> hipError_t,
) -> hipError_t {
    let mut status = record(process, start, stream);
    if status.is_success() {
        status = launch();
    }
    if status.is_success() {
        status = record(process, stop, stream);
    }
    status
}

/// Its sizes are work-items, not workgroups.
pub(crate) unsafe extern "C" fn hipExtModuleLaunchKernel(
    function: hipFunction_t,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    lds: usize,
    stream: hipStream_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    start: hipEvent_t,
    stop: hipEvent_t,
    _flags: c_uint,
) -> hipError_t {
    const API: &str = "hipExtModuleLaunchKernel";
    let (all, block) = ([x, y, z], [block_x, block_y, block_z]);
    process::call(|process| {
        if block.contains(&0) || block.iter().map(|size| u64::from(*size)).product::<u64>() > 1024 {
            return process.sim.answered(API, hipErrorInvalidValue);
        }
        // AMD's library launches incomplete workgroups at the end; the machine does not.
        if all.iter().zip(block).any(|(all, block)| all % block != 0) {
            return process.sim.answered(API, hipErrorInvalidConfiguration);
        }
        let grid = size([x / block_x, y / block_y, z / block_z]);
        let launch = Launch::new(grid, size(block), lds, stream);
        // SAFETY: promised by the program.
        between(process, start, stop, stream, || unsafe {
            launch.queue(process, function, params, extra)
        })
    })
}

/// The older name, without flags. HIP 6 declares it as a C function.
pub(crate) unsafe extern "C" fn hipHccModuleLaunchKernel(
    function: hipFunction_t,
    x: c_uint,
    y: c_uint,
    z: c_uint,
    block_x: c_uint,
    block_y: c_uint,
    block_z: c_uint,
    lds: usize,
    stream: hipStream_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
    start: hipEvent_t,
    stop: hipEvent_t,
) -> hipError_t {
    // SAFETY: promised by the program.
    unsafe {
        hipExtModuleLaunchKernel(
            function, x, y, z, block_x, block_y, block_z, lds, stream, params, extra, start, stop, 0,
        )
    }
}

/// The same with the symbol that C++ gives it.
pub(crate) use hipHccModuleLaunchKernel as _Z24hipHccModuleLaunchKernelP18ihipModuleSymbol_tjjjjjjmP12ihipStream_tPPvS4_P11ihipEvent_tS6_;
