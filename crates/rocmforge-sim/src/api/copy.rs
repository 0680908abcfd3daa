//! Copies and fills.

use super::memory::address_of;
use crate::machine::sim::{Call, Hip};
use crate::queues::queue::{Point, StreamId};
use crate::queues::work::{OpKind, Place};
use crate::report::{Access, ReportKind};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

/// What is copied: rows of `size[0]` bytes, `size[1]` of them, `pitches` (destination, source) apart.
#[derive(Clone, Copy)]
struct Copied {
    dst: *mut c_void,
    src: *const c_void,
    pitches: [usize; 2],
    size: [usize; 2],
}

/// What is filled: rows of `size[0]` bytes, `size[1]` of them, `pitch` apart, with a pattern of `width` bytes.
pub(crate) struct Fill {
    pub(crate) dst: *mut c_void,
    pub(crate) pitch: usize,
    pub(crate) pattern: [u8; 4],
    pub(crate) width: usize,
    pub(crate) size: [usize; 2],
}

impl Copied {
    fn flat(dst: *mut c_void, src: *const c_void, size: usize) -> Self {
        Self {
            dst,
            src,
            pitches: [size; 2],
            size: [size, 1],
        }
    }
}

impl Call<'_> {
    /// What lies at `pointer`. Where HIP knows the memory, it checks that `size` bytes are there.
    fn place(&mut self, pointer: *const c_void, size: usize, access: Access) -> Hip<Place> {
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

    /// Checks a copy and queues it. None: there is nothing to do.
    fn queue_copy(
        &mut self,
        copy: Copied,
        kind: hipMemcpyKind,
        stream: StreamId,
    ) -> Hip<Option<(Place, Place, Point)>> {
        let Copied { dst, src, .. } = copy;
        let [width, height] = copy.size;
        if width == 0 || height == 0 {
            return Ok(None);
        }
        if dst.is_null() || src.is_null() {
            return Err(hipErrorInvalidValue);
        }
        if kind > hipMemcpyDefault {
            return Err(hipErrorInvalidMemcpyDirection);
        }
        let [to_pitch, from_pitch] = copy.pitches;
        let to = self.place(dst, rows_span(to_pitch, copy.size)?, Access::Write)?;
        let from = self.place(src, rows_span(from_pitch, copy.size)?, Access::Read)?;
        let pageable = |place| matches!(place, Place::Pageable { .. });
        if pageable(to) && pageable(from) && kind != hipMemcpyHostToHost && kind != hipMemcpyDefault {
            return Err(hipErrorInvalidValue);
        }
        let mut point = None;
        for row in 0..height {
            let (to, from) = (to.offset(row * to_pitch), from.offset(row * from_pitch));
            point = Some(self.enqueue(stream, OpKind::Copy { to, from, size: width }, Vec::new()));
        }
        Ok(point.map(|point| (to, from, point)))
    }

    pub(crate) fn memcpy_async(
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

    fn copy_async(&mut self, copy: Copied, kind: hipMemcpyKind, stream: StreamId) -> Hip {
        self.enqueuable(stream)?;
        let Some((to, from, point)) = self.queue_copy(copy, kind, stream)? else {
            return Ok(());
        };
        if self.captures.of(stream).is_some() {
            return Ok(());
        }
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
    pub(crate) fn memcpy(&mut self, dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> Hip {
        self.copy_and_wait(Copied::flat(dst, src, size), kind)
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
        let copy = Copied {
            dst,
            src,
            pitches,
            size,
        };
        match stream {
            Some(stream) => self.copy_async(copy, kind, stream),
            None => self.copy_and_wait(copy, kind),
        }
    }

    pub(crate) fn memcpy_peer(
        &mut self,
        (dst, dst_device): (*mut c_void, c_int),
        (src, src_device): (*const c_void, c_int),
        size: usize,
    ) -> Hip {
        let (to, from) = (self.card_index(dst_device)?, self.card_index(src_device)?);
        let lies_on = |pointer, card| self.card_of(address_of(pointer)).is_none_or(|found| found == card);
        if !lies_on(dst, to) || !lies_on(src, from) {
            return Err(hipErrorInvalidValue);
        }
        self.memcpy(dst, src, size, hipMemcpyDeviceToDevice)
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
        let mut pattern = [0; 4];
        for part in pattern.chunks_mut(width) {
            part.copy_from_slice(&value.to_le_bytes()[..width]);
        }
        let size = count.checked_mul(width).ok_or(hipErrorInvalidValue)?;
        let fill = Fill {
            dst,
            pitch: size,
            pattern,
            width,
            size: [size, 1],
        };
        self.queue_fill(fill, stream, waits)
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

    /// Checks a fill and queues it.
    pub(crate) fn queue_fill(&mut self, fill: Fill, stream: StreamId, waits: bool) -> Hip {
        let [row, rows] = fill.size;
        if row == 0 || rows == 0 {
            return Ok(());
        }
        if fill.dst.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let start = self.place(fill.dst, rows_span(fill.pitch, fill.size)?, Access::Write)?;
        if matches!(start, Place::Pageable { .. }) {
            return Err(hipErrorInvalidValue);
        }
        let mut last = None;
        for index in 0..rows {
            let operation = OpKind::Fill {
                to: start.offset(index * fill.pitch),
                pattern: fill.pattern,
                width: fill.width,
                size: row,
            };
            last = Some(self.enqueue(stream, operation, Vec::new()));
        }
        // Filling host memory is done by the host.
        match (start, last) {
            (Place::Pinned { .. }, Some(last)) if waits => self.force(&[last]),
            _ => Ok(()),
        }
    }
}

/// Bytes from the first byte of the first row to the last of the last one.
fn rows_span(pitch: usize, [width, height]: [usize; 2]) -> Hip<usize> {
    pitch
        .checked_mul(height - 1)
        .and_then(|before| before.checked_add(width))
        .ok_or(hipErrorInvalidValue)
}
