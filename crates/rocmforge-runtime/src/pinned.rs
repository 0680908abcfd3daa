//! Asynchronous copies: they own their pinned host memory, so nothing the caller does can take it away from them.

use crate::backend::HipBackend;
use crate::buffer::{HipBuffer, byte_len};
use crate::core::Core;
use crate::core::pinned::Pinned;
use crate::core::stream_shared::Uses;
use crate::error::{HipError, HipResult, same_len};
use crate::hip;
use crate::stream::HipStream;
use crate::touched::Work;
use bytemuck::Pod;
use rocmforge_hip_sys::{hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use rocmforge_memory::{Access, Elems, Site};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Host memory the device can reach directly. A slice of `T`.
pub struct PinnedBuffer<T: Pod> {
    core: Arc<Core>,
    /// `None` if it has no bytes, and after the drop.
    memory: Option<Pinned>,
    len: usize,
    /// The copy that last used it, if nobody waited for it.
    uses: Uses,
    _elements: PhantomData<T>,
}

impl<T: Pod> PinnedBuffer<T> {
    /// `len` elements of zero bytes.
    #[track_caller]
    pub fn zeroed(backend: &HipBackend, len: Elems, label: &str) -> HipResult<Self> {
        Self::new(backend.core(), len.0, label, Site::caller())
    }

    fn new(core: &Arc<Core>, len: usize, label: &str, site: Site) -> HipResult<Self> {
        core.driver.enter()?;
        let bytes = byte_len::<T>(len)?;
        let memory = if bytes == 0 {
            None
        } else {
            Some(core.pinned.allocate(bytes, label, site)?)
        };
        // Made first, so that its drop frees the memory if it is refused.
        let buffer = Self {
            core: Arc::clone(core),
            memory,
            len,
            uses: Uses::default(),
            _elements: PhantomData,
        };
        if let Some(memory) = &buffer.memory {
            // The driver aligns to a page; nothing says that of elements, or of other providers.
            if !memory.ptr().cast::<T>().is_aligned() {
                return Err(HipError::Cast {
                    label: label.to_owned(),
                    bytes,
                    offset: 0,
                    size: size_of::<T>(),
                    align: align_of::<T>(),
                });
            }
        }
        Ok(buffer)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The memory itself; `None` if it has no bytes. No copy is under way: one has the buffer while it is.
    pub(crate) fn into_memory(mut self) -> Option<Pinned> {
        self.memory.take()
    }

    fn ptr(&self) -> *mut T {
        self.memory
            .as_ref()
            .map_or(std::ptr::NonNull::dangling().as_ptr(), |memory| memory.ptr().cast())
    }
}

impl<T: Pod> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements, initialised by `new` (all bytes are valid for `Pod`), which checked the alignment. No
        // copy is under way: one takes the buffer by value and gives it back when it is done.
        unsafe { std::slice::from_raw_parts(self.ptr(), self.len) }
    }
}

impl<T: Pod> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for `deref`, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.ptr(), self.len) }
    }
}

impl<T: Pod> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            let uses = std::mem::take(&mut self.uses);
            self.core.deferred.release(memory.into_resource(), uses);
        }
    }
}

/// A copy under way. Dropped, the copy goes on, and the runtime frees its pinned memory when it is done.
#[must_use = "the data are there after `wait`"]
pub struct Pending<T: Pod> {
    buffer: PinnedBuffer<T>,
}

debug_fields!(<T: Pod> Pending<T>, |pending| len: pending.buffer.len);

impl<T: Pod> Pending<T> {
    /// Whether the copy is done. Does not wait.
    pub fn is_done(&self) -> HipResult<bool> {
        self.buffer.core.driver.enter()?;
        for last in self.buffer.uses.pending() {
            last.stream.poll()?;
        }
        Ok(self.buffer.uses.is_done())
    }

    /// Waits, at most until the backend's deadline, and gives the pinned memory back: after a download, with the data.
    pub fn wait(mut self) -> HipResult<PinnedBuffer<T>> {
        self.buffer.core.driver.enter()?;
        for last in self.buffer.uses.pending() {
            last.stream.wait(last.cursor)?;
        }
        self.buffer.uses = Uses::default();
        Ok(self.buffer)
    }
}

impl<T: Pod> HipBuffer<T> {
    /// Starts a copy of this buffer to the host, after everything that `stream` has to wait for.
    #[track_caller]
    pub fn download_async(&self, stream: &HipStream) -> HipResult<Pending<T>> {
        let site = Site::caller();
        stream.shared().not_capturing("allocate pinned memory")?;
        let pinned = PinnedBuffer::new(stream.core(), self.len(), "download", site)?;
        self.copy_async(stream, pinned, Access::Read)
    }

    /// Starts a copy of `data` to this buffer. Both have the same length.
    pub fn upload_async(&self, stream: &HipStream, data: PinnedBuffer<T>) -> HipResult<Pending<T>> {
        stream.core().driver.enter()?;
        stream.core().same_backend(&data.core, || "pinned memory".to_owned())?;
        same_len("copy to the device", self.len(), data.len)?;
        self.copy_async(stream, data, Access::Write)
    }

    /// Starts a copy between this buffer, accessed like this, and pinned memory of the same length.
    fn copy_async(&self, stream: &HipStream, mut buffer: PinnedBuffer<T>, access: Access) -> HipResult<Pending<T>> {
        let Some(memory) = &buffer.memory else {
            return Ok(Pending { buffer });
        };
        let (pinned, device, bytes) = (memory.ptr().cast(), self.as_device_ptr(), self.byte_len());
        let (other, to, from, kind) = match access {
            Access::Write => (Access::Read, device, pinned, hipMemcpyHostToDevice),
            Access::Read => (Access::Write, pinned, device, hipMemcpyDeviceToHost),
        };
        let touches = &mut vec![(self.root(), access)];
        let cursor = stream.submit(Work::AsyncCopy, touches, |driver, stream| {
            // SAFETY: both have `bytes` bytes; neither is freed, nor the pinned memory used, before this copy is done.
            unsafe { hip::copy::copy(driver, to, from, bytes, kind, stream) }
        })?;
        if let Some(cursor) = cursor {
            buffer.uses.note(other, stream.shared(), cursor);
        }
        Ok(Pending { buffer })
    }
}
