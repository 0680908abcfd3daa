//! Copies and fills.

use super::host_memory::is_mapped;
use super::memory::address_of;
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::steps::Steps;
use crate::queues::op::{OpKind, Place};
use crate::queues::point::{Point, StreamId};
use crate::report::{Access, ReportKind};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uchar, c_ushort, c_void};

/// What is copied: rows of `size[0]` bytes, `size[1]` of them to a slice, `size[2]` slices.
#[derive(Clone, Copy)]
pub(crate) struct Copied {
    pub(crate) dst: *mut c_void,
    pub(crate) src: *const c_void,
    pub(crate) to: Steps,
    pub(crate) from: Steps,
    pub(crate) size: [usize; 3],
}

/// What is filled, with a pattern of `width` bytes.
pub(crate) struct Fill {
    pub(crate) dst: *mut c_void,
    pub(crate) steps: Steps,
    pub(crate) pattern: [u8; 4],
    pub(crate) width: usize,
    pub(crate) size: [usize; 3],
}

/// The first `width` bytes of a value, repeated.
pub(crate) fn pattern(value: u32, width: usize) -> [u8; 4] {
    let bytes = value.to_le_bytes();
    std::array::from_fn(|at| bytes[at % width])
}

impl Copied {
    pub(super) fn flat(dst: *mut c_void, src: *const c_void, size: usize) -> Self {
        Self {
            dst,
            src,
            to: Steps::rows(size),
            from: Steps::rows(size),
            size: [size, 1, 1],
        }
    }

    /// Rows of `size[0]` bytes, each a pitch behind the one before; `size[1]` of them.
    pub(crate) fn rows(
        (dst, dst_pitch): (*mut c_void, usize),
        (src, src_pitch): (*const c_void, usize),
        size: [usize; 2],
    ) -> Self {
        Self {
            dst,
            src,
            to: Steps::rows(dst_pitch),
            from: Steps::rows(src_pitch),
            size: [size[0], size[1], 1],
        }
    }
}

/// One operation of many parts, or the one part.
fn one_operation(mut parts: Vec<OpKind>) -> OpKind {
    match parts.len() {
        1 => parts.remove(0),
        _ => OpKind::Many(parts),
    }
}

impl Call<'_> {
    /// What lies at `pointer`. Where HIP knows the memory, it checks that `size` bytes are there.
    pub(crate) fn place(&mut self, pointer: *const c_void, size: usize, access: Access) -> Hip<Place> {
        let address = address_of(pointer);
        if let Some(card) = self.card_of(address) {
            self.healthy(card)?;
            let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
                self.report_dead_access(card, address, size, access);
                return Err(hipErrorInvalidValue);
            };
            if allocation.idle {
                self.report_idle_access(&allocation, address, size, Some(access));
            }
            let left = allocation.end().saturating_sub(address);
            if size as u64 > left {
                let message = format!("{left} B are left from there to the end");
                let report = self.about(ReportKind::OutOfBounds, message);
                let report = report.at(Some(access), address, size as u64, Some(allocation.info()));
                (**self).report(report);
                return Err(hipErrorInvalidValue);
            }
            return Ok(Place::Device {
                card,
                address,
                id: allocation.id,
            });
        }
        let Some(range) = self.pinned.find(pointer.addr()) else {
            if !is_mapped(pointer.addr(), size) {
                let message = "the process has no memory there: neither a device's nor the host's".to_owned();
                let report = self.about(ReportKind::OutOfBounds, message);
                (**self).report(report.at(Some(access), address, size as u64, None));
                return Err(hipErrorInvalidValue);
            }
            return Ok(Place::Pageable {
                address: pointer.expose_provenance(),
            });
        };
        let (id, left) = (range.id, range.size - (pointer.addr() - range.address));
        if size > left {
            let message = format!("{left} B of pinned memory are left from there to the end");
            let report = self
                .about(ReportKind::OutOfBounds, message)
                .at(Some(access), address, size as u64, None);
            (**self).report(report);
            return Err(hipErrorInvalidValue);
        }
        Ok(Place::Pinned {
            address: pointer.addr(),
            id,
        })
    }

    /// Checks a copy: what it does, and the places where it starts. None: there is nothing to do.
    pub(crate) fn prepare_copy(&mut self, copy: Copied, kind: hipMemcpyKind) -> Hip<Option<(OpKind, Place, Place)>> {
        let Copied { dst, src, .. } = copy;
        let [width, height, depth] = copy.size;
        if copy.size.contains(&0) {
            return Ok(None);
        }
        fail_if(dst.is_null() || src.is_null(), hipErrorInvalidValue)?;
        if kind > hipMemcpyDefault && kind != hipMemcpyDeviceToDeviceNoCU {
            return Err(hipErrorInvalidMemcpyDirection);
        }
        let to = self.place(dst, copy.to.span(copy.size).ok_or(hipErrorInvalidValue)?, Access::Write)?;
        let from = self.place(
            src,
            copy.from.span(copy.size).ok_or(hipErrorInvalidValue)?,
            Access::Read,
        )?;
        let pageable = |place| matches!(place, Place::Pageable { .. });
        if pageable(to) && pageable(from) && kind != hipMemcpyHostToHost && kind != hipMemcpyDefault {
            return Err(hipErrorInvalidValue);
        }
        let rows = (0..depth).flat_map(|slice| (0..height).map(move |row| (row, slice)));
        let parts = rows.map(|(row, slice)| OpKind::Copy {
            to: to.offset(copy.to.at(row, slice)),
            from: from.offset(copy.from.at(row, slice)),
            size: width,
        });
        Ok(Some((one_operation(parts.collect()), to, from)))
    }

    /// Checks a copy and queues it. None: there is nothing to wait for, because nothing is to be copied, or the stream captures.
    fn queue_copy(
        &mut self,
        copy: Copied,
        kind: hipMemcpyKind,
        stream: StreamId,
    ) -> Hip<Option<(Place, Place, Point)>> {
        let Some((operation, to, from)) = self.prepare_copy(copy, kind)? else {
            return Ok(None);
        };
        let point = self.enqueue(stream, operation, Vec::new());
        let captures = self.captures.of(stream).is_some();
        Ok((!captures).then_some((to, from, point)))
    }

    pub(crate) fn hipMemcpyAsync(
        &mut self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> Hip {
        let stream = self.working_stream(stream)?;
        self.copy_async(Copied::flat(dst, src, size), kind, stream)
    }

    pub(crate) fn copy_async(&mut self, copy: Copied, kind: hipMemcpyKind, stream: StreamId) -> Hip {
        self.enqueuable(stream)?;
        let Some((to, from, point)) = self.queue_copy(copy, kind, stream)? else {
            return Ok(());
        };
        // Waits that the implementation has and nobody promises; a strict simulation has none of them. Copies from
        // pageable memory may be staged or may read late: the simulator reads late.
        let waits = match (to, from) {
            (Place::Pageable { .. }, Place::Pageable { .. }) => true,
            (Place::Pageable { .. }, _) => !self.config.strict,
            _ => false,
        };
        if waits { self.force(&[point]) } else { Ok(()) }
    }

    /// `hipMemcpy`: on the null stream; waits unless it stays on the device.
    pub(crate) fn hipMemcpy(&mut self, dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> Hip {
        self.copy_and_wait(Copied::flat(dst, src, size), kind)
    }

    /// Copies on a stream, or waiting on the null stream if none is given.
    pub(crate) fn copy_on(&mut self, copy: Copied, kind: hipMemcpyKind, stream: Option<StreamId>) -> Hip {
        match stream {
            Some(stream) => self.copy_async(copy, kind, stream),
            None => self.copy_and_wait(copy, kind),
        }
    }

    fn copy_and_wait(&mut self, copy: Copied, kind: hipMemcpyKind) -> Hip {
        self.outside_captures(hipErrorStreamCaptureImplicit)?;
        let card = self.healthy_device()?;
        let null = self.cards[card].null;
        let Some((to, from, point)) = self.queue_copy(copy, kind, null)? else {
            return Ok(());
        };
        let on_device = matches!((to, from), (Place::Device { .. }, Place::Device { .. }));
        if on_device { Ok(()) } else { self.force(&[point]) }
    }

    /// `hipMemcpy2D` and `hipMemcpy2DAsync`.
    pub(crate) fn memcpy_2d(
        &mut self,
        [dst_pitch, src_pitch]: [usize; 2],
        (dst, src): (*mut c_void, *const c_void),
        size: [usize; 2],
        kind: hipMemcpyKind,
        stream: Option<hipStream_t>,
    ) -> Hip {
        let stream = stream.map(|stream| self.working_stream(stream)).transpose()?;
        let pitches = [dst_pitch, src_pitch];
        Self::check_pitches(pitches, size[0])?;
        let copy = Copied::rows((dst, dst_pitch), (src, src_pitch), size);
        self.copy_on(copy, kind, stream)
    }

    /// `hipMemcpyPeer` and `hipMemcpyPeerAsync`.
    pub(crate) fn memcpy_peer(
        &mut self,
        (dst, dst_device): (*mut c_void, c_int),
        (src, src_device): (*const c_void, c_int),
        size: usize,
        stream: Option<hipStream_t>,
    ) -> Hip {
        let (to, from) = (self.card_index(dst_device)?, self.card_index(src_device)?);
        let lies_on = |pointer, card| self.card_of(address_of(pointer)).is_none_or(|found| found == card);
        fail_if(!lies_on(dst, to) || !lies_on(src, from), hipErrorInvalidValue)?;
        if let Some(stream) = stream {
            return self.hipMemcpyAsync(dst, src, size, hipMemcpyDeviceToDevice, stream);
        }
        self.outside_captures(hipErrorStreamCaptureImplicit)?;
        let card = self.healthy_device()?;
        // It comes after all that these cards have queued and before what they will: the host waits for both.
        let before: Vec<Point> = [card, to, from]
            .iter()
            .flat_map(|&card| self.queues.all_of(card))
            .collect();
        self.force(&before)?;
        let null = self.cards[card].null;
        match self.queue_copy(Copied::flat(dst, src, size), hipMemcpyDeviceToDevice, null)? {
            Some((_, _, point)) => self.force(&[point]),
            None => Ok(()),
        }
    }

    /// `hipMemcpyWithStream`: on a stream, and done when it returns.
    pub(crate) fn hipMemcpyWithStream(
        &mut self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> Hip {
        let stream = self.working_stream(stream)?;
        self.enqueuable(stream)?;
        match self.queue_copy(Copied::flat(dst, src, size), kind, stream)? {
            Some((_, _, point)) => self.force(&[point]),
            None => Ok(()),
        }
    }

    /// Fills `count` elements of `width` bytes, on the null stream if none is given.
    pub(crate) fn memset(
        &mut self,
        dst: *mut c_void,
        value: i32,
        width: usize,
        count: usize,
        stream: Option<hipStream_t>,
    ) -> Hip {
        let (stream, waits) = self.fill_stream(stream)?;
        let size = count.checked_mul(width).ok_or(hipErrorInvalidValue)?;
        let fill = Fill {
            dst,
            steps: Steps::rows(size),
            pattern: pattern(value.cast_unsigned(), width),
            width,
            size: [size, 1, 1],
        };
        self.queue_fill(&fill, stream, waits)
    }

    /// The stream of a fill (the null stream if none is given), and whether the call may wait for pinned memory. It does
    /// so today also where it is called asynchronous, but nothing promises that.
    pub(crate) fn fill_stream(&mut self, stream: Option<hipStream_t>) -> Hip<(StreamId, bool)> {
        if let Some(stream) = stream {
            let id = self.working_stream(stream)?;
            self.enqueuable(id)?;
            return Ok((id, !self.config.strict && self.captures.of(id).is_none()));
        }
        self.outside_captures(hipErrorStreamCaptureImplicit)?;
        let card = self.healthy_device()?;
        Ok((self.cards[card].null, true))
    }

    /// Checks a fill: what it does, and where it starts. None: there is nothing to do.
    pub(crate) fn prepare_fill(&mut self, fill: &Fill) -> Hip<Option<(OpKind, Place)>> {
        let [row, rows, slices] = fill.size;
        if fill.size.contains(&0) {
            return Ok(None);
        }
        fail_if(fill.dst.is_null(), hipErrorInvalidValue)?;
        let start = self.place(
            fill.dst,
            fill.steps.span(fill.size).ok_or(hipErrorInvalidValue)?,
            Access::Write,
        )?;
        if matches!(start, Place::Pageable { .. }) {
            return Err(hipErrorInvalidValue);
        }
        let all = (0..slices).flat_map(|slice| (0..rows).map(move |row| (row, slice)));
        let parts = all.map(|(index, slice)| OpKind::Fill {
            to: start.offset(fill.steps.at(index, slice)),
            pattern: fill.pattern,
            width: fill.width,
            size: row,
        });
        Ok(Some((one_operation(parts.collect()), start)))
    }

    /// Checks a fill and queues it.
    pub(crate) fn queue_fill(&mut self, fill: &Fill, stream: StreamId, waits: bool) -> Hip {
        let Some((operation, start)) = self.prepare_fill(fill)? else {
            return Ok(());
        };
        let last = self.enqueue(stream, operation, Vec::new());
        // Filling host memory is done by the host.
        match start {
            Place::Pinned { .. } if waits => self.force(&[last]),
            _ => Ok(()),
        }
    }

    cases! {
        fn hipMemsetAsync(dst: *mut c_void, value: c_int, size: usize, stream: hipStream_t)
            => |c| c.memset(dst, value, 1, size, Some(stream));
        fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value, 4, count, Some(stream));
        fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, size: usize)
            => |c| c.hipMemcpy(dst, src, size, hipMemcpyHostToDevice);
        fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, size: usize)
            => |c| c.hipMemcpy(dst, src, size, hipMemcpyDeviceToHost);
        fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize)
            => |c| c.hipMemcpy(dst, src, size, hipMemcpyDeviceToDevice);
        fn hipMemcpyHtoDAsync(dst: hipDeviceptr_t, src: *mut c_void, size: usize, stream: hipStream_t)
            => |c| c.hipMemcpyAsync(dst, src, size, hipMemcpyHostToDevice, stream);
        fn hipMemcpyDtoHAsync(dst: *mut c_void, src: hipDeviceptr_t, size: usize, stream: hipStream_t)
            => |c| c.hipMemcpyAsync(dst, src, size, hipMemcpyDeviceToHost, stream);
        fn hipMemcpyDtoDAsync(dst: hipDeviceptr_t, src: hipDeviceptr_t, size: usize, stream: hipStream_t)
            => |c| c.hipMemcpyAsync(dst, src, size, hipMemcpyDeviceToDevice, stream);
        fn hipMemcpyPeer(dst: *mut c_void, dst_device: c_int, src: *const c_void, src_device: c_int, size: usize)
            => |c| c.memcpy_peer((dst, dst_device), (src, src_device), size, None);
        fn hipMemcpy2D(
            dst: *mut c_void, dst_pitch: usize,
            src: *const c_void, src_pitch: usize,
            width: usize, height: usize,
            kind: hipMemcpyKind,
        ) => |c| c.memcpy_2d([dst_pitch, src_pitch], (dst, src), [width, height], kind, None);
        fn hipMemcpy2DAsync(
            dst: *mut c_void, dst_pitch: usize,
            src: *const c_void, src_pitch: usize,
            width: usize, height: usize,
            kind: hipMemcpyKind,
            stream: hipStream_t,
        ) => |c| c.memcpy_2d([dst_pitch, src_pitch], (dst, src), [width, height], kind, Some(stream));
        fn hipMemset(dst: *mut c_void, value: c_int, size: usize) => |c| c.memset(dst, value, 1, size, None);
        fn hipMemsetD8(dst: hipDeviceptr_t, value: c_uchar, count: usize)
            => |c| c.memset(dst, value.into(), 1, count, None);
        fn hipMemsetD16(dst: hipDeviceptr_t, value: c_ushort, count: usize)
            => |c| c.memset(dst, value.into(), 2, count, None);
        fn hipMemsetD32(dst: hipDeviceptr_t, value: c_int, count: usize) => |c| c.memset(dst, value, 4, count, None);
        fn hipMemsetD8Async(dst: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value.into(), 1, count, Some(stream));
        fn hipMemsetD16Async(dst: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t)
            => |c| c.memset(dst, value.into(), 2, count, Some(stream));
        fn hipMemcpyPeerAsync(dst: *mut c_void, dst_device_id: c_int, src: *const c_void, src_device: c_int, size_bytes: usize, stream: hipStream_t)
            => |c| c.memcpy_peer((dst, dst_device_id), (src, src_device), size_bytes, Some(stream));
    }
}
