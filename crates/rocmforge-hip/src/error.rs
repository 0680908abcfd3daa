//! Names and texts of statuses.

use crate::process::{answered, write};
use rocmforge_hip_sys::*;
use std::ffi::{CStr, c_char};

pub(crate) unsafe extern "C" fn hipGetErrorName(status: hipError_t) -> *const c_char {
    status.c_name().unwrap_or(c"hipErrorUnknown").as_ptr()
}

pub(crate) unsafe extern "C" fn hipGetErrorString(status: hipError_t) -> *const c_char {
    text(status).as_ptr()
}

pub(crate) unsafe extern "C" fn hipDrvGetErrorString(status: hipError_t, out: *mut *const c_char) -> hipError_t {
    answered("hipDrvGetErrorString", |_| {
        let known = status.name().map(|_| text(status).as_ptr());
        // SAFETY: promised by the program.
        unsafe { write(out, known.unwrap_or(std::ptr::null())) }?;
        known.map(|_| ()).ok_or(hipErrorInvalidValue)
    })
}

/// What a status means, in the words of HIP's documentation: programs print and compare them.
fn text(status: hipError_t) -> &'static CStr {
    match status {
        hipSuccess => c"no error",
        hipErrorInvalidValue => c"invalid argument",
        hipErrorOutOfMemory => c"out of memory",
        hipErrorNotInitialized => c"initialization error",
        hipErrorDeinitialized => c"driver shutting down",
        hipErrorInvalidConfiguration => c"invalid configuration argument",
        hipErrorInvalidPitchValue => c"invalid pitch argument",
        hipErrorInvalidSymbol => c"invalid device symbol",
        hipErrorInvalidDevicePointer => c"invalid device pointer",
        hipErrorInvalidMemcpyDirection => c"invalid copy direction for memcpy",
        hipErrorInsufficientDriver => c"driver version is insufficient for runtime version",
        hipErrorMissingConfiguration => c"__global__ function call is not configured",
        hipErrorPriorLaunchFailure => c"unspecified launch failure in prior launch",
        hipErrorInvalidDeviceFunction => c"invalid device function",
        hipErrorNoDevice => c"no ROCm-capable device is detected",
        hipErrorInvalidDevice => c"invalid device ordinal",
        hipErrorInvalidImage => c"device kernel image is invalid",
        hipErrorInvalidContext => c"invalid device context",
        hipErrorNoBinaryForGpu => c"no kernel image is available for execution on the device",
        hipErrorInvalidSource => c"invalid source",
        hipErrorFileNotFound => c"file not found",
        hipErrorSharedObjectSymbolNotFound => c"shared object symbol not found",
        hipErrorSharedObjectInitFailed => c"shared object initialization failed",
        hipErrorOperatingSystem => c"OS call failed or operation not supported on this OS",
        hipErrorInvalidHandle => c"invalid resource handle",
        hipErrorIllegalState => c"the operation cannot be performed in the present state",
        hipErrorNotFound => c"named symbol not found",
        hipErrorNotReady => c"device not ready",
        hipErrorIllegalAddress => c"an illegal memory access was encountered",
        hipErrorLaunchOutOfResources => c"out of resources",
        hipErrorLaunchTimeOut => c"the launch timed out and was terminated",
        hipErrorPeerAccessAlreadyEnabled => c"peer access is already enabled",
        hipErrorPeerAccessNotEnabled => c"peer access has not been enabled",
        hipErrorSetOnActiveProcess => c"cannot set while device is active in this process",
        hipErrorContextIsDestroyed => c"context is destroyed",
        hipErrorAssert => c"device kernel assert error",
        hipErrorHostMemoryAlreadyRegistered => c"part or all of the requested memory range is already mapped",
        hipErrorHostMemoryNotRegistered => c"pointer does not correspond to a registered memory region",
        hipErrorLaunchFailure => c"unspecified launch failure",
        hipErrorNotSupported => c"operation not supported",
        hipErrorStreamCaptureUnsupported => c"operation not permitted when stream is capturing",
        hipErrorStreamCaptureInvalidated => c"operation failed due to a previous error during capture",
        hipErrorStreamCaptureMerge => c"operation would result in a merge of separate capture sequences",
        hipErrorStreamCaptureUnmatched => c"capture was not ended in the same stream as it began",
        hipErrorStreamCaptureUnjoined => c"capturing stream has unjoined work",
        hipErrorStreamCaptureIsolation => c"dependency created on uncaptured work in another stream",
        hipErrorStreamCaptureImplicit => c"operation would make the legacy stream depend on a capturing blocking stream",
        hipErrorCapturedEvent => c"operation not permitted on an event last recorded in a capturing stream",
        hipErrorStreamCaptureWrongThread => c"attempt to terminate a thread-local capture sequence from another thread",
        hipErrorGraphExecUpdateFailure => c"the graph update was not performed because it included changes which violated constraints specific to instantiated graph update",
        _ => c"unknown error",
    }
}
