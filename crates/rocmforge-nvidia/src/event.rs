//! Events.

use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::c_uint;

/// HIP's `flags` that the driver knows, with the same values; the others are AMD's own hints.
const EVENT_FLAGS: c_uint = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
const EVENT_HINTS: c_uint = hipEventReleaseToDevice | hipEventReleaseToSystem;

impl Driver {
    pub(crate) unsafe fn hipEventCreateWithFlags(&self, event: *mut hipEvent_t, flags: c_uint) -> hipError_t {
        if flags & !(EVENT_FLAGS | EVENT_HINTS) != 0 || flags & EVENT_HINTS == EVENT_HINTS {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_create)(event.cast(), flags & EVENT_FLAGS) })
    }

    pub(crate) unsafe fn hipEventDestroy(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_destroy)(event.cast()) })
    }

    pub(crate) unsafe fn hipEventRecord(&self, event: hipEvent_t, stream: hipStream_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_record)(event.cast(), stream.cast()) })
    }

    pub(crate) unsafe fn hipEventQuery(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_query)(event.cast()) })
    }

    pub(crate) unsafe fn hipEventSynchronize(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_synchronize)(event.cast()) })
    }

    pub(crate) unsafe fn hipEventElapsedTime(
        &self,
        milliseconds: *mut f32,
        start: hipEvent_t,
        stop: hipEvent_t,
    ) -> hipError_t {
        if milliseconds.is_null() {
            return remember(hipErrorInvalidValue);
        }
        if start.is_null() || stop.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: none is null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_elapsed)(milliseconds, start.cast(), stop.cast()) })
    }
}
