//! Handles, constants and structs, with the C names. Sizes, offsets and values are compared with the HIP headers by
//! `cargo xtask bindings check`.

use crate::macros::{constants, handles, structs};
use std::ffi::{c_int, c_uint, c_void};

handles! {
    /// A stream. Null is the legacy default stream, which the safe layer never uses.
    ihipStream_t => hipStream_t;
    /// An event.
    ihipEvent_t => hipEvent_t;
    /// A loaded code object.
    ihipModule_t => hipModule_t;
    /// A kernel of a module. Dies with its module.
    ihipModuleSymbol_t => hipFunction_t;
    /// A captured graph.
    ihipGraph => hipGraph_t;
    /// A graph ready to launch.
    hipGraphExec => hipGraphExec_t;
    /// A node of a graph.
    hipGraphNode => hipGraphNode_t;
    /// A stream-ordered memory pool. The safe layer never uses one.
    ihipMemPoolHandle_t => hipMemPool_t;
    /// An image in memory. The safe layer never uses one.
    hipArray => hipArray_t;
    /// Physical memory of the virtual memory calls. The safe layer never uses one.
    ihipMemGenericAllocationHandle => hipMemGenericAllocationHandle_t;
}

/// A device address. Never to be dereferenced by the host.
pub type hipDeviceptr_t = *mut c_void;
/// A device ordinal, as the driver-style calls name it.
pub type hipDevice_t = c_int;
/// `hipStreamAddCallback`'s function.
pub type hipStreamCallback_t = unsafe extern "C" fn(stream: hipStream_t, status: crate::hipError_t, user: *mut c_void);
/// `hipLaunchHostFunc`'s function.
pub type hipHostFn_t = unsafe extern "C" fn(user: *mut c_void);

constants! {
    /// The direction of a copy.
    hipMemcpyKind: c_uint {
        hipMemcpyHostToHost = 0,
        hipMemcpyHostToDevice = 1,
        hipMemcpyDeviceToHost = 2,
        hipMemcpyDeviceToDevice = 3,
        hipMemcpyDefault = 4,
        hipMemcpyDeviceToDeviceNoCU = 1024,
    }
    /// Flags of `hipStreamCreateWithFlags`.
    hipStreamFlags: c_uint {
        hipStreamDefault = 0x0,
        hipStreamNonBlocking = 0x1,
    }
    /// Flags of `hipEventCreateWithFlags`. `DisableTiming` is 0x2, not 0x1.
    hipEventFlags: c_uint {
        hipEventDefault = 0x0,
        hipEventBlockingSync = 0x1,
        hipEventDisableTiming = 0x2,
        hipEventInterprocess = 0x4,
        hipEventReleaseToDevice = 0x4000_0000,
        hipEventReleaseToSystem = 0x8000_0000,
    }
    /// Flags of `hipHostMalloc`.
    hipHostMallocFlags: c_uint {
        hipHostMallocDefault = 0x0,
        hipHostMallocPortable = 0x1,
        hipHostMallocMapped = 0x2,
        hipHostMallocWriteCombined = 0x4,
        hipHostMallocNumaUser = 0x2000_0000,
        hipHostMallocCoherent = 0x4000_0000,
        hipHostMallocNonCoherent = 0x8000_0000,
    }
    /// Flags of `hipHostRegister`.
    hipHostRegisterFlags: c_uint {
        hipHostRegisterDefault = 0x0,
        hipHostRegisterPortable = 0x1,
        hipHostRegisterMapped = 0x2,
        hipHostRegisterIoMemory = 0x4,
    }
    /// What kind of memory a pointer is, as HIP 6 and later number it. HIP 5 has other numbers: Host 0, Device 1, Array 2,
    /// Unified 3, Managed 4. Ask `hipRuntimeGetVersion` first.
    hipMemoryType: c_uint {
        hipMemoryTypeUnregistered = 0,
        hipMemoryTypeHost = 1,
        hipMemoryTypeDevice = 2,
        hipMemoryTypeManaged = 3,
        hipMemoryTypeArray = 10,
        hipMemoryTypeUnified = 11,
    }
    /// What `hipFuncGetAttribute` can be asked.
    hipFunction_attribute: c_uint {
        HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
        HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
        HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
        HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
        HIP_FUNC_ATTRIBUTE_NUM_REGS = 4,
        HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
        HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
        HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    }
    /// The scope in which a capture forbids unsafe calls.
    hipStreamCaptureMode: c_uint {
        hipStreamCaptureModeGlobal = 0,
        hipStreamCaptureModeThreadLocal = 1,
        hipStreamCaptureModeRelaxed = 2,
    }
    /// What `hipDeviceGetLimit` can be asked.
    hipLimit_t: c_uint {
        hipLimitStackSize = 0x0,
        hipLimitPrintfFifoSize = 0x1,
        hipLimitMallocHeapSize = 0x2,
    }
    /// Flags of `hipSetDeviceFlags`.
    hipDeviceFlags: c_uint {
        hipDeviceScheduleAuto = 0x0,
        hipDeviceScheduleSpin = 0x1,
        hipDeviceScheduleYield = 0x2,
        hipDeviceScheduleBlockingSync = 0x4,
        hipDeviceScheduleMask = 0x7,
        hipDeviceMapHost = 0x8,
    }
    /// Flags of `hipMallocManaged`.
    hipMemAttachFlags: c_uint {
        hipMemAttachGlobal = 0x1,
        hipMemAttachHost = 0x2,
    }
    /// Flags of `hipExtMallocWithFlags`.
    hipExtMallocFlags: c_uint {
        hipDeviceMallocDefault = 0x0,
        hipDeviceMallocFinegrained = 0x1,
        hipMallocSignalMemory = 0x2,
    }
    /// What `hipPointerGetAttribute` can be asked.
    hipPointer_attribute: c_uint {
        HIP_POINTER_ATTRIBUTE_CONTEXT = 1,
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
        HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
        HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
        HIP_POINTER_ATTRIBUTE_P2P_TOKENS = 5,
        HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6,
        HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
        HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8,
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
        HIP_POINTER_ATTRIBUTE_IS_LEGACY_HIP_IPC_CAPABLE = 10,
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
        HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
        HIP_POINTER_ATTRIBUTE_MAPPED = 13,
        HIP_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES = 14,
        HIP_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE = 15,
        HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS = 16,
        HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
    }
    /// What `hipMemPoolGetAttribute` can be asked.
    hipMemPoolAttr: c_uint {
        hipMemPoolReuseFollowEventDependencies = 0x1,
        hipMemPoolReuseAllowOpportunistic = 0x2,
        hipMemPoolReuseAllowInternalDependencies = 0x3,
        hipMemPoolAttrReleaseThreshold = 0x4,
        hipMemPoolAttrReservedMemCurrent = 0x5,
        hipMemPoolAttrReservedMemHigh = 0x6,
        hipMemPoolAttrUsedMemCurrent = 0x7,
        hipMemPoolAttrUsedMemHigh = 0x8,
    }
    /// What a pool allocates.
    hipMemAllocationType: c_uint {
        hipMemAllocationTypeInvalid = 0x0,
        hipMemAllocationTypePinned = 0x1,
    }
    /// Where a pool allocates.
    hipMemLocationType: c_uint {
        hipMemLocationTypeInvalid = 0,
        hipMemLocationTypeDevice = 1,
    }
    /// Whether a stream is capturing.
    hipStreamCaptureStatus: c_uint {
        hipStreamCaptureStatusNone = 0,
        hipStreamCaptureStatusActive = 1,
        hipStreamCaptureStatusInvalidated = 2,
    }
    /// Why an executable graph could not be updated.
    hipGraphExecUpdateResult: c_uint {
        hipGraphExecUpdateSuccess = 0,
        hipGraphExecUpdateError = 1,
        hipGraphExecUpdateErrorTopologyChanged = 2,
        hipGraphExecUpdateErrorNodeTypeChanged = 3,
        hipGraphExecUpdateErrorFunctionChanged = 4,
        hipGraphExecUpdateErrorParametersChanged = 5,
        hipGraphExecUpdateErrorNotSupported = 6,
        hipGraphExecUpdateErrorUnsupportedFunctionChange = 7,
    }
}

/// `HIP_LAUNCH_PARAM_END`: ends `hipModuleLaunchKernel`'s `extra` list.
pub const HIP_LAUNCH_PARAM_END: *mut c_void = std::ptr::without_provenance_mut(3);
/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`: the next entry of `extra` points at the packed arguments.
pub const HIP_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
/// `HIP_LAUNCH_PARAM_BUFFER_SIZE`: the next entry of `extra` points at the size of the packed arguments.
pub const HIP_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = std::ptr::without_provenance_mut(2);

structs! {
    /// What `hipPointerGetAttributes` answers. 32 bytes in every version; the first field was called `memoryType` before 6.0
    /// and its values changed there: see [`hipMemoryType`].
    hipPointerAttribute_t: "hipPointerAttribute_t", 5, u32::MAX => {
        /// What kind of memory it is.
        r#type: hipMemoryType,
        /// The device that owns it.
        device: c_int,
        /// Its device address.
        devicePointer: *mut c_void,
        /// Its host address, if it has one.
        hostPointer: *mut c_void,
        /// Not 0 if it is managed memory.
        isManaged: c_int,
        /// The flags it was allocated with.
        allocationFlags: c_uint,
    }
    /// What describes memory to another process.
    #[derive(PartialEq, Eq)]
    hipIpcMemHandle_t: "hipIpcMemHandle_t", 5, u32::MAX => {
        /// Nobody's business.
        reserved: [u8; 64],
    }
    /// Memory with rows.
    hipPitchedPtr: "hipPitchedPtr", 5, u32::MAX => {
        /// First byte.
        ptr: *mut c_void,
        /// Bytes from row to row.
        pitch: usize,
        /// Bytes of a row that are used.
        xsize: usize,
        /// Rows.
        ysize: usize,
    }
    /// A size in three dimensions; the width in bytes.
    #[derive(PartialEq, Eq)]
    hipExtent: "hipExtent", 5, u32::MAX => {
        /// Bytes of a row.
        width: usize,
        /// Rows of a slice.
        height: usize,
        /// Slices.
        depth: usize,
    }
    /// Threads or blocks in three dimensions.
    #[derive(PartialEq, Eq)]
    dim3: "dim3", 5, u32::MAX => {
        /// Along x.
        x: u32,
        /// Along y.
        y: u32,
        /// Along z.
        z: u32,
    }
    /// What `hipFuncGetAttributes` answers.
    #[derive(Default)]
    hipFuncAttributes: "hipFuncAttributes", 5, u32::MAX => {
        /// Architecture the code was compiled for.
        binaryVersion: c_int,
        /// Cache mode.
        cacheModeCA: c_int,
        /// Bytes of constants.
        constSizeBytes: usize,
        /// Bytes of private memory of a thread.
        localSizeBytes: usize,
        /// Bytes of dynamic LDS a launch may ask for.
        maxDynamicSharedSizeBytes: c_int,
        /// Threads a workgroup may have.
        maxThreadsPerBlock: c_int,
        /// Registers of a thread.
        numRegs: c_int,
        /// Preferred share of LDS.
        preferredShmemCarveout: c_int,
        /// Version of the intermediate code.
        ptxVersion: c_int,
        /// Bytes of static LDS.
        sharedSizeBytes: usize,
    }
}

/// What a memory pool is to be. 88 bytes in every version; `maxSize` was reserved before 6.0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipMemPoolProps {
    /// What is allocated: pinned memory.
    pub allocType: hipMemAllocationType,
    /// How it may be exported; 0 for not at all.
    pub handleTypes: c_uint,
    /// Where it is: the kind of place.
    pub locationType: hipMemLocationType,
    /// Where it is: the device.
    pub locationId: c_int,
    /// For Windows.
    pub win32SecurityAttributes: *mut c_void,
    /// Bytes the pool never exceeds; 0 for no limit.
    pub maxSize: usize,
    /// To be 0.
    pub reserved: [u8; 56],
}

/// `hipDeviceProp_t` as HIP 6 and later lay it out (1472 bytes), of which only the fields that no attribute gives are
/// named. `hipGetDevicePropertiesR0600` fills this one; the unsuffixed symbol fills an older, shorter struct (792 bytes)
/// even in newer libraries, which is why the two must never be mixed up.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct hipDeviceProp_tR0600(pub [u8; 1472]);

/// `hipDeviceProp_t` as HIP 5 lays it out (792 bytes): see [`hipDeviceProp_tR0600`].
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct hipDeviceProp_tR0000(pub [u8; 792]);

impl hipDeviceProp_tR0600 {
    /// Byte offset of `gcnArchName` (256 bytes, NUL-terminated).
    pub const GCN_ARCH_NAME: usize = 1160;
}

impl hipDeviceProp_tR0000 {
    /// Byte offset of `gcnArchName` (256 bytes, NUL-terminated).
    pub const GCN_ARCH_NAME: usize = 396;
}
