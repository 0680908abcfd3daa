//! Memory with rows.

use super::copy::{Fill, pattern};
use super::memory::pointer_to;
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::steps::Steps;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};

/// Rows start at multiples of this.
pub(crate) const PITCH: usize = 256;
/// The longest distance between rows.
pub(crate) const MAX_PITCH: usize = 2_147_483_647;

impl Call<'_> {
    pub(crate) unsafe fn hipMallocPitch(
        &mut self,
        pointer: *mut *mut c_void,
        pitch: *mut usize,
        width: usize,
        height: usize,
    ) -> Hip {
        required(pointer)?;
        required(pitch)?;
        let (address, found) = self.allocate_rows(width, height, 1)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(pitch, found) }?;
        // SAFETY: as above.
        unsafe { answer(pointer, pointer_to(address)) }
    }

    pub(crate) unsafe fn hipMalloc3D(&mut self, pointer: *mut hipPitchedPtr, extent: hipExtent) -> Hip {
        required(pointer)?;
        let (address, pitch) = self.allocate_rows(extent.width, extent.height, extent.depth)?;
        let found = hipPitchedPtr {
            ptr: pointer_to(address),
            pitch,
            xsize: extent.width,
            ysize: extent.height,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(pointer, found) }
    }

    /// Address and pitch. Null for no bytes at all.
    fn allocate_rows(&mut self, width: usize, height: usize, depth: usize) -> Hip<(u64, usize)> {
        let card = self.healthy_device()?;
        let pitch = width.checked_next_multiple_of(PITCH).ok_or(hipErrorOutOfMemory)?;
        let slice = pitch.checked_mul(height).ok_or(hipErrorOutOfMemory)?;
        let size = slice.checked_mul(depth).ok_or(hipErrorOutOfMemory)?;
        if size == 0 {
            return Ok((0, pitch));
        }
        Ok((self.allocate(card, size)?, pitch))
    }

    /// A fill with elements of `bytes` bytes: `value`, and how many bytes it has.
    pub(crate) fn memset_elements(
        &mut self,
        dst: *mut c_void,
        pitch: usize,
        (value, bytes): (u32, usize),
        [width, height]: [usize; 2],
        stream: Option<hipStream_t>,
    ) -> Hip {
        let (stream, waits) = self.fill_stream(stream)?;
        let width = width.checked_mul(bytes).ok_or(hipErrorInvalidValue)?;
        if width > pitch || !pitch.is_multiple_of(bytes) || !dst.addr().is_multiple_of(bytes) {
            return Err(hipErrorInvalidValue);
        }
        let fill = Fill {
            dst,
            steps: Steps::rows(pitch),
            pattern: pattern(value, bytes),
            width: bytes,
            size: [width, height, 1],
        };
        self.queue_fill(&fill, stream, waits)
    }

    pub(crate) fn memset_3d(
        &mut self,
        to: &hipPitchedPtr,
        value: i32,
        extent: hipExtent,
        stream: Option<hipStream_t>,
    ) -> Hip {
        let (stream, waits) = self.fill_stream(stream)?;
        let size = [extent.width, extent.height, extent.depth];
        if size.contains(&0) {
            return Ok(());
        }
        if to.pitch < extent.width && (extent.height > 1 || extent.depth > 1) {
            return Err(hipErrorInvalidValue);
        }
        let fill = Fill {
            dst: to.ptr,
            steps: Steps {
                row: to.pitch,
                slice: to.pitch.checked_mul(to.ysize.max(1)).ok_or(hipErrorInvalidValue)?,
            },
            pattern: [value as u8; 4],
            width: 1,
            size,
        };
        self.queue_fill(&fill, stream, waits)
    }

    /// `hipMallocPitch` as the driver has it: the size of the elements decides nothing here.
    pub(crate) unsafe fn hipMemAllocPitch(
        &mut self,
        pointer: *mut hipDeviceptr_t,
        pitch: *mut usize,
        width: usize,
        height: usize,
        element: u32,
    ) -> Hip {
        if width == 0 || height == 0 || ![4, 8, 16].contains(&element) {
            return Err(hipErrorInvalidValue);
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.hipMallocPitch(pointer, pitch, width, height) }
    }

    /// Whether rows of a copy are far enough apart, and not too far.
    pub(crate) fn check_pitches(pitches: [usize; 2], width: usize) -> Hip {
        fail_if(pitches.iter().any(|pitch| *pitch < width), hipErrorInvalidPitchValue)?;
        fail_if(pitches.iter().any(|pitch| *pitch > MAX_PITCH), hipErrorInvalidValue)
    }

    cases! {
        fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize)
            => |c| c.memset_elements(dst, pitch, (value.cast_unsigned(), 1), [width, height], None);
        fn hipMemset2DAsync(
            dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize, stream: hipStream_t,
        ) => |c| c.memset_elements(dst, pitch, (value.cast_unsigned(), 1), [width, height], Some(stream));
        fn hipMemset3D(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent)
            => |c| c.memset_3d(&pitched_dev_ptr, value, extent, None);
        fn hipMemset3DAsync(pitched_dev_ptr: hipPitchedPtr, value: c_int, extent: hipExtent, stream: hipStream_t)
            => |c| c.memset_3d(&pitched_dev_ptr, value, extent, Some(stream));
        fn hipMemsetD2D8(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 1), [width, height], None);
        fn hipMemsetD2D8Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uchar, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 1), [width, height], Some(stream));
        fn hipMemsetD2D16(dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 2), [width, height], None);
        fn hipMemsetD2D16Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_ushort, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value.into(), 2), [width, height], Some(stream));
        fn hipMemsetD2D32(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize)
            => |c| c.memset_elements(dst, dst_pitch, (value, 4), [width, height], None);
        fn hipMemsetD2D32Async(dst: hipDeviceptr_t, dst_pitch: usize, value: c_uint, width: usize, height: usize, stream: hipStream_t)
            => |c| c.memset_elements(dst, dst_pitch, (value, 4), [width, height], Some(stream));
    }
}
