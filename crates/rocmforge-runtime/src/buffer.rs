//! Typed device memory.

use crate::error::{HipError, HipResult, same_len};
use crate::hip;
use crate::root::Root;
use crate::stream::HipStream;
use crate::touched::{Touched, Work};
use bytemuck::Pod;
use rocmforge_hip_sys::hipMemcpyDeviceToDevice;
use rocmforge_memory::{Access, Bytes, Elems};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// `len` elements of device memory.
///
/// `Clone` and [`view`](Self::view) share the allocation, which is freed exactly once: when the last buffer of it is gone
/// and all work that uses it is done. Work on several streams is ordered by the runtime: each allocation knows its last
/// write and its last reads.
pub struct HipBuffer<T: Pod> {
    root: Arc<Root>,
    /// Bytes from the start of the allocation.
    offset: usize,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<T: Pod> HipBuffer<T> {
    /// `len` elements of zero bytes, written on `stream`.
    #[track_caller]
    pub fn zeroed(stream: &HipStream, len: Elems, label: &str) -> HipResult<Self> {
        let buffer = Self::allocate(stream, len.0, label)?;
        buffer.clear(stream)?;
        Ok(buffer)
    }

    /// `len` elements of whatever was in that memory before.
    ///
    /// # Safety
    ///
    /// Every element must be written (by a copy or a kernel) before anything reads it. The simulated device reports a
    /// read that comes too early; a real one returns another program's data.
    #[track_caller]
    pub unsafe fn uninit(stream: &HipStream, len: Elems, label: &str) -> HipResult<Self> {
        Self::allocate(stream, len.0, label)
    }

    /// A copy of `data`, made on `stream`.
    #[track_caller]
    pub fn from_slice(stream: &HipStream, data: &[T], label: &str) -> HipResult<Self> {
        let buffer = Self::allocate(stream, data.len(), label)?;
        buffer.copy_from_host(stream, data)?;
        Ok(buffer)
    }

    #[track_caller]
    fn allocate(stream: &HipStream, len: usize, label: &str) -> HipResult<Self> {
        let bytes = Bytes::from_usize(byte_len::<T>(len)?);
        Ok(Self {
            root: Root::new(stream.core(), stream.shared(), bytes, label)?,
            offset: 0,
            len,
            _elements: PhantomData,
        })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes.
    pub fn byte_len(&self) -> usize {
        // Checked when the buffer was made.
        self.len * size_of::<T>()
    }

    /// Bytes, as the budget counts them.
    pub fn bytes(&self) -> Bytes {
        Bytes::from_usize(self.byte_len())
    }

    /// The label of the allocation.
    pub fn label(&self) -> &str {
        self.root.label()
    }

    /// The device address of the first element; null if there is none. Only kernels may follow it.
    pub fn as_device_ptr(&self) -> *mut c_void {
        self.root.ptr().wrapping_byte_add(self.offset)
    }

    /// Elements `range` of this buffer, in the same memory. The memory lives as long as any buffer of it.
    pub fn view(&self, range: Range<usize>) -> HipResult<Self> {
        if range.start > range.end || range.end > self.len {
            return Err(HipError::OutOfRange {
                start: range.start,
                end: range.end,
                len: self.len,
                label: self.label().to_owned(),
            });
        }
        Ok(Self {
            root: Arc::clone(&self.root),
            offset: self.offset + range.start * size_of::<T>(),
            len: range.len(),
            _elements: PhantomData,
        })
    }

    /// The same memory seen as elements of another type.
    pub fn cast<U: Pod>(&self) -> HipResult<HipBuffer<U>> {
        let bytes = self.byte_len();
        let (size, align) = (size_of::<U>(), align_of::<U>());
        // Allocations are aligned to 256 bytes, so the offset decides.
        if size == 0 || !bytes.is_multiple_of(size) || !self.offset.is_multiple_of(align) {
            return Err(HipError::Cast {
                label: self.label().to_owned(),
                bytes,
                offset: self.offset,
                size,
                align,
            });
        }
        Ok(HipBuffer {
            root: Arc::clone(&self.root),
            offset: self.offset,
            len: bytes / size,
            _elements: PhantomData,
        })
    }

    /// Whether both are in the same allocation.
    pub fn shares_memory(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// Writes zero bytes, on `stream`.
    pub fn clear(&self, stream: &HipStream) -> HipResult<()> {
        self.fill_bytes(stream, 0)
    }

    /// Sets every byte, on `stream`. Tests poison outputs with it.
    pub fn fill_bytes(&self, stream: &HipStream, byte: u8) -> HipResult<()> {
        stream.core().driver.enter()?;
        let bytes = self.byte_len();
        if bytes == 0 {
            return Ok(());
        }
        let ptr = self.as_device_ptr();
        stream.submit(Work::Fill, &mut vec![(self.root(), Access::Write)], |driver, stream| {
            // SAFETY: `ptr` has `bytes` bytes of a live allocation, which is not freed before this work is done.
            unsafe { hip::copy::fill(driver, ptr, byte, bytes, stream) }
        })?;
        Ok(())
    }

    /// Copies `src` here, on `stream`. Both have the same length and do not overlap.
    pub fn copy_from_buffer(&self, stream: &HipStream, src: &HipBuffer<T>) -> HipResult<()> {
        stream.core().driver.enter()?;
        same_len("copy between buffers", self.len, src.len)?;
        let bytes = self.byte_len();
        if bytes == 0 {
            return Ok(());
        }
        if self.shares_memory(src) && self.offset < src.offset + bytes && src.offset < self.offset + bytes {
            return Err(HipError::Overlap {
                label: self.label().to_owned(),
            });
        }
        let (to, from) = (self.as_device_ptr(), src.as_device_ptr());
        let mut touches = vec![(self.root(), Access::Write), (src.root(), Access::Read)];
        stream.submit(Work::Copy, &mut touches, |driver, stream| {
            // SAFETY: both have `bytes` bytes of live allocations, which are not freed before this work is done.
            unsafe { hip::copy::copy(driver, to, from, bytes, hipMemcpyDeviceToDevice, stream) }
        })?;
        Ok(())
    }

    /// Everything, on the host.
    pub fn to_vec(&self, stream: &HipStream) -> HipResult<Vec<T>> {
        let mut values = vec![T::zeroed(); self.len];
        self.copy_to_host(stream, &mut values)?;
        Ok(values)
    }

    pub(crate) fn root(&self) -> Touched<'_> {
        Touched::Memory(&self.root)
    }
}

impl<T: Pod> Clone for HipBuffer<T> {
    fn clone(&self) -> Self {
        Self {
            root: Arc::clone(&self.root),
            offset: self.offset,
            len: self.len,
            _elements: PhantomData,
        }
    }
}

impl<T: Pod> std::fmt::Debug for HipBuffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HipBuffer")
            .field("label", &self.label())
            .field("type", &std::any::type_name::<T>())
            .field("len", &self.len)
            .field("offset", &self.offset)
            .field("allocated", &self.root.bytes())
            .finish()
    }
}

/// Bytes of `count` elements, if there are so many addresses.
pub(crate) fn byte_len<T>(count: usize) -> HipResult<usize> {
    let size = size_of::<T>();
    let bytes = count.checked_mul(size).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.ok_or(HipError::SizeOverflow { count, size })
}
