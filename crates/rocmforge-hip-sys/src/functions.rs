//! The list of HIP functions: name, C signature, tag. Everything else about them is generated from here.
//!
//! | tag | meaning |
//! |---|---|
//! | `core` | the runtime cannot work without it; a library that lacks one is refused by name |
//! | `optional` | newer or older than some supported library; absent answers `hipErrorNotSupported` |
//! | `foreign` | what foreign programs call and the safe layer must not: device-wide waits, the null stream, pools |

/// Calls `$callback!` with the whole list.
macro_rules! for_each_hip_function {
    ($callback:ident) => {
        $callback! {
            core {
                // Device and version
                fn hipInit(flags: c_uint);
                fn hipRuntimeGetVersion(version: *mut c_int);
                fn hipDriverGetVersion(version: *mut c_int);
                fn hipGetDeviceCount(count: *mut c_int);
                fn hipSetDevice(device: c_int);
                fn hipGetDevice(device: *mut c_int);
                fn hipDeviceGet(device: *mut hipDevice_t, ordinal: c_int);
                fn hipDeviceGetName(name: *mut c_char, len: c_int, device: hipDevice_t);
                fn hipDeviceGetAttribute(value: *mut c_int, attribute: hipDeviceAttribute_t, device: c_int);
                fn hipDeviceTotalMem(bytes: *mut usize, device: hipDevice_t);
                fn hipDeviceGetPCIBusId(id: *mut c_char, len: c_int, device: c_int);
                fn hipDeviceGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int);
                // Errors
                fn hipGetLastError();
                fn hipPeekAtLastError();
                // Memory
                fn hipMemGetInfo(free: *mut usize, total: *mut usize);
                fn hipMalloc(ptr: *mut *mut c_void, size: usize);
                fn hipFree(ptr: *mut c_void);
                fn hipHostMalloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
                fn hipHostFree(ptr: *mut c_void);
                fn hipPointerGetAttributes(attributes: *mut hipPointerAttribute_t, ptr: *const c_void);
                fn hipMemcpyAsync(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind, stream: hipStream_t);
                fn hipMemsetAsync(dst: *mut c_void, value: c_int, size: usize, stream: hipStream_t);
                fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t);
                // Streams
                fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint);
                fn hipStreamCreateWithPriority(stream: *mut hipStream_t, flags: c_uint, priority: c_int);
                fn hipStreamDestroy(stream: hipStream_t);
                fn hipStreamQuery(stream: hipStream_t);
                fn hipStreamSynchronize(stream: hipStream_t);
                fn hipStreamWaitEvent(stream: hipStream_t, event: hipEvent_t, flags: c_uint);
                fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint);
                fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int);
                // Events
                fn hipEventCreateWithFlags(event: *mut hipEvent_t, flags: c_uint);
                fn hipEventDestroy(event: hipEvent_t);
                fn hipEventRecord(event: hipEvent_t, stream: hipStream_t);
                fn hipEventQuery(event: hipEvent_t);
                fn hipEventSynchronize(event: hipEvent_t);
                fn hipEventElapsedTime(milliseconds: *mut f32, start: hipEvent_t, stop: hipEvent_t);
                // Modules and launches
                fn hipModuleLoadData(module: *mut hipModule_t, image: *const c_void);
                fn hipModuleUnload(module: hipModule_t);
                fn hipModuleGetFunction(function: *mut hipFunction_t, module: hipModule_t, name: *const c_char);
                fn hipFuncGetAttribute(value: *mut c_int, attribute: hipFunction_attribute, function: hipFunction_t);
                fn hipModuleLaunchKernel(
                    function: hipFunction_t,
                    grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                    block_x: c_uint, block_y: c_uint, block_z: c_uint,
                    shared_bytes: c_uint,
                    stream: hipStream_t,
                    params: *mut *mut c_void,
                    extra: *mut *mut c_void
                );
            }
            optional {
                fn hipGetDevicePropertiesR0600(properties: *mut hipDeviceProp_tR0600, device: c_int);
                fn hipGetDeviceProperties(properties: *mut hipDeviceProp_tR0000, device: c_int);
                fn hipExtGetLastError();
                fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t);
                fn hipLaunchHostFunc(stream: hipStream_t, function: Option<hipHostFn_t>, user: *mut c_void);
                fn hipModuleGetGlobal(address: *mut hipDeviceptr_t, bytes: *mut usize, module: hipModule_t, name: *const c_char);
                fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks: *mut c_int, function: hipFunction_t, block_size: c_int, dynamic_lds: usize);
                fn hipHostRegister(ptr: *mut c_void, size: usize, flags: c_uint);
                fn hipHostUnregister(ptr: *mut c_void);
                fn hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint);
                fn hipHostGetFlags(flags: *mut c_uint, host: *mut c_void);
                fn hipStreamBeginCapture(stream: hipStream_t, mode: hipStreamCaptureMode);
                fn hipStreamEndCapture(stream: hipStream_t, graph: *mut hipGraph_t);
                fn hipStreamIsCapturing(stream: hipStream_t, status: *mut hipStreamCaptureStatus);
                fn hipGraphDestroy(graph: hipGraph_t);
                fn hipGraphInstantiate(exec: *mut hipGraphExec_t, graph: hipGraph_t, error_node: *mut hipGraphNode_t, log: *mut c_char, log_len: usize);
                fn hipGraphLaunch(exec: hipGraphExec_t, stream: hipStream_t);
                fn hipGraphExecDestroy(exec: hipGraphExec_t);
            }
            foreign {
                fn hipDeviceSynchronize();
                fn hipDeviceReset();
                fn hipStreamCreate(stream: *mut hipStream_t);
                fn hipEventCreate(event: *mut hipEvent_t);
                fn hipMemcpy(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind);
                fn hipMemset(dst: *mut c_void, value: c_int, size: usize);
                fn hipMallocAsync(ptr: *mut *mut c_void, size: usize, stream: hipStream_t);
                fn hipFreeAsync(ptr: *mut c_void, stream: hipStream_t);
            }
        }
    };
}

pub(crate) use for_each_hip_function;
