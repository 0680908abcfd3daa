//! Memory beyond plain allocations: copies in two and three dimensions, arrays, advice, virtual memory, access to pools.

use crate::devices::hipMemAllocationHandleType;
use crate::macros::{constants, handles, structs};
use crate::types::{
    hipArray, hipArray_t, hipDeviceptr_t, hipExtent, hipMemAllocationType, hipMemLocationType, hipMemcpyKind,
    hipMemoryType, hipPitchedPtr,
};
use std::ffi::{c_int, c_uchar, c_uint, c_void};

/// An array that is only read.
pub type hipArray_const_t = *const hipArray;

handles! {
    /// An array with smaller copies of itself. Nothing here makes one.
    hipMipmappedArray => hipMipmappedArray_t;
}

constants! {
    /// What the parts of an array's element are.
    hipChannelFormatKind: c_uint {
        hipChannelFormatKindSigned = 0,
        hipChannelFormatKindUnsigned = 1,
        hipChannelFormatKindFloat = 2,
        hipChannelFormatKindNone = 3,
    }
    /// The same as the driver names them.
    hipArray_Format: c_uint {
        HIP_AD_FORMAT_UNSIGNED_INT8 = 0x01,
        HIP_AD_FORMAT_UNSIGNED_INT16 = 0x02,
        HIP_AD_FORMAT_UNSIGNED_INT32 = 0x03,
        HIP_AD_FORMAT_SIGNED_INT8 = 0x08,
        HIP_AD_FORMAT_SIGNED_INT16 = 0x09,
        HIP_AD_FORMAT_SIGNED_INT32 = 0x0a,
        HIP_AD_FORMAT_HALF = 0x10,
        HIP_AD_FORMAT_FLOAT = 0x20,
    }
    /// Flags of `hipMallocArray`.
    hipArrayFlags: c_uint {
        hipArrayDefault = 0x00,
        hipArrayLayered = 0x01,
        hipArraySurfaceLoadStore = 0x02,
        hipArrayCubemap = 0x04,
        hipArrayTextureGather = 0x08,
    }
    /// What `hipMemAdvise` says of memory.
    hipMemoryAdvise: c_uint {
        hipMemAdviseSetReadMostly = 1,
        hipMemAdviseUnsetReadMostly = 2,
        hipMemAdviseSetPreferredLocation = 3,
        hipMemAdviseUnsetPreferredLocation = 4,
        hipMemAdviseSetAccessedBy = 5,
        hipMemAdviseUnsetAccessedBy = 6,
        hipMemAdviseSetCoarseGrain = 100,
        hipMemAdviseUnsetCoarseGrain = 101,
    }
    /// What `hipMemRangeGetAttribute` can be asked.
    hipMemRangeAttribute: c_uint {
        hipMemRangeAttributeReadMostly = 1,
        hipMemRangeAttributePreferredLocation = 2,
        hipMemRangeAttributeAccessedBy = 3,
        hipMemRangeAttributeLastPrefetchLocation = 4,
        hipMemRangeAttributeCoherencyMode = 100,
    }
    /// Whether host and device see each other's writes at once.
    hipMemRangeCoherencyMode: c_uint {
        hipMemRangeCoherencyModeFineGrain = 0,
        hipMemRangeCoherencyModeCoarseGrain = 1,
        hipMemRangeCoherencyModeIndeterminate = 2,
    }
    /// What a device may do with memory.
    hipMemAccessFlags: c_uint {
        hipMemAccessFlagsProtNone = 0,
        hipMemAccessFlagsProtRead = 1,
        hipMemAccessFlagsProtReadWrite = 3,
    }
    /// Which granularity is asked for.
    hipMemAllocationGranularity_flags: c_uint {
        hipMemAllocationGranularityMinimum = 0x0,
        hipMemAllocationGranularityRecommended = 0x1,
    }
}

/// `hipCpuDeviceId`: the host, where a device is asked for.
pub const hipCpuDeviceId: c_int = -1;
/// `hipInvalidDeviceId`: no device at all.
pub const hipInvalidDeviceId: c_int = -2;

structs! {
    /// Bits of the four parts of an element, and what they are.
    hipChannelFormatDesc: "hipChannelFormatDesc", 5, u32::MAX => {
        x: c_int,
        y: c_int,
        z: c_int,
        w: c_int,
        f: hipChannelFormatKind,
    }
    /// An array of one or two dimensions, in elements.
    HIP_ARRAY_DESCRIPTOR: "HIP_ARRAY_DESCRIPTOR", 5, u32::MAX => {
        Width: usize,
        Height: usize,
        Format: hipArray_Format,
        NumChannels: c_uint,
    }
    /// An array of up to three dimensions, in elements.
    HIP_ARRAY3D_DESCRIPTOR: "HIP_ARRAY3D_DESCRIPTOR", 5, u32::MAX => {
        Width: usize,
        Height: usize,
        Depth: usize,
        Format: hipArray_Format,
        NumChannels: c_uint,
        Flags: c_uint,
    }
    /// A place; x in bytes where memory is linear, in elements in an array.
    hipPos: "hipPos", 5, u32::MAX => {
        x: usize,
        y: usize,
        z: usize,
    }
    /// What `hipMemcpy3D` copies.
    hipMemcpy3DParms: "hipMemcpy3DParms", 5, u32::MAX => {
        srcArray: hipArray_t,
        srcPos: hipPos,
        srcPtr: hipPitchedPtr,
        dstArray: hipArray_t,
        dstPos: hipPos,
        dstPtr: hipPitchedPtr,
        extent: hipExtent,
        kind: hipMemcpyKind,
    }
    /// What `hipMemcpyParam2D` copies.
    hip_Memcpy2D: "hip_Memcpy2D", 5, u32::MAX => {
        srcXInBytes: usize,
        srcY: usize,
        srcMemoryType: hipMemoryType,
        srcHost: *const c_void,
        srcDevice: hipDeviceptr_t,
        srcArray: hipArray_t,
        srcPitch: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstMemoryType: hipMemoryType,
        dstHost: *mut c_void,
        dstDevice: hipDeviceptr_t,
        dstArray: hipArray_t,
        dstPitch: usize,
        WidthInBytes: usize,
        Height: usize,
    }
    /// What `hipDrvMemcpy3D` copies. HIP 5 has 32 bits for each size.
    HIP_MEMCPY3D: "HIP_MEMCPY3D", 6, u32::MAX => {
        srcXInBytes: usize,
        srcY: usize,
        srcZ: usize,
        srcLOD: usize,
        srcMemoryType: hipMemoryType,
        srcHost: *const c_void,
        srcDevice: hipDeviceptr_t,
        srcArray: hipArray_t,
        srcPitch: usize,
        srcHeight: usize,
        dstXInBytes: usize,
        dstY: usize,
        dstZ: usize,
        dstLOD: usize,
        dstMemoryType: hipMemoryType,
        dstHost: *mut c_void,
        dstDevice: hipDeviceptr_t,
        dstArray: hipArray_t,
        dstPitch: usize,
        dstHeight: usize,
        WidthInBytes: usize,
        Height: usize,
        Depth: usize,
    }
    /// Where memory is.
    hipMemLocation: "hipMemLocation", 5, u32::MAX => {
        r#type: hipMemLocationType,
        id: c_int,
    }
    /// Who may do what with memory.
    hipMemAccessDesc: "hipMemAccessDesc", 5, u32::MAX => {
        location: hipMemLocation,
        flags: hipMemAccessFlags,
    }
    /// What `hipMemCreate` is to allocate. HIP 5 has other fields in another order. `allocFlags` is a struct of two bytes,
    /// compression and direct access by other devices, and 16 bits of usage.
    hipMemAllocationProp: "hipMemAllocationProp", 6, u32::MAX => {
        r#type: hipMemAllocationType,
        requestedHandleType: hipMemAllocationHandleType,
        location: hipMemLocation,
        win32HandleMetaData: *mut c_void,
        allocFlags: [c_uchar; 4],
    }
    /// What describes memory of a pool to another process.
    hipMemPoolPtrExportData: "hipMemPoolPtrExportData", 5, u32::MAX => {
        reserved: [c_uchar; 64],
    }
    /// What describes an event to another process.
    hipIpcEventHandle_t: "hipIpcEventHandle_t", 5, u32::MAX => {
        reserved: [c_uchar; 64],
    }
}
