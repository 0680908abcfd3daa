//! Matrices in device memory: their places are checked against the allocation, and their columns copied in the order of the stream.

use super::element::Element;
use super::handle::Handle;
use super::status::{self, ALLOC_FAILED, INVALID_VALUE, NOT_SUPPORTED, Status};
use crate::absent;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

/// A matrix of whole columns, `ld` elements apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    pub(crate) address: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) ld: usize,
    pub(crate) element: Element,
}

impl Matrix {
    /// Bytes from its first element to the end of its last; none if no address space has as many.
    pub(crate) fn span(&self) -> Option<usize> {
        if self.rows == 0 || self.columns == 0 {
            return Some(0);
        }
        let elements = (self.columns - 1).checked_mul(self.ld)?.checked_add(self.rows)?;
        elements.checked_mul(self.element.size())
    }

    /// Bytes of its elements alone.
    fn bytes(&self) -> Option<usize> {
        self.rows.checked_mul(self.columns)?.checked_mul(self.element.size())
    }
}

/// Device memory, through the stream of a handle.
pub(crate) struct Memory<'a> {
    process: &'a Process,
    stream: hipStream_t,
}

impl<'a> Memory<'a> {
    /// # Errors
    /// The stream is being captured: nothing of it can run now.
    pub(crate) fn of(process: &'a Process, handle: &Handle, name: &'static str) -> Result<Self, Status> {
        let stream = handle.stream();
        let mut capturing = hipStreamCaptureStatusNone;
        // SAFETY: a live out-pointer; the machine checks the stream.
        status::of(unsafe { process.sim.hipStreamIsCapturing(stream, &raw mut capturing) })?;
        if capturing != hipStreamCaptureStatusNone {
            absent::count(name);
            return Err(NOT_SUPPORTED);
        }
        Ok(Self { process, stream })
    }

    /// # Errors
    /// The bytes are not all in one allocation.
    pub(crate) fn check(&self, address: usize, bytes: Option<usize>) -> Result<(), Status> {
        let bytes = bytes.ok_or(INVALID_VALUE)?;
        if address == 0 {
            return Err(INVALID_VALUE);
        }
        let (mut base, mut size) = (std::ptr::null_mut(), 0);
        let pointer = std::ptr::without_provenance_mut::<c_void>(address);
        // SAFETY: live out-pointers; the machine checks the address.
        let found = unsafe {
            self.process
                .sim
                .hipMemGetAddressRange(&raw mut base, &raw mut size, pointer)
        };
        let offset = address.checked_sub(base.addr()).ok_or(INVALID_VALUE)?;
        let end = offset.checked_add(bytes).ok_or(INVALID_VALUE)?;
        if found.is_success() && end <= size {
            Ok(())
        } else {
            Err(INVALID_VALUE)
        }
    }

    /// Bytes of the host, as many as a matrix that was checked.
    fn buffer(bytes: Option<usize>) -> Result<Vec<u8>, Status> {
        let bytes = bytes.ok_or(INVALID_VALUE)?;
        let mut buffer = Vec::new();
        buffer.try_reserve_exact(bytes).map_err(|_| ALLOC_FAILED)?;
        buffer.resize(bytes, 0);
        Ok(buffer)
    }

    /// Reads a matrix that was checked, column after column without gaps.
    pub(crate) fn read(&self, matrix: &Matrix) -> Result<Vec<u8>, Status> {
        let mut buffer = Self::buffer(matrix.bytes())?;
        let host = buffer.as_mut_ptr().cast();
        let device = std::ptr::without_provenance(matrix.address);
        let (width, pitch) = (matrix.rows * matrix.element.size(), matrix.ld * matrix.element.size());
        self.copy(host, width, device, pitch, matrix, hipMemcpyDeviceToHost)?;
        Ok(buffer)
    }

    /// Writes a matrix that was checked from bytes that [`read`](Self::read) would give.
    pub(crate) fn write(&self, matrix: &Matrix, bytes: &[u8]) -> Result<(), Status> {
        if matrix.bytes() != Some(bytes.len()) {
            return Err(INVALID_VALUE);
        }
        let device = std::ptr::without_provenance_mut(matrix.address);
        let (width, pitch) = (matrix.rows * matrix.element.size(), matrix.ld * matrix.element.size());
        self.copy(
            device,
            pitch,
            bytes.as_ptr().cast(),
            width,
            matrix,
            hipMemcpyHostToDevice,
        )
    }

    /// Copies the columns of a matrix, and waits: the host's side is a buffer of the caller's.
    fn copy(
        &self,
        to: *mut c_void,
        to_pitch: usize,
        from: *const c_void,
        from_pitch: usize,
        matrix: &Matrix,
        kind: hipMemcpyKind,
    ) -> Result<(), Status> {
        let sim = &self.process.sim;
        let width = matrix.rows * matrix.element.size();
        if width == 0 || matrix.columns == 0 {
            return Ok(());
        }
        let queued = self.process.with_stack(|| {
            if matrix.columns == 1 || matrix.ld == matrix.rows {
                let size = width * matrix.columns;
                // SAFETY: the host's side has `size` bytes; the device's side was checked, and the machine checks it again.
                unsafe { sim.hipMemcpyAsync(to, from, size, kind, self.stream) }
            } else {
                // SAFETY: as above, with `columns` times `width` bytes.
                unsafe {
                    sim.hipMemcpy2DAsync(to, to_pitch, from, from_pitch, width, matrix.columns, kind, self.stream)
                }
            }
        });
        status::of(queued)?;
        // SAFETY: the machine checks the stream.
        status::of(unsafe { sim.hipStreamSynchronize(self.stream) })
    }

    /// Reads bytes that a program names, after they were checked.
    pub(crate) fn read_bytes(&self, address: usize, bytes: usize) -> Result<Vec<u8>, Status> {
        self.check(address, Some(bytes))?;
        let mut buffer = Self::buffer(Some(bytes))?;
        let device = std::ptr::without_provenance(address);
        let sim = &self.process.sim;
        let host = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has the bytes, and the device's side was checked.
        status::of(unsafe { sim.hipMemcpyAsync(host, device, bytes, hipMemcpyDeviceToHost, self.stream) })?;
        // SAFETY: the machine checks the stream.
        status::of(unsafe { sim.hipStreamSynchronize(self.stream) })?;
        Ok(buffer)
    }

    /// Reads a list of addresses.
    pub(crate) fn addresses(&self, address: usize, count: usize) -> Result<Vec<usize>, Status> {
        let bytes = self.read_bytes(address, count.checked_mul(8).ok_or(INVALID_VALUE)?)?;
        let read = |chunk: &[u8]| {
            chunk
                .iter()
                .rev()
                .fold(0, |value, byte| value << 8 | usize::from(*byte))
        };
        Ok(bytes.chunks_exact(8).map(read).collect())
    }
}
