//! The traits, each method forwarding to its chapter.

use crate::sim::{Remember, SimHost};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// One method per line: which trait function, and what it does with the call. The pointers are the caller's, with the
/// promises of the C API; the bodies write only through those that function documents as outputs.
macro_rules! forward {
    ($($(#[$how:ident])? fn $name:ident($($arg:ident: $ty:ty),* $(,)?) => |$call:ident| $body:expr;)*) => {$(
        unsafe fn $name(&self $(, $arg: $ty)*) -> hipError_t {
            self.call_with(stringify!($name), forward!(@remember $($how)?), |$call| {
                // SAFETY: the caller of a HIP function promises what its C documentation asks: null or valid pointers.
                #[allow(unused_unsafe)]
                unsafe { $body }
            })
        }
    )*};
    (@remember) => { Remember::Status };
    (@remember $how:ident) => { Remember::$how };
}

impl HipApi for SimHost {
    forward! {
        fn hipInit(flags: c_uint) => |c| c.init(flags);
        #[NoCardNeeded] fn hipRuntimeGetVersion(version: *mut c_int) => |c| c.version(version);
        #[NoCardNeeded] fn hipDriverGetVersion(version: *mut c_int) => |c| c.version(version);
        #[NoCardNeeded] fn hipGetDeviceCount(count: *mut c_int) => |c| c.get_device_count(count);
        fn hipSetDevice(device: c_int) => |c| c.set_device(device);
        fn hipGetDevice(device: *mut c_int) => |c| c.get_device(device);
        fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int) => |c| c.device_get(device, ordinal);
        fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t) => |c| c.device_get_name(name, len, device);
        fn hipDeviceGetAttribute(value: *mut c_int, attribute: hipDeviceAttribute_t, device: c_int)
            => |c| c.device_get_attribute(value, attribute, device);
        fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t) => |c| c.device_total_mem(bytes, device);
        fn hipDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: c_int) => |c| c.device_get_pci_bus_id(id, len, device);
        fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int)
            => |c| c.stream_priority_range(least, greatest);
        #[Nothing] fn hipGetLastError() => |c| Err(c.get_last_error());
        #[Nothing] fn hipPeekAtLastError() => |c| Err(c.peek_at_last_error());
        fn hipMemGetInfo(free: *mut usize, total: *mut usize) => |c| c.mem_get_info(free, total);
        fn hipMalloc(ptr: *mut *mut c_void, size: usize) => |c| c.malloc(ptr, size);
        fn hipFree(ptr: *mut c_void) => |c| c.free(ptr);
        fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |c| c.host_malloc(ptr, size, flags);
        fn hipHostFree(ptr: *mut c_void) => |c| c.host_free(ptr);
        fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void)
            => |c| c.pointer_get_attributes(attributes, ptr);
        fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_async(dst, src, size, kind, stream);
        fn hipMemsetAsync(dst: *mut c_void, value: c_int, size: usize, stream: hipStream_t)
            => |c| c.memset_async(dst, value, size, stream);
        fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t)
            => |c| c.memset_d32_async(dst, value, count, stream);
        fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) => |c| c.stream_create(stream, flags, 0);
        fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int)
            => |c| c.stream_create(stream, flags, priority);
        fn hipStreamDestroy(stream: hipStream_t) => |c| c.stream_destroy(stream);
        fn hipStreamQuery(stream: hipStream_t) => |c| c.stream_query(stream);
        fn hipStreamSynchronize(stream: hipStream_t) => |c| c.stream_synchronize(stream);
        fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint)
            => |c| c.stream_wait_event(stream, event, flags);
        fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) => |c| c.stream_get_flags(stream, flags);
        fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int) => |c| c.stream_get_priority(stream, priority);
        fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint) => |c| c.event_create(event, flags);
        fn hipEventDestroy(event: hipEvent_t) => |c| c.event_destroy(event);
        fn hipEventRecord(event: hipEvent_t, stream: hipStream_t) => |c| c.event_record(event, stream);
        fn hipEventQuery(event: hipEvent_t) => |c| c.event_query(event);
        fn hipEventSynchronize(event: hipEvent_t) => |c| c.event_synchronize(event);
        fn hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, stop: hipEvent_t)
            => |c| c.event_elapsed_time(milliseconds, start, stop);
        fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void) => |c| c.module_load_data(module, image);
        fn hipModuleUnload(module: hipModule_t) => |c| c.module_unload(module);
        fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, name: *const c_char)
            => |c| c.module_get_function(function, module, name);
        fn hipFuncGetAttribute(value: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t)
            => |c| c.func_get_attribute(value, attribute, function);
        fn hipModuleLaunchKernel(
            function: hipFunction_t,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint,
            shared_bytes: c_uint,
            stream: hipStream_t,
            params: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) => |c| c.module_launch_kernel(
            function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared_bytes, stream, params, extra,
        );
        // Optional
        fn hipGetDevicePropertiesR0600(properties: *mut hipDeviceProp_tR0600, device: c_int) => |c| {
            let bytes = c.properties(device, hipDeviceProp_tR0600::GCN_ARCH_NAME)?;
            super::answer(properties, hipDeviceProp_tR0600(bytes))
        };
        fn hipGetDeviceProperties(properties: *mut hipDeviceProp_tR0000, device: c_int) => |c| {
            let bytes = c.properties(device, hipDeviceProp_tR0000::GCN_ARCH_NAME)?;
            super::answer(properties, hipDeviceProp_tR0000(bytes))
        };
        #[Nothing] fn hipExtGetLastError() => |c| Err(c.ext_get_last_error());
        fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t) => |c| c.stream_get_device(stream, device);
        fn hipLaunchHostFunc(stream: hipStream_t, function: Option<hipHostFn_t>, user: *mut c_void)
            => |c| c.launch_host_func(stream, function, user);
        fn hipModuleGetGlobal(address: *mut hipDeviceptr_t, bytes: *mut usize, module: hipModule_t, name: *const c_char)
            => |c| c.module_get_global(address, bytes, module, name);
        fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
            blocks: *mut c_int, function: hipFunction_t, block_size: c_int, dynamic_lds: usize,
        ) => |c| c.occupancy(blocks, function, block_size, dynamic_lds);
        fn hipHostRegister(ptr: *mut c_void, size: usize, flags: c_uint) => |c| c.host_register(ptr, size, flags);
        fn hipHostUnregister(ptr: *mut c_void) => |c| c.host_unregister(ptr);
        fn hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint)
            => |c| c.host_get_device_pointer(device, host, flags);
        fn hipHostGetFlags(flags: *mut c_uint, host: *mut c_void) => |c| c.host_get_flags(flags, host);
    }
}

impl HipForeignApi for SimHost {
    forward! {
        fn hipDeviceSynchronize() => |c| c.device_synchronize();
        fn hipDeviceReset() => |c| c.device_reset();
        fn hipStreamCreate(stream: *mut hipStream_t) => |c| c.stream_create(stream, hipStreamDefault, 0);
        fn hipEventCreate(event: *mut hipEvent_t) => |c| c.event_create(event, hipEventDefault);
        fn hipMemcpy(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind)
            => |c| c.memcpy(dst, src, size, kind);
        fn hipMemset(dst: *mut c_void, value: c_int, size: usize) => |c| c.memset(dst, value, size);
        fn hipMallocAsync(ptr: *mut *mut c_void, size: usize, stream: hipStream_t)
            => |c| c.malloc_async(ptr, size, stream);
        fn hipFreeAsync(ptr: *mut c_void, stream: hipStream_t) => |c| c.free_async(ptr, stream);
    }
}
