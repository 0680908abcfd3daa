//! The last error, which HIP keeps per thread.

use crate::calls::call::{Call, Hip};
use rocmforge_hip_sys::hipSuccess;

impl Call<'_> {
    pub(crate) fn hipGetLastError(&mut self) -> Hip {
        std::mem::replace(&mut self.thread_state().last_error, hipSuccess).ok()
    }

    pub(crate) fn hipPeekAtLastError(&mut self) -> Hip {
        self.thread_state().last_error.ok()
    }

    /// The status of the latest call, whatever it was, and clears it (the meaning `hipGetLastError` had before HIP 7).
    pub(crate) fn hipExtGetLastError(&mut self) -> Hip {
        std::mem::replace(&mut self.thread_state().last_status, hipSuccess).ok()
    }
}
