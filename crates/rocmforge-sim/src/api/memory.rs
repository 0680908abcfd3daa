//! Device memory: allocate, free, query.

use super::{answer, required};
use crate::report::{Access, ReportKind};
use crate::sim::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

/// Host memory of [`hipMemoryType`] in the numbering of HIP 6 and later.
pub(crate) fn address_of(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

pub(crate) fn pointer_to(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

impl Call<'_> {
    pub(crate) unsafe fn mem_get_info(&mut self, free: *mut usize, total: *mut usize) -> Hip {
        let index = self.healthy_device()?;
        let card = &self.cards[index];
        let available = card.vram.reported_available(card.taken());
        let (available, size) = (available.saturating_sub(self.config.hidden_free.0), card.config.vram.0);
        let (available, size) = self.told_by_hip(index, available, size).ok_or(hipErrorNotSupported)?;
        for (to, value) in [(free, available), (total, size)] {
            if !to.is_null() {
                // SAFETY: promised by the caller of the HIP function.
                unsafe { answer(to, value as usize) }?;
            }
        }
        Ok(())
    }

    pub(crate) unsafe fn malloc(&mut self, ptr: *mut *mut c_void, size: usize) -> Hip {
        required(ptr)?;
        let card = self.healthy_device()?;
        let address = if size == 0 { 0 } else { self.allocate(card, size)? };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(ptr, pointer_to(address)) }
    }

    pub(crate) fn allocate(&mut self, card: usize, size: usize) -> Hip<u64> {
        let (id, call) = (self.new_id(), self.number);
        let card = &mut self.cards[card];
        let other = card.taken();
        let address = card
            .vram
            .allocate(size as u64, other, id, call)
            .map_err(|_| hipErrorOutOfMemory)?;
        self.trace.number(address);
        Ok(address)
    }

    /// `hipFree`. As AMD's implementation does it, a pointer into an allocation frees all of it; and it waits for
    /// everything on the card first, unless the simulation is strict (nothing promises it).
    pub(crate) fn free(&mut self, pointer: *mut c_void) -> Hip {
        if pointer.is_null() {
            return Ok(());
        }
        let address = address_of(pointer);
        let Some(card) = self.card_of(address) else {
            return self.free_unknown(pointer);
        };
        let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
            self.report_dead_free(card, address);
            return Err(hipErrorInvalidValue);
        };
        if allocation.address != address {
            let message = format!(
                "the pointer is {} B into the allocation; HIP frees all of it, under whoever else uses it",
                address - allocation.address
            );
            let report = self.about(ReportKind::InteriorFree, message);
            let report = report.at(None, address, 0, Some(allocation.info()));
            (**self).report(report);
        }
        self.wait_for_card(card)?;
        let actor = self.as_actor();
        self.release(card, allocation.address, &actor);
        Ok(())
    }

    /// The wait that is an accident of `hipFree` and its kin.
    pub(crate) fn wait_for_card(&mut self, card: usize) -> Hip {
        if self.config.strict {
            return self.healthy(card);
        }
        let all = self.queues.all_of(card);
        self.force(&all)?;
        self.knows_card(card);
        self.healthy(card)
    }

    fn free_unknown(&mut self, pointer: *mut c_void) -> Hip {
        if self
            .pinned
            .at(pointer.addr())
            .is_some_and(|range| range.block.is_some())
        {
            let message = "hipFree of memory from hipHostMalloc works today; use hipHostFree".to_owned();
            self.report(ReportKind::InvalidFree, message);
            return self.host_free(pointer);
        }
        self.report(ReportKind::InvalidFree, "the pointer is not device memory".to_owned());
        Err(hipErrorInvalidValue)
    }

    pub(crate) fn report_dead_free(&mut self, card: usize, address: u64) {
        let freed = self.cards[card].vram.find_freed(address);
        let (kind, message) = match freed {
            Some(_) => (ReportKind::DoubleFree, "the allocation had been freed before"),
            None => (ReportKind::InvalidFree, "no allocation was ever there"),
        };
        let report = self.about(kind, message.to_owned()).at(None, address, 0, freed);
        (**self).report(report);
    }

    /// Reports an access by a call to device memory that is not allocated.
    pub(crate) fn report_dead_access(&mut self, card: usize, address: u64, size: usize, access: Access) {
        let vram = &self.cards[card].vram;
        let freed = vram.find_freed(address);
        let near = vram.blame(address);
        let (kind, message) = match freed {
            Some(_) => (ReportKind::UseAfterFree, "the memory has been freed"),
            None => (ReportKind::OutOfBounds, "no allocation is there"),
        };
        let report = self
            .about(kind, message.to_owned())
            .at(Some(access), address, size as u64, freed.or(near));
        (**self).report(report);
    }

    pub(crate) unsafe fn pointer_get_attributes(
        &mut self,
        attributes: *mut hipPointerAttribute_t,
        pointer: *const c_void,
    ) -> Hip {
        required(attributes)?;
        if pointer.is_null() && !self.hip7() {
            return Err(hipErrorInvalidValue);
        }
        let mut found = hipPointerAttribute_t {
            r#type: hipMemoryTypeUnregistered,
            device: 0,
            devicePointer: std::ptr::null_mut(),
            hostPointer: std::ptr::null_mut(),
            isManaged: 0,
            allocationFlags: 0,
        };
        if let Some(card) = self.card_of(address_of(pointer)) {
            if self.cards[card].vram.find(address_of(pointer)).is_none() {
                return Err(hipErrorInvalidValue);
            }
            found.r#type = hipMemoryTypeDevice;
            found.device = card as c_int;
            found.devicePointer = pointer.cast_mut();
        } else if let Some(range) = self.pinned.find(pointer.addr()) {
            found.r#type = hipMemoryTypeHost;
            found.device = range.card as c_int;
            found.devicePointer = pointer.cast_mut();
            found.hostPointer = pointer.cast_mut();
            found.allocationFlags = range.flags;
        } else {
            found.hostPointer = pointer.cast_mut();
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(attributes, found) }
    }
}
