//! The list of HIP functions: name, C signature, tag. Everything else about them is generated from here.
//!
//! | tag | meaning |
//! |---|---|
//! | `core` | the runtime cannot work without it; a library that lacks one is refused by name |
//! | `optional` | newer or older than some supported library; absent answers `hipErrorNotSupported` |
//! | `foreign` | what foreign programs call and the safe layer must not: device-wide waits, the null stream, pools; only the simulator implements it |

/// Calls `$callback!` with the whole list: the blocks `core`, `optional` and `foreign` of lines
/// `fn name(argument: type, ...);`. Every function returns [`hipError_t`](crate::hipError_t); the types are this crate's and
/// `std::ffi`'s, by their plain names.
///
/// For providers of [`HipApi`](crate::HipApi) that forward all functions to something else.
#[macro_export]
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
                fn hipGraphExecUpdate(exec: hipGraphExec_t, graph: hipGraph_t, error_node: *mut hipGraphNode_t, result: *mut hipGraphExecUpdateResult);
                fn hipGraphExecDestroy(exec: hipGraphExec_t);
            }
            foreign {
                // Device
                fn hipDeviceSynchronize();
                fn hipDeviceReset();
                fn hipDeviceGetLimit(value: *mut usize, limit: hipLimit_t);
                fn hipDeviceSetLimit(limit: hipLimit_t, value: usize);
                fn hipGetDeviceFlags(flags: *mut c_uint);
                fn hipSetDeviceFlags(flags: c_uint);
                fn hipDeviceCanAccessPeer(can: *mut c_int, device: c_int, peer: c_int);
                fn hipDeviceEnablePeerAccess(peer: c_int, flags: c_uint);
                fn hipDeviceDisablePeerAccess(peer: c_int);
                fn hipIpcGetMemHandle(handle: *mut hipIpcMemHandle_t, ptr: *mut c_void);
                fn hipIpcOpenMemHandle(ptr: *mut *mut c_void, handle: hipIpcMemHandle_t, flags: c_uint);
                fn hipDrvGetErrorName(status: hipError_t, name: *mut *const c_char);
                // Streams and events
                fn hipStreamCreate(stream: *mut hipStream_t);
                fn hipEventCreate(event: *mut hipEvent_t);
                fn hipStreamAddCallback(stream: hipStream_t, callback: Option<hipStreamCallback_t>, user: *mut c_void, flags: c_uint);
                fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32);
                fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64);
                fn hipExtStreamGetCUMask(stream: hipStream_t, words: u32, mask: *mut u32);
                // Memory
                fn hipMemPtrGetInfo(ptr: *mut c_void, size: *mut usize);
                fn hipMemGetAddressRange(base: *mut hipDeviceptr_t, size: *mut usize, ptr: hipDeviceptr_t);
                fn hipPointerGetAttribute(data: *mut c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t);
                fn hipPointerSetAttribute(value: *const c_void, attribute: hipPointer_attribute, ptr: hipDeviceptr_t);
                fn hipExtMallocWithFlags(ptr: *mut *mut c_void, size: usize, flags: c_uint);
                fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint);
                fn hipMallocManaged(ptr: *mut *mut c_void, size: usize, flags: c_uint);
                fn hipMemPrefetchAsync(ptr: *const c_void, size: usize, device: c_int, stream: hipStream_t);
                fn hipMallocPitch(ptr: *mut *mut c_void, pitch: *mut usize, width: usize, height: usize);
                fn hipMalloc3D(ptr: *mut hipPitchedPtr, extent: hipExtent);
                fn hipFreeArray(array: hipArray_t);
                fn hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, address: *mut c_void, flags: c_ulonglong);
                fn hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, properties: *const hipMemAllocationProp, flags: c_ulonglong);
                fn hipMemUnmap(ptr: *mut c_void, size: usize);
                fn hipMemRelease(handle: hipMemGenericAllocationHandle_t);
                fn hipMemAddressFree(dev_ptr: *mut c_void, size: usize);
                fn hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: c_ulonglong);
                fn hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize);
                fn hipMemGetAccess(flags: *mut c_ulonglong, location: *const hipMemLocation, ptr: *mut c_void);
                fn hipMemGetAllocationGranularity(
                    granularity: *mut usize, prop: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags
                );
                fn hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t);
                fn hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void);
                fn hipMemExportToShareableHandle(
                    shareable_handle: *mut c_void, handle: hipMemGenericAllocationHandle_t, handle_type: hipMemAllocationHandleType,
                    flags: c_ulonglong
                );
                fn hipMemImportFromShareableHandle(
                    handle: *mut hipMemGenericAllocationHandle_t, os_handle: *mut c_void, sh_handle_type: hipMemAllocationHandleType
                );
                // Copies
                fn hipMemcpy(dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind);
                fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, size: usize);
                fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, size: usize);
                fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize);
                fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, size: usize, stream: hipStream_t);
                fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, size: usize, stream: hipStream_t);
                fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize, stream: hipStream_t);
                fn hipMemcpyPeer(dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, size: usize);
                fn hipMemcpy2D(
                    dst: *mut c_void, dst_pitch: usize,
                    src: *const c_void, src_pitch: usize,
                    width: usize, height: usize,
                    kind: hipMemcpyKind
                );
                fn hipMemcpy2DAsync(
                    dst: *mut c_void, dst_pitch: usize,
                    src: *const c_void, src_pitch: usize,
                    width: usize, height: usize,
                    kind: hipMemcpyKind,
                    stream: hipStream_t
                );
                // Fills
                fn hipMemset(dst: *mut c_void, value: c_int, size: usize);
                fn hipMemsetD8(dst: hipDeviceptr_t, value: c_uchar, count: usize);
                fn hipMemsetD16(dst: hipDeviceptr_t, value: c_ushort, count: usize);
                fn hipMemsetD32(dst: hipDeviceptr_t, value: c_int, count: usize);
                fn hipMemsetD8Async(dst: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t);
                fn hipMemsetD16Async(dst: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t);
                fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize);
                fn hipMemset2DAsync(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t);
                // Pools
                fn hipMallocAsync(ptr: *mut *mut c_void, size: usize, stream: hipStream_t);
                fn hipFreeAsync(ptr: *mut c_void, stream: hipStream_t);
                fn hipMallocFromPoolAsync(ptr: *mut *mut c_void, size: usize, pool: hipMemPool_t, stream: hipStream_t);
                fn hipMemPoolCreate(pool: *mut hipMemPool_t, properties: *const hipMemPoolProps);
                fn hipMemPoolDestroy(pool: hipMemPool_t);
                fn hipMemPoolTrimTo(pool: hipMemPool_t, keep: usize);
                fn hipMemPoolGetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void);
                fn hipMemPoolSetAttribute(pool: hipMemPool_t, attribute: hipMemPoolAttr, value: *mut c_void);
                fn hipDeviceSetMemPool(device: c_int, pool: hipMemPool_t);
                fn hipDeviceGetMemPool(pool: *mut hipMemPool_t, device: c_int);
                fn hipDeviceGetDefaultMemPool(pool: *mut hipMemPool_t, device: c_int);
                // Modules and launches
                fn hipModuleLoad(module: *mut hipModule_t, path: *const c_char);
                fn hipFuncGetAttributes(attributes: *mut hipFuncAttributes, function: *const c_void);
                fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks: *mut c_int, function: hipFunction_t, block_size: c_int, dynamic_lds: usize, flags: c_uint);
                fn hipLaunchKernel(function: *const c_void, grid: dim3, block: dim3, params: *mut *mut c_void, shared_bytes: usize, stream: hipStream_t);
                fn hipModuleLaunchCooperativeKernel(
                    function: hipFunction_t,
                    grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
                    block_x: c_uint, block_y: c_uint, block_z: c_uint,
                    shared_bytes: c_uint,
                    stream: hipStream_t,
                    params: *mut *mut c_void
                );
                // Devices
                fn hipChooseDevice(device: *mut c_int, prop: *const hipDeviceProp_tR0000);
                fn hipChooseDeviceR0000(device: *mut c_int, prop: *const hipDeviceProp_tR0000);
                fn hipGetDevicePropertiesR0000(properties: *mut hipDeviceProp_tR0000, device: c_int);
                fn hipChooseDeviceR0600(device: *mut c_int, prop: *const hipDeviceProp_tR0600);
                fn hipDeviceGetByPCIBusId(device: *mut c_int, pci_bus_id: *const c_char);
                fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t);
                fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t);
                fn hipDeviceGetP2PAttribute(value: *mut c_int, attr: hipDeviceP2PAttr, src_device: c_int, dst_device: c_int);
                fn hipDeviceGetCacheConfig(cache_config: *mut hipFuncCache_t);
                fn hipDeviceSetCacheConfig(cache_config: hipFuncCache_t);
                fn hipDeviceGetSharedMemConfig(config: *mut hipSharedMemConfig);
                fn hipDeviceSetSharedMemConfig(config: hipSharedMemConfig);
                fn hipFuncSetCacheConfig(func: *const c_void, config: hipFuncCache_t);
                fn hipFuncSetSharedMemConfig(func: *const c_void, config: hipSharedMemConfig);
                fn hipExtGetLinkTypeAndHopCount(device1: c_int, device2: c_int, linktype: *mut u32, hopcount: *mut u32);
                fn hipSetValidDevices(device_arr: *mut c_int, len: c_int);
                fn hipProfilerStart();
                fn hipProfilerStop();
                // Contexts
                fn hipCtxCreate(ctx: *mut hipCtx_t, flags: c_uint, device: hipDevice_t);
                fn hipCtxDestroy(ctx: hipCtx_t);
                fn hipCtxPushCurrent(ctx: hipCtx_t);
                fn hipCtxPopCurrent(ctx: *mut hipCtx_t);
                fn hipCtxSetCurrent(ctx: hipCtx_t);
                fn hipCtxGetCurrent(ctx: *mut hipCtx_t);
                fn hipCtxGetDevice(device: *mut hipDevice_t);
                fn hipCtxGetApiVersion(ctx: hipCtx_t, api_version: *mut c_int);
                fn hipCtxGetFlags(flags: *mut c_uint);
                fn hipCtxSynchronize();
                fn hipCtxGetCacheConfig(cache_config: *mut hipFuncCache_t);
                fn hipCtxSetCacheConfig(cache_config: hipFuncCache_t);
                fn hipCtxGetSharedMemConfig(config: *mut hipSharedMemConfig);
                fn hipCtxSetSharedMemConfig(config: hipSharedMemConfig);
                fn hipCtxEnablePeerAccess(peer_ctx: hipCtx_t, flags: c_uint);
                fn hipCtxDisablePeerAccess(peer_ctx: hipCtx_t);
                fn hipDevicePrimaryCtxRetain(pctx: *mut hipCtx_t, dev: hipDevice_t);
                fn hipDevicePrimaryCtxRelease(dev: hipDevice_t);
                fn hipDevicePrimaryCtxReset(dev: hipDevice_t);
                fn hipDevicePrimaryCtxGetState(dev: hipDevice_t, flags: *mut c_uint, active: *mut c_int);
                fn hipDevicePrimaryCtxSetFlags(dev: hipDevice_t, flags: c_uint);
                // Other processes
                fn hipIpcCloseMemHandle(dev_ptr: *mut c_void);
                fn hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t);
                fn hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t);
                // Streams, captures and values in memory
                fn hipExtStreamCreateWithCUMask(stream: *mut hipStream_t, cu_mask_size: u32, cu_mask: *const u32);
                fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode);
                fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint);
                fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint);
                fn hipStreamAttachMemAsync(stream: hipStream_t, dev_ptr: *mut c_void, length: usize, flags: c_uint);
                // More memory
                fn hipMallocHost(ptr: *mut *mut c_void, size: usize);
                fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize);
                fn hipFreeHost(ptr: *mut c_void);
                fn hipMemAllocPitch(dptr: *mut hipDeviceptr_t, pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: c_uint);
                fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int);
                fn hipMemRangeGetAttribute(
                    data: *mut c_void, data_size: usize, attribute: hipMemRangeAttribute, dev_ptr: *const c_void, count: usize
                );
                fn hipMemRangeGetAttributes(
                    data: *mut *mut c_void, data_sizes: *mut usize, attributes: *mut hipMemRangeAttribute, num_attributes: usize,
                    dev_ptr: *const c_void, count: usize
                );
                fn hipDrvPointerGetAttributes(
                    num_attributes: c_uint, attributes: *mut hipPointer_attribute, data: *mut *mut c_void, ptr: hipDeviceptr_t
                );
                // Arrays
                fn hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint);
                fn hipMalloc3DArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, flags: c_uint);
                fn hipArrayCreate(handle: *mut hipArray_t, allocate_array: *const HIP_ARRAY_DESCRIPTOR);
                fn hipArray3DCreate(array: *mut hipArray_t, allocate_array: *const HIP_ARRAY3D_DESCRIPTOR);
                fn hipArrayDestroy(array: hipArray_t);
                fn hipArrayGetInfo(desc: *mut hipChannelFormatDesc, extent: *mut hipExtent, flags: *mut c_uint, array: hipArray_t);
                fn hipArrayGetDescriptor(array_descriptor: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t);
                fn hipArray3DGetDescriptor(array_descriptor: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t);
                fn hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_const_t);
                fn hipMemcpyToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, count: usize, kind: hipMemcpyKind);
                fn hipMemcpyFromArray(
                    dst: *mut c_void, src_array: hipArray_const_t, w_offset: usize, h_offset: usize, count: usize, kind: hipMemcpyKind
                );
                fn hipMemcpy2DToArray(
                    dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize,
                    kind: hipMemcpyKind
                );
                fn hipMemcpy2DToArrayAsync(
                    dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize,
                    kind: hipMemcpyKind, stream: hipStream_t
                );
                fn hipMemcpy2DFromArray(
                    dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize,
                    kind: hipMemcpyKind
                );
                fn hipMemcpy2DFromArrayAsync(
                    dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize,
                    kind: hipMemcpyKind, stream: hipStream_t
                );
                fn hipMemcpy2DArrayToArray(
                    dst: hipArray_t, w_offset_dst: usize, h_offset_dst: usize, src: hipArray_const_t, w_offset_src: usize,
                    h_offset_src: usize, width: usize, height: usize, kind: hipMemcpyKind
                );
                fn hipMemcpyAtoH(dst: *mut c_void, src_array: hipArray_t, src_offset: usize, count: usize);
                fn hipMemcpyHtoA(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, count: usize);
                fn hipMemcpyAtoHAsync(dst_host: *mut c_void, src_array: hipArray_t, src_offset: usize, byte_count: usize, stream: hipStream_t);
                fn hipMemcpyHtoAAsync(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, byte_count: usize, stream: hipStream_t);
                fn hipMemcpyAtoD(dst_device: hipDeviceptr_t, src_array: hipArray_t, src_offset: usize, byte_count: usize);
                fn hipMemcpyDtoA(dst_array: hipArray_t, dst_offset: usize, src_device: hipDeviceptr_t, byte_count: usize);
                fn hipMemcpyAtoA(dst_array: hipArray_t, dst_offset: usize, src_array: hipArray_t, src_offset: usize, byte_count: usize);
                // Textures and surfaces
                fn hipCreateTextureObject(
                    tex_object: *mut hipTextureObject_t, res_desc: *const hipResourceDesc, tex_desc: *const hipTextureDesc,
                    res_view_desc: *const hipResourceViewDesc
                );
                fn hipDestroyTextureObject(texture_object: hipTextureObject_t);
                fn hipGetTextureObjectResourceDesc(res_desc: *mut hipResourceDesc, texture_object: hipTextureObject_t);
                fn hipGetTextureObjectResourceViewDesc(res_view_desc: *mut hipResourceViewDesc, texture_object: hipTextureObject_t);
                fn hipGetTextureObjectTextureDesc(tex_desc: *mut hipTextureDesc, texture_object: hipTextureObject_t);
                fn hipCreateSurfaceObject(surf_object: *mut hipSurfaceObject_t, res_desc: *const hipResourceDesc);
                fn hipDestroySurfaceObject(surface_object: hipSurfaceObject_t);
                // More copies and fills
                fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t);
                fn hipMemcpyPeerAsync(
                    dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device: c_int, size_bytes: usize, stream: hipStream_t
                );
                fn hipMemcpyParam2D(copy: *const hip_Memcpy2D);
                fn hipMemcpyParam2DAsync(copy: *const hip_Memcpy2D, stream: hipStream_t);
                fn hipDrvMemcpy2DUnaligned(copy: *const hip_Memcpy2D);
                fn hipMemcpy3D(p: *const hipMemcpy3DParms);
                fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t);
                fn hipDrvMemcpy3D(copy: *const HIP_MEMCPY3D);
                fn hipDrvMemcpy3DAsync(copy: *const HIP_MEMCPY3D, stream: hipStream_t);
                fn hipMemset3D(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent);
                fn hipMemset3DAsync(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t);
                fn hipMemsetD2D8(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize);
                fn hipMemsetD2D8Async(
                    dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize, stream: hipStream_t
                );
                fn hipMemsetD2D16(dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize);
                fn hipMemsetD2D16Async(
                    dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize, stream: hipStream_t
                );
                fn hipMemsetD2D32(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize);
                fn hipMemsetD2D32Async(
                    dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t
                );
                // More of streams and events
                fn hipStreamGetId(stream: hipStream_t, stream_id: *mut c_ulonglong);
                fn hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint);
                // More of pools
                fn hipMemPoolSetAccess(mem_pool: hipMemPool_t, desc_list: *const hipMemAccessDesc, count: usize);
                fn hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, mem_pool: hipMemPool_t, location: *mut hipMemLocation);
                fn hipMemPoolExportToShareableHandle(
                    shared_handle: *mut c_void, mem_pool: hipMemPool_t, handle_type: hipMemAllocationHandleType, flags: c_uint
                );
                fn hipMemPoolImportFromShareableHandle(
                    mem_pool: *mut hipMemPool_t, shared_handle: *mut c_void, handle_type: hipMemAllocationHandleType, flags: c_uint
                );
                fn hipMemPoolExportPointer(export_data: *mut hipMemPoolPtrExportData, dev_ptr: *mut c_void);
                fn hipMemPoolImportPointer(dev_ptr: *mut *mut c_void, mem_pool: hipMemPool_t, export_data: *mut hipMemPoolPtrExportData);
                // More occupancy
                fn hipModuleOccupancyMaxPotentialBlockSize(
                    grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int
                );
                fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
                    grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int,
                    flags: c_uint
                );
                // Captures
                fn hipStreamGetCaptureInfo(stream: hipStream_t, capture_status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong);
                fn hipStreamGetCaptureInfo_v2(
                    stream: hipStream_t, capture_status_out: *mut hipStreamCaptureStatus, id_out: *mut c_ulonglong,
                    graph_out: *mut hipGraph_t, dependencies_out: *mut *const hipGraphNode_t, num_dependencies_out: *mut usize
                );
                fn hipStreamUpdateCaptureDependencies(stream: hipStream_t, dependencies: *mut hipGraphNode_t, num_dependencies: usize, flags: c_uint);
                fn hipStreamBeginCaptureToGraph(
                    stream: hipStream_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, dependency_data: *const hipGraphEdgeData,
                    num_dependencies: usize, mode: hipStreamCaptureMode
                );
                // Graphs
                fn hipGraphCreate(graph: *mut hipGraph_t, flags: c_uint);
                fn hipGraphClone(graph_clone: *mut hipGraph_t, original_graph: hipGraph_t);
                fn hipGraphDestroyNode(node: hipGraphNode_t);
                fn hipGraphAddEmptyNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize
                );
                fn hipGraphAddKernelNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    node_params: *const hipKernelNodeParams
                );
                fn hipGraphAddMemcpyNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    copy_params: *const hipMemcpy3DParms
                );
                fn hipGraphAddMemcpyNode1D(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind
                );
                fn hipGraphAddMemcpyNodeToSymbol(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind
                );
                fn hipGraphAddMemcpyNodeFromSymbol(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind
                );
                fn hipGraphAddMemsetNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    memset_params: *const hipMemsetParams
                );
                fn hipGraphAddHostNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    node_params: *const hipHostNodeParams
                );
                fn hipGraphAddChildGraphNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    child_graph: hipGraph_t
                );
                fn hipGraphAddEventRecordNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    event: hipEvent_t
                );
                fn hipGraphAddEventWaitNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    event: hipEvent_t
                );
                fn hipGraphAddMemAllocNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    node_params: *mut hipMemAllocNodeParams
                );
                fn hipGraphAddMemFreeNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    dev_ptr: *mut c_void
                );
                fn hipGraphAddNode(
                    graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    node_params: *mut hipGraphNodeParams
                );
                fn hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize);
                fn hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, num_dependencies: usize);
                fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, num_nodes: *mut usize);
                fn hipGraphGetRootNodes(graph: hipGraph_t, root_nodes: *mut hipGraphNode_t, num_root_nodes: *mut usize);
                fn hipGraphGetEdges(graph: hipGraph_t, from: *mut hipGraphNode_t, to: *mut hipGraphNode_t, num_edges: *mut usize);
                fn hipGraphNodeGetDependencies(node: hipGraphNode_t, dependencies: *mut hipGraphNode_t, num_dependencies: *mut usize);
                fn hipGraphNodeGetDependentNodes(node: hipGraphNode_t, dependent_nodes: *mut hipGraphNode_t, num_dependent_nodes: *mut usize);
                fn hipGraphNodeGetType(node: hipGraphNode_t, kind: *mut hipGraphNodeType);
                fn hipGraphNodeFindInClone(node: *mut hipGraphNode_t, original_node: hipGraphNode_t, cloned_graph: hipGraph_t);
                fn hipGraphDebugDotPrint(graph: hipGraph_t, path: *const c_char, flags: c_uint);
                // Parameters of nodes
                fn hipGraphKernelNodeGetParams(node: hipGraphNode_t, node_params: *mut hipKernelNodeParams);
                fn hipGraphKernelNodeSetParams(node: hipGraphNode_t, node_params: *const hipKernelNodeParams);
                fn hipGraphKernelNodeGetAttribute(node: hipGraphNode_t, attr: hipLaunchAttributeID, value: *mut hipLaunchAttributeValue);
                fn hipGraphKernelNodeSetAttribute(node: hipGraphNode_t, attr: hipLaunchAttributeID, value: *const hipLaunchAttributeValue);
                fn hipGraphKernelNodeCopyAttributes(src: hipGraphNode_t, dst: hipGraphNode_t);
                fn hipGraphMemcpyNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemcpy3DParms);
                fn hipGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemcpy3DParms);
                fn hipGraphMemcpyNodeSetParams1D(node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize, kind: hipMemcpyKind);
                fn hipGraphMemcpyNodeSetParamsToSymbol(
                    node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind
                );
                fn hipGraphMemcpyNodeSetParamsFromSymbol(
                    node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize, kind: hipMemcpyKind
                );
                fn hipGraphMemsetNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemsetParams);
                fn hipGraphMemsetNodeSetParams(node: hipGraphNode_t, node_params: *const hipMemsetParams);
                fn hipGraphHostNodeGetParams(node: hipGraphNode_t, node_params: *mut hipHostNodeParams);
                fn hipGraphHostNodeSetParams(node: hipGraphNode_t, node_params: *const hipHostNodeParams);
                fn hipGraphChildGraphNodeGetGraph(node: hipGraphNode_t, graph: *mut hipGraph_t);
                fn hipGraphEventRecordNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t);
                fn hipGraphEventRecordNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t);
                fn hipGraphEventWaitNodeGetEvent(node: hipGraphNode_t, event_out: *mut hipEvent_t);
                fn hipGraphEventWaitNodeSetEvent(node: hipGraphNode_t, event: hipEvent_t);
                fn hipGraphMemAllocNodeGetParams(node: hipGraphNode_t, node_params: *mut hipMemAllocNodeParams);
                fn hipGraphMemFreeNodeGetParams(node: hipGraphNode_t, dev_ptr: *mut c_void);
                fn hipGraphNodeSetParams(node: hipGraphNode_t, node_params: *mut hipGraphNodeParams);
                // Executable graphs
                fn hipGraphInstantiateWithFlags(graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, flags: c_ulonglong);
                fn hipGraphInstantiateWithParams(
                    graph_exec: *mut hipGraphExec_t, graph: hipGraph_t, instantiate_params: *mut hipGraphInstantiateParams
                );
                fn hipGraphUpload(graph_exec: hipGraphExec_t, stream: hipStream_t);
                fn hipGraphExecGetFlags(graph_exec: hipGraphExec_t, flags: *mut c_ulonglong);
                fn hipGraphNodeSetEnabled(graph_exec: hipGraphExec_t, node: hipGraphNode_t, is_enabled: c_uint);
                fn hipGraphNodeGetEnabled(graph_exec: hipGraphExec_t, node: hipGraphNode_t, is_enabled: *mut c_uint);
                fn hipGraphExecKernelNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipKernelNodeParams);
                fn hipGraphExecMemcpyNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipMemcpy3DParms);
                fn hipGraphExecMemcpyNodeSetParams1D(
                    graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, src: *const c_void, count: usize,
                    kind: hipMemcpyKind
                );
                fn hipGraphExecMemcpyNodeSetParamsToSymbol(
                    graph_exec: hipGraphExec_t, node: hipGraphNode_t, symbol: *const c_void, src: *const c_void, count: usize,
                    offset: usize, kind: hipMemcpyKind
                );
                fn hipGraphExecMemcpyNodeSetParamsFromSymbol(
                    graph_exec: hipGraphExec_t, node: hipGraphNode_t, dst: *mut c_void, symbol: *const c_void, count: usize, offset: usize,
                    kind: hipMemcpyKind
                );
                fn hipGraphExecMemsetNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipMemsetParams);
                fn hipGraphExecHostNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *const hipHostNodeParams);
                fn hipGraphExecChildGraphNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, child_graph: hipGraph_t);
                fn hipGraphExecEventRecordNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t);
                fn hipGraphExecEventWaitNodeSetEvent(graph_exec: hipGraphExec_t, node: hipGraphNode_t, event: hipEvent_t);
                fn hipGraphExecNodeSetParams(graph_exec: hipGraphExec_t, node: hipGraphNode_t, node_params: *mut hipGraphNodeParams);
                // Graph memory and user objects
                fn hipDeviceGetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void);
                fn hipDeviceSetGraphMemAttribute(device: c_int, attr: hipGraphMemAttributeType, value: *mut c_void);
                fn hipDeviceGraphMemTrim(device: c_int);
                fn hipUserObjectCreate(
                    object_out: *mut hipUserObject_t, ptr: *mut c_void, destroy: Option<hipHostFn_t>, initial_refcount: c_uint,
                    flags: c_uint
                );
                fn hipUserObjectRelease(object: hipUserObject_t, count: c_uint);
                fn hipUserObjectRetain(object: hipUserObject_t, count: c_uint);
                fn hipGraphRetainUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint, flags: c_uint);
                fn hipGraphReleaseUserObject(graph: hipGraph_t, object: hipUserObject_t, count: c_uint);
                // Nodes as the driver names their parameters
                fn hipDrvGraphAddMemcpyNode(
                    ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    copy_params: *const HIP_MEMCPY3D, ctx: hipCtx_t
                );
                fn hipDrvGraphAddMemsetNode(
                    ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    memset_params: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t
                );
                fn hipDrvGraphAddMemFreeNode(
                    ph_graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize,
                    dptr: hipDeviceptr_t
                );
                fn hipDrvGraphMemcpyNodeGetParams(node: hipGraphNode_t, node_params: *mut HIP_MEMCPY3D);
                fn hipDrvGraphMemcpyNodeSetParams(node: hipGraphNode_t, node_params: *const HIP_MEMCPY3D);
                fn hipDrvGraphExecMemcpyNodeSetParams(
                    graph_exec: hipGraphExec_t, node: hipGraphNode_t, copy_params: *const HIP_MEMCPY3D, ctx: hipCtx_t
                );
                fn hipDrvGraphExecMemsetNodeSetParams(
                    graph_exec: hipGraphExec_t, node: hipGraphNode_t, memset_params: *const HIP_MEMSET_NODE_PARAMS, ctx: hipCtx_t
                );
            }
        }
    };
}

pub(crate) use for_each_hip_function;
