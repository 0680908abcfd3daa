//! Device descriptions: the attributes, the properties field by field, and the small types of the device's calls.

use crate::macros::{constants, handles, structs};
use crate::types::{hipDeviceProp_tR0000, hipDeviceProp_tR0600};
use std::ffi::{c_char, c_int, c_uint};

handles! {
    /// A context, of the calls that HIP took over from another driver. Each device has one.
    ihipCtx_t => hipCtx_t;
}

constants! {
    /// What `hipDeviceGetAttribute` can be asked. The values have not changed from HIP 5.2 to 7.1.
    hipDeviceAttribute_t: c_uint {
        hipDeviceAttributeEccEnabled = 0,
        hipDeviceAttributeAccessPolicyMaxWindowSize = 1,
        hipDeviceAttributeAsyncEngineCount = 2,
        hipDeviceAttributeCanMapHostMemory = 3,
        hipDeviceAttributeCanUseHostPointerForRegisteredMem = 4,
        hipDeviceAttributeClockRate = 5,
        hipDeviceAttributeComputeMode = 6,
        hipDeviceAttributeComputePreemptionSupported = 7,
        hipDeviceAttributeConcurrentKernels = 8,
        hipDeviceAttributeConcurrentManagedAccess = 9,
        hipDeviceAttributeCooperativeLaunch = 10,
        hipDeviceAttributeCooperativeMultiDeviceLaunch = 11,
        hipDeviceAttributeDeviceOverlap = 12,
        hipDeviceAttributeDirectManagedMemAccessFromHost = 13,
        hipDeviceAttributeGlobalL1CacheSupported = 14,
        hipDeviceAttributeHostNativeAtomicSupported = 15,
        hipDeviceAttributeIntegrated = 16,
        hipDeviceAttributeIsMultiGpuBoard = 17,
        hipDeviceAttributeKernelExecTimeout = 18,
        hipDeviceAttributeL2CacheSize = 19,
        hipDeviceAttributeLocalL1CacheSupported = 20,
        hipDeviceAttributeLuid = 21,
        hipDeviceAttributeLuidDeviceNodeMask = 22,
        hipDeviceAttributeComputeCapabilityMajor = 23,
        hipDeviceAttributeManagedMemory = 24,
        hipDeviceAttributeMaxBlocksPerMultiProcessor = 25,
        hipDeviceAttributeMaxBlockDimX = 26,
        hipDeviceAttributeMaxBlockDimY = 27,
        hipDeviceAttributeMaxBlockDimZ = 28,
        hipDeviceAttributeMaxGridDimX = 29,
        hipDeviceAttributeMaxGridDimY = 30,
        hipDeviceAttributeMaxGridDimZ = 31,
        hipDeviceAttributeMaxSurface1D = 32,
        hipDeviceAttributeMaxSurface1DLayered = 33,
        hipDeviceAttributeMaxSurface2D = 34,
        hipDeviceAttributeMaxSurface2DLayered = 35,
        hipDeviceAttributeMaxSurface3D = 36,
        hipDeviceAttributeMaxSurfaceCubemap = 37,
        hipDeviceAttributeMaxSurfaceCubemapLayered = 38,
        hipDeviceAttributeMaxTexture1DWidth = 39,
        hipDeviceAttributeMaxTexture1DLayered = 40,
        hipDeviceAttributeMaxTexture1DLinear = 41,
        hipDeviceAttributeMaxTexture1DMipmap = 42,
        hipDeviceAttributeMaxTexture2DWidth = 43,
        hipDeviceAttributeMaxTexture2DHeight = 44,
        hipDeviceAttributeMaxTexture2DGather = 45,
        hipDeviceAttributeMaxTexture2DLayered = 46,
        hipDeviceAttributeMaxTexture2DLinear = 47,
        hipDeviceAttributeMaxTexture2DMipmap = 48,
        hipDeviceAttributeMaxTexture3DWidth = 49,
        hipDeviceAttributeMaxTexture3DHeight = 50,
        hipDeviceAttributeMaxTexture3DDepth = 51,
        hipDeviceAttributeMaxTexture3DAlt = 52,
        hipDeviceAttributeMaxTextureCubemap = 53,
        hipDeviceAttributeMaxTextureCubemapLayered = 54,
        hipDeviceAttributeMaxThreadsDim = 55,
        hipDeviceAttributeMaxThreadsPerBlock = 56,
        hipDeviceAttributeMaxThreadsPerMultiProcessor = 57,
        hipDeviceAttributeMaxPitch = 58,
        hipDeviceAttributeMemoryBusWidth = 59,
        hipDeviceAttributeMemoryClockRate = 60,
        hipDeviceAttributeComputeCapabilityMinor = 61,
        hipDeviceAttributeMultiGpuBoardGroupID = 62,
        hipDeviceAttributeMultiprocessorCount = 63,
        hipDeviceAttributePageableMemoryAccess = 65,
        hipDeviceAttributePageableMemoryAccessUsesHostPageTables = 66,
        hipDeviceAttributePciBusId = 67,
        hipDeviceAttributePciDeviceId = 68,
        hipDeviceAttributePciDomainID = 69,
        hipDeviceAttributePersistingL2CacheMaxSize = 70,
        hipDeviceAttributeMaxRegistersPerBlock = 71,
        hipDeviceAttributeMaxRegistersPerMultiprocessor = 72,
        hipDeviceAttributeReservedSharedMemPerBlock = 73,
        hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
        hipDeviceAttributeSharedMemPerBlockOptin = 75,
        hipDeviceAttributeSharedMemPerMultiprocessor = 76,
        hipDeviceAttributeSingleToDoublePrecisionPerfRatio = 77,
        hipDeviceAttributeStreamPrioritiesSupported = 78,
        hipDeviceAttributeSurfaceAlignment = 79,
        hipDeviceAttributeTccDriver = 80,
        hipDeviceAttributeTextureAlignment = 81,
        hipDeviceAttributeTexturePitchAlignment = 82,
        hipDeviceAttributeTotalConstantMemory = 83,
        hipDeviceAttributeTotalGlobalMem = 84,
        hipDeviceAttributeUnifiedAddressing = 85,
        hipDeviceAttributeWarpSize = 87,
        hipDeviceAttributeMemoryPoolsSupported = 88,
        hipDeviceAttributeVirtualMemoryManagementSupported = 89,
        hipDeviceAttributeHostRegisterSupported = 90,
        hipDeviceAttributeMemoryPoolSupportedHandleTypes = 91,
        hipDeviceAttributeClockInstructionRate = 10000,
        hipDeviceAttributeMaxSharedMemoryPerMultiprocessor = 10002,
        hipDeviceAttributeHdpMemFlushCntl = 10005,
        hipDeviceAttributeHdpRegFlushCntl = 10006,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc = 10007,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim = 10008,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim = 10009,
        hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem = 10010,
        hipDeviceAttributeIsLargeBar = 10011,
        hipDeviceAttributeAsicRevision = 10012,
        hipDeviceAttributeCanUseStreamWaitValue = 10013,
        hipDeviceAttributeImageSupport = 10014,
        hipDeviceAttributePhysicalMultiProcessorCount = 10015,
        hipDeviceAttributeFineGrainSupport = 10016,
        hipDeviceAttributeWallClockRate = 10017,
    }
    /// What `hipDeviceGetP2PAttribute` can be asked.
    hipDeviceP2PAttr: c_uint {
        hipDevP2PAttrPerformanceRank = 0,
        hipDevP2PAttrAccessSupported = 1,
        hipDevP2PAttrNativeAtomicSupported = 2,
        hipDevP2PAttrHipArrayAccessSupported = 3,
    }
    /// What a kernel's cache is to be split into. AMD's cards have one split.
    hipFuncCache_t: c_uint {
        hipFuncCachePreferNone = 0,
        hipFuncCachePreferShared = 1,
        hipFuncCachePreferL1 = 2,
        hipFuncCachePreferEqual = 3,
    }
    /// The width of the banks of LDS. AMD's cards have one.
    hipSharedMemConfig: c_uint {
        hipSharedMemBankSizeDefault = 0,
        hipSharedMemBankSizeFourByte = 1,
        hipSharedMemBankSizeEightByte = 2,
    }
    /// How memory of one process may be handed to another.
    hipMemAllocationHandleType: c_uint {
        hipMemHandleTypeNone = 0x0,
        hipMemHandleTypePosixFileDescriptor = 0x1,
        hipMemHandleTypeWin32 = 0x2,
        hipMemHandleTypeWin32Kmt = 0x4,
    }
}

/// What an architecture can do, a bit each: 0 to 16 are 32-bit atomics in global memory and exchange of floats there, both in LDS,
/// addition of floats, 64-bit atomics in global memory and LDS, doubles, votes, ballots, shuffles, funnel shifts, system fences,
/// barriers with votes, surfaces, 3D grids, dynamic parallelism.
pub type hipDeviceArch_t = c_uint;

structs! {
    /// A device's number for life.
    hipUUID: "hipUUID", 5, u32::MAX => {
        bytes: [c_char; 16],
    }
    /// `hipDeviceProp_t` as HIP 6 and later lay it out, field by field: what the bytes of
    /// [`hipDeviceProp_tR0600`](crate::hipDeviceProp_tR0600) mean. The addresses of registers are numbers.
    DeviceProperties6: "hipDeviceProp_t", 6, u32::MAX => {
        name: [c_char; 256],
        uuid: hipUUID,
        luid: [c_char; 8],
        luidDeviceNodeMask: c_uint,
        totalGlobalMem: usize,
        sharedMemPerBlock: usize,
        regsPerBlock: c_int,
        warpSize: c_int,
        memPitch: usize,
        maxThreadsPerBlock: c_int,
        maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3],
        clockRate: c_int,
        totalConstMem: usize,
        major: c_int,
        minor: c_int,
        textureAlignment: usize,
        texturePitchAlignment: usize,
        deviceOverlap: c_int,
        multiProcessorCount: c_int,
        kernelExecTimeoutEnabled: c_int,
        integrated: c_int,
        canMapHostMemory: c_int,
        computeMode: c_int,
        maxTexture1D: c_int,
        maxTexture1DMipmap: c_int,
        maxTexture1DLinear: c_int,
        maxTexture2D: [c_int; 2],
        maxTexture2DMipmap: [c_int; 2],
        maxTexture2DLinear: [c_int; 3],
        maxTexture2DGather: [c_int; 2],
        maxTexture3D: [c_int; 3],
        maxTexture3DAlt: [c_int; 3],
        maxTextureCubemap: c_int,
        maxTexture1DLayered: [c_int; 2],
        maxTexture2DLayered: [c_int; 3],
        maxTextureCubemapLayered: [c_int; 2],
        maxSurface1D: c_int,
        maxSurface2D: [c_int; 2],
        maxSurface3D: [c_int; 3],
        maxSurface1DLayered: [c_int; 2],
        maxSurface2DLayered: [c_int; 3],
        maxSurfaceCubemap: c_int,
        maxSurfaceCubemapLayered: [c_int; 2],
        surfaceAlignment: usize,
        concurrentKernels: c_int,
        ECCEnabled: c_int,
        pciBusID: c_int,
        pciDeviceID: c_int,
        pciDomainID: c_int,
        tccDriver: c_int,
        asyncEngineCount: c_int,
        unifiedAddressing: c_int,
        memoryClockRate: c_int,
        memoryBusWidth: c_int,
        l2CacheSize: c_int,
        persistingL2CacheMaxSize: c_int,
        maxThreadsPerMultiProcessor: c_int,
        streamPrioritiesSupported: c_int,
        globalL1CacheSupported: c_int,
        localL1CacheSupported: c_int,
        sharedMemPerMultiprocessor: usize,
        regsPerMultiprocessor: c_int,
        managedMemory: c_int,
        isMultiGpuBoard: c_int,
        multiGpuBoardGroupID: c_int,
        hostNativeAtomicSupported: c_int,
        singleToDoublePrecisionPerfRatio: c_int,
        pageableMemoryAccess: c_int,
        concurrentManagedAccess: c_int,
        computePreemptionSupported: c_int,
        canUseHostPointerForRegisteredMem: c_int,
        cooperativeLaunch: c_int,
        cooperativeMultiDeviceLaunch: c_int,
        sharedMemPerBlockOptin: usize,
        pageableMemoryAccessUsesHostPageTables: c_int,
        directManagedMemAccessFromHost: c_int,
        maxBlocksPerMultiProcessor: c_int,
        accessPolicyMaxWindowSize: c_int,
        reservedSharedMemPerBlock: usize,
        hostRegisterSupported: c_int,
        sparseHipArraySupported: c_int,
        hostRegisterReadOnlySupported: c_int,
        timelineSemaphoreInteropSupported: c_int,
        memoryPoolsSupported: c_int,
        gpuDirectRDMASupported: c_int,
        gpuDirectRDMAFlushWritesOptions: c_uint,
        gpuDirectRDMAWritesOrdering: c_int,
        memoryPoolSupportedHandleTypes: c_uint,
        deferredMappingHipArraySupported: c_int,
        ipcEventSupported: c_int,
        clusterLaunch: c_int,
        unifiedFunctionPointers: c_int,
        reserved: [c_int; 63],
        hipReserved: [c_int; 32],
        gcnArchName: [c_char; 256],
        maxSharedMemoryPerMultiProcessor: usize,
        clockInstructionRate: c_int,
        arch: hipDeviceArch_t,
        hdpMemFlushCntl: usize,
        hdpRegFlushCntl: usize,
        cooperativeMultiDeviceUnmatchedFunc: c_int,
        cooperativeMultiDeviceUnmatchedGridDim: c_int,
        cooperativeMultiDeviceUnmatchedBlockDim: c_int,
        cooperativeMultiDeviceUnmatchedSharedMem: c_int,
        isLargeBar: c_int,
        asicRevision: c_int,
    }
    /// The same as HIP 5 has it: what the bytes of [`hipDeviceProp_tR0000`](crate::hipDeviceProp_tR0000) mean.
    DeviceProperties5: "hipDeviceProp_t", 5, 5 => {
        name: [c_char; 256],
        totalGlobalMem: usize,
        sharedMemPerBlock: usize,
        regsPerBlock: c_int,
        warpSize: c_int,
        maxThreadsPerBlock: c_int,
        maxThreadsDim: [c_int; 3],
        maxGridSize: [c_int; 3],
        clockRate: c_int,
        memoryClockRate: c_int,
        memoryBusWidth: c_int,
        totalConstMem: usize,
        major: c_int,
        minor: c_int,
        multiProcessorCount: c_int,
        l2CacheSize: c_int,
        maxThreadsPerMultiProcessor: c_int,
        computeMode: c_int,
        clockInstructionRate: c_int,
        arch: hipDeviceArch_t,
        concurrentKernels: c_int,
        pciDomainID: c_int,
        pciBusID: c_int,
        pciDeviceID: c_int,
        maxSharedMemoryPerMultiProcessor: usize,
        isMultiGpuBoard: c_int,
        canMapHostMemory: c_int,
        gcnArch: c_int,
        gcnArchName: [c_char; 256],
        integrated: c_int,
        cooperativeLaunch: c_int,
        cooperativeMultiDeviceLaunch: c_int,
        maxTexture1DLinear: c_int,
        maxTexture1D: c_int,
        maxTexture2D: [c_int; 2],
        maxTexture3D: [c_int; 3],
        hdpMemFlushCntl: usize,
        hdpRegFlushCntl: usize,
        memPitch: usize,
        textureAlignment: usize,
        texturePitchAlignment: usize,
        kernelExecTimeoutEnabled: c_int,
        ECCEnabled: c_int,
        tccDriver: c_int,
        cooperativeMultiDeviceUnmatchedFunc: c_int,
        cooperativeMultiDeviceUnmatchedGridDim: c_int,
        cooperativeMultiDeviceUnmatchedBlockDim: c_int,
        cooperativeMultiDeviceUnmatchedSharedMem: c_int,
        isLargeBar: c_int,
        asicRevision: c_int,
        managedMemory: c_int,
        directManagedMemAccessFromHost: c_int,
        concurrentManagedAccess: c_int,
        pageableMemoryAccess: c_int,
        pageableMemoryAccessUsesHostPageTables: c_int,
    }
}

/// The fields of a struct above: name, offset and size.
fn fields_of(name: &str) -> &'static [(&'static str, usize, usize)] {
    let layout = LAYOUTS.iter().find(|layout| layout.name == name);
    layout.expect("each properties struct is declared above").fields
}

/// Declares both directions between the fields of a properties struct and its bytes. What lies between the fields is 0.
macro_rules! bytes_of_properties {
    ($fields:ident, $bytes:ident) => {
        const _: () = assert!(size_of::<$fields>() == size_of::<$bytes>());

        impl From<&$fields> for $bytes {
            fn from(fields: &$fields) -> Self {
                let mut bytes = Self([0; size_of::<$bytes>()]);
                for (_, offset, size) in fields_of(stringify!($fields)) {
                    let from = (&raw const *fields).cast::<u8>().wrapping_add(*offset);
                    // SAFETY: offset and size are those of a field, so the bytes are initialised and lie in `fields`.
                    let field = unsafe { std::slice::from_raw_parts(from, *size) };
                    bytes.0[*offset..offset + size].copy_from_slice(field);
                }
                bytes
            }
        }

        impl From<&$bytes> for $fields {
            fn from(bytes: &$bytes) -> Self {
                // SAFETY: both have the same size, as asserted above, and every field is made of numbers.
                unsafe { (&raw const bytes.0).cast::<$fields>().read_unaligned() }
            }
        }
    };
}

bytes_of_properties!(DeviceProperties6, hipDeviceProp_tR0600);
bytes_of_properties!(DeviceProperties5, hipDeviceProp_tR0000);

/// Declares a conversion between the properties of two versions of HIP: the fields that both have under one name, 0 for the others.
macro_rules! same_fields {
    ($from:ident, $from_bytes:ident => $to:ident, $to_bytes:ident) => {
        impl From<&$from> for $to {
            fn from(from: &$from) -> Self {
                let (from, mut to) = ($from_bytes::from(from), $to_bytes([0; size_of::<$to_bytes>()]));
                for (name, at, size) in fields_of(stringify!($to)) {
                    let mut others = fields_of(stringify!($from)).iter();
                    if let Some((_, start, _)) = others.find(|(other, _, length)| other == name && length == size) {
                        to.0[*at..at + size].copy_from_slice(&from.0[*start..start + size]);
                    }
                }
                Self::from(&to)
            }
        }
    };
}

same_fields!(DeviceProperties6, hipDeviceProp_tR0600 => DeviceProperties5, hipDeviceProp_tR0000);
same_fields!(DeviceProperties5, hipDeviceProp_tR0000 => DeviceProperties6, hipDeviceProp_tR0600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_and_bytes_of_the_properties_are_the_same_thing() {
        let mut bytes = hipDeviceProp_tR0600([0; 1472]);
        bytes.0[308] = 32;
        bytes.0[696..704].copy_from_slice(&65_536u64.to_le_bytes());
        bytes.0[hipDeviceProp_tR0600::GCN_ARCH_NAME] = b'g';
        let fields = DeviceProperties6::from(&bytes);
        assert_eq!(
            (fields.warpSize, fields.sharedMemPerBlockOptin, fields.gcnArchName[0]),
            (32, 65_536, b'g' as c_char)
        );
        assert_eq!(hipDeviceProp_tR0600::from(&fields).0, bytes.0);
        let mut bytes = hipDeviceProp_tR0000([0; 792]);
        bytes.0[hipDeviceProp_tR0000::GCN_ARCH_NAME + 256] = 1;
        let fields = DeviceProperties5::from(&bytes);
        assert_eq!(fields.integrated, 1);
        assert_eq!(hipDeviceProp_tR0000::from(&fields).0, bytes.0);
    }

    #[test]
    fn properties_of_both_versions_are_the_same_where_both_have_them() {
        let six = fields_of("DeviceProperties6");
        let mut both = 0;
        for (name, _, size) in fields_of("DeviceProperties5") {
            if let Some((_, _, other)) = six.iter().find(|(other, ..)| other == name) {
                assert_eq!(size, other, "{name}");
                both += 1;
            }
        }
        assert_eq!(both, 54, "fields of one name");
        let bytes = hipDeviceProp_tR0600(std::array::from_fn(|n| n as u8 | 1));
        let fields = DeviceProperties6::from(&bytes);
        let five = DeviceProperties5::from(&fields);
        assert_eq!(
            (five.major, five.memPitch, five.name),
            (fields.major, fields.memPitch, fields.name)
        );
        assert_eq!(five.gcnArch, 0, "only HIP 5 has it");
        let again = DeviceProperties6::from(&five);
        assert_eq!(
            (again.totalGlobalMem, again.maxGridSize),
            (fields.totalGlobalMem, fields.maxGridSize)
        );
        assert_eq!(again.luid, [0; 8], "only HIP 6 has it");
    }
}
