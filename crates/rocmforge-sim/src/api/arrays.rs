//! Arrays: memory with elements and up to three dimensions.

use super::boxes::{CopySide, Memory};
use super::pitched::PITCH;
use super::{answer, answer_if_asked, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::array::{Array, format_of};
use crate::machine::handle::Found;
use crate::machine::steps::Steps;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_void};

/// Flags that arrays may have; there are no cube maps.
const ARRAY_FLAGS: u32 = hipArrayDefault | hipArrayLayered | hipArraySurfaceLoadStore | hipArrayTextureGather;
/// The largest arrays, in elements.
const MOST: [usize; 3] = [16_384, 16_384, 8192];

/// The format and the number of parts that a description means. All parts have the size of the first, and none follows a missing one.
pub(super) fn described(desc: &hipChannelFormatDesc) -> Option<(hipArray_Format, u32)> {
    let parts = [desc.x, desc.y, desc.z, desc.w];
    let channels = parts.iter().take_while(|bits| **bits != 0).count();
    let even = parts[..channels].iter().all(|bits| *bits == desc.x) && parts[channels..].iter().all(|bits| *bits == 0);
    let all = [
        HIP_AD_FORMAT_UNSIGNED_INT8,
        HIP_AD_FORMAT_UNSIGNED_INT16,
        HIP_AD_FORMAT_UNSIGNED_INT32,
        HIP_AD_FORMAT_SIGNED_INT8,
        HIP_AD_FORMAT_SIGNED_INT16,
        HIP_AD_FORMAT_SIGNED_INT32,
        HIP_AD_FORMAT_HALF,
        HIP_AD_FORMAT_FLOAT,
    ];
    let format = all
        .into_iter()
        .find(|format| format_of(*format) == Some((desc.x, desc.f)))?;
    (even && channels > 0).then_some((format, channels as u32))
}

impl Array {
    fn end(handle: hipArray_t, x: usize, y: usize) -> CopySide {
        let memory = Memory::Array(handle);
        CopySide { memory, x, y, z: 0 }
    }
}

fn linear(start: *mut c_void, pitch: usize) -> CopySide {
    let memory = Memory::Linear {
        start,
        pitch,
        height: 0,
    };
    CopySide {
        memory,
        x: 0,
        y: 0,
        z: 0,
    }
}

impl Call<'_> {
    /// The array of a handle.
    pub(crate) fn array(&self, array: hipArray_t) -> Hip<&Array> {
        self.arrays.get(array.addr() as u64).ok_or(hipErrorInvalidHandle)
    }

    pub(crate) unsafe fn hipMalloc3DArray(
        &mut self,
        array: *mut hipArray_t,
        desc: *const hipChannelFormatDesc,
        extent: hipExtent,
        flags: u32,
    ) -> Hip {
        required(array)?;
        required(desc)?;
        // SAFETY: promised by the caller of the HIP function.
        let (format, channels) = described(unsafe { &*desc }).ok_or(hipErrorInvalidValue)?;
        let wanted = HIP_ARRAY3D_DESCRIPTOR {
            Width: extent.width,
            Height: extent.height,
            Depth: extent.depth,
            Format: format,
            NumChannels: channels,
            Flags: flags,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.create_array(array, &wanted) }
    }

    pub(crate) unsafe fn hipArrayCreate(&mut self, array: *mut hipArray_t, wanted: *const HIP_ARRAY_DESCRIPTOR) -> Hip {
        required(array)?;
        required(wanted)?;
        // SAFETY: promised by the caller of the HIP function.
        let flat = unsafe { &*wanted };
        let wanted = HIP_ARRAY3D_DESCRIPTOR {
            Width: flat.Width,
            Height: flat.Height,
            Depth: 0,
            Format: flat.Format,
            NumChannels: flat.NumChannels,
            Flags: hipArrayDefault,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.create_array(array, &wanted) }
    }

    pub(crate) unsafe fn hipArray3DCreate(
        &mut self,
        array: *mut hipArray_t,
        wanted: *const HIP_ARRAY3D_DESCRIPTOR,
    ) -> Hip {
        required(array)?;
        required(wanted)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = unsafe { wanted.read() };
        // SAFETY: as above.
        unsafe { self.create_array(array, &wanted) }
    }

    /// # Safety
    /// `array` is valid for writing.
    unsafe fn create_array(&mut self, array: *mut hipArray_t, wanted: &HIP_ARRAY3D_DESCRIPTOR) -> Hip {
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        let HIP_ARRAY3D_DESCRIPTOR {
            Width: width,
            Height: height,
            Depth: depth,
            ..
        } = *wanted;
        let (bits, _) = format_of(wanted.Format).ok_or(hipErrorInvalidValue)?;
        let layered = wanted.Flags & hipArrayLayered != 0;
        let gather = wanted.Flags & hipArrayTextureGather != 0;
        let shape_fits = width > 0 && if layered { depth > 0 } else { height > 0 || depth == 0 };
        let size_fits = [width, height, depth].iter().zip(MOST).all(|(n, most)| *n <= most);
        if ![1, 2, 4].contains(&wanted.NumChannels)
            || wanted.Flags & !ARRAY_FLAGS != 0
            || gather && (height == 0 || depth > 0)
            || !shape_fits
            || !size_fits
        {
            return Err(hipErrorInvalidValue);
        }
        let element = bits as usize / 8 * wanted.NumChannels as usize;
        let row = (width * element).next_multiple_of(PITCH);
        let slice = row * height.max(1);
        let address = self.allocate(card, slice.checked_mul(depth.max(1)).ok_or(hipErrorOutOfMemory)?)?;
        let made = Array {
            card,
            address,
            steps: Steps { row, slice },
            width,
            height,
            depth,
            element,
            format: wanted.Format,
            channels: wanted.NumChannels,
            flags: wanted.Flags,
        };
        let call = self.number;
        let handle = self.arrays.insert(made, call);
        // SAFETY: promised by the caller.
        unsafe { answer(array, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) fn hipFreeArray(&mut self, array: hipArray_t) -> Hip {
        required(array)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let handle = array.addr() as u64;
        let Some(found) = self.arrays.get(handle).copied() else {
            let (kind, what) = match self.arrays.find(handle) {
                Found::Stale => (ReportKind::DoubleFree, "the array had been freed before"),
                _ => (ReportKind::InvalidFree, "this never was an array"),
            };
            self.report(kind, what);
            return Err(hipErrorContextIsDestroyed);
        };
        self.wait_for_card(found.card)?;
        let actor = self.as_actor();
        self.release(found.card, found.address, &actor);
        self.arrays.remove(handle);
        Ok(())
    }

    pub(crate) unsafe fn hipArrayGetInfo(
        &mut self,
        desc: *mut hipChannelFormatDesc,
        extent: *mut hipExtent,
        flags: *mut u32,
        array: hipArray_t,
    ) -> Hip {
        let found = *self.array(array)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(desc, found.description()) };
        let size = hipExtent {
            width: found.width,
            height: found.height,
            depth: found.depth,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(extent, size) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer_if_asked(flags, found.flags) };
        Ok(())
    }

    pub(crate) unsafe fn hipArrayGetDescriptor(&mut self, to: *mut HIP_ARRAY_DESCRIPTOR, array: hipArray_t) -> Hip {
        let found = *self.array(array)?;
        let descriptor = HIP_ARRAY_DESCRIPTOR {
            Width: found.width,
            Height: found.height,
            Format: found.format,
            NumChannels: found.channels,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, descriptor) }
    }

    pub(crate) unsafe fn hipArray3DGetDescriptor(&mut self, to: *mut HIP_ARRAY3D_DESCRIPTOR, array: hipArray_t) -> Hip {
        let found = *self.array(array)?;
        let descriptor = HIP_ARRAY3D_DESCRIPTOR {
            Width: found.width,
            Height: found.height,
            Depth: found.depth,
            Format: found.format,
            NumChannels: found.channels,
            Flags: found.flags,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, descriptor) }
    }

    fn check_flat(kind: hipMemcpyKind, pointer: *const c_void, pitch: usize, width: usize) -> Hip {
        if kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU {
            return Err(hipErrorInvalidMemcpyDirection);
        }
        required(pointer)?;
        fail_if(pitch == 0 || pitch < width, hipErrorInvalidPitchValue)
    }

    /// `hipMemcpy2DToArray` and its asynchronous form.
    pub(crate) fn memcpy_2d_to_array(
        &mut self,
        (array, x, y): (hipArray_t, usize, usize),
        (src, pitch): (*const c_void, usize),
        [width, height]: [usize; 2],
        kind: hipMemcpyKind,
        stream: Option<hipStream_t>,
    ) -> Hip {
        Self::check_flat(kind, src, pitch, width)?;
        self.array(array)?;
        let from = linear(src.cast_mut(), pitch);
        self.copy_box(Array::end(array, x, y), from, [width, height, 1], kind, stream)
    }

    /// `hipMemcpy2DFromArray` and its asynchronous form.
    pub(crate) fn memcpy_2d_from_array(
        &mut self,
        (dst, pitch): (*mut c_void, usize),
        (array, x, y): (hipArray_const_t, usize, usize),
        [width, height]: [usize; 2],
        kind: hipMemcpyKind,
        stream: Option<hipStream_t>,
    ) -> Hip {
        Self::check_flat(kind, dst, pitch, width)?;
        let array = array.cast_mut();
        self.array(array)?;
        let from = Array::end(array, x, y);
        self.copy_box(linear(dst, pitch), from, [width, height, 1], kind, stream)
    }

    pub(crate) fn memcpy_2d_array_to_array(
        &mut self,
        (dst, dst_x, dst_y): (hipArray_t, usize, usize),
        (src, src_x, src_y): (hipArray_const_t, usize, usize),
        [width, height]: [usize; 2],
        kind: hipMemcpyKind,
    ) -> Hip {
        let src = src.cast_mut();
        self.array(src)?;
        self.array(dst)?;
        let (to, from) = (Array::end(dst, dst_x, dst_y), Array::end(src, src_x, src_y));
        self.copy_box(to, from, [width, height, 1], kind, None)
    }

    /// The shape of `size` bytes in an array, as HIP's old calls take it: the bytes of a row, and rows.
    fn shape(&self, array: hipArray_t, size: usize) -> Hip<[usize; 2]> {
        let found = self.array(array).map_err(|_| hipErrorInvalidValue)?;
        Ok([size / found.height.max(1), size / found.width / found.element])
    }

    pub(crate) fn memcpy_to_array(
        &mut self,
        (array, x, y): (hipArray_t, usize, usize),
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
    ) -> Hip {
        let [width, height] = self.shape(array, size)?;
        let from = linear(src.cast_mut(), 0);
        self.copy_box(Array::end(array, x, y), from, [width, height, 1], kind, None)
    }

    pub(crate) fn memcpy_from_array(
        &mut self,
        dst: *mut c_void,
        (array, x, y): (hipArray_const_t, usize, usize),
        size: usize,
        kind: hipMemcpyKind,
    ) -> Hip {
        let array = array.cast_mut();
        let [width, height] = self.shape(array, size)?;
        let from = Array::end(array, x, y);
        self.copy_box(linear(dst, 0), from, [width, height, 1], kind, None)
    }

    /// `hipMemcpyAtoH`, `AtoD` and `AtoHAsync`: bytes of the first row.
    pub(crate) fn memcpy_from_row(
        &mut self,
        dst: *mut c_void,
        (array, x): (hipArray_t, usize),
        size: usize,
        stream: Option<hipStream_t>,
    ) -> Hip {
        self.array(array).map_err(|_| hipErrorInvalidValue)?;
        self.copy_box(
            linear(dst, 0),
            Array::end(array, x, 0),
            [size, 1, 1],
            hipMemcpyDefault,
            stream,
        )
    }

    /// `hipMemcpyHtoA`, `DtoA` and `HtoAAsync`.
    pub(crate) fn memcpy_to_row(
        &mut self,
        (array, x): (hipArray_t, usize),
        src: *const c_void,
        size: usize,
        stream: Option<hipStream_t>,
    ) -> Hip {
        self.array(array).map_err(|_| hipErrorInvalidValue)?;
        let from = linear(src.cast_mut(), 0);
        self.copy_box(Array::end(array, x, 0), from, [size, 1, 1], hipMemcpyDefault, stream)
    }

    pub(crate) fn memcpy_row_to_row(
        &mut self,
        (dst, to): (hipArray_t, usize),
        (src, from): (hipArray_t, usize),
        size: usize,
    ) -> Hip {
        for array in [dst, src] {
            self.array(array).map_err(|_| hipErrorInvalidValue)?;
        }
        let (to, from) = (Array::end(dst, to, 0), Array::end(src, from, 0));
        self.copy_box(to, from, [size, 1, 1], hipMemcpyDefault, None)
    }

    cases! {
        fn hipGetChannelDesc(desc: *mut hipChannelFormatDesc, array: hipArray_const_t)
            => |c| { required(desc)?; answer(desc, c.array(array.cast_mut())?.description()) };
        fn hipMallocArray(array: *mut hipArray_t, desc: *const hipChannelFormatDesc, width: usize, height: usize, flags: c_uint)
            => |c| c.hipMalloc3DArray(array, desc, hipExtent { width, height, depth: 0 }, flags);
        fn hipArrayDestroy(array: hipArray_t) => |c| c.hipFreeArray(array);
        fn hipMemcpyToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, count: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_to_array((dst, w_offset, h_offset), src, count, kind);
        fn hipMemcpyFromArray(dst: *mut c_void, src_array: hipArray_const_t, w_offset: usize, h_offset: usize, count: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_from_array(dst, (src_array, w_offset, h_offset), count, kind);
        fn hipMemcpy2DToArray(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_to_array((dst, w_offset, h_offset), (src, spitch), [width, height], kind, None);
        fn hipMemcpy2DToArrayAsync(dst: hipArray_t, w_offset: usize, h_offset: usize, src: *const c_void, spitch: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_2d_to_array((dst, w_offset, h_offset), (src, spitch), [width, height], kind, Some(stream));
        fn hipMemcpy2DFromArray(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_from_array((dst, dpitch), (src, w_offset, h_offset), [width, height], kind, None);
        fn hipMemcpy2DFromArrayAsync(dst: *mut c_void, dpitch: usize, src: hipArray_const_t, w_offset: usize, h_offset: usize, width: usize, height: usize, kind: hipMemcpyKind, stream: hipStream_t)
            => |c| c.memcpy_2d_from_array((dst, dpitch), (src, w_offset, h_offset), [width, height], kind, Some(stream));
        fn hipMemcpy2DArrayToArray(dst: hipArray_t, w_offset_dst: usize, h_offset_dst: usize, src: hipArray_const_t, w_offset_src: usize, h_offset_src: usize, width: usize, height: usize, kind: hipMemcpyKind)
            => |c| c.memcpy_2d_array_to_array(
                (dst, w_offset_dst, h_offset_dst), (src, w_offset_src, h_offset_src), [width, height], kind,
            );
        fn hipMemcpyAtoH(dst: *mut c_void, src_array: hipArray_t, src_offset: usize, count: usize)
            => |c| c.memcpy_from_row(dst, (src_array, src_offset), count, None);
        fn hipMemcpyHtoA(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, count: usize)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_host, count, None);
        fn hipMemcpyAtoHAsync(dst_host: *mut c_void, src_array: hipArray_t, src_offset: usize, byte_count: usize, stream: hipStream_t)
            => |c| c.memcpy_from_row(dst_host, (src_array, src_offset), byte_count, Some(stream));
        fn hipMemcpyHtoAAsync(dst_array: hipArray_t, dst_offset: usize, src_host: *const c_void, byte_count: usize, stream: hipStream_t)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_host, byte_count, Some(stream));
        fn hipMemcpyAtoD(dst_device: hipDeviceptr_t, src_array: hipArray_t, src_offset: usize, byte_count: usize)
            => |c| c.memcpy_from_row(dst_device, (src_array, src_offset), byte_count, None);
        fn hipMemcpyDtoA(dst_array: hipArray_t, dst_offset: usize, src_device: hipDeviceptr_t, byte_count: usize)
            => |c| c.memcpy_to_row((dst_array, dst_offset), src_device, byte_count, None);
        fn hipMemcpyAtoA(dst_array: hipArray_t, dst_offset: usize, src_array: hipArray_t, src_offset: usize, byte_count: usize)
            => |c| c.memcpy_row_to_row((dst_array, dst_offset), (src_array, src_offset), byte_count);
    }
}
