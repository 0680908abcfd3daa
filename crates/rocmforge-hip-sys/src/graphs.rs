//! Graphs: the kinds of nodes and their parameters.

use crate::macros::{constants, handles, structs};
use crate::memory::hipMemAccessDesc;
use crate::types::{dim3, hipDeviceptr_t, hipGraphNode_t, hipHostFn_t, hipMemPoolProps, hipStream_t};
use std::ffi::{c_int, c_longlong, c_uchar, c_uint, c_ulonglong, c_void};

handles! {
    /// Something of the program that graphs keep alive.
    hipUserObject => hipUserObject_t;
}

constants! {
    /// What a node does, as HIP 6 and later number it. HIP 5 counts from 1.
    hipGraphNodeType: c_uint {
        hipGraphNodeTypeKernel = 0,
        hipGraphNodeTypeMemcpy = 1,
        hipGraphNodeTypeMemset = 2,
        hipGraphNodeTypeHost = 3,
        hipGraphNodeTypeGraph = 4,
        hipGraphNodeTypeEmpty = 5,
        hipGraphNodeTypeWaitEvent = 6,
        hipGraphNodeTypeEventRecord = 7,
        hipGraphNodeTypeExtSemaphoreSignal = 8,
        hipGraphNodeTypeExtSemaphoreWait = 9,
        hipGraphNodeTypeMemAlloc = 10,
        hipGraphNodeTypeMemFree = 11,
        hipGraphNodeTypeMemcpyFromSymbol = 12,
        hipGraphNodeTypeMemcpyToSymbol = 13,
    }
    /// Attributes of a kernel's node.
    hipLaunchAttributeID: c_uint {
        hipLaunchAttributeAccessPolicyWindow = 1,
        hipLaunchAttributeCooperative = 2,
        hipLaunchAttributePriority = 8,
    }
    /// Flags of `hipGraphInstantiateWithFlags`.
    hipGraphInstantiateFlags: c_uint {
        hipGraphInstantiateFlagAutoFreeOnLaunch = 1,
        hipGraphInstantiateFlagUpload = 2,
        hipGraphInstantiateFlagDeviceLaunch = 4,
        hipGraphInstantiateFlagUseNodePriority = 8,
    }
    /// How an instantiation went.
    hipGraphInstantiateResult: c_uint {
        hipGraphInstantiateSuccess = 0,
        hipGraphInstantiateError = 1,
        hipGraphInstantiateInvalidStructure = 2,
        hipGraphInstantiateNodeOperationNotSupported = 3,
        hipGraphInstantiateMultipleDevicesNotSupported = 4,
    }
    /// What `hipDeviceGetGraphMemAttribute` can be asked.
    hipGraphMemAttributeType: c_uint {
        hipGraphMemAttrUsedMemCurrent = 0,
        hipGraphMemAttrUsedMemHigh = 1,
        hipGraphMemAttrReservedMemCurrent = 2,
        hipGraphMemAttrReservedMemHigh = 3,
    }
    /// Flags of `hipUserObjectCreate`.
    hipUserObjectFlags: c_uint {
        hipUserObjectNoDestructorSync = 0x1,
    }
    /// Flags of `hipGraphRetainUserObject`.
    hipUserObjectRetainFlags: c_uint {
        hipGraphUserObjectMove = 0x1,
    }
    /// Flags of `hipStreamUpdateCaptureDependencies`.
    hipStreamUpdateCaptureDependenciesFlags: c_uint {
        hipStreamAddCaptureDependencies = 0,
        hipStreamSetCaptureDependencies = 1,
    }
    /// What a stream waits for with `hipStreamWaitValue32`.
    hipStreamWaitValueFlags: c_uint {
        hipStreamWaitValueGte = 0x0,
        hipStreamWaitValueEq = 0x1,
        hipStreamWaitValueAnd = 0x2,
        hipStreamWaitValueNor = 0x3,
    }
}

structs! {
    /// A kernel and how it is launched.
    hipKernelNodeParams: "hipKernelNodeParams", 5, u32::MAX => {
        blockDim: dim3,
        extra: *mut *mut c_void,
        func: *mut c_void,
        gridDim: dim3,
        kernelParams: *mut *mut c_void,
        sharedMemBytes: c_uint,
    }
    /// What is filled: `height` rows of `width` elements.
    hipMemsetParams: "hipMemsetParams", 5, u32::MAX => {
        dst: *mut c_void,
        elementSize: c_uint,
        height: usize,
        pitch: usize,
        value: c_uint,
        width: usize,
    }
    /// The same as the driver orders it.
    HIP_MEMSET_NODE_PARAMS: "HIP_MEMSET_NODE_PARAMS", 6, u32::MAX => {
        dst: hipDeviceptr_t,
        pitch: usize,
        value: c_uint,
        elementSize: c_uint,
        width: usize,
        height: usize,
    }
    /// A host function and its argument.
    hipHostNodeParams: "hipHostNodeParams", 5, u32::MAX => {
        r#fn: Option<hipHostFn_t>,
        userData: *mut c_void,
    }
    /// What is allocated, and where it was.
    hipMemAllocNodeParams: "hipMemAllocNodeParams", 6, u32::MAX => {
        poolProps: hipMemPoolProps,
        accessDescs: *const hipMemAccessDesc,
        accessDescCount: usize,
        bytesize: usize,
        dptr: *mut c_void,
    }
    /// How a graph is to be instantiated, and how that went.
    hipGraphInstantiateParams: "hipGraphInstantiateParams", 6, u32::MAX => {
        errNode_out: hipGraphNode_t,
        flags: c_ulonglong,
        result_out: hipGraphInstantiateResult,
        uploadStream: hipStream_t,
    }
    /// How two nodes depend on each other.
    hipGraphEdgeData: "hipGraphEdgeData", 6, u32::MAX => {
        from_port: c_uchar,
        reserved: [c_uchar; 5],
        to_port: c_uchar,
        r#type: c_uchar,
    }
}

/// The value of an attribute of a kernel's node: a union of 32 bytes, of which `cooperative` and `priority` are an int at its start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hipLaunchAttributeValue {
    /// The union's bytes.
    pub words: [u64; 4],
}

/// A node of any kind: a union of the parameters of each.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct hipGraphNodeParams {
    /// Which of the union's members it is.
    pub r#type: hipGraphNodeType,
    /// To be 0.
    pub reserved0: [c_int; 3],
    /// The union's bytes: the struct of the kind. A copy has `{ int flags, int reserved[3] }` before its struct.
    pub params: [c_longlong; 29],
    /// To be 0.
    pub reserved2: c_longlong,
}
