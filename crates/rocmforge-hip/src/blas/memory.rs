//! Matrices in device memory: their places are checked against the allocation, and their columns copied in the order of the stream.

use super::element::Element;
use super::status::{self, ALLOC_FAILED, INVALID_VALUE, Status};
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

/// Who copies to and from device memory.
#[derive(Clone, Copy)]
enum Copier {
    /// The stream of a handle, which is waited for.
    Stream(hipStream_t),
    /// The host function that the calling thread runs, for a call of this name.
    HostFunction(&'static str),
}

/// Device memory, as a call or a captured host function reaches it.
pub(crate) struct Memory<'a> {
    process: &'a Process,
    copier: Copier,
}

impl<'a> Memory<'a> {
    /// For a call, in the order of its stream.
    pub(crate) fn of_stream(process: &'a Process, stream: hipStream_t) -> Self {
        let copier = Copier::Stream(stream);
        Self { process, copier }
    }

    /// For the host function that the calling thread runs.
    pub(crate) fn of_host_function(process: &'a Process, name: &'static str) -> Self {
        let copier = Copier::HostFunction(name);
        Self { process, copier }
    }

    /// # Errors
    /// The bytes are not all in one allocation.
    pub(crate) fn check(&self, address: usize, bytes: Option<usize>) -> Result<(), Status> {
        let pointer = std::ptr::without_provenance::<c_void>(address);
        let there = self.process.sim.allocation_bytes(pointer);
        if bytes.ok_or(INVALID_VALUE)? <= there.ok_or(INVALID_VALUE)? {
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
        let (width, pitch) = (matrix.rows * matrix.element.size(), matrix.ld * matrix.element.size());
        let device = std::ptr::without_provenance(matrix.address);
        self.copy(
            (buffer.as_mut_ptr().cast(), width),
            (device, pitch),
            [width, matrix.columns],
            hipMemcpyDeviceToHost,
        )?;
        Ok(buffer)
    }

    /// Writes a matrix that was checked from bytes that [`read`](Self::read) would give.
    pub(crate) fn write(&self, matrix: &Matrix, bytes: &[u8]) -> Result<(), Status> {
        if matrix.bytes() != Some(bytes.len()) {
            return Err(INVALID_VALUE);
        }
        let (width, pitch) = (matrix.rows * matrix.element.size(), matrix.ld * matrix.element.size());
        let device = std::ptr::without_provenance_mut(matrix.address);
        self.copy(
            (device, pitch),
            (bytes.as_ptr().cast(), width),
            [width, matrix.columns],
            hipMemcpyHostToDevice,
        )
    }

    /// Reads bytes that a program names, after they were checked.
    pub(crate) fn read_bytes(&self, address: usize, bytes: usize) -> Result<Vec<u8>, Status> {
        self.check(address, Some(bytes))?;
        let mut buffer = Self::buffer(Some(bytes))?;
        let device = std::ptr::without_provenance(address);
        let host = buffer.as_mut_ptr().cast();
        self.copy((host, bytes), (device, bytes), [bytes, 1], hipMemcpyDeviceToHost)?;
        Ok(buffer)
    }

    /// Copies so many bytes of so many columns, and waits: the host's side is a buffer of the caller's.
    fn copy(
        &self,
        to: (*mut c_void, usize),
        from: (*const c_void, usize),
        [width, columns]: [usize; 2],
        kind: hipMemcpyKind,
    ) -> Result<(), Status> {
        if width == 0 || columns == 0 {
            return Ok(());
        }
        let sim = &self.process.sim;
        // Without gaps it is one row.
        let [width, columns] = if columns == 1 || (to.1, from.1) == (width, width) {
            [width * columns, 1]
        } else {
            [width, columns]
        };
        let stream = match self.copier {
            Copier::Stream(stream) => stream,
            Copier::HostFunction(name) => {
                // SAFETY: the host's side has `columns` times `width` bytes; the machine checks the device's side.
                let copied = unsafe { sim.copy_in_host_function(name, to, from, width, columns) };
                return status::of(copied);
            }
        };
        let queued = self.process.with_stack(|| {
            if columns == 1 {
                // SAFETY: the host's side has `width` bytes; the device's side was checked, and the machine checks it again.
                unsafe { sim.hipMemcpyAsync(to.0, from.0, width, kind, stream) }
            } else {
                // SAFETY: as above, with `columns` times `width` bytes.
                unsafe { sim.hipMemcpy2DAsync(to.0, to.1, from.0, from.1, width, columns, kind, stream) }
            }
        });
        status::of(queued)?;
        // SAFETY: the machine checks the stream.
        status::of(unsafe { sim.hipStreamSynchronize(stream) })
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
