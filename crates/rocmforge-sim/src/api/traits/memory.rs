//! Memory beyond plain allocations and copies.

/// As `forward!`, which it uses.
macro_rules! memory_functions {
    () => {forward! {
        // More memory
        fn hipMallocHost(ptr: *mut *mut c_void, size: usize) => |c| c.host_malloc(ptr, size, hipHostMallocDefault);
        fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize) => |c| c.host_malloc(ptr, size, hipHostMallocDefault);
        fn hipFreeHost(ptr: *mut c_void) => |c| c.host_free(ptr);
        fn hipMemAllocPitch(dptr: *mut hipDeviceptr_t, pitch: *mut usize, width_in_bytes: usize, height: usize, element_size_bytes: c_uint)
            => |c| c.mem_alloc_pitch(dptr, pitch, [width_in_bytes, height], element_size_bytes);
        fn hipMemAdvise(dev_ptr: *const c_void, count: usize, advice: hipMemoryAdvise, device: c_int)
            => |c| c.mem_advise(dev_ptr, count, advice, device);
        fn hipMemRangeGetAttribute(data: *mut c_void, data_size: usize, attribute: hipMemRangeAttribute, dev_ptr: *const c_void, count: usize)
            => |c| c.mem_range_get_attribute(data, data_size, attribute, dev_ptr, count);
        fn hipMemRangeGetAttributes(data: *mut *mut c_void, data_sizes: *mut usize, attributes: *mut hipMemRangeAttribute, num_attributes: usize, dev_ptr: *const c_void, count: usize)
            => |c| c.mem_range_get_attributes((data, data_sizes), attributes, num_attributes, dev_ptr, count);
        fn hipDrvPointerGetAttributes(num_attributes: c_uint, attributes: *mut hipPointer_attribute, data: *mut *mut c_void, ptr: hipDeviceptr_t)
            => |c| c.drv_pointer_get_attributes(num_attributes, attributes, data, ptr);
        // Arrays
        fn hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint)
            => |c| c.malloc_array(array, desc, hipExtent { width, height, depth: 0 }, flags);
        fn hipMalloc3DArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, extent: hipExtent, flags: c_uint)
            => |c| c.malloc_array(array, desc, extent, flags);
        fn hipArrayCreate(handle: *mut hipArray_t, allocate_array: *const HIP_ARRAY_DESCRIPTOR)
            => |c| c.array_create(handle, allocate_array);
        fn hipArray3DCreate(array: *mut hipArray_t, allocate_array: *const HIP_ARRAY3D_DESCRIPTOR)
            => |c| c.array_3d_create(array, allocate_array);
        fn hipArrayDestroy(array: hipArray_t) => |c| c.free_array(array);
        fn hipArrayGetInfo(desc: *mut hipChannelFormatDesc, extent: *mut hipExtent, flags: *mut c_uint, array: hipArray_t)
            => |c| c.array_get_info(desc, extent, flags, array);
        fn hipArrayGetDescriptor(array_descriptor: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t)
            => |c| c.array_get_descriptor(array_descriptor, array);
        fn hipArray3DGetDescriptor(array_descriptor: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t)
            => |c| c.array_3d_get_descriptor(array_descriptor, array);
        fn hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_const_t)
            => |c| c.get_channel_desc(desc, array);
        fn hipMemcpyToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_to_array((dst, w_offset, h_offset), src, count, kind);
        fn hipMemcpyFromArray(dst: *mut c_void, src_array: hipArray_const_t, w_offset: usize, h_offset: usize, count: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_from_array(dst, (src_array, w_offset, h_offset), count, kind);
        fn hipMemcpy2DToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_to_array((dst, w_offset, h_offset), (src, spitch), [width, height], kind, None);
        fn hipMemcpy2DToArrayAsync(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_2d_to_array((dst, w_offset, h_offset), (src, spitch), [width, height], kind, Some(stream));
        fn hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_from_array((dst, dpitch), (src, w_offset, h_offset), [width, height], kind, None);
        fn hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_2d_from_array((dst, dpitch), (src, w_offset, h_offset), [width, height], kind, Some(stream));
        fn hipMemcpy2DArrayToArray(dst: hipArray_t, w_offset_dst: usize, h_offset_dst: usize, src: hipArray_const_t, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_array_to_array(
                (dst, w_offset_dst, h_offset_dst), (src, w_offset_src, h_offset_src), [width, height], kind,
            );
        fn hipMemcpyAtoH(dst: *mut c_void, src_array: hipArray_t, src_offset: usize, count: usize)
            => |c| c.memcpy_from_row(dst, (src_array, src_offset), count, None);
        fn hipMemcpyHtoA(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, count: usize)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_host, count, None);
        fn hipMemcpyAtoHAsync(dst_host: *mut c_void, src_array: hipArray_t, src_offset: usize, byte_count: usize, stream: hipStream_t)
            => |c| c.memcpy_from_row(dst_host, (src_array, src_offset), byte_count, Some(stream));
        fn hipMemcpyHtoAAsync(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, byte_count: usize, stream: hipStream_t)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_host, byte_count, Some(stream));
        fn hipMemcpyAtoD(dst_device: hipDeviceptr_t, src_array: hipArray_t, src_offset: usize, byte_count: usize)
            => |c| c.memcpy_from_row(dst_device, (src_array, src_offset), byte_count, None);
        fn hipMemcpyDtoA(dst_array: hipArray_t, dst_offset: usize, src_device: hipDeviceptr_t, byte_count: usize)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_device, byte_count, None);
        fn hipMemcpyAtoA(dst_array: hipArray_t, dst_offset: usize, src_array: hipArray_t, src_offset: usize, byte_count: usize)
            => |c| c.memcpy_row_to_row((dst_array, dst_offset), (src_array, src_offset), byte_count);
        // More copies and fills
        fn hipMemcpyWithStream(dst: *mut c_void, src: *const c_void, size_bytes: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_with_stream(dst, src, size_bytes, kind, stream);
        fn hipMemcpyPeerAsync(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device: c_int, size_bytes: usize, stream: hipStream_t)
            => |c| c.memcpy_peer((dst, dst_device_id), (src, src_device), size_bytes, Some(stream));
        fn hipMemcpyParam2D(copy: *const hip_Memcpy2D) => |c| c.memcpy_param_2d(copy, None);
        fn hipMemcpyParam2DAsync(copy: *const hip_Memcpy2D, stream: hipStream_t)
            => |c| c.memcpy_param_2d(copy, Some(stream));
        fn hipDrvMemcpy2DUnaligned(copy: *const hip_Memcpy2D) => |c| c.memcpy_2d_unaligned(copy);
        fn hipMemcpy3D(p: *const hipMemcpy3DParms) => |c| c.memcpy_3d(p, None);
        fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) => |c| c.memcpy_3d(p, Some(stream));
        fn hipDrvMemcpy3D(copy: *const HIP_MEMCPY3D) => |c| c.drv_memcpy_3d(copy, None);
        fn hipDrvMemcpy3DAsync(copy: *const HIP_MEMCPY3D, stream: hipStream_t)
            => |c| c.drv_memcpy_3d(copy, Some(stream));
        fn hipMemset3D(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent)
            => |c| c.memset_3d(&pitched_dev_ptr, value, extent, None);
        fn hipMemset3DAsync(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t)
            => |c| c.memset_3d(&pitched_dev_ptr, value, extent, Some(stream));
        fn hipMemsetD2D8(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 1), [width, height], None);
        fn hipMemsetD2D8Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 1), [width, height], Some(stream));
        fn hipMemsetD2D16(dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 2), [width, height], None);
        fn hipMemsetD2D16Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 2), [width, height], Some(stream));
        fn hipMemsetD2D32(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value, 4), [width, height], None);
        fn hipMemsetD2D32Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value, 4), [width, height], Some(stream));
        // More of streams and events
        fn hipStreamGetId(stream: hipStream_t, stream_id: *mut c_ulonglong) => |c| c.stream_get_id(stream, stream_id);
        fn hipEventRecordWithFlags(event: hipEvent_t, stream: hipStream_t, flags: c_uint)
            => |c| c.event_record_with_flags(event, stream, flags);
        // Virtual memory
        fn hipMemAddressReserve(ptr: *mut *mut c_void, size: usize, alignment: usize, _address: *mut c_void, flags: c_ulonglong)
            => |c| c.mem_address_reserve(ptr, size, alignment, flags);
        fn hipMemAddressFree(dev_ptr: *mut c_void, size: usize) => |c| c.mem_address_free(dev_ptr, size);
        fn hipMemCreate(handle: *mut hipMemGenericAllocationHandle_t, size: usize, properties: *const hipMemAllocationProp, flags: c_ulonglong)
            => |c| c.mem_create(handle, size, properties, flags);
        fn hipMemRelease(handle: hipMemGenericAllocationHandle_t) => |c| c.mem_release(handle);
        fn hipMemMap(ptr: *mut c_void, size: usize, offset: usize, handle: hipMemGenericAllocationHandle_t, flags: c_ulonglong)
            => |c| c.mem_map(ptr, size, offset, handle, flags);
        fn hipMemUnmap(ptr: *mut c_void, size: usize) => |c| c.mem_unmap(ptr, size);
        fn hipMemSetAccess(ptr: *mut c_void, size: usize, desc: *const hipMemAccessDesc, count: usize)
            => |c| c.mem_set_access(ptr, size, desc, count);
        fn hipMemGetAccess(flags: *mut c_ulonglong, location: *const hipMemLocation, ptr: *mut c_void)
            => |c| c.mem_get_access(flags, location, ptr);
        fn hipMemGetAllocationGranularity(granularity: *mut usize, prop: *const hipMemAllocationProp, option: hipMemAllocationGranularity_flags)
            => |c| c.mem_get_allocation_granularity(granularity, prop, option);
        fn hipMemGetAllocationPropertiesFromHandle(prop: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t)
            => |c| c.mem_get_allocation_properties(prop, handle);
        fn hipMemRetainAllocationHandle(handle: *mut hipMemGenericAllocationHandle_t, addr: *mut c_void)
            => |c| c.mem_retain_allocation_handle(handle, addr);
        fn hipMemExportToShareableHandle(shareable_handle: *mut c_void, handle: hipMemGenericAllocationHandle_t, _handle_type: hipMemAllocationHandleType, flags: c_ulonglong)
            => |c| c.mem_export_to_shareable_handle(shareable_handle, handle, flags);
        fn hipMemImportFromShareableHandle(handle: *mut hipMemGenericAllocationHandle_t, os_handle: *mut c_void, _sh_handle_type: hipMemAllocationHandleType)
            => |c| c.mem_import_from_shareable_handle(handle, os_handle);
        // More of pools
        fn hipMemPoolSetAccess(mem_pool: hipMemPool_t, desc_list: *const hipMemAccessDesc, count: usize)
            => |c| c.mem_pool_set_access(mem_pool, desc_list, count);
        fn hipMemPoolGetAccess(flags: *mut hipMemAccessFlags, mem_pool: hipMemPool_t, location: *mut hipMemLocation)
            => |c| c.mem_pool_get_access(flags, mem_pool, location);
        fn hipMemPoolExportToShareableHandle(shared_handle: *mut c_void, mem_pool: hipMemPool_t, handle_type: hipMemAllocationHandleType, flags: c_uint)
            => |c| c.mem_pool_export_to_shareable_handle(shared_handle, mem_pool, handle_type, flags);
        fn hipMemPoolImportFromShareableHandle(mem_pool: *mut hipMemPool_t, shared_handle: *mut c_void, handle_type: hipMemAllocationHandleType, flags: c_uint)
            => |c| c.mem_pool_import_from_shareable_handle(mem_pool, shared_handle, handle_type, flags);
        fn hipMemPoolExportPointer(export_data: *mut hipMemPoolPtrExportData, dev_ptr: *mut c_void)
            => |c| c.mem_pool_export_pointer(export_data, dev_ptr);
        fn hipMemPoolImportPointer(dev_ptr: *mut *mut c_void, mem_pool: hipMemPool_t, export_data: *mut hipMemPoolPtrExportData)
            => |c| c.mem_pool_import_pointer(dev_ptr, mem_pool, export_data);
        // More occupancy
        fn hipModuleOccupancyMaxPotentialBlockSize(grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int)
            => |c| c.module_occupancy_max_potential_block_size(grid_size, block_size, f, dyn_shared_mem_per_blk, block_size_limit);
        fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(grid_size: *mut c_int, block_size: *mut c_int, f: hipFunction_t, dyn_shared_mem_per_blk: usize, block_size_limit: c_int, flags: c_uint)
            => |c| c.module_occupancy_max_potential_block_size_with_flags(
                (grid_size, block_size), f, dyn_shared_mem_per_blk, block_size_limit, flags,
            );
    }};
}

pub(super) use memory_functions;
