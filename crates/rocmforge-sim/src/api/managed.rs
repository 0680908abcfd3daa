//! Managed memory: host memory that the host and kernels of every card access under one address. It never moves, so that hints
//! about its place have no effect.

use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use crate::queues::op::OpKind;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// `hipCpuDeviceId`: the host, where a device is named.
const HOST: c_int = -1;

impl Call<'_> {
    pub(crate) unsafe fn hipMallocManaged(&mut self, pointer: *mut *mut c_void, size: usize, flags: c_uint) -> Hip {
        required(pointer)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        if size == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost) {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.allocate_pinned(pointer, card, size, flags, true) }
    }

    /// A hint that has no effect but to keep its place in the stream.
    pub(crate) fn hipMemPrefetchAsync(
        &mut self,
        pointer: *const c_void,
        size: usize,
        device: c_int,
        stream: hipStream_t,
    ) -> Hip {
        required(pointer)?;
        fail_if(size == 0, hipErrorInvalidValue)?;
        if device != HOST {
            self.card_index(device)?;
        }
        let stream = self.working_stream(stream)?;
        let (start, length) = self.allocation(pointer, hipErrorInvalidValue)?;
        if size as u64 > length - (pointer.addr() as u64 - start) {
            return Err(hipErrorInvalidValue);
        }
        self.enqueuable(stream)?;
        self.enqueue(stream, OpKind::Wait, Vec::new());
        // Known from the call on, as with AMD's driver.
        if let Some((id, ..)) = self.known_memory(pointer) {
            self.advice.entry(id).or_default().prefetched = Some(device);
        }
        Ok(())
    }
}
