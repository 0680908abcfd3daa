//! Assumptions about NVIDIA's C headers, as data: `cargo xtask bindings cuda` compares them with the headers.

pub use crate::library::Function;

use crate::cuda::{Cuda, LaunchAttribute, LaunchConfig, UpdateInfo};
use crate::nvml::{self, Nvml};
use crate::{attributes, memory};
use rocmforge_hip_sys::*;
use std::mem::offset_of;

/// The functions of `cuda.h`.
pub const CUDA_FUNCTIONS: &[Function] = Cuda::FUNCTIONS;
/// The functions of `nvml.h`.
pub const NVML_FUNCTIONS: &[Function] = Nvml::FUNCTIONS;

/// Names of structs in the lists, and their sizes.
pub const STRUCTS: &[(&str, usize)] = &[
    ("LaunchConfig", size_of::<LaunchConfig>()),
    ("UpdateInfo", size_of::<UpdateInfo>()),
    ("Memory", size_of::<nvml::Memory>()),
    ("Process", size_of::<nvml::Process>()),
];

/// Constants of `cuda.h` as C expressions, and the values that are used for them. HIP's names stand for the driver's where the
/// provider hands a number on as it is.
pub fn cuda_constants() -> Vec<(String, u64)> {
    let attributes = attributes::DEVICE
        .iter()
        .map(|&(_, number, name)| (format!("CU_DEVICE_ATTRIBUTE_{name}"), number as u64));
    let statuses = STATUSES.iter().map(|&(name, status)| (name, u64::from(status.0)));
    let others = OTHERS.iter().copied().chain(statuses);
    attributes
        .chain(others.map(|(name, value)| (name.to_owned(), value)))
        .collect()
}

/// Constants of `nvml.h`, likewise.
pub fn nvml_constants() -> Vec<(String, u64)> {
    NVML.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
}

/// Statuses that have the same number in HIP.
const STATUSES: &[(&str, hipError_t)] = &[
    ("CUDA_SUCCESS", hipSuccess),
    ("CUDA_ERROR_INVALID_VALUE", hipErrorInvalidValue),
    ("CUDA_ERROR_OUT_OF_MEMORY", hipErrorOutOfMemory),
    ("CUDA_ERROR_NOT_INITIALIZED", hipErrorNotInitialized),
    ("CUDA_ERROR_NO_DEVICE", hipErrorNoDevice),
    ("CUDA_ERROR_INVALID_DEVICE", hipErrorInvalidDevice),
    ("CUDA_ERROR_INVALID_IMAGE", hipErrorInvalidImage),
    ("CUDA_ERROR_INVALID_CONTEXT", hipErrorInvalidContext),
    ("CUDA_ERROR_NO_BINARY_FOR_GPU", hipErrorNoBinaryForGpu),
    ("CUDA_ERROR_INVALID_PTX", hipErrorInvalidKernelFile),
    ("CUDA_ERROR_INVALID_HANDLE", hipErrorInvalidHandle),
    ("CUDA_ERROR_NOT_FOUND", hipErrorNotFound),
    ("CUDA_ERROR_NOT_READY", hipErrorNotReady),
    ("CUDA_ERROR_ILLEGAL_ADDRESS", hipErrorIllegalAddress),
    ("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", hipErrorLaunchOutOfResources),
    (
        "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
        hipErrorHostMemoryAlreadyRegistered,
    ),
    ("CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", hipErrorHostMemoryNotRegistered),
    ("CUDA_ERROR_LAUNCH_FAILED", hipErrorLaunchFailure),
    ("CUDA_ERROR_NOT_SUPPORTED", hipErrorNotSupported),
    (
        "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        hipErrorStreamCaptureUnsupported,
    ),
    (
        "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
        hipErrorStreamCaptureInvalidated,
    ),
    ("CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", hipErrorGraphExecUpdateFailure),
];

const OTHERS: &[(&str, u64)] = &[
    // Statuses that `status.rs` gives other names.
    ("CUDA_ERROR_DEVICE_UNAVAILABLE", 46),
    ("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", 221),
    ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 222),
    ("CUDA_ERROR_HARDWARE_STACK_ERROR", 714),
    ("CUDA_ERROR_ILLEGAL_INSTRUCTION", 715),
    ("CUDA_ERROR_MISALIGNED_ADDRESS", 716),
    ("CUDA_ERROR_INVALID_ADDRESS_SPACE", 717),
    ("CUDA_ERROR_INVALID_PC", 718),
    ("CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", 803),
    ("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", 804),
    // Memory
    ("CU_POINTER_ATTRIBUTE_MEMORY_TYPE", memory::pointer::MEMORY_TYPE as u64),
    (
        "CU_POINTER_ATTRIBUTE_DEVICE_POINTER",
        memory::pointer::DEVICE_POINTER as u64,
    ),
    (
        "CU_POINTER_ATTRIBUTE_HOST_POINTER",
        memory::pointer::HOST_POINTER as u64,
    ),
    ("CU_POINTER_ATTRIBUTE_IS_MANAGED", memory::pointer::IS_MANAGED as u64),
    (
        "CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL",
        memory::pointer::DEVICE_ORDINAL as u64,
    ),
    ("CU_MEMORYTYPE_HOST", memory::HOST),
    ("CU_MEMORYTYPE_DEVICE", memory::DEVICE),
    (
        "CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP",
        memory::PORTABLE_AND_MAPPED as u64,
    ),
    ("CU_MEMHOSTALLOC_PORTABLE", hipHostMallocPortable as u64),
    ("CU_MEMHOSTALLOC_DEVICEMAP", hipHostMallocMapped as u64),
    ("CU_MEMHOSTALLOC_WRITECOMBINED", hipHostMallocWriteCombined as u64),
    // Streams, events, captures
    ("CU_STREAM_DEFAULT", hipStreamDefault as u64),
    ("CU_STREAM_NON_BLOCKING", hipStreamNonBlocking as u64),
    ("CU_EVENT_BLOCKING_SYNC", hipEventBlockingSync as u64),
    ("CU_EVENT_DISABLE_TIMING", hipEventDisableTiming as u64),
    ("CU_EVENT_INTERPROCESS", hipEventInterprocess as u64),
    ("CU_STREAM_CAPTURE_MODE_GLOBAL", hipStreamCaptureModeGlobal as u64),
    (
        "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL",
        hipStreamCaptureModeThreadLocal as u64,
    ),
    ("CU_STREAM_CAPTURE_MODE_RELAXED", hipStreamCaptureModeRelaxed as u64),
    ("CU_STREAM_CAPTURE_STATUS_NONE", hipStreamCaptureStatusNone as u64),
    ("CU_STREAM_CAPTURE_STATUS_ACTIVE", hipStreamCaptureStatusActive as u64),
    (
        "CU_STREAM_CAPTURE_STATUS_INVALIDATED",
        hipStreamCaptureStatusInvalidated as u64,
    ),
    // Graphs
    ("CU_GRAPH_EXEC_UPDATE_SUCCESS", hipGraphExecUpdateSuccess as u64),
    ("CU_GRAPH_EXEC_UPDATE_ERROR", hipGraphExecUpdateError as u64),
    (
        "CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE",
        hipGraphExecUpdateErrorUnsupportedFunctionChange as u64,
    ),
    ("sizeof(CUgraphExecUpdateResultInfo)", size_of::<UpdateInfo>() as u64),
    (
        "offsetof(CUgraphExecUpdateResultInfo, errorNode)",
        offset_of!(UpdateInfo, node) as u64,
    ),
    // Launches
    (
        "CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION",
        LaunchAttribute::EARLY.id as u64,
    ),
    ("sizeof(CUlaunchConfig)", size_of::<LaunchConfig>() as u64),
    (
        "offsetof(CUlaunchConfig, blockDimX)",
        offset_of!(LaunchConfig, block) as u64,
    ),
    (
        "offsetof(CUlaunchConfig, hStream)",
        offset_of!(LaunchConfig, stream) as u64,
    ),
    (
        "offsetof(CUlaunchConfig, attrs)",
        offset_of!(LaunchConfig, attributes) as u64,
    ),
    (
        "offsetof(CUlaunchConfig, numAttrs)",
        offset_of!(LaunchConfig, attribute_count) as u64,
    ),
    ("sizeof(CUlaunchAttribute)", size_of::<LaunchAttribute>() as u64),
    (
        "offsetof(CUlaunchAttribute, value)",
        offset_of!(LaunchAttribute, value) as u64,
    ),
    // Functions
    ("CU_FUNC_ATTRIBUTE_NUM_REGS", HIP_FUNC_ATTRIBUTE_NUM_REGS as u64),
    (
        "CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES",
        HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as u64,
    ),
];

const NVML: &[(&str, u64)] = &[
    ("NVML_SUCCESS", nvml::SUCCESS as u64),
    ("NVML_ERROR_INSUFFICIENT_SIZE", nvml::INSUFFICIENT_SIZE as u64),
    ("NVML_ERROR_DEPRECATED", nvml::DEPRECATED as u64),
    ("sizeof(nvmlMemory_t)", size_of::<nvml::Memory>() as u64),
    ("offsetof(nvmlMemory_t, used)", offset_of!(nvml::Memory, used) as u64),
    ("sizeof(nvmlProcessInfo_t)", size_of::<nvml::Process>() as u64),
    (
        "offsetof(nvmlProcessInfo_t, usedGpuMemory)",
        offset_of!(nvml::Process, used) as u64,
    ),
];
