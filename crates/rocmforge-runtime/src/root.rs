//! One allocation of device memory. Buffers, clones and views share it; it is freed once, when the last of them goes.

use crate::core::{Core, Resource};
use crate::driver::{Raw, unique_id};
use crate::error::{HipError, HipResult};
use crate::tracker::Uses;
use parking_lot::Mutex;
use rocmforge_hip_sys::hipErrorOutOfMemory;
use rocmforge_memory::{Allocation, Bytes, Class, Site};
use std::ffi::c_void;
use std::sync::Arc;

pub(crate) struct Root {
    pub(crate) id: u64,
    pub(crate) core: Arc<Core>,
    pub(crate) uses: Mutex<Uses>,
    ptr: Raw<c_void>,
    bytes: usize,
    label: String,
    allocation: Option<Allocation>,
}

impl Root {
    /// Reserves, allocates, commits, in this order: at no time does the card hold bytes the budget does not know, and
    /// memory the driver refuses was never the ledger's.
    #[track_caller]
    pub(crate) fn new(core: &Arc<Core>, bytes: usize, label: &str) -> HipResult<Arc<Self>> {
        core.driver.enter()?;
        core.reclaim();
        let root = |ptr, allocation| {
            Arc::new(Self {
                id: unique_id(),
                core: Arc::clone(core),
                uses: Mutex::default(),
                ptr: Raw(ptr),
                bytes,
                label: label.to_owned(),
                allocation,
            })
        };
        if bytes == 0 {
            return Ok(root(std::ptr::null_mut(), None));
        }
        let size = Bytes(bytes as u64);
        let reservation = match core.card.try_reserve(size, Class::Required, label) {
            Ok(reservation) => reservation,
            // What was dropped but is still in use counts; with it gone the request may fit.
            Err(refused) => {
                if !core.settle()? {
                    return Err(refused.into());
                }
                core.card.try_reserve(size, Class::Required, label)?
            }
        };
        let mut ptr = std::ptr::null_mut();
        // SAFETY: `ptr` is a live out-pointer for the call.
        let mut status = core.driver.status(|api| unsafe { api.hipMalloc(&mut ptr, bytes) })?;
        if status == hipErrorOutOfMemory && core.settle()? {
            // SAFETY: as above.
            status = core.driver.status(|api| unsafe { api.hipMalloc(&mut ptr, bytes) })?;
        }
        if status == hipErrorOutOfMemory {
            return Err(HipError::DriverOutOfMemory {
                requested: size,
                label: label.to_owned(),
            });
        }
        core.driver.check("hipMalloc", status)?;
        core.driver.name_allocation(ptr, label, Site::caller());
        Ok(root(ptr, Some(reservation.commit())))
    }

    pub(crate) fn ptr(&self) -> *mut c_void {
        self.ptr.0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        if self.ptr.0.is_null() {
            return;
        }
        let pending = self.uses.get_mut().pending().cloned().collect();
        self.core.release(
            Resource::Memory {
                ptr: self.ptr,
                allocation: self.allocation.take(),
            },
            pending,
        );
    }
}
