//! Sizes and offsets.

use hip_sys::hiprt;
use rocmforge_hip_sys as ours;
use std::mem::{align_of, offset_of, size_of};

macro_rules! same_size {
    ($($name:ident)*) => {
        [$((stringify!($name), size_of::<ours::$name>(), size_of::<hiprt::$name>())),*]
    };
}

#[test]
fn types_have_the_same_sizes() {
    let sizes = same_size! {
        hipError_t hipStream_t hipEvent_t hipModule_t hipFunction_t hipGraph_t hipGraphExec_t hipGraphNode_t hipMemPool_t
        hipDeviceptr_t hipDevice_t hipHostFn_t hipStreamCallback_t hipMemcpyKind hipMemoryType hipDeviceAttribute_t
        hipFunction_attribute hipStreamCaptureMode hipStreamCaptureStatus hipGraphExecUpdateResult hipPointerAttribute_t
        hipArray_t hipMemGenericAllocationHandle_t hipPointer_attribute hipMemPoolAttr hipMemAllocationType hipMemLocationType
        hipIpcMemHandle_t hipPitchedPtr hipExtent dim3 hipMemPoolProps hipFuncAttributes
        hipCtx_t hipUserObject_t hipArray_const_t hipDeviceP2PAttr hipFuncCache_t hipSharedMemConfig hipMemAllocationHandleType
        hipChannelFormatKind hipArray_Format hipMemoryAdvise hipMemRangeAttribute hipMemRangeCoherencyMode hipMemAccessFlags
        hipMemAllocationGranularity_flags hipGraphNodeType hipTextureObject_t hipSurfaceObject_t hipResourceType
        hipResourceViewFormat hipTextureAddressMode hipTextureFilterMode hipTextureReadMode
    };
    for (name, ours, theirs) in sizes {
        assert_eq!(ours, theirs, "{name}");
    }
    let compared: Vec<&str> = sizes.iter().map(|(name, ..)| *name).collect();
    for (name, _) in ours::abi::TYPES {
        assert!(compared.contains(name), "{name} is compared with nothing");
    }
}

#[test]
fn pointer_attributes_have_the_same_fields() {
    type Ours = ours::hipPointerAttribute_t;
    type Theirs = hiprt::hipPointerAttribute_t;
    assert_eq!(
        (size_of::<Ours>(), align_of::<Ours>()),
        (size_of::<Theirs>(), align_of::<Theirs>())
    );
    // The first field was called memoryType before HIP 6.
    assert_eq!(offset_of!(Ours, r#type), offset_of!(Theirs, memoryType));
    assert_eq!(offset_of!(Ours, device), offset_of!(Theirs, device));
    assert_eq!(offset_of!(Ours, devicePointer), offset_of!(Theirs, devicePointer));
    assert_eq!(offset_of!(Ours, hostPointer), offset_of!(Theirs, hostPointer));
    assert_eq!(offset_of!(Ours, isManaged), offset_of!(Theirs, isManaged));
    assert_eq!(offset_of!(Ours, allocationFlags), offset_of!(Theirs, allocationFlags));
}

/// Theirs is the struct of HIP 5, which the unsuffixed symbol fills.
#[test]
fn device_properties_of_hip_5_have_the_same_layout() {
    type Ours = ours::hipDeviceProp_tR0000;
    type Theirs = hiprt::hipDeviceProp_t;
    assert_eq!(
        (size_of::<Ours>(), align_of::<Ours>()),
        (size_of::<Theirs>(), align_of::<Theirs>())
    );
    assert_eq!(Ours::GCN_ARCH_NAME, offset_of!(Theirs, gcnArchName));
}
