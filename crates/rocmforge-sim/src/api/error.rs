//! The last error, which HIP keeps per thread.

use crate::calls::call::Call;
use rocmforge_hip_sys::{hipError_t, hipSuccess};

impl Call<'_> {
    pub(crate) fn get_last_error(&mut self) -> hipError_t {
        std::mem::replace(&mut self.thread_state().last_error, hipSuccess)
    }

    pub(crate) fn peek_at_last_error(&mut self) -> hipError_t {
        self.thread_state().last_error
    }

    /// The status of the latest call, whatever it was, and clears it (the meaning `hipGetLastError` had before HIP 7).
    pub(crate) fn ext_get_last_error(&mut self) -> hipError_t {
        std::mem::replace(&mut self.thread_state().last_status, hipSuccess)
    }
}
