//! Error codes that each HIP function may answer: the codes of the behaviour rows, and those that AMD's implementation
//! gives where no row speaks of it. `hipErrorNotReady` is an answer, not a failure, and left out.

use rocmforge_hip_sys::*;

/// The codes of a function, beyond those that every function is swept with.
pub(crate) fn of(api: &str) -> &'static [hipError_t] {
    match api {
        "hipInit" | "hipGetDeviceCount" | "hipSetDevice" | "hipDeviceGet" => &[hipErrorNoDevice, hipErrorInvalidDevice],
        "hipGetDevice"
        | "hipDeviceGetName"
        | "hipDeviceTotalMem"
        | "hipDeviceGetPCIBusId"
        | "hipDeviceGetAttribute" => &[hipErrorInvalidDevice],
        "hipMalloc" | "hipFree" | "hipHostMalloc" | "hipHostFree" => &[hipErrorStreamCaptureUnsupported],
        "hipMemcpyAsync" => &[
            hipErrorContextIsDestroyed,
            hipErrorInvalidMemcpyDirection,
            hipErrorStreamCaptureInvalidated,
        ],
        "hipMemsetAsync" => &[hipErrorContextIsDestroyed, hipErrorStreamCaptureInvalidated],
        "hipModuleLoadData" => &[
            hipErrorInvalidImage,
            hipErrorNoBinaryForGpu,
            hipErrorSharedObjectInitFailed,
        ],
        "hipModuleGetFunction" => &[hipErrorNotFound, hipErrorInvalidHandle],
        "hipModuleUnload" => &[hipErrorNotFound, hipErrorInvalidHandle],
        "hipModuleLaunchKernel" => &[
            hipErrorInvalidHandle,
            hipErrorInvalidConfiguration,
            hipErrorInvalidDeviceFunction,
            hipErrorLaunchOutOfResources,
            hipErrorContextIsDestroyed,
            hipErrorStreamCaptureInvalidated,
        ],
        "hipStreamQuery" => &[
            hipErrorContextIsDestroyed,
            hipErrorIllegalAddress,
            hipErrorStreamCaptureUnsupported,
        ],
        "hipStreamDestroy" => &[hipErrorInvalidHandle, hipErrorContextIsDestroyed],
        "hipStreamWaitEvent" => &[
            hipErrorInvalidHandle,
            hipErrorContextIsDestroyed,
            hipErrorStreamCaptureMerge,
            hipErrorStreamCaptureIsolation,
        ],
        "hipEventRecord" => &[hipErrorInvalidHandle, hipErrorContextIsDestroyed],
        "hipEventQuery" => &[hipErrorInvalidHandle, hipErrorIllegalAddress, hipErrorCapturedEvent],
        "hipEventElapsedTime" => &[hipErrorInvalidHandle],
        "hipEventDestroy" => &[hipErrorInvalidHandle, hipErrorContextIsDestroyed],
        "hipStreamBeginCapture" => &[
            hipErrorIllegalState,
            hipErrorStreamCaptureUnsupported,
            hipErrorContextIsDestroyed,
        ],
        "hipStreamEndCapture" => &[
            hipErrorIllegalState,
            hipErrorStreamCaptureInvalidated,
            hipErrorStreamCaptureUnmatched,
            hipErrorStreamCaptureUnjoined,
            hipErrorStreamCaptureWrongThread,
        ],
        "hipStreamIsCapturing" => &[hipErrorContextIsDestroyed, hipErrorStreamCaptureImplicit],
        "hipGraphInstantiate" | "hipGraphLaunch" => &[hipErrorContextIsDestroyed, hipErrorNotSupported],
        "hipGraphExecUpdate" => &[hipErrorGraphExecUpdateFailure],
        _ => &[],
    }
}
