//! HIP's attribute numbers in the driver's. Neither may be guessed from the other: they agree nowhere.

use rocmforge_hip_sys::*;
use std::ffi::c_int;

/// `CU_DEVICE_ATTRIBUTE_*` for `hipDeviceAttribute*`: the driver's number, and its name there.
#[rustfmt::skip] // one attribute to a line
pub(crate) const DEVICE: &[(hipDeviceAttribute_t, c_int, &str)] = &[
    (hipDeviceAttributeEccEnabled, 32, "ECC_ENABLED"),
    (hipDeviceAttributeAsyncEngineCount, 40, "ASYNC_ENGINE_COUNT"),
    (hipDeviceAttributeCanMapHostMemory, 19, "CAN_MAP_HOST_MEMORY"),
    (hipDeviceAttributeClockRate, 13, "CLOCK_RATE"),
    (hipDeviceAttributeConcurrentKernels, 31, "CONCURRENT_KERNELS"),
    (hipDeviceAttributeCooperativeLaunch, 95, "COOPERATIVE_LAUNCH"),
    (hipDeviceAttributeIntegrated, INTEGRATED, "INTEGRATED"),
    (hipDeviceAttributeKernelExecTimeout, 17, "KERNEL_EXEC_TIMEOUT"),
    (hipDeviceAttributeL2CacheSize, 38, "L2_CACHE_SIZE"),
    (hipDeviceAttributeComputeCapabilityMajor, MAJOR, "COMPUTE_CAPABILITY_MAJOR"),
    (hipDeviceAttributeComputeCapabilityMinor, MINOR, "COMPUTE_CAPABILITY_MINOR"),
    (hipDeviceAttributeManagedMemory, 83, "MANAGED_MEMORY"),
    (hipDeviceAttributeMaxBlockDimX, 2, "MAX_BLOCK_DIM_X"),
    (hipDeviceAttributeMaxBlockDimY, 3, "MAX_BLOCK_DIM_Y"),
    (hipDeviceAttributeMaxBlockDimZ, 4, "MAX_BLOCK_DIM_Z"),
    (hipDeviceAttributeMaxGridDimX, 5, "MAX_GRID_DIM_X"),
    (hipDeviceAttributeMaxGridDimY, 6, "MAX_GRID_DIM_Y"),
    (hipDeviceAttributeMaxGridDimZ, 7, "MAX_GRID_DIM_Z"),
    (hipDeviceAttributeMaxThreadsPerBlock, 1, "MAX_THREADS_PER_BLOCK"),
    (hipDeviceAttributeMaxThreadsPerMultiProcessor, 39, "MAX_THREADS_PER_MULTIPROCESSOR"),
    (hipDeviceAttributeMemoryBusWidth, 37, "GLOBAL_MEMORY_BUS_WIDTH"),
    (hipDeviceAttributeMemoryClockRate, 36, "MEMORY_CLOCK_RATE"),
    (hipDeviceAttributeMultiprocessorCount, 16, "MULTIPROCESSOR_COUNT"),
    (hipDeviceAttributePciBusId, 33, "PCI_BUS_ID"),
    (hipDeviceAttributePciDeviceId, 34, "PCI_DEVICE_ID"),
    (hipDeviceAttributePciDomainID, 50, "PCI_DOMAIN_ID"),
    (hipDeviceAttributeMaxRegistersPerBlock, 12, "MAX_REGISTERS_PER_BLOCK"),
    // Not MAX_SHARED_MEMORY_PER_BLOCK (8), the 48 KiB of a function that has not been allowed more: all functions are, when
    // they are found (`module.rs`).
    (hipDeviceAttributeMaxSharedMemoryPerBlock, MAX_SHARED, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    (hipDeviceAttributeTotalConstantMemory, 9, "TOTAL_CONSTANT_MEMORY"),
    (hipDeviceAttributeWarpSize, 10, "WARP_SIZE"),
    (hipDeviceAttributeMemoryPoolsSupported, 115, "MEMORY_POOLS_SUPPORTED"),
    (hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, 81, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
    (hipDeviceAttributeAccessPolicyMaxWindowSize, 109, "MAX_ACCESS_POLICY_WINDOW_SIZE"),
    (hipDeviceAttributeCanUseHostPointerForRegisteredMem, 91, "CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM"),
    (hipDeviceAttributeComputeMode, 20, "COMPUTE_MODE"),
    (hipDeviceAttributeComputePreemptionSupported, 90, "COMPUTE_PREEMPTION_SUPPORTED"),
    (hipDeviceAttributeConcurrentManagedAccess, 89, "CONCURRENT_MANAGED_ACCESS"),
    (hipDeviceAttributeCooperativeMultiDeviceLaunch, 96, "COOPERATIVE_MULTI_DEVICE_LAUNCH"),
    (hipDeviceAttributeDeviceOverlap, 15, "GPU_OVERLAP"),
    (hipDeviceAttributeDirectManagedMemAccessFromHost, 101, "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST"),
    (hipDeviceAttributeGlobalL1CacheSupported, 79, "GLOBAL_L1_CACHE_SUPPORTED"),
    (hipDeviceAttributeHostNativeAtomicSupported, 86, "HOST_NATIVE_ATOMIC_SUPPORTED"),
    (hipDeviceAttributeIsMultiGpuBoard, 84, "MULTI_GPU_BOARD"),
    (hipDeviceAttributeLocalL1CacheSupported, 80, "LOCAL_L1_CACHE_SUPPORTED"),
    (hipDeviceAttributeMaxBlocksPerMultiProcessor, 106, "MAX_BLOCKS_PER_MULTIPROCESSOR"),
    (hipDeviceAttributeMaxSurface1D, 55, "MAXIMUM_SURFACE1D_WIDTH"),
    (hipDeviceAttributeMaxSurfaceCubemap, 66, "MAXIMUM_SURFACECUBEMAP_WIDTH"),
    (hipDeviceAttributeMaxTexture1DWidth, 21, "MAXIMUM_TEXTURE1D_WIDTH"),
    (hipDeviceAttributeMaxTexture1DLinear, 69, "MAXIMUM_TEXTURE1D_LINEAR_WIDTH"),
    (hipDeviceAttributeMaxTexture1DMipmap, 77, "MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH"),
    (hipDeviceAttributeMaxTexture2DWidth, 22, "MAXIMUM_TEXTURE2D_WIDTH"),
    (hipDeviceAttributeMaxTexture2DHeight, 23, "MAXIMUM_TEXTURE2D_HEIGHT"),
    (hipDeviceAttributeMaxTexture3DWidth, 24, "MAXIMUM_TEXTURE3D_WIDTH"),
    (hipDeviceAttributeMaxTexture3DHeight, 25, "MAXIMUM_TEXTURE3D_HEIGHT"),
    (hipDeviceAttributeMaxTexture3DDepth, 26, "MAXIMUM_TEXTURE3D_DEPTH"),
    (hipDeviceAttributeMaxTextureCubemap, 52, "MAXIMUM_TEXTURECUBEMAP_WIDTH"),
    (hipDeviceAttributeMaxPitch, 11, "MAX_PITCH"),
    (hipDeviceAttributeMultiGpuBoardGroupID, 85, "MULTI_GPU_BOARD_GROUP_ID"),
    (hipDeviceAttributePageableMemoryAccess, 88, "PAGEABLE_MEMORY_ACCESS"),
    (hipDeviceAttributePageableMemoryAccessUsesHostPageTables, 100, "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES"),
    (hipDeviceAttributePersistingL2CacheMaxSize, 108, "MAX_PERSISTING_L2_CACHE_SIZE"),
    (hipDeviceAttributeMaxRegistersPerMultiprocessor, 82, "MAX_REGISTERS_PER_MULTIPROCESSOR"),
    (hipDeviceAttributeReservedSharedMemPerBlock, 111, "RESERVED_SHARED_MEMORY_PER_BLOCK"),
    (hipDeviceAttributeSharedMemPerBlockOptin, 97, "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    (hipDeviceAttributeSharedMemPerMultiprocessor, 81, "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
    (hipDeviceAttributeSingleToDoublePrecisionPerfRatio, 87, "SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO"),
    (hipDeviceAttributeStreamPrioritiesSupported, 78, "STREAM_PRIORITIES_SUPPORTED"),
    (hipDeviceAttributeSurfaceAlignment, 30, "SURFACE_ALIGNMENT"),
    (hipDeviceAttributeTccDriver, 35, "TCC_DRIVER"),
    (hipDeviceAttributeTextureAlignment, 14, "TEXTURE_ALIGNMENT"),
    (hipDeviceAttributeTexturePitchAlignment, 51, "TEXTURE_PITCH_ALIGNMENT"),
    (hipDeviceAttributeUnifiedAddressing, 41, "UNIFIED_ADDRESSING"),
    (hipDeviceAttributeVirtualMemoryManagementSupported, 102, "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED"),
    (hipDeviceAttributeHostRegisterSupported, 99, "HOST_REGISTER_SUPPORTED"),
    (hipDeviceAttributeMemoryPoolSupportedHandleTypes, 119, "MEMPOOL_SUPPORTED_HANDLE_TYPES"),
];

/// The attributes that the driver has no number for: those of AMD's cards alone, and those whose value is several numbers in
/// CUDA. `hipErrorInvalidValue` answers them.
#[cfg(test)]
const ABSENT: &[hipDeviceAttribute_t] = &[
    hipDeviceAttributeLuid,
    hipDeviceAttributeLuidDeviceNodeMask,
    hipDeviceAttributeMaxSurface1DLayered,
    hipDeviceAttributeMaxSurface2D,
    hipDeviceAttributeMaxSurface2DLayered,
    hipDeviceAttributeMaxSurface3D,
    hipDeviceAttributeMaxSurfaceCubemapLayered,
    hipDeviceAttributeMaxTexture1DLayered,
    hipDeviceAttributeMaxTexture2DGather,
    hipDeviceAttributeMaxTexture2DLayered,
    hipDeviceAttributeMaxTexture2DLinear,
    hipDeviceAttributeMaxTexture2DMipmap,
    hipDeviceAttributeMaxTexture3DAlt,
    hipDeviceAttributeMaxTextureCubemapLayered,
    hipDeviceAttributeMaxThreadsDim,
    hipDeviceAttributeTotalGlobalMem,
    hipDeviceAttributeClockInstructionRate,
    hipDeviceAttributeHdpMemFlushCntl,
    hipDeviceAttributeHdpRegFlushCntl,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim,
    hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem,
    hipDeviceAttributeIsLargeBar,
    hipDeviceAttributeAsicRevision,
    hipDeviceAttributeCanUseStreamWaitValue,
    hipDeviceAttributeImageSupport,
    hipDeviceAttributePhysicalMultiProcessorCount,
    hipDeviceAttributeFineGrainSupport,
    hipDeviceAttributeWallClockRate,
];

/// `CU_DEVICE_ATTRIBUTE_INTEGRATED`.
pub(crate) const INTEGRATED: c_int = 18;
/// `CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN`.
pub(crate) const MAX_SHARED: c_int = 97;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR`.
pub(crate) const MAJOR: c_int = 75;
/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR`.
pub(crate) const MINOR: c_int = 76;

/// The driver's number for an attribute of a device.
pub(crate) fn device(attribute: hipDeviceAttribute_t) -> Option<c_int> {
    DEVICE
        .iter()
        .find(|(hip, ..)| *hip == attribute)
        .map(|(_, cuda, _)| *cuda)
}

/// The driver's number for an attribute of a function: here the two agree, up to the last that HIP has.
pub(crate) fn function(attribute: hipFunction_attribute) -> Option<c_int> {
    (attribute <= HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES).then_some(attribute as c_int)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_attribute_of_the_bindings_has_one_number_or_none_in_the_driver() {
        let ours: Vec<_> = rocmforge_hip_sys::abi::constants()
            .into_iter()
            .filter(|constant| constant.group == "hipDeviceAttribute_t")
            .collect();
        assert!(ours.len() > 20);
        for constant in &ours {
            let attribute = constant.value as hipDeviceAttribute_t;
            assert_ne!(
                device(attribute).is_some(),
                ABSENT.contains(&attribute),
                "{}",
                constant.name
            );
        }
        let hips: BTreeSet<hipDeviceAttribute_t> = DEVICE.iter().map(|(hip, ..)| *hip).collect();
        assert_eq!(hips.len(), DEVICE.len());
        assert_eq!(hips.len() + ABSENT.len(), ours.len());
        assert_eq!(device(9999), None);
    }
}
