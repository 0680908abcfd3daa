//! Statuses of hipBLAS (`hipblasStatus_t`).

use rocmforge_hip_sys::{hipError_t, hipErrorOutOfMemory};
use std::ffi::{c_char, c_int};

/// A status as the C interface has it.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) c_int);

pub(crate) const SUCCESS: Status = Status(0);
pub(crate) const NOT_INITIALIZED: Status = Status(1);
pub(crate) const ALLOC_FAILED: Status = Status(2);
pub(crate) const INVALID_VALUE: Status = Status(3);
pub(crate) const EXECUTION_FAILED: Status = Status(5);
pub(crate) const INTERNAL_ERROR: Status = Status(6);
pub(crate) const NOT_SUPPORTED: Status = Status(7);
pub(crate) const HANDLE_IS_NULLPTR: Status = Status(9);
pub(crate) const INVALID_ENUM: Status = Status(10);

/// What a call of HIP means for the function of hipBLAS that has made it.
pub(crate) fn of(status: hipError_t) -> Result<(), Status> {
    match status {
        status if status.is_success() => Ok(()),
        hipErrorOutOfMemory => Err(ALLOC_FAILED),
        _ => Err(EXECUTION_FAILED),
    }
}

pub(crate) unsafe extern "C" fn hipblasStatusToString(status: Status) -> *const c_char {
    match status {
        SUCCESS => c"HIPBLAS_STATUS_SUCCESS",
        NOT_INITIALIZED => c"HIPBLAS_STATUS_NOT_INITIALIZED",
        ALLOC_FAILED => c"HIPBLAS_STATUS_ALLOC_FAILED",
        INVALID_VALUE => c"HIPBLAS_STATUS_INVALID_VALUE",
        Status(4) => c"HIPBLAS_STATUS_MAPPING_ERROR",
        EXECUTION_FAILED => c"HIPBLAS_STATUS_EXECUTION_FAILED",
        INTERNAL_ERROR => c"HIPBLAS_STATUS_INTERNAL_ERROR",
        NOT_SUPPORTED => c"HIPBLAS_STATUS_NOT_SUPPORTED",
        Status(8) => c"HIPBLAS_STATUS_ARCH_MISMATCH",
        HANDLE_IS_NULLPTR => c"HIPBLAS_STATUS_HANDLE_IS_NULLPTR",
        INVALID_ENUM => c"HIPBLAS_STATUS_INVALID_ENUM",
        _ => c"HIPBLAS_STATUS_UNKNOWN",
    }
    .as_ptr()
}
