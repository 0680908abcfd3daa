//! The driver's functions, with the versioned names that `cuda.h` of CUDA 12 gives them.

use crate::library::functions;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `CUresult`. A driver newer than this crate may return any value.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) struct CuResult(pub(crate) c_uint);

/// An address on the device.
pub(crate) type CuAddress = u64;
pub(crate) type CuDevice = c_int;
/// Contexts, streams, events, modules, functions and graphs: pointers to what only the driver knows.
pub(crate) type Handle = *mut c_void;
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// A pointer of HIP's as the driver has it: a number.
pub(crate) fn address(ptr: *const c_void) -> CuAddress {
    ptr.addr() as CuAddress
}

/// `CUgraphExecUpdateResultInfo`.
#[repr(C)]
pub(crate) struct UpdateInfo {
    pub(crate) result: c_uint,
    pub(crate) node: Handle,
    pub(crate) from: Handle,
}

/// `CUlaunchConfig`.
#[repr(C)]
pub(crate) struct LaunchConfig {
    pub(crate) grid: [c_uint; 3],
    pub(crate) block: [c_uint; 3],
    pub(crate) shared_bytes: c_uint,
    pub(crate) stream: Handle,
    pub(crate) attributes: *mut LaunchAttribute,
    pub(crate) attribute_count: c_uint,
}

/// `CUlaunchAttribute` with a number as its value. Of the value's 64 bytes the others are zero.
#[repr(C, align(8))]
pub(crate) struct LaunchAttribute {
    pub(crate) id: c_uint,
    padding: c_uint,
    pub(crate) value: [c_int; 16],
}

impl LaunchAttribute {
    /// `CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION`: the kernel begins while the launch before ends.
    pub(crate) const EARLY: Self = Self {
        id: 6,
        padding: 0,
        value: {
            let mut value = [0; 16];
            value[0] = 1;
            value
        },
    };
}

functions! {
    /// What of `libcuda` is used.
    pub(crate) struct Cuda -> CuResult;
    fn init = "cuInit"(c_uint);
    fn driver_version = "cuDriverGetVersion"(*mut c_int);
    // Devices and contexts
    fn device_count = "cuDeviceGetCount"(*mut c_int);
    fn device_get = "cuDeviceGet"(*mut CuDevice, c_int);
    fn device_name = "cuDeviceGetName"(*mut c_char, c_int, CuDevice);
    fn device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, CuDevice);
    fn device_total_memory = "cuDeviceTotalMem_v2"(*mut usize, CuDevice);
    fn device_pci_bus_id = "cuDeviceGetPCIBusId"(*mut c_char, c_int, CuDevice);
    fn primary_context_retain = "cuDevicePrimaryCtxRetain"(*mut Handle, CuDevice);
    fn context_set_current = "cuCtxSetCurrent"(Handle);
    fn context_priority_range = "cuCtxGetStreamPriorityRange"(*mut c_int, *mut c_int);
    // Memory
    fn memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    fn memory_allocate = "cuMemAlloc_v2"(*mut CuAddress, usize);
    fn memory_free = "cuMemFree_v2"(CuAddress);
    fn host_allocate = "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    fn host_free = "cuMemFreeHost"(*mut c_void);
    fn host_register = "cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
    fn host_unregister = "cuMemHostUnregister"(*mut c_void);
    fn host_device_pointer = "cuMemHostGetDevicePointer_v2"(*mut CuAddress, *mut c_void, c_uint);
    fn host_flags = "cuMemHostGetFlags"(*mut c_uint, *mut c_void);
    fn pointer_attribute = "cuPointerGetAttribute"(*mut c_void, c_int, CuAddress);
    fn copy = "cuMemcpyAsync"(CuAddress, CuAddress, usize, Handle);
    fn copy_to_device = "cuMemcpyHtoDAsync_v2"(CuAddress, *const c_void, usize, Handle);
    fn copy_to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, CuAddress, usize, Handle);
    fn copy_on_device = "cuMemcpyDtoDAsync_v2"(CuAddress, CuAddress, usize, Handle);
    fn set_bytes = "cuMemsetD8Async"(CuAddress, u8, usize, Handle);
    fn set_words = "cuMemsetD32Async"(CuAddress, c_uint, usize, Handle);
    // Streams and events
    fn stream_create = "cuStreamCreateWithPriority"(*mut Handle, c_uint, c_int);
    fn stream_destroy = "cuStreamDestroy_v2"(Handle);
    fn stream_query = "cuStreamQuery"(Handle);
    fn stream_synchronize = "cuStreamSynchronize"(Handle);
    fn stream_wait_event = "cuStreamWaitEvent"(Handle, Handle, c_uint);
    fn stream_flags = "cuStreamGetFlags"(Handle, *mut c_uint);
    fn stream_context = "cuStreamGetCtx"(Handle, *mut Handle);
    fn stream_priority = "cuStreamGetPriority"(Handle, *mut c_int);
    fn launch_host_function = "cuLaunchHostFunc"(Handle, HostFunction, *mut c_void);
    fn event_create = "cuEventCreate"(*mut Handle, c_uint);
    fn event_destroy = "cuEventDestroy_v2"(Handle);
    fn event_record = "cuEventRecord"(Handle, Handle);
    fn event_query = "cuEventQuery"(Handle);
    fn event_synchronize = "cuEventSynchronize"(Handle);
    fn event_elapsed = "cuEventElapsedTime"(*mut f32, Handle, Handle);
    // Modules and launches
    fn module_load = "cuModuleLoadData"(*mut Handle, *const c_void);
    fn module_unload = "cuModuleUnload"(Handle);
    fn module_function = "cuModuleGetFunction"(*mut Handle, Handle, *const c_char);
    fn module_global = "cuModuleGetGlobal_v2"(*mut CuAddress, *mut usize, Handle, *const c_char);
    fn function_attribute = "cuFuncGetAttribute"(*mut c_int, c_int, Handle);
    fn function_set_attribute = "cuFuncSetAttribute"(Handle, c_int, c_int);
    fn function_occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(*mut c_int, Handle, c_int, usize);
    fn launch = "cuLaunchKernel"(
        Handle,
        c_uint, c_uint, c_uint,
        c_uint, c_uint, c_uint,
        c_uint,
        Handle,
        *mut *mut c_void,
        *mut *mut c_void,
    );
    fn launch_with = "cuLaunchKernelEx"(*const LaunchConfig, Handle, *mut *mut c_void, *mut *mut c_void);
    // Capture
    fn capture_begin = "cuStreamBeginCapture_v2"(Handle, c_uint);
    fn capture_end = "cuStreamEndCapture"(Handle, *mut Handle);
    fn capture_status = "cuStreamIsCapturing"(Handle, *mut c_uint);
    fn graph_destroy = "cuGraphDestroy"(Handle);
    fn graph_instantiate = "cuGraphInstantiateWithFlags"(*mut Handle, Handle, u64);
    fn graph_launch = "cuGraphLaunch"(Handle, Handle);
    fn graph_exec_update = "cuGraphExecUpdate_v2"(Handle, Handle, *mut UpdateInfo);
    fn graph_exec_destroy = "cuGraphExecDestroy"(Handle);
}

/// `CuResult` crosses the C boundary as the `int` it is there.
const _: () = assert!(size_of::<CuResult>() == size_of::<c_int>());
