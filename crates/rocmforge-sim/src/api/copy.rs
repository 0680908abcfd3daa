//! Copies and fills.

use super::memory::address_of;
use crate::queue::{Point, StreamId};
use crate::report::{Access, ReportKind};
use crate::sim::{Call, Hip};
use crate::work::{OpKind, Place};
use rocmforge_hip_sys::*;
use std::ffi::c_void;

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
            if size as u64 > allocation.end() - address {
                let message = format!("{} B are left from there to the end", allocation.end() - address);
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
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: StreamId,
    ) -> Hip<Option<(Place, Place, Point)>> {
        if size == 0 {
            return Ok(None);
        }
        if dst.is_null() || src.is_null() {
            return Err(hipErrorInvalidValue);
        }
        if kind > hipMemcpyDefault {
            return Err(hipErrorInvalidMemcpyDirection);
        }
        let to = self.place(dst, size, Access::Write)?;
        let from = self.place(src, size, Access::Read)?;
        let pageable = |place| matches!(place, Place::Pageable { .. });
        if pageable(to) && pageable(from) && kind != hipMemcpyHostToHost && kind != hipMemcpyDefault {
            return Err(hipErrorInvalidValue);
        }
        let point = self.enqueue(stream, OpKind::Copy { to, from, size }, Vec::new());
        Ok(Some((to, from, point)))
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
        let Some((to, from, point)) = self.queue_copy(dst, src, size, kind, stream)? else {
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
    pub(crate) fn memcpy(&mut self, dst: *mut c_void, src: *const c_void, size: usize, kind: hipMemcpyKind) -> Hip {
        let card = self.healthy_device()?;
        let null = self.cards[card].null;
        let Some((to, from, point)) = self.queue_copy(dst, src, size, kind, null)? else {
            return Ok(());
        };
        let on_device = matches!((to, from), (Place::Device { .. }, Place::Device { .. }));
        if on_device { Ok(()) } else { self.force(&[point]) }
    }

    fn queue_fill(&mut self, dst: *mut c_void, pattern: [u8; 4], width: usize, size: usize, stream: StreamId) -> Hip {
        if size == 0 {
            return Ok(());
        }
        if dst.is_null() {
            return Err(hipErrorInvalidValue);
        }
        let to = self.place(dst, size, Access::Write)?;
        if matches!(to, Place::Pageable { .. }) {
            return Err(hipErrorInvalidValue);
        }
        let point = self.enqueue(
            stream,
            OpKind::Fill {
                to,
                pattern,
                width,
                size,
            },
            Vec::new(),
        );
        // Filling host memory is done by the host.
        if matches!(to, Place::Pinned { .. }) {
            self.force(&[point])
        } else {
            Ok(())
        }
    }

    pub(crate) fn memset_async(&mut self, dst: *mut c_void, value: i32, size: usize, stream: hipStream_t) -> Hip {
        let stream = self.working_stream(stream)?;
        self.queue_fill(dst, [value as u8; 4], 1, size, stream)
    }

    pub(crate) fn memset_d32_async(
        &mut self,
        dst: hipDeviceptr_t,
        value: i32,
        count: usize,
        stream: hipStream_t,
    ) -> Hip {
        let stream = self.working_stream(stream)?;
        let size = count.checked_mul(4).ok_or(hipErrorInvalidValue)?;
        self.queue_fill(dst, value.to_le_bytes(), 4, size, stream)
    }

    /// `hipMemset`: on the null stream, asynchronous for device memory.
    pub(crate) fn memset(&mut self, dst: *mut c_void, value: i32, size: usize) -> Hip {
        let card = self.healthy_device()?;
        let null = self.cards[card].null;
        self.queue_fill(dst, [value as u8; 4], 1, size, null)
    }
}
