//! The last error: ours, because the driver keeps none.

use crate::driver::{Driver, last_error};
use rocmforge_hip_sys::*;

impl Driver {
    pub(crate) unsafe fn hipGetLastError(&self) -> hipError_t {
        last_error(true)
    }

    pub(crate) unsafe fn hipPeekAtLastError(&self) -> hipError_t {
        last_error(false)
    }

    /// HIP 6's older meaning of "last" has no other use.
    pub(crate) unsafe fn hipExtGetLastError(&self) -> hipError_t {
        hipErrorNotSupported
    }
}
