//! Stream-ordered memory and its pools, which the safe runtime does not use.

use super::memory::{address_of, pointer_to};
use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::pools::Pool;
use crate::queues::op::OpKind;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_void};

impl Call<'_> {
    pub(crate) unsafe fn hipMallocAsync(&mut self, ptr: *mut *mut c_void, size: usize, stream: hipStream_t) -> Hip {
        required(ptr)?;
        let card = self.device();
        let pool = self.cards[card].pool;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.malloc_from(ptr, size, pool, stream) }
    }

    pub(crate) unsafe fn hipMallocFromPoolAsync(
        &mut self,
        ptr: *mut *mut c_void,
        size: usize,
        pool: hipMemPool_t,
        stream: hipStream_t,
    ) -> Hip {
        required(ptr)?;
        self.pool(pool)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.malloc_from(ptr, size, pool.addr() as u64, stream) }
    }

    /// # Safety
    /// `ptr` is valid for writing.
    unsafe fn malloc_from(&mut self, ptr: *mut *mut c_void, size: usize, pool: u64, stream: hipStream_t) -> Hip {
        let stream = self.stream_or(stream, hipErrorInvalidHandle)?;
        self.not_captured(stream)?;
        let found = self.pools.get(pool).ok_or(hipErrorInvalidValue)?;
        let (card, max, used) = (found.card, found.max, found.used);
        self.healthy(card)?;
        if size == 0 {
            // SAFETY: promised by the caller.
            return unsafe { answer(ptr, std::ptr::null_mut()) };
        }
        fail_if(max != 0 && used.saturating_add(size as u64) > max, hipErrorOutOfMemory)?;
        let address = match self.allocate(card, size) {
            // A real pool hands out again what the stream has freed by the time it gets here. The same memory is had by
            // letting the stream get here.
            Err(_) if self.pools.anything_leaves() => {
                let tail = self.queues.tail(stream);
                self.finish(&[tail])?;
                self.allocate(card, size)?
            }
            allocated => allocated?,
        };
        if let Some(allocation) = self.cards[card].vram.find(address) {
            let id = allocation.id;
            self.pools.allocated(pool, id, size as u64);
        }
        self.belongs_to_stream(card, address, stream);
        // SAFETY: promised by the caller.
        unsafe { answer(ptr, pointer_to(address)) }
    }

    pub(crate) fn hipFreeAsync(&mut self, pointer: *mut c_void, stream: hipStream_t) -> Hip {
        if pointer.is_null() {
            return if self.hip7() { Ok(()) } else { Err(hipErrorInvalidValue) };
        }
        let stream = self.stream_or(stream, hipErrorInvalidHandle)?;
        self.not_captured(stream)?;
        let address = address_of(pointer);
        let Some(card) = self.card_of(address) else {
            self.report(ReportKind::InvalidFree, "the pointer is not device memory");
            return Err(hipErrorInvalidValue);
        };
        let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
            self.report_dead_free(card, address);
            return Err(hipErrorInvalidValue);
        };
        self.not_mapped(&allocation)?;
        self.first_free(card, allocation.id, address)?;
        self.pools.leave(allocation.id);
        self.enqueue(
            stream,
            OpKind::Free {
                card,
                address: allocation.address,
                id: allocation.id,
            },
            Vec::new(),
        );
        Ok(())
    }

    /// Refuses to free what a queued free takes already.
    pub(crate) fn first_free(&mut self, card: usize, allocation: u64, address: u64) -> Hip {
        if !self.pools.is_leaving(allocation) {
            return Ok(());
        }
        let message = "a free of the allocation is queued already".to_owned();
        let info = self.cards[card].vram.find(address).map(|found| found.info());
        let report = self.about(ReportKind::DoubleFree, message).at(None, address, 0, info);
        (**self).report(report);
        Err(hipErrorInvalidValue)
    }

    /// The pool of a handle.
    fn pool(&mut self, pool: hipMemPool_t) -> Hip<&mut Pool> {
        let handle = pool.addr() as u64;
        if self.pools.get(handle).is_none() && !pool.is_null() {
            self.report(
                ReportKind::StaleHandle,
                "the pool has been destroyed or never was one".to_owned(),
            );
        }
        self.pools.get_mut(handle).ok_or(hipErrorInvalidValue)
    }

    pub(crate) unsafe fn hipMemPoolCreate(
        &mut self,
        pool: *mut hipMemPool_t,
        properties: *const hipMemPoolProps,
    ) -> Hip {
        required(pool)?;
        required(properties)?;
        // SAFETY: promised by the caller of the HIP function.
        let wanted = unsafe { properties.read() };
        let card = self.card_index(wanted.locationId).map_err(|_| hipErrorInvalidValue)?;
        if wanted.allocType != hipMemAllocationTypePinned || wanted.locationType != hipMemLocationTypeDevice {
            return Err(hipErrorInvalidValue);
        }
        let handle = self.pools.create(card, wanted.maxSize as u64, false);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(pool, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) fn hipMemPoolDestroy(&mut self, pool: hipMemPool_t) -> Hip {
        let found = self.pool(pool)?;
        let (own, card) = (found.own, found.card);
        fail_if(own, hipErrorInvalidValue)?;
        let handle = pool.addr() as u64;
        self.pools.destroy(handle);
        let card = &mut self.cards[card];
        if card.pool == handle {
            card.pool = card.own_pool;
        }
        Ok(())
    }

    /// There is nothing to trim: what was freed went back when its free ran, and what still waits for its stream stays.
    pub(crate) fn hipMemPoolTrimTo(&mut self, pool: hipMemPool_t, _keep: usize) -> Hip {
        self.pool(pool).map(|_| ())
    }

    pub(crate) unsafe fn hipMemPoolGetAttribute(
        &mut self,
        pool: hipMemPool_t,
        attribute: hipMemPoolAttr,
        value: *mut c_void,
    ) -> Hip {
        required(value)?;
        let pool = self.pool(pool)?;
        let found = match attribute {
            hipMemPoolReuseFollowEventDependencies..=hipMemPoolReuseAllowInternalDependencies => {
                let setting = pool.settings[attribute as usize - 1] as c_int;
                // SAFETY: promised by the caller of the HIP function: it points at an int.
                return unsafe { answer(value.cast(), setting) };
            }
            hipMemPoolAttrReleaseThreshold => pool.settings[3],
            hipMemPoolAttrReservedMemCurrent => pool.reserved,
            hipMemPoolAttrReservedMemHigh => pool.reserved_high,
            hipMemPoolAttrUsedMemCurrent => pool.used,
            hipMemPoolAttrUsedMemHigh => pool.used_high,
            _ => return Err(hipErrorInvalidValue),
        };
        // SAFETY: promised by the caller of the HIP function: it points at 64 bits.
        unsafe { answer(value.cast(), found) }
    }

    pub(crate) unsafe fn hipMemPoolSetAttribute(
        &mut self,
        pool: hipMemPool_t,
        attribute: hipMemPoolAttr,
        value: *mut c_void,
    ) -> Hip {
        required(value)?;
        let pool = self.pool(pool)?;
        if let hipMemPoolReuseFollowEventDependencies..=hipMemPoolReuseAllowInternalDependencies = attribute {
            // SAFETY: promised by the caller of the HIP function: it points at an int.
            pool.settings[attribute as usize - 1] = u64::from(unsafe { value.cast::<c_int>().read() } != 0);
            return Ok(());
        }
        // SAFETY: promised by the caller of the HIP function: the other attributes have 64 bits.
        let wanted = unsafe { value.cast::<u64>().read() };
        match attribute {
            hipMemPoolAttrReleaseThreshold => pool.settings[3] = wanted,
            hipMemPoolAttrReservedMemHigh if wanted == 0 => pool.reserved_high = pool.reserved,
            hipMemPoolAttrUsedMemHigh if wanted == 0 => pool.used_high = pool.used,
            _ => return Err(hipErrorInvalidValue),
        }
        Ok(())
    }

    pub(crate) fn hipDeviceSetMemPool(&mut self, device: c_int, pool: hipMemPool_t) -> Hip {
        let card = self.card_index(device).map_err(|_| hipErrorInvalidValue)?;
        fail_if(self.pool(pool)?.card != card, hipErrorInvalidDevice)?;
        self.cards[card].pool = pool.addr() as u64;
        Ok(())
    }

    pub(crate) unsafe fn device_get_mem_pool(&mut self, pool: *mut hipMemPool_t, device: c_int, own: bool) -> Hip {
        required(pool)?;
        let card = &self.cards[self.card_index(device)?];
        let handle = if own { card.own_pool } else { card.pool };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(pool, std::ptr::without_provenance_mut(handle as usize)) }
    }

    pub(crate) unsafe fn hipMemPoolSetAccess(
        &mut self,
        pool: hipMemPool_t,
        list: *const hipMemAccessDesc,
        count: usize,
    ) -> Hip {
        required(list)?;
        let own = self.pool(pool)?.card;
        fail_if(count > self.cards.len(), hipErrorInvalidDevice)?;
        for index in 0..count {
            // SAFETY: promised by the caller of the HIP function: there are `count` entries.
            let wanted = unsafe { list.wrapping_add(index).read() };
            fail_if(wanted.location.r#type != hipMemLocationTypeDevice, hipErrorInvalidValue)?;
            let card = self.card_index(wanted.location.id)?;
            match wanted.flags {
                hipMemAccessFlagsProtNone => return Err(hipErrorInvalidDevice),
                flags if flags > hipMemAccessFlagsProtReadWrite => return Err(hipErrorInvalidValue),
                // Only the pool's own card reaches its memory.
                _ if card != own => return Err(hipErrorInvalidDevice),
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) unsafe fn hipMemPoolGetAccess(
        &mut self,
        flags: *mut hipMemAccessFlags,
        pool: hipMemPool_t,
        location: *mut hipMemLocation,
    ) -> Hip {
        required(flags)?;
        required(location)?;
        let own = self.pool(pool)?.card;
        // SAFETY: promised by the caller of the HIP function.
        let card = self.location(unsafe { &*location })?;
        let found = if card == own {
            hipMemAccessFlagsProtReadWrite
        } else {
            hipMemAccessFlagsProtNone
        };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(flags, found) }
    }

    /// Pools are not made for other processes.
    pub(crate) fn hipMemPoolExportToShareableHandle(
        &mut self,
        handle: *mut c_void,
        pool: hipMemPool_t,
        kind: hipMemAllocationHandleType,
        flags: u32,
    ) -> Hip {
        required(handle)?;
        self.pool(pool)?;
        fail_if(flags != 0 || kind == hipMemHandleTypeNone, hipErrorInvalidValue)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipMemPoolImportFromShareableHandle(
        &mut self,
        pool: *mut hipMemPool_t,
        handle: *mut c_void,
        kind: hipMemAllocationHandleType,
        flags: u32,
    ) -> Hip {
        required(pool)?;
        required(handle)?;
        fail_if(flags != 0 || kind == hipMemHandleTypeNone, hipErrorInvalidValue)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipMemPoolExportPointer(&mut self, data: *mut hipMemPoolPtrExportData, pointer: *mut c_void) -> Hip {
        required(data)?;
        required(pointer)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn hipMemPoolImportPointer(
        &mut self,
        pointer: *mut *mut c_void,
        pool: hipMemPool_t,
        data: *mut hipMemPoolPtrExportData,
    ) -> Hip {
        required(pointer)?;
        required(data)?;
        self.pool(pool)?;
        Err(hipErrorNotSupported)
    }

    cases! {
        fn hipDeviceGetMemPool(pool: *mut hipMemPool_t, device: c_int) => |c| c.device_get_mem_pool(pool, device, false);
        fn hipDeviceGetDefaultMemPool(pool: *mut hipMemPool_t, device: c_int)
            => |c| c.device_get_mem_pool(pool, device, true);
    }
}
