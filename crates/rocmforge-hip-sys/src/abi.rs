//! The ABI as data, for programs that compare it with somebody else's: every function with its arguments, every constant
//! and every struct this crate has. `cargo xtask bindings check` compares it with the HIP headers.

pub(crate) mod entries;

use crate::{hipDeviceProp_tR0000, hipDeviceProp_tR0600, hipMemPoolProps};
use std::mem::{offset_of, size_of};

pub use entries::{Constant, Function, Layout, Tag};

/// Every function, in the list's order.
pub const FUNCTIONS: &[Function] = crate::api::FUNCTIONS;

/// Every struct.
pub fn layouts() -> Vec<Layout> {
    [
        crate::types::LAYOUTS,
        LAYOUTS,
        crate::devices::LAYOUTS,
        crate::memory::LAYOUTS,
        crate::graphs::LAYOUTS,
        crate::textures::LAYOUTS,
    ]
    .concat()
}

/// The structs of which not every field has a name in C, or here.
const LAYOUTS: &[Layout] = &[
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
    Layout {
        name: "hipResourceDesc",
        c_name: "hipResourceDesc",
        majors: (5, u32::MAX),
        size: size_of::<crate::hipResourceDesc>(),
        fields: &[
            ("resType", offset_of!(crate::hipResourceDesc, resType), 4),
            ("res", offset_of!(crate::hipResourceDesc, res), 56),
        ],
    },
];

/// Names of types with their sizes.
macro_rules! sizes {
    ($($name:ident)*) => { &[$((stringify!($name), size_of::<crate::$name>())),*] };
}

/// The opaque handles and other named types: name here and in C, bytes.
pub const TYPES: &[(&str, usize)] = sizes! {
    hipError_t hipStream_t hipEvent_t hipModule_t hipFunction_t hipGraph_t hipGraphExec_t hipGraphNode_t
    hipMemPool_t hipArray_t hipMemGenericAllocationHandle_t hipPointer_attribute hipMemPoolAttr hipMemAllocationType
    hipMemLocationType hipDeviceptr_t hipDevice_t hipHostFn_t hipStreamCallback_t hipMemcpyKind hipMemoryType
    hipDeviceAttribute_t hipFunction_attribute hipStreamCaptureMode hipStreamCaptureStatus hipGraphExecUpdateResult
    hipCtx_t hipUserObject_t hipArray_const_t hipDeviceP2PAttr hipFuncCache_t hipSharedMemConfig
    hipTextureObject_t hipSurfaceObject_t hipResourceType hipResourceViewFormat hipTextureAddressMode
    hipTextureFilterMode hipTextureReadMode
    hipMemAllocationHandleType hipChannelFormatKind hipArray_Format hipMemoryAdvise hipMemRangeAttribute
    hipMemRangeCoherencyMode hipMemAccessFlags hipMemAllocationGranularity_flags hipGraphNodeType
};

/// Every constant, the statuses and the marks of `hipModuleLaunchKernel`'s `extra` list included.
pub fn constants() -> Vec<Constant> {
    let lists = [
        crate::types::CONSTANTS,
        crate::devices::CONSTANTS,
        crate::memory::CONSTANTS,
        crate::graphs::CONSTANTS,
        crate::textures::CONSTANTS,
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
