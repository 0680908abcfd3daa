//! Copies and fills.

use crate::cuda::address;
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

impl Driver {
    pub(crate) unsafe fn hipMemcpyAsync(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        if size == 0 {
            return hipSuccess;
        }
        let (to, from, stream) = (address(dst), address(src), stream.cast());
        match kind {
            // SAFETY: the caller's.
            hipMemcpyHostToDevice => self.on_device(|cuda| unsafe { (cuda.copy_to_device)(to, src, size, stream) }),
            // SAFETY: the caller's.
            hipMemcpyDeviceToHost => self.on_device(|cuda| unsafe { (cuda.copy_to_host)(dst, from, size, stream) }),
            // SAFETY: the caller's.
            hipMemcpyDeviceToDevice => self.on_device(|cuda| unsafe { (cuda.copy_on_device)(to, from, size, stream) }),
            hipMemcpyHostToHost | hipMemcpyDefault => {
                // SAFETY: the caller's.
                self.on_device(|cuda| unsafe { (cuda.copy)(to, from, size, stream) })
            }
            _ => remember(hipErrorInvalidMemcpyDirection),
        }
    }

    pub(crate) unsafe fn hipMemsetAsync(
        &self,
        dst: *mut c_void,
        value: c_int,
        size: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        if size == 0 {
            return hipSuccess;
        }
        // As `memset`: the low byte counts.
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.set_bytes)(address(dst), value as u8, size, stream.cast()) })
    }

    pub(crate) unsafe fn hipMemsetD32Async(
        &self,
        dst: hipDeviceptr_t,
        value: c_int,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        if count == 0 {
            return hipSuccess;
        }
        // The driver's count of bytes wraps.
        if count > usize::MAX / size_of::<c_uint>() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.set_words)(address(dst), value as c_uint, count, stream.cast()) })
    }
}
