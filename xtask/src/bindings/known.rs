//! Known differences between our bindings and a version of the headers, each with its reason. A difference that is not
//! listed fails the check; a listed one that does not exist fails it too.

/// Names that HIP got later than the oldest version we load: name, first version that declares it.
const SINCE: &[(&str, (u32, u32))] = &[
    ("hipGetDevicePropertiesR0600", (6, 0)),
    ("hipExtGetLastError", (6, 0)),
    ("hipStreamGetDevice", (5, 7)),
    ("hipDeviceSetLimit", (5, 4)),
    ("hipLimitStackSize", (5, 4)),
    ("hipDrvGetErrorName", (5, 4)),
    ("hipPointerSetAttribute", (5, 7)),
    ("hipModuleLaunchCooperativeKernel", (5, 7)),
    ("hipMemoryTypeUnregistered", (6, 0)),
    ("hipMemoryTypeManaged", (5, 4)),
    ("hipErrorInvalidChannelDescriptor", (7, 0)),
    ("hipErrorInvalidTexture", (7, 0)),
    ("hipChooseDeviceR0000", (5, 3)),
    ("hipGetDevicePropertiesR0000", (5, 3)),
    ("hipChooseDeviceR0600", (6, 0)),
    ("hipSetValidDevices", (6, 2)),
    // HIP 5.2 declares these two for C++ only.
    ("hipCreateSurfaceObject", (5, 3)),
    ("hipDestroySurfaceObject", (5, 3)),
    ("hipArrayGetInfo", (5, 6)),
    ("hipArrayGetDescriptor", (5, 6)),
    ("hipArray3DGetDescriptor", (5, 6)),
    ("hipMemcpy2DArrayToArray", (6, 2)),
    ("hipMemcpyAtoHAsync", (6, 2)),
    ("hipMemcpyHtoAAsync", (6, 2)),
    ("hipMemcpyAtoD", (6, 2)),
    ("hipMemcpyDtoA", (6, 2)),
    ("hipMemcpyAtoA", (6, 2)),
    ("hipStreamBeginCaptureToGraph", (6, 1)),
    ("hipGraphAddMemAllocNode", (5, 5)),
    ("hipGraphAddMemFreeNode", (5, 5)),
    ("hipGraphAddNode", (5, 5)),
    ("hipGraphDebugDotPrint", (5, 3)),
    ("hipGraphKernelNodeCopyAttributes", (5, 3)),
    ("hipGraphMemAllocNodeGetParams", (5, 5)),
    ("hipGraphMemFreeNodeGetParams", (5, 5)),
    ("hipGraphNodeSetParams", (6, 2)),
    ("hipGraphInstantiateWithParams", (6, 1)),
    ("hipGraphUpload", (5, 3)),
    ("hipGraphExecGetFlags", (6, 2)),
    ("hipGraphNodeSetEnabled", (5, 3)),
    ("hipGraphNodeGetEnabled", (5, 3)),
    ("hipGraphExecNodeSetParams", (6, 2)),
    ("hipDeviceGetGraphMemAttribute", (5, 3)),
    ("hipDeviceSetGraphMemAttribute", (5, 3)),
    ("hipDeviceGraphMemTrim", (5, 3)),
    ("hipUserObject_t", (5, 3)),
    ("hipUserObjectCreate", (5, 3)),
    ("hipUserObjectRelease", (5, 3)),
    ("hipUserObjectRetain", (5, 3)),
    ("hipGraphRetainUserObject", (5, 3)),
    ("hipGraphReleaseUserObject", (5, 3)),
    ("hipDrvGraphAddMemcpyNode", (5, 6)),
    ("hipDrvGraphAddMemsetNode", (5, 6)),
    ("hipDrvGraphAddMemFreeNode", (6, 2)),
    ("hipDrvGraphMemcpyNodeGetParams", (6, 0)),
    ("hipDrvGraphMemcpyNodeSetParams", (6, 0)),
    ("hipDrvGraphExecMemcpyNodeSetParams", (6, 2)),
    ("hipDrvGraphExecMemsetNodeSetParams", (6, 2)),
    ("hipDeviceAttributeVirtualMemoryManagementSupported", (5, 3)),
    ("hipDeviceAttributeHostRegisterSupported", (5, 7)),
    ("hipDeviceAttributeMemoryPoolSupportedHandleTypes", (6, 2)),
    ("hipDeviceAttributeWallClockRate", (5, 4)),
    ("hipGraphNodeTypeExtSemaphoreSignal", (5, 5)),
    ("hipGraphNodeTypeExtSemaphoreWait", (5, 5)),
    ("hipGraphNodeTypeMemAlloc", (5, 5)),
    ("hipGraphNodeTypeMemFree", (5, 5)),
    ("hipLaunchAttributeValue", (6, 2)),
    ("hipLaunchAttributeAccessPolicyWindow", (6, 2)),
    ("hipLaunchAttributeCooperative", (6, 2)),
    ("hipLaunchAttributePriority", (6, 2)),
    ("hipGraphInstantiateFlagUpload", (5, 6)),
    ("hipGraphInstantiateFlagDeviceLaunch", (5, 6)),
    ("hipGraphInstantiateFlagUseNodePriority", (5, 6)),
    ("hipGraphInstantiateSuccess", (6, 1)),
    ("hipGraphInstantiateError", (6, 1)),
    ("hipGraphInstantiateInvalidStructure", (6, 1)),
    ("hipGraphInstantiateNodeOperationNotSupported", (6, 1)),
    ("hipGraphInstantiateMultipleDevicesNotSupported", (6, 1)),
    ("hipGraphMemAttrUsedMemCurrent", (5, 3)),
    ("hipGraphMemAttrUsedMemHigh", (5, 3)),
    ("hipGraphMemAttrReservedMemCurrent", (5, 3)),
    ("hipGraphMemAttrReservedMemHigh", (5, 3)),
    ("hipUserObjectNoDestructorSync", (5, 3)),
    ("hipGraphUserObjectMove", (5, 3)),
    ("hipMemcpyDeviceToDeviceNoCU", (6, 2)),
    ("hipMemsetD2D8", (7, 1)),
    ("hipMemsetD2D8Async", (7, 1)),
    ("hipMemsetD2D16", (7, 1)),
    ("hipMemsetD2D16Async", (7, 1)),
    ("hipMemsetD2D32", (7, 1)),
    ("hipMemsetD2D32Async", (7, 1)),
    ("hipStreamGetId", (7, 1)),
    ("hipEventRecordWithFlags", (6, 4)),
];

const RENUMBERED: &str = "HIP 6.0 gave hipMemoryType new values; ours are those of 6.0 and later";
const NODES: &str = "HIP 6.0 counts the kinds of nodes from 0; ours are those of 6.0 and later";
/// Names whose value or signature differs: name, first and last major version of the headers, reason.
const DIFFERENT: &[(&str, (u32, u32), &str)] = &[
    ("hipMemoryTypeHost", (0, 5), RENUMBERED),
    ("hipMemoryTypeDevice", (0, 5), RENUMBERED),
    ("hipMemoryTypeManaged", (0, 5), RENUMBERED),
    ("hipMemoryTypeArray", (0, 5), RENUMBERED),
    ("hipMemoryTypeUnified", (0, 5), RENUMBERED),
    ("hipGraphNodeTypeKernel", (0, 5), NODES),
    ("hipGraphNodeTypeMemcpy", (0, 5), NODES),
    ("hipGraphNodeTypeMemset", (0, 5), NODES),
    ("hipGraphNodeTypeHost", (0, 5), NODES),
    ("hipGraphNodeTypeGraph", (0, 5), NODES),
    ("hipGraphNodeTypeEmpty", (0, 5), NODES),
    ("hipGraphNodeTypeWaitEvent", (0, 5), NODES),
    ("hipGraphNodeTypeEventRecord", (0, 5), NODES),
    ("hipGraphNodeTypeMemcpyFromSymbol", (0, 5), NODES),
    ("hipGraphNodeTypeMemcpyToSymbol", (0, 5), NODES),
];

const UNDECLARED: &str = "the library exports it, no header declares it";
const RENAMED: &str =
    "the header makes this name mean the R0600 one; the exported symbol keeps the old struct, as ours does";

/// Functions whose header cannot be asked: name, first major version, reason.
const INCOMPARABLE: &[(&str, u32, &str)] = &[
    ("hipGetDeviceProperties", 6, RENAMED),
    ("hipChooseDevice", 6, RENAMED),
    ("hipGetDevicePropertiesR0000", 6, UNDECLARED),
    ("hipChooseDeviceR0000", 6, UNDECLARED),
];

/// Fields that had another name: struct, our name, last major version with the other name, the other name.
const FIELDS: &[(&str, &str, u32, &str)] = &[("hipPointerAttribute_t", "type", 5, "memoryType")];

/// Why headers of `version` may lack `name`, if they may.
pub(super) fn absent(name: &str, version: (u32, u32)) -> Option<String> {
    let (_, since) = SINCE.iter().find(|(known, since)| *known == name && version < *since)?;
    Some(format!("not in this header: HIP has it since {}.{}", since.0, since.1))
}

/// Why `name` differs in headers of `version`, if it is to.
pub(super) fn different(name: &str, version: (u32, u32)) -> Option<&'static str> {
    let applies =
        |(known, (first, last), _): &&(&str, (u32, u32), &str)| *known == name && (*first..=*last).contains(&version.0);
    DIFFERENT.iter().find(applies).map(|(_, _, reason)| *reason)
}

/// Why headers of `version` cannot be asked about the function `name`, if they cannot.
pub(super) fn incomparable(name: &str, version: (u32, u32)) -> Option<&'static str> {
    let applies = |(known, first, _): &&(&str, u32, &'static str)| *known == name && version.0 >= *first;
    INCOMPARABLE.iter().find(applies).map(|(_, _, reason)| *reason)
}

/// A field's name in headers of `version`.
pub(super) fn field(layout: &str, name: &'static str, version: (u32, u32)) -> &'static str {
    let applies = |known: &&(&str, &str, u32, &str)| (known.0, known.1) == (layout, name) && version.0 <= known.2;
    FIELDS.iter().find(applies).map_or(name, |known| known.3)
}
