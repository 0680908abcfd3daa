//! What the simulator does not have, on purpose: managed and virtual memory, kernels by host address. Bad arguments get the codes HIP gives them; what is left gets
//! `hipErrorNotSupported`, so that nobody takes a simulated success for a real one.

use super::memory::address_of;
use super::required;
use crate::machine::sim::{Call, Hip};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// What virtual memory is given out in.
const GRANULARITY: usize = 4096;

impl Call<'_> {
    pub(crate) fn malloc_managed(&mut self, pointer: *mut *mut c_void, size: usize, flags: c_uint) -> Hip {
        required(pointer)?;
        self.healthy_device()?;
        if size == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost) {
            return Err(hipErrorInvalidValue);
        }
        if size as u64 > self.config.host_memory.0 {
            return Err(hipErrorOutOfMemory);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_prefetch_async(
        &mut self,
        pointer: *const c_void,
        size: usize,
        device: c_int,
        stream: hipStream_t,
    ) -> Hip {
        required(pointer)?;
        if size == 0 {
            return Err(hipErrorInvalidValue);
        }
        self.card_index(device)?;
        self.working_stream(stream)?;
        let address = address_of(pointer);
        let left = match self.card_of(address) {
            Some(card) => self.cards[card]
                .vram
                .find(address)
                .map(|a| a.end().saturating_sub(address)),
            None => None,
        };
        if left.is_none_or(|left| size as u64 > left) {
            return Err(hipErrorInvalidValue);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_address_reserve(&mut self, pointer: *mut *mut c_void, size: usize) -> Hip {
        required(pointer)?;
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(hipErrorOutOfMemory);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_create(
        &mut self,
        handle: *mut hipMemGenericAllocationHandle_t,
        size: usize,
        properties: *const hipMemAllocationProp,
    ) -> Hip {
        required(handle)?;
        required(properties)?;
        if size == 0 || !size.is_multiple_of(GRANULARITY) {
            return Err(hipErrorInvalidValue);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_unmap(&mut self, pointer: *mut c_void) -> Hip {
        required(pointer)?;
        Err(hipErrorNotSupported)
    }

    pub(crate) fn mem_release(&mut self, handle: hipMemGenericAllocationHandle_t) -> Hip {
        required(handle)?;
        Err(hipErrorNotSupported)
    }

    /// Kernels by the address of their host function: nobody can register one here.
    pub(crate) fn launch_kernel(&mut self, function: *const c_void) -> Hip {
        if function.is_null() {
            return Err(hipErrorInvalidDeviceFunction);
        }
        Err(hipErrorNotSupported)
    }

    pub(crate) fn func_get_attributes(&mut self, attributes: *mut hipFuncAttributes, function: *const c_void) -> Hip {
        required(attributes)?;
        self.launch_kernel(function)
    }
}
