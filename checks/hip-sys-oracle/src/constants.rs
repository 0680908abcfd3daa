//! Constants, by name. The list is of names only, and a test keeps it complete; the values are each side's own.

use hip_sys::hiprt;
use rocmforge_hip_sys::abi;
use std::collections::BTreeMap;

/// Constants that hip-sys 0.1.2 lacks, or cannot express: the marks of the `extra` list are pointer casts in C.
const ABSENT: [&str; 6] = [
    "hipMemoryTypeUnregistered",
    "hipErrorInvalidChannelDescriptor",
    "hipErrorInvalidTexture",
    "HIP_LAUNCH_PARAM_BUFFER_POINTER",
    "HIP_LAUNCH_PARAM_BUFFER_SIZE",
    "HIP_LAUNCH_PARAM_END",
];

/// Groups of which all names, or those that are not compared here, are of foreign functions: the headers alone judge them.
const HEADERS_ONLY: [&str; 31] = [
    "hipDeviceAttribute_t",
    "hipDeviceP2PAttr",
    "hipFuncCache_t",
    "hipSharedMemConfig",
    "hipMemAllocationHandleType",
    "hipChannelFormatKind",
    "hipArray_Format",
    "hipArrayFlags",
    "hipMemoryAdvise",
    "hipMemRangeAttribute",
    "hipMemRangeCoherencyMode",
    "hipMemAccessFlags",
    "hipMemAllocationGranularity_flags",
    "hipGraphNodeType",
    "hipLaunchAttributeID",
    "hipGraphInstantiateFlags",
    "hipGraphInstantiateResult",
    "hipGraphMemAttributeType",
    "hipUserObjectFlags",
    "hipUserObjectRetainFlags",
    "hipStreamUpdateCaptureDependenciesFlags",
    "hipStreamWaitValueFlags",
    "hipPointer_attribute",
    "hipMemcpyKind",
    "hipMemAllocationType",
    "hipMemLocationType",
    "hipResourceType",
    "hipResourceViewFormat",
    "hipTextureAddressMode",
    "hipTextureFilterMode",
    "hipTextureReadMode",
];

/// HIP 6.0 gave hipMemoryType new values; ours are those of 6.0 and later, those of hip-sys are of HIP 5.
const RENUMBERED: [(&str, u64, u64); 5] = [
    ("hipMemoryTypeHost", 1, 0),
    ("hipMemoryTypeDevice", 2, 1),
    ("hipMemoryTypeManaged", 3, 4),
    ("hipMemoryTypeArray", 10, 2),
    ("hipMemoryTypeUnified", 11, 3),
];

/// `enum`: variants of a type there. `flags`: plain constants there, grouped only by us.
macro_rules! theirs {
    ($($kind:ident $group:ident { $($name:ident,)* })*) => {
        fn theirs() -> BTreeMap<&'static str, u64> {
            BTreeMap::from([$($((stringify!($name), theirs!(@$kind $group $name)),)*)*])
        }
    };
    (@enum $group:ident $name:ident) => { hiprt::$group::$name as u64 };
    (@flags $group:ident $name:ident) => { u64::from(hiprt::$name) };
}

theirs! {
    enum hipMemcpyKind { hipMemcpyHostToHost, hipMemcpyHostToDevice, hipMemcpyDeviceToHost, hipMemcpyDeviceToDevice, hipMemcpyDefault, }
    flags hipStreamFlags { hipStreamDefault, hipStreamNonBlocking, }
    flags hipEventFlags { hipEventDefault, hipEventBlockingSync, hipEventDisableTiming, hipEventInterprocess, hipEventReleaseToDevice, hipEventReleaseToSystem, }
    flags hipHostMallocFlags { hipHostMallocDefault, hipHostMallocPortable, hipHostMallocMapped, hipHostMallocWriteCombined, hipHostMallocNumaUser, hipHostMallocCoherent, hipHostMallocNonCoherent, }
    flags hipHostRegisterFlags { hipHostRegisterDefault, hipHostRegisterPortable, hipHostRegisterMapped, hipHostRegisterIoMemory, }
    enum hipMemoryType { hipMemoryTypeHost, hipMemoryTypeDevice, hipMemoryTypeManaged, hipMemoryTypeArray, hipMemoryTypeUnified, }
    enum hipDeviceAttribute_t { hipDeviceAttributeEccEnabled, hipDeviceAttributeAsyncEngineCount, hipDeviceAttributeCanMapHostMemory, hipDeviceAttributeClockRate, hipDeviceAttributeConcurrentKernels, hipDeviceAttributeCooperativeLaunch, hipDeviceAttributeIntegrated, hipDeviceAttributeKernelExecTimeout, hipDeviceAttributeL2CacheSize, hipDeviceAttributeComputeCapabilityMajor, hipDeviceAttributeManagedMemory, hipDeviceAttributeMaxBlockDimX, hipDeviceAttributeMaxBlockDimY, hipDeviceAttributeMaxBlockDimZ, hipDeviceAttributeMaxGridDimX, hipDeviceAttributeMaxGridDimY, hipDeviceAttributeMaxGridDimZ, hipDeviceAttributeMaxThreadsPerBlock, hipDeviceAttributeMaxThreadsPerMultiProcessor, hipDeviceAttributeMemoryBusWidth, hipDeviceAttributeMemoryClockRate, hipDeviceAttributeComputeCapabilityMinor, hipDeviceAttributeMultiprocessorCount, hipDeviceAttributePciBusId, hipDeviceAttributePciDeviceId, hipDeviceAttributePciDomainID, hipDeviceAttributeMaxRegistersPerBlock, hipDeviceAttributeMaxSharedMemoryPerBlock, hipDeviceAttributeTotalConstantMemory, hipDeviceAttributeWarpSize, hipDeviceAttributeMemoryPoolsSupported, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, }
    enum hipFunction_attribute { HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, HIP_FUNC_ATTRIBUTE_NUM_REGS, HIP_FUNC_ATTRIBUTE_PTX_VERSION, HIP_FUNC_ATTRIBUTE_BINARY_VERSION, HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA, HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, }
    enum hipLimit_t { hipLimitStackSize, hipLimitPrintfFifoSize, hipLimitMallocHeapSize, }
    flags hipDeviceFlags { hipDeviceScheduleAuto, hipDeviceScheduleSpin, hipDeviceScheduleYield, hipDeviceScheduleBlockingSync, hipDeviceScheduleMask, hipDeviceMapHost, }
    flags hipMemAttachFlags { hipMemAttachGlobal, hipMemAttachHost, }
    flags hipExtMallocFlags { hipDeviceMallocDefault, hipDeviceMallocFinegrained, hipMallocSignalMemory, }
    enum hipPointer_attribute { HIP_POINTER_ATTRIBUTE_MEMORY_TYPE, HIP_POINTER_ATTRIBUTE_DEVICE_POINTER, HIP_POINTER_ATTRIBUTE_HOST_POINTER, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, HIP_POINTER_ATTRIBUTE_IS_MANAGED, HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL, HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR, }
    enum hipMemPoolAttr { hipMemPoolReuseFollowEventDependencies, hipMemPoolReuseAllowOpportunistic, hipMemPoolReuseAllowInternalDependencies, hipMemPoolAttrReleaseThreshold, hipMemPoolAttrReservedMemCurrent, hipMemPoolAttrReservedMemHigh, hipMemPoolAttrUsedMemCurrent, hipMemPoolAttrUsedMemHigh, }
    enum hipMemAllocationType { hipMemAllocationTypePinned, }
    enum hipMemLocationType { hipMemLocationTypeDevice, }
    enum hipStreamCaptureMode { hipStreamCaptureModeGlobal, hipStreamCaptureModeThreadLocal, hipStreamCaptureModeRelaxed, }
    enum hipStreamCaptureStatus { hipStreamCaptureStatusNone, hipStreamCaptureStatusActive, hipStreamCaptureStatusInvalidated, }
    enum hipGraphExecUpdateResult { hipGraphExecUpdateSuccess, hipGraphExecUpdateError, hipGraphExecUpdateErrorTopologyChanged, hipGraphExecUpdateErrorNodeTypeChanged, hipGraphExecUpdateErrorFunctionChanged, hipGraphExecUpdateErrorParametersChanged, hipGraphExecUpdateErrorNotSupported, hipGraphExecUpdateErrorUnsupportedFunctionChange, }
    enum hipError_t { hipSuccess, hipErrorInvalidValue, hipErrorOutOfMemory, hipErrorNotInitialized, hipErrorDeinitialized, hipErrorProfilerDisabled, hipErrorProfilerNotInitialized, hipErrorProfilerAlreadyStarted, hipErrorProfilerAlreadyStopped, hipErrorInvalidConfiguration, hipErrorInvalidPitchValue, hipErrorInvalidSymbol, hipErrorInvalidDevicePointer, hipErrorInvalidMemcpyDirection, hipErrorInsufficientDriver, hipErrorMissingConfiguration, hipErrorPriorLaunchFailure, hipErrorInvalidDeviceFunction, hipErrorNoDevice, hipErrorInvalidDevice, hipErrorInvalidImage, hipErrorInvalidContext, hipErrorContextAlreadyCurrent, hipErrorMapFailed, hipErrorUnmapFailed, hipErrorArrayIsMapped, hipErrorAlreadyMapped, hipErrorNoBinaryForGpu, hipErrorAlreadyAcquired, hipErrorNotMapped, hipErrorNotMappedAsArray, hipErrorNotMappedAsPointer, hipErrorECCNotCorrectable, hipErrorUnsupportedLimit, hipErrorContextAlreadyInUse, hipErrorPeerAccessUnsupported, hipErrorInvalidKernelFile, hipErrorInvalidGraphicsContext, hipErrorInvalidSource, hipErrorFileNotFound, hipErrorSharedObjectSymbolNotFound, hipErrorSharedObjectInitFailed, hipErrorOperatingSystem, hipErrorInvalidHandle, hipErrorIllegalState, hipErrorNotFound, hipErrorNotReady, hipErrorIllegalAddress, hipErrorLaunchOutOfResources, hipErrorLaunchTimeOut, hipErrorPeerAccessAlreadyEnabled, hipErrorPeerAccessNotEnabled, hipErrorSetOnActiveProcess, hipErrorContextIsDestroyed, hipErrorAssert, hipErrorHostMemoryAlreadyRegistered, hipErrorHostMemoryNotRegistered, hipErrorLaunchFailure, hipErrorCooperativeLaunchTooLarge, hipErrorNotSupported, hipErrorStreamCaptureUnsupported, hipErrorStreamCaptureInvalidated, hipErrorStreamCaptureMerge, hipErrorStreamCaptureUnmatched, hipErrorStreamCaptureUnjoined, hipErrorStreamCaptureIsolation, hipErrorStreamCaptureImplicit, hipErrorCapturedEvent, hipErrorStreamCaptureWrongThread, hipErrorGraphExecUpdateFailure, hipErrorUnknown, hipErrorRuntimeMemory, hipErrorRuntimeOther, }
}

#[test]
fn constants_have_the_same_values() {
    let theirs = theirs();
    let mut differ = Vec::new();
    let mut compared = 0;
    for constant in abi::constants() {
        let (name, ours) = (constant.name, constant.value);
        match theirs.get(name) {
            None => assert!(
                ABSENT.contains(&name) || HEADERS_ONLY.contains(&constant.group),
                "{name} is compared with nothing: add it to the list"
            ),
            Some(_) if ABSENT.contains(&name) => panic!("{name} is listed as absent, but hip-sys has it"),
            Some(theirs) => {
                compared += 1;
                let known = RENUMBERED.contains(&(name, ours, *theirs));
                if ours != *theirs && !known {
                    differ.push(format!("{name}: ours {ours}, theirs {theirs}"));
                }
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
    assert_eq!(
        compared,
        theirs.len(),
        "hip-sys's list here has names that we no longer have"
    );
    assert!(RENUMBERED.iter().all(|(name, _, other)| theirs[name] == *other));
}
