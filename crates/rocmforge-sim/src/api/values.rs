//! Streams that write values to memory, wait for values there, or use a part of a card.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::queues::op::{Await, OpKind, Place};
use crate::report::Access;
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_void};

impl Call<'_> {
    /// The memory of a value: what HIP knows.
    fn value_place(&mut self, pointer: *mut c_void, size: usize, access: Access) -> Hip<Place> {
        match self.place(pointer, size, access)? {
            Place::Pageable { .. } => Err(hipErrorInvalidValue),
            place => Ok(place),
        }
    }

    pub(crate) fn stream_write_value(
        &mut self,
        stream: hipStream_t,
        pointer: *mut c_void,
        value: u64,
        size: usize,
    ) -> Hip {
        required(pointer)?;
        let id = self.working_stream(stream)?;
        self.not_captured(id)?;
        let to = self.value_place(pointer, size, Access::Write)?;
        self.enqueue(id, OpKind::Write { to, value, size }, Vec::new());
        Ok(())
    }

    pub(crate) fn stream_wait_value(
        &mut self,
        stream: hipStream_t,
        pointer: *mut c_void,
        (value, mask): (u64, u64),
        size: usize,
        flags: u32,
    ) -> Hip {
        required(pointer)?;
        let id = self.working_stream(stream)?;
        self.not_captured(id)?;
        let from = self.value_place(pointer, size, Access::Read)?;
        fail_if(flags > hipStreamWaitValueNor, hipErrorInvalidValue)?;
        let wait = Await {
            from,
            value,
            mask,
            size,
            flags,
        };
        self.enqueue(id, OpKind::Await(wait), Vec::new());
        Ok(())
    }

    /// A stream for some of the compute units. All of them run its work here; the mask is kept and answered. A mask of none stands for
    /// all.
    pub(crate) unsafe fn hipExtStreamCreateWithCUMask(
        &mut self,
        stream: *mut hipStream_t,
        words: u32,
        mask: *const u32,
    ) -> Hip {
        fail_if(stream.is_null(), hipErrorInvalidHandle)?;
        fail_if(words == 0 || mask.is_null(), hipErrorInvalidValue)?;
        let device = self.device();
        let words = self.cards[device].config.cu_mask().len().min(words as usize);
        // SAFETY: promised by the caller of the HIP function: there are at least so many words.
        let mask = unsafe { std::slice::from_raw_parts(mask, words) }.to_vec();
        let mut made = std::ptr::null_mut();
        // SAFETY: `made` is valid for writing.
        unsafe { self.hipStreamCreateWithPriority(&raw mut made, hipStreamDefault, 0) }?;
        let id = self.stream(made)?;
        if let Some(queue) = self.queues.get_mut(id) {
            queue.cu_mask = Some(mask).filter(|mask| mask.iter().any(|word| *word != 0));
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(stream, made) }
    }

    cases! {
        fn hipStreamWaitValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, flags: c_uint, mask: u32)
            => |c| c.stream_wait_value(stream, ptr, (value.into(), mask.into()), 4, flags);
        fn hipStreamWaitValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, flags: c_uint, mask: u64)
            => |c| c.stream_wait_value(stream, ptr, (value, mask), 8, flags);
        fn hipStreamWriteValue32(stream: hipStream_t, ptr: *mut c_void, value: u32, _flags: c_uint)
            => |c| c.stream_write_value(stream, ptr, value.into(), 4);
        fn hipStreamWriteValue64(stream: hipStream_t, ptr: *mut c_void, value: u64, _flags: c_uint)
            => |c| c.stream_write_value(stream, ptr, value, 8);
    }
}
