//! Device memory: allocate, free, query.

use super::{answer, answer_if_asked, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::vram::Allocation;
use crate::report::{Access, ReportKind};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// What there is to say about a pointer HIP does not know.
pub(super) const UNKNOWN: hipPointerAttribute_t = hipPointerAttribute_t {
    r#type: hipMemoryTypeUnregistered,
    device: 0,
    devicePointer: std::ptr::null_mut(),
    hostPointer: std::ptr::null_mut(),
    isManaged: 0,
    allocationFlags: 0,
};

/// `hipDeviceMallocUncached`: no cache is simulated.
const MALLOC_UNCACHED: c_uint = 0x3;

pub(crate) fn address_of(pointer: *const c_void) -> u64 {
    pointer.addr() as u64
}

pub(crate) fn pointer_to(address: u64) -> *mut c_void {
    std::ptr::without_provenance_mut(address as usize)
}

impl Call<'_> {
    pub(crate) unsafe fn hipMemGetInfo(&mut self, free: *mut usize, total: *mut usize) -> Hip {
        let index = self.healthy_device()?;
        let card = &self.cards[index];
        let available = card.vram.reported_available(card.taken());
        let (available, size) = (
            available.saturating_sub(self.config.hidden_free.0),
            card.config.pool().0,
        );
        let (available, size) = self
            .reported_by_hip(index, available, size)
            .ok_or(hipErrorNotSupported)?;
        for (to, value) in [(free, available), (total, size)] {
            // SAFETY: promised by the caller of the HIP function.
            unsafe { answer_if_asked(to, value as usize) };
        }
        Ok(())
    }

    pub(crate) unsafe fn hipMalloc(&mut self, ptr: *mut *mut c_void, size: usize) -> Hip {
        required(ptr)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        let address = if size == 0 { 0 } else { self.allocate(card, size)? };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(ptr, pointer_to(address)) }
    }

    pub(crate) fn allocate(&mut self, card: usize, size: usize) -> Hip<u64> {
        let (id, call) = (self.new_id(), self.number);
        let card = &mut self.cards[card];
        let other = card.taken();
        let allocated = card.vram.allocate(size as u64, other, id, call);
        let address = allocated.map_err(|_| hipErrorOutOfMemory)?;
        self.trace.number(address);
        Ok(address)
    }

    /// `hipFree`. As AMD's implementation does it, a pointer into an allocation frees all of it; and it waits for
    /// everything on the card first, unless the simulation is strict (nothing promises it).
    pub(crate) fn hipFree(&mut self, pointer: *mut c_void) -> Hip {
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        if pointer.is_null() {
            return Ok(());
        }
        let address = address_of(pointer);
        let Some(card) = self.card_of(address) else {
            return self.free_unknown(pointer);
        };
        if let Some(result) = self.free_block(address) {
            if result == Err(hipErrorInvalidValue) {
                self.report_dead_free(card, address);
            }
            return result;
        }
        let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
            self.report_dead_free(card, address);
            return Err(hipErrorInvalidValue);
        };
        if allocation.global {
            let message = "the pointer leads to a variable of a module, which goes with the module";
            self.report(ReportKind::InvalidFree, message);
            return Err(hipErrorInvalidValue);
        }
        self.not_mapped(&allocation)?;
        if allocation.address != address {
            let message = format!(
                "the pointer is {} B into the allocation; HIP frees all of it, under whoever else uses it",
                address - allocation.address
            );
            let report = self.about(ReportKind::InteriorFree, message);
            let report = report.at(None, address, 0, Some(allocation.info()));
            (**self).report(report);
        }
        self.first_free(card, allocation.id, address)?;
        // HIP 7 promises no wait for memory of a pool.
        if !(self.hip7() && self.pools.owns(allocation.id)) {
            self.wait_for_card(card)?;
        }
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
        let found = self.pinned.at(pointer.addr()).filter(|range| range.block.is_some());
        let managed = found.map(|range| range.managed);
        if managed == Some(true) {
            return self.hipHostFree(pointer);
        }
        if managed.is_some() {
            self.report(
                ReportKind::InvalidFree,
                "hipFree of memory from hipHostMalloc works today; use hipHostFree",
            );
            return self.hipHostFree(pointer);
        }
        self.report(ReportKind::InvalidFree, "the pointer is not device memory");
        Err(hipErrorInvalidValue)
    }

    pub(crate) fn report_dead_free(&mut self, card: usize, address: u64) {
        let freed = self.cards[card].vram.find_freed(address);
        let (kind, message) = match freed {
            Some(_) => (ReportKind::DoubleFree, "the allocation had been freed before"),
            None => (ReportKind::InvalidFree, "no allocation was ever there"),
        };
        let report = self.about(kind, message).at(None, address, 0, freed);
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

    /// Reports that something is enqueued which uses memory that lies idle in a pool of the program's. A real card has no
    /// way to know, and does it.
    pub(crate) fn report_idle_access(
        &mut self,
        allocation: &Allocation,
        address: u64,
        size: usize,
        access: Option<Access>,
    ) {
        let message = "the memory lies idle in a pool of the program: its last owner has given it back";
        let report = self.about(ReportKind::UseAfterFree, message);
        (**self).report(report.at(access, address, size as u64, Some(allocation.info())));
    }

    /// First byte, size and number of the memory that HIP knows at a pointer: of a live allocation on a card, or of host memory.
    pub(super) fn range_of(&self, pointer: *const c_void) -> Option<(u64, u64, u64)> {
        match self.card_of(address_of(pointer)) {
            Some(card) => {
                (self.cards[card].vram.find(address_of(pointer))).map(|found| (found.address, found.size, found.id))
            }
            None => (self.pinned.find(pointer.addr())).map(|found| (found.address as u64, found.size as u64, found.id)),
        }
    }

    /// First byte and size of the memory that HIP knows at a pointer.
    pub(crate) fn allocation(&self, pointer: *const c_void, otherwise: hipError_t) -> Hip<(u64, u64)> {
        let (start, size, _) = self.range_of(pointer).ok_or(otherwise)?;
        Ok((start, size))
    }

    pub(crate) unsafe fn hipExtMallocWithFlags(&mut self, ptr: *mut *mut c_void, size: usize, flags: c_uint) -> Hip {
        match flags {
            hipDeviceMallocDefault | hipDeviceMallocFinegrained | MALLOC_UNCACHED => {}
            // The host reaches it too: such memory is for values that streams wait for.
            hipMallocSignalMemory if size == 8 => {
                // SAFETY: promised by the caller of the HIP function.
                return unsafe { self.hipMallocManaged(ptr, size, hipMemAttachGlobal) };
            }
            _ => return Err(hipErrorInvalidValue),
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.hipMalloc(ptr, size) }
    }

    /// Nothing can be set: the one attribute that HIP lets be set turns copies into waits, which would hide races.
    pub(crate) fn hipPointerSetAttribute(
        &mut self,
        value: *const c_void,
        attribute: hipPointer_attribute,
        pointer: hipDeviceptr_t,
    ) -> Hip {
        required(value)?;
        fail_if(attribute != HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, hipErrorInvalidValue)?;
        if self.card_of(address_of(pointer)).is_none() {
            return Err(hipErrorInvalidDevicePointer);
        }
        self.allocation(pointer, hipErrorInvalidDevicePointer)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) unsafe fn hipPointerGetAttributes(
        &mut self,
        attributes: *mut hipPointerAttribute_t,
        pointer: *const c_void,
    ) -> Hip {
        required(attributes)?;
        fail_if(pointer.is_null() && !self.hip7(), hipErrorInvalidValue)?;
        let mut found = UNKNOWN;
        if let Some(card) = self.card_of(address_of(pointer)) {
            self.allocation(pointer, hipErrorInvalidValue)?;
            found.r#type = hipMemoryTypeDevice;
            found.device = card as c_int;
            found.devicePointer = pointer.cast_mut();
        } else if let Some(range) = self.pinned.find(pointer.addr()) {
            found.r#type = if range.managed {
                hipMemoryTypeManaged
            } else {
                hipMemoryTypeHost
            };
            found.isManaged = c_int::from(range.managed);
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

    cases! {
        fn hipMemPtrGetInfo(pointer: *mut c_void, size: *mut usize) => |c| {
            required(size)?;
            let (_, found) = c.allocation(pointer, hipErrorInvalidValue)?;
            answer(size, found as usize)
        };
        fn hipMemGetAddressRange(base: *mut hipDeviceptr_t, size: *mut usize, pointer: hipDeviceptr_t) => |c| {
            let (address, found) = c.allocation(pointer, hipErrorNotFound)?;
            answer_if_asked(base, pointer_to(address));
            answer_if_asked(size, found as usize);
            Ok(())
        };
    }
}
