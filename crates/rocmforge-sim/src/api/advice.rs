//! Advice of a program on memory that host and cards share. It is kept and answered; nothing moves.

use super::memory::address_of;
use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// `hipMemAttachSingle`: memory for one stream.
const ATTACH_SINGLE: c_uint = 0x4;

impl Call<'_> {
    /// The number of the memory that HIP knows at an address, the bytes left there, and whether the host reaches it.
    pub(super) fn known_memory(&self, pointer: *const c_void) -> Option<(u64, u64, bool)> {
        let address = address_of(pointer);
        if let Some(range) = self.pinned.find(pointer.addr()) {
            return Some((range.id, (range.address + range.size - pointer.addr()) as u64, true));
        }
        let allocation = self.cards[self.card_of(address)?].vram.find(address)?;
        Some((allocation.id, allocation.end().saturating_sub(address), false))
    }

    pub(crate) fn hipMemAdvise(
        &mut self,
        pointer: *const c_void,
        size: usize,
        advice: hipMemoryAdvise,
        device: c_int,
    ) -> Hip {
        let read_mostly = matches!(advice, hipMemAdviseSetReadMostly | hipMemAdviseUnsetReadMostly);
        if !read_mostly && device != hipCpuDeviceId {
            self.card_index(device)?;
        }
        required(pointer)?;
        let (id, left, on_host) = self.known_memory(pointer).ok_or(hipErrorInvalidValue)?;
        fail_if(size == 0 || size as u64 > left || !on_host, hipErrorInvalidValue)?;
        let kept = self.advice.entry(id).or_default();
        match advice {
            hipMemAdviseSetReadMostly => kept.read_mostly = true,
            hipMemAdviseUnsetReadMostly => kept.read_mostly = false,
            hipMemAdviseSetPreferredLocation => kept.preferred = Some(device),
            hipMemAdviseUnsetPreferredLocation => kept.preferred = None,
            hipMemAdviseSetAccessedBy if !kept.accessed_by.contains(&device) => kept.accessed_by.push(device),
            hipMemAdviseSetAccessedBy => {}
            hipMemAdviseUnsetAccessedBy => kept.accessed_by.retain(|other| *other != device),
            hipMemAdviseSetCoarseGrain => kept.coarse = true,
            hipMemAdviseUnsetCoarseGrain => kept.coarse = false,
            _ => return Err(hipErrorInvalidValue),
        }
        Ok(())
    }

    pub(crate) unsafe fn hipMemRangeGetAttribute(
        &mut self,
        data: *mut c_void,
        data_size: usize,
        attribute: hipMemRangeAttribute,
        pointer: *const c_void,
        size: usize,
    ) -> Hip {
        required(data)?;
        required(pointer)?;
        fail_if(data_size == 0 || size == 0, hipErrorInvalidValue)?;
        let (id, left, on_host) = self.known_memory(pointer).ok_or(hipErrorInvalidValue)?;
        let one = data_size == size_of::<c_int>();
        if size as u64 > left || !(one || attribute == hipMemRangeAttributeAccessedBy && data_size.is_multiple_of(4)) {
            return Err(hipErrorInvalidValue);
        }
        let kept = self.advice.entry(id).or_default();
        let found = match attribute {
            hipMemRangeAttributeReadMostly => vec![c_int::from(kept.read_mostly)],
            hipMemRangeAttributePreferredLocation => vec![kept.preferred.unwrap_or(hipInvalidDeviceId)],
            hipMemRangeAttributeAccessedBy => {
                let mut devices = kept.accessed_by.clone();
                devices.resize(data_size / 4, hipInvalidDeviceId);
                devices
            }
            hipMemRangeAttributeLastPrefetchLocation => vec![kept.prefetched.unwrap_or(hipInvalidDeviceId)],
            hipMemRangeAttributeCoherencyMode => {
                vec![
                    if kept.coarse || !on_host {
                        hipMemRangeCoherencyModeCoarseGrain
                    } else {
                        hipMemRangeCoherencyModeFineGrain
                    }
                    .cast_signed(),
                ]
            }
            _ => return Err(hipErrorInvalidValue),
        };
        for (index, value) in found.into_iter().enumerate() {
            // SAFETY: promised by the caller of the HIP function: there are `data_size` bytes, of which these are the first.
            unsafe { data.cast::<c_int>().wrapping_add(index).write_unaligned(value) };
        }
        Ok(())
    }

    pub(crate) unsafe fn hipMemRangeGetAttributes(
        &mut self,
        data: *mut *mut c_void,
        sizes: *mut usize,
        attributes: *mut hipMemRangeAttribute,
        count: usize,
        pointer: *const c_void,
        size: usize,
    ) -> Hip {
        required(data)?;
        required(sizes)?;
        required(attributes)?;
        required(pointer)?;
        fail_if(count == 0 || size == 0, hipErrorInvalidValue)?;
        if self.known_memory(pointer).is_none_or(|(_, _, on_host)| !on_host) {
            return Err(hipErrorInvalidValue);
        }
        for index in 0..count {
            // SAFETY: promised by the caller of the HIP function: the list has `count` entries.
            let to = unsafe { data.wrapping_add(index).read() };
            // SAFETY: as above.
            let room = unsafe { sizes.wrapping_add(index).read() };
            // SAFETY: as above.
            let attribute = unsafe { attributes.wrapping_add(index).read() };
            // SAFETY: promised by the caller of the HIP function.
            unsafe { self.hipMemRangeGetAttribute(to, room, attribute, pointer, size) }?;
        }
        Ok(())
    }

    pub(crate) fn hipStreamAttachMemAsync(
        &mut self,
        stream: hipStream_t,
        pointer: *mut c_void,
        length: usize,
        flags: c_uint,
    ) -> Hip {
        required(pointer)?;
        self.stream(stream)?;
        if ![hipMemAttachGlobal, hipMemAttachHost, ATTACH_SINGLE].contains(&flags) {
            return Err(hipErrorInvalidValue);
        }
        fail_if(flags == ATTACH_SINGLE && stream.is_null(), hipErrorInvalidValue)?;
        let (_, left, on_host) = self.known_memory(pointer).ok_or(hipErrorInvalidValue)?;
        fail_if(on_host && length != 0 && length as u64 != left, hipErrorInvalidValue)
    }
}
