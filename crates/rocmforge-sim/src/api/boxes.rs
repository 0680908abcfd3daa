//! Copies in two and three dimensions between any two of host memory, device memory and arrays.

use super::copy::Copied;
use super::pitched::MAX_PITCH;
use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::steps::Steps;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

/// Source or destination of a copy, before anything is checked.
#[derive(Clone, Copy)]
pub(crate) struct CopySide {
    pub(crate) memory: Memory,
    /// Bytes to skip in a row.
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) z: usize,
}

/// What a copy goes to or comes from.
#[derive(Clone, Copy)]
pub(crate) enum Memory {
    /// Bytes from row to row (0 for as many as are copied), and rows of a slice (0 for as many).
    Linear {
        start: *mut c_void,
        pitch: usize,
        height: usize,
    },
    Array(hipArray_t),
}

impl Call<'_> {
    /// Where a side starts, and its steps.
    fn resolve(&self, end: CopySide, [width, height, depth]: [usize; 3]) -> Hip<(*mut c_void, Steps)> {
        let (start, steps) = match end.memory {
            Memory::Linear {
                start,
                pitch,
                height: rows,
            } => {
                required(start)?;
                let row = match pitch {
                    0 => end.x.checked_add(width).ok_or(hipErrorInvalidValue)?,
                    pitch => pitch,
                };
                let rows = match rows {
                    0 => end.y.checked_add(height).ok_or(hipErrorInvalidValue)?,
                    rows => rows,
                };
                let slice = row.checked_mul(rows).ok_or(hipErrorInvalidValue)?;
                (start, Steps { row, slice })
            }
            Memory::Array(array) => {
                let array = self.array(array)?;
                let beyond = |at: usize, n: usize, limit: usize| at.checked_add(n).is_none_or(|end| end > limit);
                let [rows, slices] = [array.height.max(1), array.depth.max(1)];
                if beyond(end.x, width, array.width * array.element)
                    || beyond(end.y, height, rows)
                    || beyond(end.z, depth, slices)
                {
                    return Err(hipErrorInvalidValue);
                }
                (super::memory::pointer_to(array.address), array.steps)
            }
        };
        let offset = end
            .y
            .checked_mul(steps.row)
            .zip(end.z.checked_mul(steps.slice))
            .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(end.x))
            .ok_or(hipErrorInvalidValue)?;
        Ok((start.wrapping_byte_add(offset), steps))
    }

    /// What a copy between two ends is. None of nothing.
    pub(crate) fn copy_between(&self, to: CopySide, from: CopySide, size: [usize; 3]) -> Hip<Option<Copied>> {
        if size.contains(&0) {
            return Ok(None);
        }
        let (dst, to) = self.resolve(to, size)?;
        let (src, from) = self.resolve(from, size)?;
        let short = |steps: Steps| steps.row < size[0] && (size[1] > 1 || size[2] > 1);
        fail_if(short(to) || short(from), hipErrorInvalidValue)?;
        Ok(Some(Copied {
            dst,
            src,
            to,
            from,
            size,
        }))
    }

    /// Copies on a stream, or waiting on the null stream.
    pub(crate) fn copy_box(
        &mut self,
        to: CopySide,
        from: CopySide,
        size: [usize; 3],
        kind: hipMemcpyKind,
        stream: Option<hipStream_t>,
    ) -> Hip {
        let stream = stream.map(|stream| self.working_stream(stream)).transpose()?;
        let Some(copy) = self.copy_between(to, from, size)? else {
            return Ok(());
        };
        self.copy_on(copy, kind, stream)
    }

    /// What `hipMemcpy3D` is asked for.
    pub(crate) fn copied_3d(&self, p: &hipMemcpy3DParms) -> Hip<Option<Copied>> {
        let both = |array: hipArray_t, pointer: &hipPitchedPtr| array.is_null() == pointer.ptr.is_null();
        if both(p.srcArray, &p.srcPtr) || both(p.dstArray, &p.dstPtr) {
            return Err(hipErrorInvalidValue);
        }
        let element = |array: hipArray_t| {
            if array.is_null() {
                Ok(None)
            } else {
                self.array(array).map(|array| Some(array.element))
            }
        };
        let (of_dst, of_src) = (element(p.dstArray)?, element(p.srcArray)?);
        if of_dst.is_some() && of_src.is_some() && of_dst != of_src {
            return Err(hipErrorInvalidValue);
        }
        if p.srcPtr.pitch < p.srcPtr.xsize || p.dstPtr.pitch < p.dstPtr.xsize {
            return Err(hipErrorInvalidPitchValue);
        }
        if p.srcPtr.pitch >= MAX_PITCH || p.dstPtr.pitch >= MAX_PITCH {
            return Err(hipErrorInvalidValue);
        }
        let beyond = |pos: &hipPos, pointer: &hipPitchedPtr| {
            let end = p.extent.width.checked_add(pos.x);
            end.is_none_or(|end| end > pointer.pitch)
        };
        if of_dst.is_none() && of_src.is_none() && (beyond(&p.dstPos, &p.dstPtr) || beyond(&p.srcPos, &p.srcPtr)) {
            return Err(hipErrorInvalidValue);
        }
        if p.kind > hipMemcpyDefault && p.kind != hipMemcpyDeviceToDeviceNoCU {
            return Err(hipErrorInvalidMemcpyDirection);
        }
        // Where an array takes part, the extent is in its elements.
        let unit = of_src.or(of_dst).unwrap_or(1);
        let width = p.extent.width.checked_mul(unit).ok_or(hipErrorInvalidValue)?;
        let end = |array: hipArray_t, pointer: &hipPitchedPtr, pos: &hipPos, element: Option<usize>| {
            let memory = if array.is_null() {
                Memory::Linear {
                    start: pointer.ptr,
                    pitch: pointer.pitch,
                    height: pointer.ysize,
                }
            } else {
                Memory::Array(array)
            };
            let x = pos.x.checked_mul(element.unwrap_or(1)).ok_or(hipErrorInvalidValue)?;
            let (y, z) = (pos.y, pos.z);
            Ok(CopySide { memory, x, y, z })
        };
        let to = end(p.dstArray, &p.dstPtr, &p.dstPos, of_dst)?;
        let from = end(p.srcArray, &p.srcPtr, &p.srcPos, of_src)?;
        self.copy_between(to, from, [width, p.extent.height, p.extent.depth])
    }

    pub(crate) unsafe fn memcpy_3d(&mut self, what: *const hipMemcpy3DParms, stream: Option<hipStream_t>) -> Hip {
        required(what)?;
        let stream = stream.map(|stream| self.working_stream(stream)).transpose()?;
        // SAFETY: promised by the caller of the HIP function.
        let what = unsafe { &*what };
        let Some(copy) = self.copied_3d(what)? else {
            return Ok(());
        };
        self.copy_on(copy, what.kind, stream)
    }

    /// What `hipDrvMemcpy3D` is asked for.
    pub(crate) fn copied_drv(&self, p: &HIP_MEMCPY3D) -> Hip<Option<Copied>> {
        let linear = |kind: hipMemoryType, host: *mut c_void, device: *mut c_void| match kind {
            hipMemoryTypeHost => Some(host),
            hipMemoryTypeDevice | hipMemoryTypeUnified | hipMemoryTypeManaged => Some(device),
            _ => None,
        };
        let memory = |kind, start: Option<*mut c_void>, array, pitch, height| match start {
            Some(start) => Ok(Memory::Linear { start, pitch, height }),
            None if kind == hipMemoryTypeArray => Ok(Memory::Array(array)),
            None => Err(hipErrorInvalidValue),
        };
        let size = [p.WidthInBytes, p.Height, p.Depth];
        if size.contains(&0) {
            return Ok(None);
        }
        let from = linear(p.srcMemoryType, p.srcHost.cast_mut(), p.srcDevice);
        let to = linear(p.dstMemoryType, p.dstHost, p.dstDevice);
        let from = CopySide {
            memory: memory(p.srcMemoryType, from, p.srcArray, p.srcPitch, p.srcHeight)?,
            x: p.srcXInBytes,
            y: p.srcY,
            z: p.srcZ,
        };
        let to = CopySide {
            memory: memory(p.dstMemoryType, to, p.dstArray, p.dstPitch, p.dstHeight)?,
            x: p.dstXInBytes,
            y: p.dstY,
            z: p.dstZ,
        };
        self.copy_between(to, from, size)
    }

    pub(crate) unsafe fn drv_memcpy_3d(&mut self, what: *const HIP_MEMCPY3D, stream: Option<hipStream_t>) -> Hip {
        required(what)?;
        let stream = stream.map(|stream| self.working_stream(stream)).transpose()?;
        // SAFETY: promised by the caller of the HIP function.
        let Some(copy) = self.copied_drv(unsafe { &*what })? else {
            return Ok(());
        };
        self.copy_on(copy, hipMemcpyDefault, stream)
    }

    pub(crate) unsafe fn memcpy_param_2d(&mut self, what: *const hip_Memcpy2D, stream: Option<hipStream_t>) -> Hip {
        required(what)?;
        // SAFETY: promised by the caller of the HIP function.
        let p = unsafe { &*what };
        let what = HIP_MEMCPY3D {
            srcXInBytes: p.srcXInBytes,
            srcY: p.srcY,
            srcZ: 0,
            srcLOD: 0,
            srcMemoryType: p.srcMemoryType,
            srcHost: p.srcHost,
            srcDevice: p.srcDevice,
            srcArray: p.srcArray,
            srcPitch: p.srcPitch,
            srcHeight: 0,
            dstXInBytes: p.dstXInBytes,
            dstY: p.dstY,
            dstZ: 0,
            dstLOD: 0,
            dstMemoryType: p.dstMemoryType,
            dstHost: p.dstHost,
            dstDevice: p.dstDevice,
            dstArray: p.dstArray,
            dstPitch: p.dstPitch,
            dstHeight: 0,
            WidthInBytes: p.WidthInBytes,
            Height: p.Height,
            Depth: 1,
        };
        // SAFETY: `what` is valid for reading.
        unsafe { self.drv_memcpy_3d(&raw const what, stream) }
    }

    /// Refuses a side without memory before its kind is looked at.
    pub(crate) unsafe fn hipDrvMemcpy2DUnaligned(&mut self, what: *const hip_Memcpy2D) -> Hip {
        required(what)?;
        // SAFETY: promised by the caller of the HIP function.
        let p = unsafe { &*what };
        let from = p.srcMemoryType == hipMemoryTypeArray && p.srcArray.is_null();
        let to = p.dstMemoryType == hipMemoryTypeArray && p.dstArray.is_null();
        fail_if(from || to, hipErrorInvalidValue)?;
        // SAFETY: as above.
        unsafe { self.memcpy_param_2d(what, None) }
    }

    cases! {
        fn hipMemcpyParam2D(copy: *const hip_Memcpy2D) => |c| c.memcpy_param_2d(copy, None);
        fn hipMemcpyParam2DAsync(copy: *const hip_Memcpy2D, stream: hipStream_t)
            => |c| c.memcpy_param_2d(copy, Some(stream));
        fn hipMemcpy3D(p: *const hipMemcpy3DParms) => |c| c.memcpy_3d(p, None);
        fn hipMemcpy3DAsync(p: *const hipMemcpy3DParms, stream: hipStream_t) => |c| c.memcpy_3d(p, Some(stream));
        fn hipDrvMemcpy3D(copy: *const HIP_MEMCPY3D) => |c| c.drv_memcpy_3d(copy, None);
        fn hipDrvMemcpy3DAsync(copy: *const HIP_MEMCPY3D, stream: hipStream_t)
            => |c| c.drv_memcpy_3d(copy, Some(stream));
    }
}
