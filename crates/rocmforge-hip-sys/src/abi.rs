//! The ABI as data, for programs that compare it with somebody else's: every function with its arguments, every constant
//! and every struct this crate has. `cargo xtask bindings check` compares it with the HIP headers.

pub(crate) mod entries;

use crate::{
    dim3, hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipExtent, hipFuncAttributes, hipIpcMemHandle_t, hipMemPoolProps,
    hipPitchedPtr, hipPointerAttribute_t,
};
use std::mem::{offset_of, size_of};

pub use entries::{Constant, Function, Layout, Tag};

/// Every function, in the list's order.
pub const FUNCTIONS: &[Function] = crate::api::FUNCTIONS;

/// Every struct.
pub fn layouts() -> Vec<Layout> {
    [
        LAYOUTS,
        crate::devices::LAYOUTS,
        crate::memory::LAYOUTS,
        crate::graphs::LAYOUTS,
    ]
    .concat()
}

/// The structs of which not every field has a name in C, or here.
const LAYOUTS: &[Layout] = &[
    Layout {
        name: "hipPointerAttribute_t",
        c_name: "hipPointerAttribute_t",
        majors: (5, u32::MAX),
        size: size_of::<hipPointerAttribute_t>(),
        fields: &[
            ("type", offset_of!(hipPointerAttribute_t, r#type), 4),
            ("device", offset_of!(hipPointerAttribute_t, device), 4),
            ("devicePointer", offset_of!(hipPointerAttribute_t, devicePointer), 8),
            ("hostPointer", offset_of!(hipPointerAttribute_t, hostPointer), 8),
            ("isManaged", offset_of!(hipPointerAttribute_t, isManaged), 4),
            ("allocationFlags", offset_of!(hipPointerAttribute_t, allocationFlags), 4),
        ],
    },
    Layout {
        name: "hipMemPoolProps",
        c_name: "hipMemPoolProps",
        majors: (5, u32::MAX),
        size: size_of::<hipMemPoolProps>(),
        fields: &[
            ("allocType", offset_of!(hipMemPoolProps, allocType), 4),
            ("handleTypes", offset_of!(hipMemPoolProps, handleTypes), 4),
            ("location", offset_of!(hipMemPoolProps, locationType), 8),
            (
                "win32SecurityAttributes",
                offset_of!(hipMemPoolProps, win32SecurityAttributes),
                8,
            ),
        ],
    },
    Layout {
        name: "hipPitchedPtr",
        c_name: "hipPitchedPtr",
        majors: (5, u32::MAX),
        size: size_of::<hipPitchedPtr>(),
        fields: &[
            ("ptr", offset_of!(hipPitchedPtr, ptr), 8),
            ("pitch", offset_of!(hipPitchedPtr, pitch), 8),
            ("xsize", offset_of!(hipPitchedPtr, xsize), 8),
            ("ysize", offset_of!(hipPitchedPtr, ysize), 8),
        ],
    },
    Layout {
        name: "hipExtent",
        c_name: "hipExtent",
        majors: (5, u32::MAX),
        size: size_of::<hipExtent>(),
        fields: &[
            ("width", offset_of!(hipExtent, width), 8),
            ("height", offset_of!(hipExtent, height), 8),
            ("depth", offset_of!(hipExtent, depth), 8),
        ],
    },
    Layout {
        name: "dim3",
        c_name: "dim3",
        majors: (5, u32::MAX),
        size: size_of::<dim3>(),
        fields: &[
            ("x", offset_of!(dim3, x), 4),
            ("y", offset_of!(dim3, y), 4),
            ("z", offset_of!(dim3, z), 4),
        ],
    },
    Layout {
        name: "hipFuncAttributes",
        c_name: "hipFuncAttributes",
        majors: (5, u32::MAX),
        size: size_of::<hipFuncAttributes>(),
        fields: &[
            ("localSizeBytes", offset_of!(hipFuncAttributes, localSizeBytes), 8),
            (
                "maxThreadsPerBlock",
                offset_of!(hipFuncAttributes, maxThreadsPerBlock),
                4,
            ),
            ("numRegs", offset_of!(hipFuncAttributes, numRegs), 4),
            ("sharedSizeBytes", offset_of!(hipFuncAttributes, sharedSizeBytes), 8),
        ],
    },
    Layout {
        name: "hipIpcMemHandle_t",
        c_name: "hipIpcMemHandle_t",
        majors: (5, u32::MAX),
        size: size_of::<hipIpcMemHandle_t>(),
        fields: &[("reserved", offset_of!(hipIpcMemHandle_t, reserved), 64)],
    },
    Layout {
        name: "hipDeviceProp_tR0000",
        c_name: "hipDeviceProp_t",
        majors: (5, 5),
        size: size_of::<hipDeviceProp_tR0000>(),
        fields: &[("gcnArchName", hipDeviceProp_tR0000::GCN_ARCH_NAME, 256)],
    },
    Layout {
        name: "hipDeviceProp_tR0600",
        c_name: "hipDeviceProp_t",
        majors: (6, u32::MAX),
        size: size_of::<hipDeviceProp_tR0600>(),
        fields: &[("gcnArchName", hipDeviceProp_tR0600::GCN_ARCH_NAME, 256)],
    },
    Layout {
        name: "hipLaunchAttributeValue",
        c_name: "hipLaunchAttributeValue",
        majors: (6, u32::MAX),
        size: size_of::<crate::hipLaunchAttributeValue>(),
        fields: &[],
    },
    Layout {
        name: "hipGraphNodeParams",
        c_name: "hipGraphNodeParams",
        majors: (6, u32::MAX),
        size: size_of::<crate::hipGraphNodeParams>(),
        fields: &[
            ("type", offset_of!(crate::hipGraphNodeParams, r#type), 4),
            ("reserved0", offset_of!(crate::hipGraphNodeParams, reserved0), 12),
            // The union has no name; this is its first member.
            ("reserved1", offset_of!(crate::hipGraphNodeParams, params), 232),
            ("reserved2", offset_of!(crate::hipGraphNodeParams, reserved2), 8),
        ],
    },
];

/// The opaque handles and other named types: name here and in C, bytes.
pub const TYPES: &[(&str, usize)] = &[
    ("hipError_t", size_of::<crate::hipError_t>()),
    ("hipStream_t", size_of::<crate::hipStream_t>()),
    ("hipEvent_t", size_of::<crate::hipEvent_t>()),
    ("hipModule_t", size_of::<crate::hipModule_t>()),
    ("hipFunction_t", size_of::<crate::hipFunction_t>()),
    ("hipGraph_t", size_of::<crate::hipGraph_t>()),
    ("hipGraphExec_t", size_of::<crate::hipGraphExec_t>()),
    ("hipGraphNode_t", size_of::<crate::hipGraphNode_t>()),
    ("hipMemPool_t", size_of::<crate::hipMemPool_t>()),
    ("hipArray_t", size_of::<crate::hipArray_t>()),
    (
        "hipMemGenericAllocationHandle_t",
        size_of::<crate::hipMemGenericAllocationHandle_t>(),
    ),
    ("hipPointer_attribute", size_of::<crate::hipPointer_attribute>()),
    ("hipMemPoolAttr", size_of::<crate::hipMemPoolAttr>()),
    ("hipMemAllocationType", size_of::<crate::hipMemAllocationType>()),
    ("hipMemLocationType", size_of::<crate::hipMemLocationType>()),
    ("hipDeviceptr_t", size_of::<crate::hipDeviceptr_t>()),
    ("hipDevice_t", size_of::<crate::hipDevice_t>()),
    ("hipHostFn_t", size_of::<crate::hipHostFn_t>()),
    ("hipStreamCallback_t", size_of::<crate::hipStreamCallback_t>()),
    ("hipMemcpyKind", size_of::<crate::hipMemcpyKind>()),
    ("hipMemoryType", size_of::<crate::hipMemoryType>()),
    ("hipDeviceAttribute_t", size_of::<crate::hipDeviceAttribute_t>()),
    ("hipFunction_attribute", size_of::<crate::hipFunction_attribute>()),
    ("hipStreamCaptureMode", size_of::<crate::hipStreamCaptureMode>()),
    ("hipStreamCaptureStatus", size_of::<crate::hipStreamCaptureStatus>()),
    ("hipGraphExecUpdateResult", size_of::<crate::hipGraphExecUpdateResult>()),
    ("hipCtx_t", size_of::<crate::hipCtx_t>()),
    ("hipUserObject_t", size_of::<crate::hipUserObject_t>()),
    ("hipArray_const_t", size_of::<crate::hipArray_const_t>()),
    ("hipDeviceP2PAttr", size_of::<crate::hipDeviceP2PAttr>()),
    ("hipFuncCache_t", size_of::<crate::hipFuncCache_t>()),
    ("hipSharedMemConfig", size_of::<crate::hipSharedMemConfig>()),
    (
        "hipMemAllocationHandleType",
        size_of::<crate::hipMemAllocationHandleType>(),
    ),
    ("hipChannelFormatKind", size_of::<crate::hipChannelFormatKind>()),
    ("hipArray_Format", size_of::<crate::hipArray_Format>()),
    ("hipMemoryAdvise", size_of::<crate::hipMemoryAdvise>()),
    ("hipMemRangeAttribute", size_of::<crate::hipMemRangeAttribute>()),
    ("hipMemRangeCoherencyMode", size_of::<crate::hipMemRangeCoherencyMode>()),
    ("hipMemAccessFlags", size_of::<crate::hipMemAccessFlags>()),
    (
        "hipMemAllocationGranularity_flags",
        size_of::<crate::hipMemAllocationGranularity_flags>(),
    ),
    ("hipGraphNodeType", size_of::<crate::hipGraphNodeType>()),
];

/// Every constant, the statuses and the marks of `hipModuleLaunchKernel`'s `extra` list included.
pub fn constants() -> Vec<Constant> {
    let lists = [
        crate::types::CONSTANTS,
        crate::devices::CONSTANTS,
        crate::memory::CONSTANTS,
        crate::graphs::CONSTANTS,
    ];
    let listed = lists
        .concat()
        .into_iter()
        .map(|(group, name, value)| Constant { group, name, value });
    let statuses = crate::hipError_t::ALL.iter().filter_map(|status| {
        Some(Constant {
            group: "hipError_t",
            name: status.name()?,
            value: u64::from(status.0),
        })
    });
    let launch = [
        (
            "HIP_LAUNCH_PARAM_BUFFER_POINTER",
            crate::HIP_LAUNCH_PARAM_BUFFER_POINTER,
        ),
        ("HIP_LAUNCH_PARAM_BUFFER_SIZE", crate::HIP_LAUNCH_PARAM_BUFFER_SIZE),
        ("HIP_LAUNCH_PARAM_END", crate::HIP_LAUNCH_PARAM_END),
    ];
    let launch = launch.map(|(name, mark)| Constant {
        group: "HIP_LAUNCH_PARAM",
        name,
        value: mark.addr() as u64,
    });
    listed.chain(statuses).chain(launch).collect()
}
