//! Streams.

use super::device::{PRIORITY_GREATEST, PRIORITY_LEAST};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::machine::host::Host;
use crate::machine::thread::HostThread;
use crate::queues::op::{HostFunction, OpKind};
use crate::queues::point::StreamId;
use crate::queues::queue::Queue;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// `hipStreamLegacy`: the null stream by another name.
const LEGACY: u64 = 1;
/// `hipStreamPerThread`.
const PER_THREAD: u64 = 2;

impl Host {
    /// The stream that a handle stands for on a thread, if there is one. `None` is a thread that has made no call.
    pub(crate) fn host_stream(&self, thread: Option<HostThread>, stream: hipStream_t) -> Option<StreamId> {
        let state = thread.and_then(|thread| self.threads.get(&thread));
        let device = state.map_or(0, |state| state.device);
        match stream.addr() as u64 {
            0 | LEGACY => self.cards.get(device).map(|card| card.null),
            PER_THREAD => state?.streams.get(&device).copied(),
            handle => self.streams.get(handle).copied(),
        }
    }

    /// Nothing more is enqueued to a stream. What is queued still completes; the queue goes when it is empty, and the stream's clocks when the host
    /// knows all that it did.
    pub(crate) fn end_stream(&mut self, stream: StreamId) {
        self.queues.destroy(stream);
        self.races.order.end(stream);
    }
}

impl Call<'_> {
    /// The stream of a handle, if there is one. The calling thread's own is made when it is first asked for.
    pub(crate) fn found_stream(&mut self, stream: hipStream_t) -> Option<StreamId> {
        let found = self.host_stream(Some(self.thread), stream);
        if found.is_some() || stream.addr() as u64 != PER_THREAD {
            return found;
        }
        let device = self.device();
        let id = self.queues.create(device, true, hipStreamDefault, 0);
        self.thread_state().streams.insert(device, id);
        Some(id)
    }

    /// The stream of a handle; a bad handle is reported and answered with `otherwise`.
    pub(crate) fn stream_or(&mut self, stream: hipStream_t, otherwise: hipError_t) -> Hip<StreamId> {
        if let Some(id) = self.found_stream(stream) {
            return Ok(id);
        }
        let handle = stream.addr() as u64;
        let what = match self.streams.find(handle) {
            Found::Stale => "the stream has been destroyed",
            _ => "this never was a stream",
        };
        self.report(
            ReportKind::StaleHandle,
            format!("{what} ({handle:#x}); HIP 7 crashes here"),
        );
        Err(otherwise)
    }

    pub(crate) fn stream(&mut self, stream: hipStream_t) -> Hip<StreamId> {
        self.stream_or(stream, hipErrorContextIsDestroyed)
    }

    /// What is queued on the stream of a handle.
    fn queue(&mut self, stream: hipStream_t) -> Hip<&Queue> {
        let id = self.stream(stream)?;
        self.queues.get(id).ok_or(hipErrorContextIsDestroyed)
    }

    /// The stream of a handle, if its card can still work.
    pub(crate) fn working_stream(&mut self, stream: hipStream_t) -> Hip<StreamId> {
        let id = self.stream(stream)?;
        let card = self.queues.get(id).map_or(0, |queue| queue.card);
        self.healthy(card)?;
        Ok(id)
    }

    pub(crate) unsafe fn hipStreamCreateWithPriority(
        &mut self,
        stream: *mut hipStream_t,
        flags: c_uint,
        priority: c_int,
    ) -> Hip {
        required(stream)?;
        let card = self.healthy_device()?;
        if flags != hipStreamDefault && flags != hipStreamNonBlocking {
            return Err(hipErrorInvalidValue);
        }
        // Out of range is no error: HIP takes the nearest.
        let priority = priority.clamp(PRIORITY_GREATEST, PRIORITY_LEAST);
        let id = self.queues.create(card, flags == hipStreamDefault, flags, priority);
        let call = self.number;
        let handle = self.streams.insert(id, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(stream, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) fn hipStreamDestroy(&mut self, stream: hipStream_t) -> Hip {
        if matches!(stream.addr() as u64, 0 | LEGACY | PER_THREAD) {
            return Err(hipErrorInvalidHandle);
        }
        let id = self.stream(stream)?;
        self.leave_capture(id);
        self.streams.remove(stream.addr() as u64);
        self.end_stream(id);
        Ok(())
    }

    pub(crate) fn hipStreamQuery(&mut self, stream: hipStream_t) -> Hip {
        let id = self.working_stream(stream)?;
        self.waitable(id)?;
        let points = self.queues.waited(id);
        let done = self.poll(&points);
        if done {
            self.knows_stream(id);
        }
        self.working_stream(stream)?;
        fail_if(!done, hipErrorNotReady)
    }

    pub(crate) fn hipStreamSynchronize(&mut self, stream: hipStream_t) -> Hip {
        let id = self.working_stream(stream)?;
        self.waitable(id)?;
        let points = self.queues.waited(id);
        self.force(&points)?;
        self.knows_stream(id);
        Ok(())
    }

    pub(crate) fn hipStreamWaitEvent(&mut self, stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> Hip {
        fail_if(event.is_null(), hipErrorInvalidHandle)?;
        fail_if(flags != 0, hipErrorInvalidValue)?;
        let id = self.stream_or(stream, hipErrorInvalidHandle)?;
        let card = self.queues.get(id).map_or(0, |queue| queue.card);
        self.healthy(card)?;
        let (record, captured) = {
            let event = self.event(event)?;
            (event.record, event.captured.clone())
        };
        if let Some((capture, nodes)) = captured {
            return self.join_capture(id, capture, &nodes);
        }
        self.waits_outside(id, record.map(|record| record.point.stream))?;
        let Some(record) = record else {
            self.warn("the event was never recorded: the wait orders nothing");
            return Ok(());
        };
        if record.point.stream != id {
            self.enqueue(id, OpKind::Wait, vec![record.point]);
        }
        Ok(())
    }

    pub(crate) fn hipLaunchHostFunc(
        &mut self,
        stream: hipStream_t,
        function: Option<hipHostFn_t>,
        user: *mut c_void,
    ) -> Hip {
        let function = function.ok_or(hipErrorInvalidValue)?;
        self.queue_host_function(stream, HostFunction::Plain(function), user)
    }

    pub(crate) fn hipStreamAddCallback(
        &mut self,
        stream: hipStream_t,
        callback: Option<hipStreamCallback_t>,
        user: *mut c_void,
        flags: c_uint,
    ) -> Hip {
        let function = callback.filter(|_| flags == 0).ok_or(hipErrorInvalidValue)?;
        let handle = stream.addr();
        self.queue_host_function(
            stream,
            HostFunction::Callback {
                function,
                stream: handle,
            },
            user,
        )
    }

    fn queue_host_function(&mut self, stream: hipStream_t, function: HostFunction, user: *mut c_void) -> Hip {
        let id = self.working_stream(stream)?;
        self.enqueuable(id)?;
        let user = user.expose_provenance();
        self.enqueue(id, OpKind::Host { function, user }, Vec::new());
        Ok(())
    }

    /// The compute units that a stream may use, one bit each.
    pub(crate) unsafe fn hipExtStreamGetCUMask(&mut self, stream: hipStream_t, words: u32, mask: *mut u32) -> Hip {
        required(mask)?;
        let id = self.stream(stream)?;
        let card = self.queues.get(id).map_or(0, |queue| queue.card);
        let all = self.cards[card].config.cu_mask();
        fail_if((words as usize) < all.len(), hipErrorInvalidValue)?;
        let own = self.queues.get(id).and_then(|queue| queue.cu_mask.clone());
        for (word, all) in all.into_iter().enumerate() {
            let bits = own
                .as_ref()
                .map_or(all, |own| all & own.get(word).copied().unwrap_or(0));
            // SAFETY: promised by the caller of the HIP function: there is room for `words` words.
            unsafe { answer(mask.wrapping_add(word), bits) }?;
        }
        Ok(())
    }

    cases! {
        // No two streams have the same number, not even one after the other.
        fn hipStreamGetId(stream: hipStream_t, number: *mut c_ulonglong)
            => |c| { required(number)?; answer(number, c.working_stream(stream)?) };
        // Refused for the null stream, whose priority and device can be asked for.
        fn hipStreamGetFlags(stream: hipStream_t, flags: *mut c_uint) => |c| {
            required(flags)?;
            fail_if(stream.is_null(), hipErrorInvalidValue)?;
            answer(flags, c.queue(stream)?.flags)
        };
        fn hipStreamGetPriority(stream: hipStream_t, priority: *mut c_int)
            => |c| { required(priority)?; answer(priority, c.queue(stream)?.priority) };
        fn hipStreamGetDevice(stream: hipStream_t, device: *mut hipDevice_t)
            => |c| { required(device)?; answer(device, c.queue(stream)?.card as c_int) };
        fn hipStreamCreateWithFlags(stream: *mut hipStream_t, flags: c_uint) => |c| c.hipStreamCreateWithPriority(stream, flags, 0);
        fn hipStreamCreate(stream: *mut hipStream_t) => |c| c.hipStreamCreateWithPriority(stream, hipStreamDefault, 0);
    }
}
