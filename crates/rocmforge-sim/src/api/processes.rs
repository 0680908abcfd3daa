//! Memory and events for other processes. A simulated machine has one process, so handles are made and never opened.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::c_void;

/// How a handle of an event starts.
const EVENT_MARK: &[u8; 8] = b"rocmsimE";

impl Call<'_> {
    /// Nothing can have been opened.
    pub(crate) fn hipIpcCloseMemHandle(&mut self, pointer: *mut c_void) -> Hip {
        required(pointer)?;
        Err(hipErrorInvalidValue)
    }

    pub(crate) unsafe fn hipIpcGetEventHandle(&mut self, handle: *mut hipIpcEventHandle_t, event: hipEvent_t) -> Hip {
        required(handle)?;
        fail_if(event.is_null(), hipErrorInvalidValue)?;
        if self.event(event)?.flags & hipEventInterprocess == 0 {
            return Err(hipErrorInvalidConfiguration);
        }
        let mut reserved = [0; 64];
        reserved[..8].copy_from_slice(EVENT_MARK);
        reserved[8..16].copy_from_slice(&(event.addr() as u64).to_le_bytes());
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(handle, hipIpcEventHandle_t { reserved }) }
    }

    /// The process that made the handle must not open it.
    pub(crate) fn hipIpcOpenEventHandle(&mut self, event: *mut hipEvent_t, handle: hipIpcEventHandle_t) -> Hip {
        required(event)?;
        if handle.reserved.starts_with(EVENT_MARK) {
            Err(hipErrorInvalidContext)
        } else {
            Err(hipErrorInvalidValue)
        }
    }
}
