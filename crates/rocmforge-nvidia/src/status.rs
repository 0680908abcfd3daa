//! The driver's statuses in HIP's words. HIP took most numbers over from `CUresult`; the table holds the others.

use crate::cuda::CuResult;
use rocmforge_hip_sys::*;

/// What HIP calls a status of the driver. One that HIP has no name for is `hipErrorUnknown`, never success.
pub(crate) fn hip(result: CuResult) -> hipError_t {
    match result.0 {
        // Lost for good: the kernel did something that HIP has one name for.
        //  714 stack error, 715 illegal instruction, 716 misaligned address, 717 invalid address space, 718 invalid pc,
        //  721 contained error, 722 tensor memory leak
        714..=718 | 721 | 722 => hipErrorLaunchFailure,
        // The PTX cannot be compiled: 221 no compiler, 222 a newer version of PTX than the driver's.
        221 | 222 => hipErrorInvalidImage,
        // 46 is a device in use by an exclusive process, 101 one that does not exist: unusable both.
        46 => hipErrorInvalidDevice,
        // The driver library and the kernel driver do not fit each other.
        803 | 804 => hipErrorInsufficientDriver,
        number => match hipError_t(number).name() {
            Some(_) => hipError_t(number),
            None => hipErrorUnknown,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_have_hips_names() {
        for (cuda, expected) in [
            (0, hipSuccess),
            (1, hipErrorInvalidValue),
            (2, hipErrorOutOfMemory),
            (3, hipErrorNotInitialized),
            (100, hipErrorNoDevice),
            (200, hipErrorInvalidImage),
            (209, hipErrorNoBinaryForGpu),
            (218, hipErrorInvalidKernelFile),
            (222, hipErrorInvalidImage),
            (400, hipErrorInvalidHandle),
            (500, hipErrorNotFound),
            (600, hipErrorNotReady),
            (700, hipErrorIllegalAddress),
            (715, hipErrorLaunchFailure),
            (719, hipErrorLaunchFailure),
            (901, hipErrorStreamCaptureInvalidated),
            (910, hipErrorGraphExecUpdateFailure),
            (12_345, hipErrorUnknown),
        ] {
            assert_eq!(hip(CuResult(cuda)), expected, "CUDA status {cuda}");
        }
    }

    #[test]
    fn only_success_is_success() {
        let successes: Vec<u32> = (0..100_000).filter(|&n| hip(CuResult(n)).is_success()).collect();
        assert_eq!(successes, [0]);
    }
}
