//! Devices, contexts, streams and what else programs ask before they work.

/// As `forward!`, which it uses.
macro_rules! device_functions {
    () => {forward! {
        // Devices
        fn hipChooseDeviceR0600(device: *mut c_int, prop: *const hipDeviceProp_tR0600)
            => |c| c.choose_device(device, prop);
        fn hipDeviceGetByPCIBusId(device: *mut c_int, pci_bus_id: *const c_char)
            => |c| c.device_get_by_pci_bus_id(device, pci_bus_id);
        fn hipDeviceGetUuid(uuid: *mut hipUUID, device: hipDevice_t) => |c| c.device_get_uuid(uuid, device);
        fn hipDeviceComputeCapability(major: *mut c_int, minor: *mut c_int, device: hipDevice_t)
            => |c| c.device_compute_capability(major, minor, device);
        fn hipDeviceGetP2PAttribute(value: *mut c_int, attr: hipDeviceP2PAttr, src_device: c_int, dst_device: c_int)
            => |c| c.device_get_p2p_attribute(value, attr, src_device, dst_device);
        fn hipDeviceGetCacheConfig(cache_config: *mut hipFuncCache_t) => |c| c.device_get_cache_config(cache_config);
        fn hipDeviceSetCacheConfig(cache_config: hipFuncCache_t) => |c| c.device_set_cache_config(cache_config);
        fn hipDeviceGetSharedMemConfig(config: *mut hipSharedMemConfig) => |c| c.device_get_shared_mem_config(config);
        fn hipDeviceSetSharedMemConfig(config: hipSharedMemConfig) => |c| c.device_set_shared_mem_config(config);
        fn hipFuncSetCacheConfig(func: *const c_void, config: hipFuncCache_t)
            => |c| c.func_set_cache_config(func, config);
        fn hipFuncSetSharedMemConfig(func: *const c_void, config: hipSharedMemConfig)
            => |c| c.func_set_shared_mem_config(func, config);
        fn hipExtGetLinkTypeAndHopCount(device1: c_int, device2: c_int, linktype: *mut u32, hopcount: *mut u32)
            => |c| c.ext_get_link_type_and_hop_count(device1, device2, linktype, hopcount);
        fn hipSetValidDevices(device_arr: *mut c_int, len: c_int)
            => |c| { let _ = (&c, device_arr, len); Err(hipErrorNotSupported) };
        fn hipProfilerStart() => |c| { let _ = &c; Err(hipErrorNotSupported) };
        fn hipProfilerStop() => |c| { let _ = &c; Err(hipErrorNotSupported) };
        // Contexts
        fn hipCtxCreate(ctx: *mut hipCtx_t, flags: c_uint, device: hipDevice_t)
            => |c| c.ctx_create(ctx, flags, device);
        fn hipCtxDestroy(ctx: hipCtx_t) => |c| c.ctx_destroy(ctx);
        fn hipCtxPushCurrent(ctx: hipCtx_t) => |c| c.ctx_push_current(ctx);
        fn hipCtxPopCurrent(ctx: *mut hipCtx_t) => |c| c.ctx_pop_current(ctx);
        fn hipCtxSetCurrent(ctx: hipCtx_t) => |c| c.ctx_set_current(ctx);
        fn hipCtxGetCurrent(ctx: *mut hipCtx_t) => |c| c.ctx_get_current(ctx);
        fn hipCtxGetDevice(device: *mut hipDevice_t) => |c| c.get_device(device);
        fn hipCtxGetApiVersion(ctx: hipCtx_t, api_version: *mut c_int)
            => |c| { let _ = (&c, ctx, api_version); Err(hipErrorNotSupported) };
        fn hipCtxGetFlags(flags: *mut c_uint) => |c| { let _ = (&c, flags); Err(hipErrorNotSupported) };
        fn hipCtxSynchronize() => |c| { let _ = &c; Err(hipErrorNotSupported) };
        fn hipCtxGetCacheConfig(cache_config: *mut hipFuncCache_t)
            => |c| { let _ = (&c, cache_config); Err(hipErrorNotSupported) };
        fn hipCtxSetCacheConfig(cache_config: hipFuncCache_t) => |c| c.ctx_set_cache_config(cache_config);
        fn hipCtxGetSharedMemConfig(config: *mut hipSharedMemConfig) => |c| c.ctx_get_shared_mem_config(config);
        fn hipCtxSetSharedMemConfig(config: hipSharedMemConfig)
            => |c| { let _ = (&c, config); Err(hipErrorNotSupported) };
        fn hipCtxEnablePeerAccess(peer_ctx: hipCtx_t, flags: c_uint) => |c| c.ctx_enable_peer_access(peer_ctx, flags);
        fn hipCtxDisablePeerAccess(peer_ctx: hipCtx_t) => |c| c.ctx_disable_peer_access(peer_ctx);
        fn hipDevicePrimaryCtxRetain(pctx: *mut hipCtx_t, dev: hipDevice_t)
            => |c| c.device_primary_ctx_retain(pctx, dev);
        fn hipDevicePrimaryCtxRelease(dev: hipDevice_t) => |c| c.card_index(dev).map(|_| ());
        fn hipDevicePrimaryCtxReset(dev: hipDevice_t) => |c| c.card_index(dev).map(|_| ());
        fn hipDevicePrimaryCtxGetState(dev: hipDevice_t, flags: *mut c_uint, active: *mut c_int)
            => |c| c.device_primary_ctx_get_state(dev, flags, active);
        fn hipDevicePrimaryCtxSetFlags(dev: hipDevice_t, flags: c_uint)
            => |c| { let _ = flags; c.device_primary_ctx_set_flags(dev) };
        // Other processes
        fn hipIpcCloseMemHandle(dev_ptr: *mut c_void) => |c| c.ipc_close_mem_handle(dev_ptr);
        fn hipIpcGetEventHandle(handle: *mut hipIpcEventHandle_t, event: hipEvent_t)
            => |c| c.ipc_get_event_handle(handle, event);
        fn hipIpcOpenEventHandle(event: *mut hipEvent_t, handle: hipIpcEventHandle_t)
            => |c| c.ipc_open_event_handle(event, &handle);
        // Streams, captures and values in memory
        fn hipExtStreamCreateWithCUMask(stream: *mut hipStream_t, cu_mask_size: u32, cu_mask: *const u32)
            => |c| c.stream_create_with_cu_mask(stream, cu_mask_size, cu_mask);
        fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint)
            => |c| { let _ = flags; c.stream_write_value(stream, ptr, value.into(), 4) };
        fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint)
            => |c| { let _ = flags; c.stream_write_value(stream, ptr, value, 8) };
        fn hipStreamAttachMemAsync(stream: hipStream_t, dev_ptr: *mut c_void, length: usize, flags: c_uint)
            => |c| c.stream_attach_mem_async(stream, dev_ptr, length, flags);
        fn hipThreadExchangeStreamCaptureMode(mode: *mut hipStreamCaptureMode)
            => |c| c.thread_exchange_stream_capture_mode(mode);
        fn hipChooseDevice(device: *mut c_int, prop: *const hipDeviceProp_tR0000) => |c| c.choose_old_device(device, prop);
        fn hipChooseDeviceR0000(device: *mut c_int, prop: *const hipDeviceProp_tR0000)
            => |c| c.choose_old_device(device, prop);
        fn hipGetDevicePropertiesR0000(properties: *mut hipDeviceProp_tR0000, device: c_int)
            => |c| c.get_old_device_properties(properties, device);
    }};
}

pub(super) use device_functions;
