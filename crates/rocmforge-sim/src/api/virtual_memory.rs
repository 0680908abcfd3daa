//! Virtual memory: addresses are reserved, physical memory is created, mapped into them and made accessible.
//!
//! Kernels and copies reach what is mapped and accessible only. A piece of physical memory can be mapped at one place at a time, and
//! read-only access cannot be had: both are refused with `hipErrorNotSupported`.

use super::memory::{address_of, pointer_to};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::host::Host;
use crate::machine::virtual_memory::{Mapping, Physical, Reservation};
use crate::machine::vram::Allocation;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{c_ulonglong, c_void};

/// What virtual memory is given out in.
const GRANULARITY: usize = 4096;

/// Whether a size is one that virtual memory can have.
fn whole(size: usize) -> bool {
    size != 0 && size.is_multiple_of(GRANULARITY)
}

impl Call<'_> {
    /// The program's wish for an address is only a wish.
    pub(crate) unsafe fn hipMemAddressReserve(
        &mut self,
        pointer: *mut *mut c_void,
        size: usize,
        alignment: usize,
        _address: *mut c_void,
        flags: c_ulonglong,
    ) -> Hip {
        required(pointer)?;
        fail_if(flags != 0, hipErrorInvalidValue)?;
        if !whole(size) || (alignment != 0 && !alignment.is_power_of_two()) {
            return Err(hipErrorOutOfMemory);
        }
        let card = self.healthy_device()?;
        let size = size as u64;
        let vram = &mut self.cards[card].vram;
        let reserved = vram.reserve(size, alignment.max(GRANULARITY) as u64);
        let (address, placed) = reserved.ok_or(hipErrorOutOfMemory)?;
        let reservation = Reservation {
            card,
            size,
            placed,
            mappings: BTreeMap::new(),
        };
        self.virtual_memory.reservations.insert(address, reservation);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(pointer, pointer_to(address)) }
    }

    pub(crate) fn hipMemAddressFree(&mut self, pointer: *mut c_void, size: usize) -> Hip {
        let address = address_of(pointer);
        let found = self.virtual_memory.reservations.get(&address);
        let found = found.ok_or(hipErrorInvalidValue)?;
        if found.size != size as u64 || !found.mappings.is_empty() {
            return Err(hipErrorInvalidValue);
        }
        let (card, placed) = (found.card, found.placed);
        self.virtual_memory.reservations.remove(&address);
        self.cards[card].vram.give_back(placed);
        Ok(())
    }

    /// Whether memory of these properties can be had, and on which card.
    ///
    /// # Safety
    /// `properties` is null or has properties.
    unsafe fn wanted_memory(&self, properties: *const hipMemAllocationProp) -> Hip<(usize, hipMemAllocationProp)> {
        required(properties)?;
        // SAFETY: promised by the caller; not null.
        let wanted = unsafe { properties.read() };
        fail_if(wanted.r#type != hipMemAllocationTypePinned, hipErrorInvalidValue)?;
        Ok((self.location(&wanted.location)?, wanted))
    }

    pub(crate) unsafe fn hipMemCreate(
        &mut self,
        handle: *mut hipMemGenericAllocationHandle_t,
        size: usize,
        properties: *const hipMemAllocationProp,
        flags: c_ulonglong,
    ) -> Hip {
        required(handle)?;
        required(properties)?;
        fail_if(!whole(size) || flags != 0, hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        let (card, properties) = unsafe { self.wanted_memory(properties) }?;
        self.healthy(card)?;
        let (size, other, call) = (size as u64, self.cards[card].taken(), self.number);
        let charged = self.cards[card].vram.charge(size, other);
        charged.map_err(|_| hipErrorOutOfMemory)?;
        let physical = Physical {
            card,
            size,
            properties,
            references: 1,
            mapped: false,
            contents: Vec::new(),
        };
        let made = self.virtual_memory.physical.insert(physical, call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(handle, std::ptr::without_provenance_mut(made as usize)) }
    }

    /// The physical memory of a handle that the program holds.
    fn physical(&mut self, handle: hipMemGenericAllocationHandle_t) -> Hip<&mut Physical> {
        required(handle)?;
        let number = handle.addr() as u64;
        let held = |found: &Physical| found.references > 0;
        if !self.virtual_memory.physical.get(number).is_some_and(held) {
            self.report(
                ReportKind::StaleHandle,
                "the physical memory has been released or never was any",
            );
            return Err(hipErrorInvalidValue);
        }
        let found = self.virtual_memory.physical.get_mut(number);
        found.ok_or(hipErrorInvalidValue)
    }

    pub(crate) fn hipMemRelease(&mut self, handle: hipMemGenericAllocationHandle_t) -> Hip {
        self.physical(handle)?.references -= 1;
        self.drop_physical(handle.addr() as u64);
        Ok(())
    }

    /// Gives physical memory back if nobody holds it.
    fn drop_physical(&mut self, handle: u64) {
        let unused = |found: &&Physical| found.references == 0 && !found.mapped;
        let Some(found) = self.virtual_memory.physical.get(handle).filter(unused) else {
            return;
        };
        let (card, size) = (found.card, found.size);
        self.virtual_memory.physical.remove(handle);
        self.cards[card].vram.give_back_charge(size);
    }

    pub(crate) fn hipMemMap(
        &mut self,
        pointer: *mut c_void,
        size: usize,
        offset: usize,
        handle: hipMemGenericAllocationHandle_t,
        flags: c_ulonglong,
    ) -> Hip {
        required(pointer)?;
        fail_if(!whole(size) || offset != 0 || flags != 0, hipErrorInvalidValue)?;
        let (address, size) = (address_of(pointer), size as u64);
        let found = self.physical(handle)?;
        let (card, mapped) = (found.card, found.mapped);
        fail_if(size > found.size, hipErrorInvalidValue)?;
        let found = self.virtual_memory.reservation(address, size);
        let (_, reservation) = found.ok_or(hipErrorInvalidValue)?;
        let before = reservation.mappings.range(..address + size).next_back();
        let taken = before.is_some_and(|(start, mapping)| start + mapping.size > address);
        if taken || !address.is_multiple_of(GRANULARITY as u64) {
            return Err(hipErrorInvalidValue);
        }
        fail_if(mapped || reservation.card != card, hipErrorNotSupported)?;
        let mapping = Mapping {
            size,
            physical: handle.addr() as u64,
            accessible: false,
        };
        reservation.mappings.insert(address, mapping);
        self.physical(handle)?.mapped = true;
        Ok(())
    }

    /// The reservation of a range that consists of whole mappings, and their addresses.
    fn mapped_range(&mut self, pointer: *mut c_void, size: usize) -> Hip<(u64, Vec<u64>)> {
        required(pointer)?;
        let address = address_of(pointer);
        let found = self.virtual_memory.reservation(address, size as u64);
        let (start, reservation) = found.ok_or(hipErrorInvalidValue)?;
        let mappings = reservation.covered(address, size as u64);
        fail_if(mappings.is_empty(), hipErrorInvalidValue)?;
        Ok((start, mappings))
    }

    pub(crate) fn hipMemUnmap(&mut self, pointer: *mut c_void, size: usize) -> Hip {
        let (start, mappings) = self.mapped_range(pointer, size)?;
        self.set_accessible(start, &mappings, false)?;
        for address in mappings {
            let reservation = self.virtual_memory.reservations.get_mut(&start);
            let Some(mapping) = reservation.and_then(|found| found.mappings.remove(&address)) else {
                continue;
            };
            if let Some(physical) = self.virtual_memory.physical.get_mut(mapping.physical) {
                physical.mapped = false;
            }
            self.drop_physical(mapping.physical);
        }
        Ok(())
    }

    /// Makes mappings of a reservation accessible, or takes that away, for which it waits as `hipFree` does.
    fn set_accessible(&mut self, start: u64, mappings: &[u64], accessible: bool) -> Hip {
        let found = self.virtual_memory.reservations.get(&start);
        let card = found.map(|found| found.card).ok_or(hipErrorInvalidValue)?;
        if !accessible {
            self.wait_for_card(card)?;
        }
        for address in mappings {
            let reservation = self.virtual_memory.reservations.get_mut(&start);
            let Some(mapping) = reservation.and_then(|found| found.mappings.get_mut(address)) else {
                continue;
            };
            if mapping.accessible == accessible {
                continue;
            }
            mapping.accessible = accessible;
            let (size, handle) = (mapping.size, mapping.physical);
            let host: &mut Host = self;
            let vram = &mut host.cards[card].vram;
            let Some(physical) = host.virtual_memory.physical.get_mut(handle) else {
                continue;
            };
            if accessible {
                vram.show(*address, size, &std::mem::take(&mut physical.contents));
            } else {
                physical.contents = vram.hide(*address, size);
            }
        }
        self.know_accessible(card, start);
        Ok(())
    }

    /// Makes the accessible parts of a reservation what copies may name. A part that starts where one did before stays the same
    /// allocation, whatever its length is now.
    fn know_accessible(&mut self, card: usize, start: u64) {
        let Some(found) = self.virtual_memory.reservations.get(&start) else {
            return;
        };
        let (size, parts) = (found.size, found.accessible());
        let known = self.cards[card].vram.mapped_within(start, size);
        let actor = self.as_actor();
        for old in &known {
            if !parts.iter().any(|(address, _)| *address == old.address) {
                self.remember_freed(card, old, &actor);
            }
            self.cards[card].vram.remove_mapped(old.address);
        }
        for (address, size) in parts {
            let same = known.iter().find(|old| old.address == address);
            let (id, call) = match same {
                Some(old) => (old.id, old.allocated_by),
                None => (self.new_id(), self.number),
            };
            self.cards[card].vram.add_mapped(address, size, id, call);
        }
    }

    pub(crate) unsafe fn hipMemSetAccess(
        &mut self,
        pointer: *mut c_void,
        size: usize,
        list: *const hipMemAccessDesc,
        count: usize,
    ) -> Hip {
        required(list)?;
        fail_if(count == 0, hipErrorInvalidValue)?;
        let (start, mappings) = self.mapped_range(pointer, size)?;
        let own = self.virtual_memory.reservations.get(&start).map(|found| found.card);
        let mut accessible = None;
        for index in 0..count {
            // SAFETY: promised by the caller of the HIP function: there are `count` entries.
            let wanted = unsafe { list.wrapping_add(index).read() };
            let card = self.location(&wanted.location)?;
            let access = match wanted.flags {
                hipMemAccessFlagsProtNone => false,
                hipMemAccessFlagsProtReadWrite => true,
                hipMemAccessFlagsProtRead => return Err(hipErrorNotSupported),
                _ => return Err(hipErrorInvalidValue),
            };
            if Some(card) == own {
                accessible = Some(access);
            } else if access {
                // Only the memory's own card reaches it.
                return Err(hipErrorInvalidDevice);
            }
        }
        match accessible {
            Some(accessible) => self.set_accessible(start, &mappings, accessible),
            None => Ok(()),
        }
    }

    pub(crate) unsafe fn hipMemGetAccess(
        &mut self,
        flags: *mut c_ulonglong,
        location: *const hipMemLocation,
        pointer: *mut c_void,
    ) -> Hip {
        required(flags)?;
        required(location)?;
        required(pointer)?;
        // SAFETY: promised by the caller of the HIP function.
        let card = self.location(unsafe { &*location })?;
        let (own, mapping) = self.mapping_at(address_of(pointer)).ok_or(hipErrorInvalidValue)?;
        let found = match mapping.accessible && card == own {
            true => hipMemAccessFlagsProtReadWrite,
            false => hipMemAccessFlagsProtNone,
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(flags, found.into()) }
    }

    /// The mapping at an address, and the card of its reservation.
    fn mapping_at(&mut self, address: u64) -> Option<(usize, Mapping)> {
        let (_, reservation) = self.virtual_memory.reservation(address, 1)?;
        let (start, mapping) = reservation.mappings.range(..=address).next_back()?;
        (address < start + mapping.size).then_some((reservation.card, *mapping))
    }

    pub(crate) unsafe fn hipMemGetAllocationGranularity(
        &mut self,
        granularity: *mut usize,
        properties: *const hipMemAllocationProp,
        option: hipMemAllocationGranularity_flags,
    ) -> Hip {
        required(granularity)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.wanted_memory(properties) }?;
        fail_if(option > hipMemAllocationGranularityRecommended, hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(granularity, GRANULARITY) }
    }

    pub(crate) unsafe fn hipMemRetainAllocationHandle(
        &mut self,
        handle: *mut hipMemGenericAllocationHandle_t,
        pointer: *mut c_void,
    ) -> Hip {
        required(handle)?;
        required(pointer)?;
        let (_, mapping) = self.mapping_at(address_of(pointer)).ok_or(hipErrorInvalidValue)?;
        let physical = self.virtual_memory.physical.get_mut(mapping.physical);
        physical.ok_or(hipErrorInvalidValue)?.references += 1;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(handle, std::ptr::without_provenance_mut(mapping.physical as usize)) }
    }

    /// Memory is not made for other processes.
    pub(crate) fn hipMemExportToShareableHandle(
        &mut self,
        shared: *mut c_void,
        handle: hipMemGenericAllocationHandle_t,
        _kind: hipMemAllocationHandleType,
        flags: c_ulonglong,
    ) -> Hip {
        required(shared)?;
        self.physical(handle)?;
        fail_if(flags != 0, hipErrorInvalidValue)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipMemImportFromShareableHandle(
        &mut self,
        handle: *mut hipMemGenericAllocationHandle_t,
        shared: *mut c_void,
        _kind: hipMemAllocationHandleType,
    ) -> Hip {
        required(handle)?;
        required(shared)?;
        Err(hipErrorNotSupported)
    }

    /// Refuses to free what belongs to a reserved range.
    pub(crate) fn not_mapped(&mut self, allocation: &Allocation) -> Hip {
        if allocation.mapped {
            self.report(
                ReportKind::InvalidFree,
                "the pointer leads to mapped memory, which hipMemUnmap takes away",
            );
            return Err(hipErrorInvalidValue);
        }
        Ok(())
    }

    /// Reservations and physical memory of a card are gone.
    pub(crate) fn forget_virtual_memory(&mut self, card: usize) {
        let host: &mut Host = self;
        let vram = &mut host.cards[card].vram;
        host.virtual_memory.reservations.retain(|start, found| {
            if found.card != card {
                return true;
            }
            for (address, mapping) in &found.mappings {
                vram.hide(*address, mapping.size);
            }
            for part in vram.mapped_within(*start, found.size) {
                vram.remove_mapped(part.address);
            }
            vram.give_back(found.placed);
            false
        });
        for found in host.virtual_memory.physical.values_mut() {
            if found.card == card {
                vram.give_back_charge(found.size);
            }
        }
        host.virtual_memory.physical.retain(|found| found.card != card);
    }

    cases! {
        fn hipMemGetAllocationPropertiesFromHandle(properties: *mut hipMemAllocationProp, handle: hipMemGenericAllocationHandle_t)
            => |c| { required(properties)?; answer(properties, c.physical(handle)?.properties) };
    }
}
