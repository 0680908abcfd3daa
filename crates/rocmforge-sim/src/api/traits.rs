//! The traits, each method forwarding to its chapter.

mod devices;
mod graphs;
mod memory;

use super::graph_work::Target;
use crate::calls::entry::Remember;
use crate::calls::sim::SimHost;
use devices::device_functions;
use graphs::graph_functions;
use memory::memory_functions;
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

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

// SAFETY: memory is the card's own until it is freed, and every access is checked against it; streams and queries play the queue that
// `queue.rs` keeps in order. The rows of HIP's documented behaviour (docs/abi.md) are tested over it, under every schedule.
unsafe impl HipApi for SimHost {
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
            => |c| c.memset(dst, value, 1, size, Some(stream));
        fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value, 4, count, Some(stream));
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
        fn hipGetDevicePropertiesR0600(properties: *mut hipDeviceProp_tR0600, device: c_int)
            => |c| c.get_device_properties(properties, device);
        fn hipGetDeviceProperties(properties: *mut hipDeviceProp_tR0000, device: c_int)
            => |c| c.get_old_device_properties(properties, device);
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
        // Graphs
        fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode) => |c| c.begin_capture(stream, mode);
        fn hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t) => |c| c.end_capture(stream, graph);
        fn hipGraphInstantiate(
            exec: *mut hipGraphExec_t, graph: hipGraph_t, _node: *mut hipGraphNode_t, _log: *mut c_char, _log_len: usize,
        ) => |c| c.graph_instantiate(exec, graph, 0);
        fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t) => |c| c.graph_launch(exec, stream);
        fn hipGraphExecUpdate(
            exec: hipGraphExec_t, graph: hipGraph_t, node: *mut hipGraphNode_t, result: *mut hipGraphExecUpdateResult,
        ) => |c| c.graph_exec_update(exec, graph, node, result);
        fn hipGraphDestroy(graph: hipGraph_t) => |c| c.graph_destroy(graph);
        fn hipGraphExecDestroy(exec: hipGraphExec_t) => |c| c.graph_exec_destroy(exec);
        fn hipStreamIsCapturing(stream: hipStream_t, status: *mut hipStreamCaptureStatus)
            => |c| c.stream_is_capturing(stream, status);
    }
}

// SAFETY: as above, and by the same tests; the names of statuses are constants.
unsafe impl HipForeignApi for SimHost {
    forward! {
        // Device
        fn hipDeviceSynchronize() => |c| c.device_synchronize();
        fn hipDeviceReset() => |c| c.device_reset();
        fn hipDeviceGetLimit(value: *mut usize, limit: hipLimit_t) => |c| c.device_get_limit(value, limit);
        fn hipDeviceSetLimit(limit: hipLimit_t, value: usize) => |c| c.device_set_limit(limit, value);
        fn hipGetDeviceFlags(flags: *mut c_uint) => |c| c.get_device_flags(flags);
        fn hipSetDeviceFlags(flags: c_uint) => |c| c.set_device_flags(flags);
        fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int)
            => |c| c.device_can_access_peer(can, device, peer);
        fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint) => |c| c.device_enable_peer_access(peer, flags);
        fn hipDeviceDisablePeerAccess(peer: c_int) => |c| c.device_disable_peer_access(peer);
        fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, ptr: *mut c_void) => |c| c.ipc_get_mem_handle(handle, ptr);
        fn hipIpcOpenMemHandle(ptr: *mut *mut c_void, handle: hipIpcMemHandle_t, _flags: c_uint)
            => |c| c.ipc_open_mem_handle(ptr, handle);
        #[NoCardNeeded] fn hipDrvGetErrorName(status: hipError_t, name: *mut *const c_char)
            => |c| c.drv_get_error_name(status, name);
        // Streams and events
        fn hipStreamCreate(stream: *mut hipStream_t) => |c| c.stream_create(stream, hipStreamDefault, 0);
        fn hipEventCreate(event: *mut hipEvent_t) => |c| c.event_create(event, hipEventDefault);
        fn hipStreamAddCallback(stream: hipStream_t, callback: Option<hipStreamCallback_t>, user: *mut c_void, flags: c_uint)
            => |c| c.stream_add_callback(stream, callback, user, flags);
        fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32)
            => |c| c.stream_wait_value(stream, ptr, (value.into(), mask.into()), 4, flags);
        fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64)
            => |c| c.stream_wait_value(stream, ptr, (value, mask), 8, flags);
        fn hipExtStreamGetCUMask(stream: hipStream_t, words: u32, mask: *mut u32)
            => |c| c.stream_get_cu_mask(stream, words, mask);
        // Memory
        fn hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize) => |c| c.mem_ptr_get_info(ptr, size);
        fn hipMemGetAddressRange(base: *mut hipDeviceptr_t, size: *mut usize, ptr: hipDeviceptr_t)
            => |c| c.mem_get_address_range(base, size, ptr);
        fn hipPointerGetAttribute(data: *mut c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t)
            => |c| c.pointer_get_attribute(data, attribute, ptr);
        fn hipPointerSetAttribute(value: *const c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t)
            => |c| c.pointer_set_attribute(value, attribute, ptr);
        fn hipExtMallocWithFlags(ptr: *mut *mut c_void, size: usize, flags: c_uint)
            => |c| c.ext_malloc_with_flags(ptr, size, flags);
        fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |c| c.host_malloc(ptr, size, flags);
        fn hipMallocManaged(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |c| c.malloc_managed(ptr, size, flags);
        fn hipMemPrefetchAsync(ptr: *const c_void, size: usize, device: c_int, stream: hipStream_t)
            => |c| c.mem_prefetch_async(ptr, size, device, stream);
        fn hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize)
            => |c| c.malloc_pitch(ptr, pitch, width, height);
        fn hipMalloc3D(ptr: *mut hipPitchedPtr, extent: hipExtent) => |c| c.malloc_3d(ptr, extent);
        fn hipFreeArray(array: hipArray_t) => |c| c.free_array(array);
        // Copies
        fn hipMemcpy(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind)
            => |c| c.memcpy(dst, src, size, kind);
        fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, size: usize)
            => |c| c.memcpy(dst, src, size, hipMemcpyHostToDevice);
        fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, size: usize)
            => |c| c.memcpy(dst, src, size, hipMemcpyDeviceToHost);
        fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize)
            => |c| c.memcpy(dst, src, size, hipMemcpyDeviceToDevice);
        fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, size: usize, stream: hipStream_t)
            => |c| c.memcpy_async(dst, src, size, hipMemcpyHostToDevice, stream);
        fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, size: usize, stream: hipStream_t)
            => |c| c.memcpy_async(dst, src, size, hipMemcpyDeviceToHost, stream);
        fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize, stream: hipStream_t)
            => |c| c.memcpy_async(dst, src, size, hipMemcpyDeviceToDevice, stream);
        fn hipMemcpyPeer(dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, size: usize)
            => |c| c.memcpy_peer((dst, dst_device), (src, src_device), size, None);
        fn hipMemcpy2D(
            dst: *mut c_void, dst_pitch: usize,
            src: *const c_void, src_pitch: usize,
            width: usize, height: usize,
            kind: hipMemcpyKind,
        ) => |c| c.memcpy_2d([dst_pitch, src_pitch], (dst, src), [width, height], kind, None);
        fn hipMemcpy2DAsync(
            dst: *mut c_void, dst_pitch: usize,
            src: *const c_void, src_pitch: usize,
            width: usize, height: usize,
            kind: hipMemcpyKind,
            stream: hipStream_t,
        ) => |c| c.memcpy_2d([dst_pitch, src_pitch], (dst, src), [width, height], kind, Some(stream));
        // Fills
        fn hipMemset(dst: *mut c_void, value: c_int, size: usize) => |c| c.memset(dst, value, 1, size, None);
        fn hipMemsetD8(dst: hipDeviceptr_t, value: c_uchar, count: usize)
            => |c| c.memset(dst, value.into(), 1, count, None);
        fn hipMemsetD16(dst: hipDeviceptr_t, value: c_ushort, count: usize)
            => |c| c.memset(dst, value.into(), 2, count, None);
        fn hipMemsetD32(dst: hipDeviceptr_t, value: c_int, count: usize) => |c| c.memset(dst, value, 4, count, None);
        fn hipMemsetD8Async(dst: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value.into(), 1, count, Some(stream));
        fn hipMemsetD16Async(dst: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value.into(), 2, count, Some(stream));
        fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize)
            => |c| c.memset_2d(dst, pitch, value, [width, height], None);
        fn hipMemset2DAsync(
            dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t,
        ) => |c| c.memset_2d(dst, pitch, value, [width, height], Some(stream));
        // Pools
        fn hipMallocAsync(ptr: *mut *mut c_void, size: usize, stream: hipStream_t)
            => |c| c.malloc_async(ptr, size, stream);
        fn hipFreeAsync(ptr: *mut c_void, stream: hipStream_t) => |c| c.free_async(ptr, stream);
        fn hipMallocFromPoolAsync(ptr: *mut *mut c_void, size: usize, pool: hipMemPool_t, stream: hipStream_t)
            => |c| c.malloc_from_pool_async(ptr, size, pool, stream);
        fn hipMemPoolCreate(pool: *mut hipMemPool_t, properties: *const hipMemPoolProps)
            => |c| c.mem_pool_create(pool, properties);
        fn hipMemPoolDestroy(pool: hipMemPool_t) => |c| c.mem_pool_destroy(pool);
        fn hipMemPoolTrimTo(pool: hipMemPool_t, _keep: usize) => |c| c.mem_pool_trim_to(pool);
        fn hipMemPoolGetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void)
            => |c| c.mem_pool_get_attribute(pool, attribute, value);
        fn hipMemPoolSetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void)
            => |c| c.mem_pool_set_attribute(pool, attribute, value);
        fn hipDeviceSetMemPool(device: c_int, pool: hipMemPool_t) => |c| c.device_set_mem_pool(device, pool);
        fn hipDeviceGetMemPool(pool: *mut hipMemPool_t, device: c_int) => |c| c.device_get_mem_pool(pool, device, false);
        fn hipDeviceGetDefaultMemPool(pool: *mut hipMemPool_t, device: c_int)
            => |c| c.device_get_mem_pool(pool, device, true);
        // Modules and launches
        fn hipModuleLoad(module: *mut hipModule_t, path: *const c_char) => |c| c.module_load(module, path);
        fn hipFuncGetAttributes(attributes: *mut hipFuncAttributes, function: *const c_void)
            => |c| c.func_get_attributes(attributes, function);
        fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            blocks: *mut c_int, function: hipFunction_t, block_size: c_int, dynamic_lds: usize, flags: c_uint,
        ) => |c| c.occupancy_with_flags(blocks, function, block_size, dynamic_lds, flags);
        fn hipLaunchKernel(
            function: *const c_void, _grid: dim3, _block: dim3, _params: *mut *mut c_void, _shared_bytes: usize, _stream: hipStream_t,
        ) => |c| c.launch_kernel(function);
        fn hipModuleLaunchCooperativeKernel(
            function: hipFunction_t,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint,
            shared_bytes: c_uint,
            stream: hipStream_t,
            params: *mut *mut c_void,
        ) => |c| c.module_launch_cooperative_kernel(
            function, [grid_x, grid_y, grid_z], [block_x, block_y, block_z], shared_bytes, stream, params,
        );
    }
    device_functions!();
    graph_functions!();
    memory_functions!();
}
