//! Handles, constants and structs, with the C names. Sizes, offsets and values are compared with the HIP headers by
//! `cargo xtask bindings check`.

use std::ffi::{c_int, c_uint, c_void};

macro_rules! handles {
    ($($(#[$doc:meta])* $opaque:ident => $name:ident;)*) => {$(
        #[doc(hidden)]
        #[repr(C)]
        pub struct $opaque {
            _private: [u8; 0],
        }
        $(#[$doc])*
        pub type $name = *mut $opaque;
    )*};
}

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
}

/// A device address. Never to be dereferenced by the host.
pub type hipDeviceptr_t = *mut c_void;
/// A device ordinal, as the driver-style calls name it.
pub type hipDevice_t = c_int;
/// `hipStreamAddCallback`'s function.
pub type hipStreamCallback_t = unsafe extern "C" fn(stream: hipStream_t, status: crate::hipError_t, user: *mut c_void);
/// `hipLaunchHostFunc`'s function.
pub type hipHostFn_t = unsafe extern "C" fn(user: *mut c_void);

macro_rules! constants {
    ($($(#[$doc:meta])* $ty:ident: $repr:ty { $($name:ident = $value:literal,)* })*) => {$(
        $(#[$doc])*
        pub type $ty = $repr;
        $(#[doc = concat!("`", stringify!($name), "` (", stringify!($value), ").")]
        pub const $name: $ty = $value;)*
    )*

        /// Every constant above, as data: type, name, value.
        pub(crate) const CONSTANTS: &[(&str, &str, u64)] = &[$($((stringify!($ty), stringify!($name), $value),)*)*];
    };
}

constants! {
    /// The direction of a copy.
    hipMemcpyKind: c_uint {
        hipMemcpyHostToHost = 0,
        hipMemcpyHostToDevice = 1,
        hipMemcpyDeviceToHost = 2,
        hipMemcpyDeviceToDevice = 3,
        hipMemcpyDefault = 4,
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
    /// What `hipDeviceGetAttribute` can be asked. The values have not changed from HIP 5.2 to 7.1.
    hipDeviceAttribute_t: c_uint {
        hipDeviceAttributeEccEnabled = 0,
        hipDeviceAttributeAsyncEngineCount = 2,
        hipDeviceAttributeCanMapHostMemory = 3,
        hipDeviceAttributeClockRate = 5,
        hipDeviceAttributeConcurrentKernels = 8,
        hipDeviceAttributeCooperativeLaunch = 10,
        hipDeviceAttributeIntegrated = 16,
        hipDeviceAttributeKernelExecTimeout = 18,
        hipDeviceAttributeL2CacheSize = 19,
        hipDeviceAttributeComputeCapabilityMajor = 23,
        hipDeviceAttributeManagedMemory = 24,
        hipDeviceAttributeMaxBlockDimX = 26,
        hipDeviceAttributeMaxBlockDimY = 27,
        hipDeviceAttributeMaxBlockDimZ = 28,
        hipDeviceAttributeMaxGridDimX = 29,
        hipDeviceAttributeMaxGridDimY = 30,
        hipDeviceAttributeMaxGridDimZ = 31,
        hipDeviceAttributeMaxThreadsPerBlock = 56,
        hipDeviceAttributeMaxThreadsPerMultiProcessor = 57,
        hipDeviceAttributeMemoryBusWidth = 59,
        hipDeviceAttributeMemoryClockRate = 60,
        hipDeviceAttributeComputeCapabilityMinor = 61,
        hipDeviceAttributeMultiprocessorCount = 63,
        hipDeviceAttributePciBusId = 67,
        hipDeviceAttributePciDeviceId = 68,
        hipDeviceAttributePciDomainID = 69,
        hipDeviceAttributeMaxRegistersPerBlock = 71,
        hipDeviceAttributeMaxSharedMemoryPerBlock = 74,
        hipDeviceAttributeTotalConstantMemory = 83,
        hipDeviceAttributeWarpSize = 87,
        hipDeviceAttributeMemoryPoolsSupported = 88,
        hipDeviceAttributeMaxSharedMemoryPerMultiprocessor = 10002,
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
    /// Whether a stream is capturing.
    hipStreamCaptureStatus: c_uint {
        hipStreamCaptureStatusNone = 0,
        hipStreamCaptureStatusActive = 1,
        hipStreamCaptureStatusInvalidated = 2,
    }
}

/// `HIP_LAUNCH_PARAM_END`: ends `hipModuleLaunchKernel`'s `extra` list.
pub const HIP_LAUNCH_PARAM_END: *mut c_void = std::ptr::without_provenance_mut(3);
/// `HIP_LAUNCH_PARAM_BUFFER_POINTER`: the next entry of `extra` points at the packed arguments.
pub const HIP_LAUNCH_PARAM_BUFFER_POINTER: *mut c_void = std::ptr::without_provenance_mut(1);
/// `HIP_LAUNCH_PARAM_BUFFER_SIZE`: the next entry of `extra` points at the size of the packed arguments.
pub const HIP_LAUNCH_PARAM_BUFFER_SIZE: *mut c_void = std::ptr::without_provenance_mut(2);

/// What `hipPointerGetAttributes` answers. 32 bytes in every version; the first field was called `memoryType` before 6.0
/// and its values changed there: see [`hipMemoryType`].
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipPointerAttribute_t {
    /// What kind of memory it is.
    pub r#type: hipMemoryType,
    /// The device that owns it.
    pub device: c_int,
    /// Its device address.
    pub devicePointer: *mut c_void,
    /// Its host address, if it has one.
    pub hostPointer: *mut c_void,
    /// Not 0 if it is managed memory.
    pub isManaged: c_int,
    /// The flags it was allocated with.
    pub allocationFlags: c_uint,
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
