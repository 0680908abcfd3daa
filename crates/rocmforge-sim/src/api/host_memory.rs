//! Host memory that HIP allocates or knows.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::host_block::HostBlock;
use crate::machine::pinned::Pinned;
use crate::races::table::Region;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_void};

const HOST_MALLOC_FLAGS: c_uint = hipHostMallocPortable
    | hipHostMallocMapped
    | hipHostMallocWriteCombined
    | hipHostMallocNumaUser
    | hipHostMallocCoherent
    | hipHostMallocNonCoherent;
/// `hipExtHostRegisterCoarseGrained`, the number of CUDA's flag for memory that cards only read. It changes no result.
const REGISTER_COARSE_GRAINED: c_uint = 0x8;
const HOST_REGISTER_FLAGS: c_uint =
    hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory | REGISTER_COARSE_GRAINED;

impl Call<'_> {
    pub(crate) unsafe fn hipHostMalloc(&mut self, ptr: *mut *mut c_void, size: usize, flags: c_uint) -> Hip {
        required(ptr)?;
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        let card = self.healthy_device()?;
        let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
        if flags & !HOST_MALLOC_FLAGS != 0 || flags & both == both {
            return Err(hipErrorInvalidValue);
        }
        if size == 0 {
            // SAFETY: promised by the caller of the HIP function.
            return unsafe { answer(ptr, std::ptr::null_mut()) };
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.allocate_pinned(ptr, card, size, flags, false) }
    }

    /// Allocates host memory that kernels access under its host address.
    ///
    /// # Safety
    /// `ptr` is valid for writing.
    pub(crate) unsafe fn allocate_pinned(
        &mut self,
        ptr: *mut *mut c_void,
        card: usize,
        size: usize,
        flags: c_uint,
        managed: bool,
    ) -> Hip {
        if self.pinned.bytes().saturating_add(size as u64) > self.config.host_memory.0 {
            return Err(hipErrorOutOfMemory);
        }
        let byte = if self.config.poison == crate::Poison::Nan {
            0xFF
        } else {
            0
        };
        let block = HostBlock::new(size, byte).ok_or(hipErrorOutOfMemory)?;
        let address = block.address();
        let id = self.new_id();
        let made_by = self.number;
        let range = Pinned {
            made_by,
            id,
            address,
            size,
            flags,
            managed,
            card,
            block: Some(block),
        };
        // SAFETY: the range owns its block, which goes only after `unpin`.
        unsafe { self.pin(range) };
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(ptr, std::ptr::with_exposed_provenance_mut(address)) }
    }

    pub(crate) fn hipHostFree(&mut self, pointer: *mut c_void) -> Hip {
        self.outside_captures(hipErrorStreamCaptureUnsupported)?;
        if pointer.is_null() {
            return Ok(());
        }
        let allocated = self.pinned.at(pointer.addr()).filter(|range| range.block.is_some());
        let Some((card, managed)) = allocated.map(|range| (range.card, range.managed)) else {
            self.report(
                ReportKind::InvalidFree,
                "the pointer does not come from hipHostMalloc, or has been freed",
            );
            return Err(hipErrorInvalidValue);
        };
        if managed && self.api == "hipHostFree" {
            let message = "hipHostFree of memory from hipMallocManaged works today; use hipFree";
            self.report(ReportKind::InvalidFree, message);
        }
        self.wait_for_card(card)?;
        self.unpin(pointer.addr());
        Ok(())
    }

    pub(crate) unsafe fn hipHostRegister(&mut self, pointer: *mut c_void, size: usize, flags: c_uint) -> Hip {
        let card = self.healthy_device()?;
        let fits = (size as u64) <= self.config.host_memory.0;
        if pointer.is_null() || size == 0 || !fits || flags & !HOST_REGISTER_FLAGS != 0 {
            return Err(hipErrorInvalidValue);
        }
        if self.card_of(pointer.addr() as u64).is_some() || !is_mapped(pointer.addr(), size) {
            return Err(hipErrorInvalidValue);
        }
        if self.pinned.overlaps(pointer.addr(), size) {
            return Err(hipErrorHostMemoryAlreadyRegistered);
        }
        let id = self.new_id();
        let address = pointer.expose_provenance();
        let made_by = self.number;
        let range = Pinned {
            made_by,
            id,
            address,
            size,
            flags,
            managed: false,
            card,
            block: None,
        };
        // SAFETY: promised by the caller of hipHostRegister: the memory stays until it is unregistered.
        unsafe { self.pin(range) };
        Ok(())
    }

    pub(crate) fn hipHostUnregister(&mut self, pointer: *mut c_void) -> Hip {
        fail_if(pointer.is_null(), hipErrorInvalidValue)?;
        let registered = self.pinned.at(pointer.addr()).filter(|range| range.block.is_none());
        let card = registered.ok_or(hipErrorHostMemoryNotRegistered)?.card;
        self.wait_for_card(card)?;
        self.unpin(pointer.addr());
        Ok(())
    }

    /// Host memory becomes known to HIP, and kernels of every card may access it.
    ///
    /// # Safety
    /// Until it is unpinned its bytes stay readable and writable; their provenance is exposed.
    unsafe fn pin(&mut self, range: Pinned) {
        for card in &mut self.cards {
            // SAFETY: promised by the caller; `unpin` takes it away again. Rust code holds no references to what HIP knows.
            unsafe { card.vram.memory.map_host(range.address as u64, range.size as u64) };
        }
        self.pinned.insert(range);
    }

    /// Pinned memory goes.
    fn unpin(&mut self, address: usize) {
        if let Some(id) = self.pinned.at(address).map(|range| range.id) {
            let actor = self.as_actor();
            self.free_region(Region::Pinned { id }, &actor);
            self.races.watches.forget(id);
        }
        for card in &mut self.cards {
            card.vram.memory.unmap_host(address as u64);
        }
        let call = self.number;
        self.pinned.remove(address, call);
    }

    cases! {
        fn hipHostGetFlags(flags: *mut c_uint, host: *mut c_void) => |c| {
            required(flags)?;
            answer(flags, c.pinned.find(host.addr()).ok_or(hipErrorInvalidValue)?.flags)
        };
        fn hipHostGetDevicePointer(device: *mut *mut c_void, host: *mut c_void, flags: c_uint) => |c| {
            required(device)?;
            fail_if(flags != 0 || c.pinned.find(host.addr()).is_none(), hipErrorInvalidValue)?;
            answer(device, host)
        };
        fn hipHostAlloc(ptr: *mut *mut c_void, size: usize, flags: c_uint) => |c| c.hipHostMalloc(ptr, size, flags);
        fn hipMallocHost(ptr: *mut *mut c_void, size: usize) => |c| c.hipHostMalloc(ptr, size, hipHostMallocDefault);
        fn hipMemAllocHost(ptr: *mut *mut c_void, size: usize) => |c| c.hipHostMalloc(ptr, size, hipHostMallocDefault);
        fn hipFreeHost(ptr: *mut c_void) => |c| c.hipHostFree(ptr);
    }
}

/// Whether the process has memory at each of these addresses.
#[cfg(unix)]
pub(super) fn is_mapped(address: usize, size: usize) -> bool {
    let start = address - address % rustix::param::page_size();
    let Some(end) = address.checked_add(size) else {
        return false;
    };
    // SAFETY: the call with this flag changes no memory, whatever the addresses; where a page is missing it fails.
    unsafe {
        rustix::mm::msync(
            std::ptr::without_provenance_mut(start),
            end - start,
            rustix::mm::MsyncFlags::ASYNC,
        )
    }
    .is_ok()
}

/// Not asked elsewhere.
#[cfg(not(unix))]
pub(super) fn is_mapped(address: usize, size: usize) -> bool {
    address.checked_add(size).is_some()
}
