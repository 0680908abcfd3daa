//! Memory, and what HIP promises of it and the driver does not: empty allocations, null frees, pointer kinds.

use crate::cuda::{CuAddress, address};
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// `CU_POINTER_ATTRIBUTE_*`.
pub(crate) mod pointer {
    pub(crate) const MEMORY_TYPE: i32 = 2;
    pub(crate) const DEVICE_POINTER: i32 = 3;
    pub(crate) const HOST_POINTER: i32 = 4;
    pub(crate) const IS_MANAGED: i32 = 8;
    pub(crate) const DEVICE_ORDINAL: i32 = 9;
}

/// `CU_MEMORYTYPE_*`.
pub(crate) const HOST: u64 = 1;
pub(crate) const DEVICE: u64 = 2;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`: what HIP's default means.
pub(crate) const PORTABLE_AND_MAPPED: c_uint = 3;
/// The flags that both know, with the same values.
const HOST_FLAGS: c_uint = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined;

impl Driver {
    pub(crate) unsafe fn hipMemGetInfo(&self, free: *mut usize, total: *mut usize) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.memory_info)(free, total) })
    }

    pub(crate) unsafe fn hipMalloc(&self, ptr: *mut *mut c_void, size: usize) -> hipError_t {
        if ptr.is_null() {
            return remember(hipErrorInvalidValue);
        }
        let mut address: CuAddress = 0;
        // HIP gives a null pointer for nothing; the driver refuses to.
        if size > 0 {
            // SAFETY: `address` is a live out-pointer for the call.
            let made = self.on_device(|cuda| unsafe { (cuda.memory_allocate)(&mut address, size) });
            if !made.is_success() {
                return made;
            }
        }
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { ptr.write(std::ptr::without_provenance_mut(address as usize)) };
        hipSuccess
    }

    pub(crate) unsafe fn hipFree(&self, ptr: *mut c_void) -> hipError_t {
        if ptr.is_null() {
            return hipSuccess;
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.memory_free)(address(ptr)) })
    }

    pub(crate) unsafe fn hipHostMalloc(&self, ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t {
        let coherence = hipHostMallocCoherent | hipHostMallocNonCoherent;
        if ptr.is_null() || flags & !(HOST_FLAGS | coherence) != 0 || flags & coherence == coherence {
            return remember(hipErrorInvalidValue);
        }
        let mut memory = std::ptr::null_mut();
        if size > 0 {
            let flags = (flags & HOST_FLAGS) | PORTABLE_AND_MAPPED;
            // SAFETY: `memory` is a live out-pointer for the call.
            let made = self.on_device(|cuda| unsafe { (cuda.host_allocate)(&mut memory, size, flags) });
            if !made.is_success() {
                return made;
            }
        }
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { ptr.write(memory) };
        hipSuccess
    }

    pub(crate) unsafe fn hipHostFree(&self, ptr: *mut c_void) -> hipError_t {
        if ptr.is_null() {
            return hipSuccess;
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_free)(ptr) })
    }

    pub(crate) unsafe fn hipHostRegister(&self, ptr: *mut c_void, size: usize, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_register)(ptr, size, flags) })
    }

    pub(crate) unsafe fn hipHostUnregister(&self, ptr: *mut c_void) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_unregister)(ptr) })
    }

    pub(crate) unsafe fn hipHostGetDevicePointer(
        &self,
        device: *mut *mut c_void,
        host: *mut c_void,
        flags: c_uint,
    ) -> hipError_t {
        // A device address has the size and the representation of a pointer on this platform.
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_device_pointer)(device.cast(), host, flags) })
    }

    pub(crate) unsafe fn hipHostGetFlags(&self, flags: *mut c_uint, host: *mut c_void) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_flags)(flags, host) })
    }

    /// `ptr` may be anything; it is not dereferenced.
    pub(crate) unsafe fn hipPointerGetAttributes(
        &self,
        attributes: *mut hipPointerAttribute_t,
        ptr: *const c_void,
    ) -> hipError_t {
        if attributes.is_null() {
            return remember(hipErrorInvalidValue);
        }
        let address = ptr.addr() as CuAddress;
        let pointer = |attribute| {
            let address = self.ask(attribute, address).unwrap_or(0);
            std::ptr::without_provenance_mut(address as usize)
        };
        let managed = self
            .ask(pointer::IS_MANAGED, address)
            .is_some_and(|answer| answer & 0xff != 0);
        let answer = match self.ask(pointer::MEMORY_TYPE, address) {
            // A pointer that the driver does not know is ordinary host memory: an answer, no failure.
            None => hipPointerAttribute_t {
                r#type: hipMemoryTypeUnregistered,
                device: -2,
                devicePointer: std::ptr::null_mut(),
                hostPointer: std::ptr::null_mut(),
                isManaged: 0,
                allocationFlags: 0,
            },
            Some(kind) => hipPointerAttribute_t {
                r#type: match kind {
                    _ if managed => hipMemoryTypeManaged,
                    HOST => hipMemoryTypeHost,
                    DEVICE => hipMemoryTypeDevice,
                    _ => hipMemoryTypeUnified,
                },
                device: self
                    .ask(pointer::DEVICE_ORDINAL, address)
                    .map_or(-2, |answer| answer as c_int),
                devicePointer: pointer(pointer::DEVICE_POINTER),
                hostPointer: pointer(pointer::HOST_POINTER),
                isManaged: c_int::from(managed),
                allocationFlags: 0,
            },
        };
        // SAFETY: not null, and the caller promises that it may be written.
        unsafe { attributes.write(answer) };
        hipSuccess
    }

    /// Asks one thing about a pointer. `None`: the driver does not know it.
    fn ask(&self, attribute: c_int, address: CuAddress) -> Option<u64> {
        let mut answer = [0u8; 8];
        // SAFETY: none of these attributes has more than 8 bytes.
        let asked = self.on_device_unremembered(|cuda| unsafe {
            (cuda.pointer_attribute)(answer.as_mut_ptr().cast(), attribute, address)
        });
        // Those with 4 bytes fill the low half: every machine with this driver is little-endian.
        asked.is_success().then(|| u64::from_le_bytes(answer))
    }
}
