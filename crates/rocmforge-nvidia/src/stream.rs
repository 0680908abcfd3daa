//! Streams.

use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

impl Driver {
    pub(crate) unsafe fn hipStreamCreateWithFlags(&self, stream: *mut hipStream_t, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.hipStreamCreateWithPriority(stream, flags, 0) }
    }

    pub(crate) unsafe fn hipStreamCreateWithPriority(
        &self,
        stream: *mut hipStream_t,
        flags: c_uint,
        priority: c_int,
    ) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_create)(stream.cast(), flags, priority) })
    }

    pub(crate) unsafe fn hipStreamDestroy(&self, stream: hipStream_t) -> hipError_t {
        if stream.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_destroy)(stream.cast()) })
    }

    pub(crate) unsafe fn hipStreamQuery(&self, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_query)(stream.cast()) })
    }

    pub(crate) unsafe fn hipStreamSynchronize(&self, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_synchronize)(stream.cast()) })
    }

    pub(crate) unsafe fn hipStreamWaitEvent(
        &self,
        stream: hipStream_t,
        event: hipEvent_t,
        flags: c_uint,
    ) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // HIP has no flag; the driver has one, for captures.
        if flags != 0 {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_wait_event)(stream.cast(), event.cast(), flags) })
    }

    pub(crate) unsafe fn hipStreamGetFlags(&self, stream: hipStream_t, flags: *mut c_uint) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_flags)(stream.cast(), flags) })
    }

    pub(crate) unsafe fn hipStreamGetPriority(&self, stream: hipStream_t, priority: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_priority)(stream.cast(), priority) })
    }

    pub(crate) unsafe fn hipLaunchHostFunc(
        &self,
        stream: hipStream_t,
        function: Option<hipHostFn_t>,
        user: *mut c_void,
    ) -> hipError_t {
        let Some(function) = function else {
            return remember(hipErrorInvalidValue);
        };
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.launch_host_function)(stream.cast(), function, user) })
    }

    /// By the stream's context: a driver of CUDA 12.0 cannot be asked for the device itself.
    pub(crate) unsafe fn hipStreamGetDevice(&self, stream: hipStream_t, device: *mut hipDevice_t) -> hipError_t {
        if device.is_null() {
            return remember(hipErrorInvalidValue);
        }
        let mut context = std::ptr::null_mut();
        // SAFETY: `context` is a live out-pointer for the call; the caller's.
        let asked = self.on_device(|cuda| unsafe { (cuda.stream_context)(stream.cast(), &mut context) });
        if !asked.is_success() {
            return asked;
        }
        match self.device_of(context).map(|ordinal| self.ordinal(ordinal)) {
            Some(Ok(found)) => {
                // SAFETY: not null; the caller's.
                unsafe { device.write(found) };
                hipSuccess
            }
            Some(Err(failure)) => failure,
            // A stream that another library of the process has made in a context of its own.
            None => remember(hipErrorInvalidContext),
        }
    }
}
