//! Pinned memory between slices and the device. The driver only ever sees this memory, never the caller's: a copy that
//! is late cannot touch a slice that is gone.

use crate::core::{Core, Resource};
use crate::driver::Raw;
use crate::error::HipResult;
use crate::tracker::Use;
use parking_lot::{Condvar, Mutex};
use rocmforge_hip_sys::hipHostMallocDefault;
use rocmforge_memory::{Bytes, HandleKind, HandleToken, HostAllocation, HostKind, Site};
use std::ffi::c_void;

/// Bytes of one slot: large enough for full bus speed, small enough not to be missed.
pub(crate) const SLOT_BYTES: usize = 1 << 20;
/// Slots at most: while one is filled, others are on their way.
pub(crate) const SLOTS: usize = 4;

/// Pinned host memory.
pub(crate) struct Pinned {
    ptr: Raw<u8>,
    bytes: usize,
    token: Option<HandleToken>,
    host: HostAllocation,
}

impl Pinned {
    pub(crate) fn new(core: &Core, bytes: usize, label: &str, site: Site) -> HipResult<Self> {
        let size = Bytes(bytes as u64);
        let reservation = core.host.try_reserve_at(size, HostKind::Pinned, label, site)?;
        let mut ptr: *mut c_void = std::ptr::null_mut();
        // SAFETY: `ptr` is a live out-pointer for the call.
        core.driver.call("hipHostMalloc", |api| unsafe {
            api.hipHostMalloc(&mut ptr, bytes, hipHostMallocDefault)
        })?;
        core.driver.name_allocation(ptr, label, site);
        let token = core.card.ledger().track(HandleKind::PinnedHost(size), label, site);
        Ok(Self {
            ptr: Raw(ptr.cast()),
            bytes,
            token: Some(token),
            host: reservation.commit(),
        })
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.0
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Declares that it lives as long as the backend: no leak.
    fn retain(&self) {
        if let Some(token) = &self.token {
            token.retain();
        }
    }

    pub(crate) fn into_resource(self) -> Resource {
        Resource::Pinned {
            ptr: Raw(self.ptr.0.cast()),
            token: self.token,
            host: self.host,
        }
    }
}

/// One piece of staging memory and the copy that last used it.
pub(crate) struct Slot {
    pub(crate) memory: Pinned,
    last: Option<Use>,
}

impl Slot {
    /// Notes the copy that uses it now.
    pub(crate) fn in_use(&mut self, last: Use) {
        self.last = Some(last);
    }

    /// Waits until no copy uses it any more.
    pub(crate) fn wait(&mut self) -> HipResult<()> {
        if let Some(last) = &self.last {
            last.stream.wait(last.cursor)?;
        }
        self.last = None;
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.last.as_ref().is_none_or(Use::is_done)
    }
}

#[derive(Default)]
struct Slots {
    free: Vec<Slot>,
    made: usize,
}

/// A backend's slots. Made when first needed, kept until the backend goes.
#[derive(Default)]
pub(crate) struct Staging {
    slots: Mutex<Slots>,
    returned: Condvar,
}

impl Staging {
    /// An idle slot. Waits for copies, ours or another thread's, if all are in use. Not to be called while holding one.
    pub(crate) fn take_one(&self, core: &Core) -> HipResult<Slot> {
        let mut slot = {
            let mut slots = self.slots.lock();
            loop {
                let idle = slots.free.iter().position(Slot::is_idle);
                if let Some(index) = idle {
                    break slots.free.swap_remove(index);
                }
                if slots.made < SLOTS {
                    let slot = Self::make(core)?;
                    slots.made += 1;
                    return Ok(slot);
                }
                // The longest in use is the first to be done.
                if !slots.free.is_empty() {
                    break slots.free.remove(0);
                }
                // Other threads hold them all, each for a bounded time; a poisoned backend gives none back.
                core.driver.usable()?;
                self.returned.wait_for(&mut slots, std::time::Duration::from_millis(50));
            }
        };
        match slot.wait() {
            Ok(()) => Ok(slot),
            Err(error) => {
                self.give(slot);
                Err(error)
            }
        }
    }

    /// Another slot, if one can be had without waiting.
    pub(crate) fn take_another(&self, core: &Core) -> HipResult<Option<Slot>> {
        let mut slots = self.slots.lock();
        if let Some(index) = slots.free.iter().position(Slot::is_idle) {
            return Ok(Some(slots.free.swap_remove(index)));
        }
        if slots.made < SLOTS {
            let slot = Self::make(core)?;
            slots.made += 1;
            return Ok(Some(slot));
        }
        Ok(None)
    }

    fn make(core: &Core) -> HipResult<Slot> {
        let memory = Pinned::new(core, SLOT_BYTES, "staging", Site::caller())?;
        memory.retain();
        Ok(Slot { memory, last: None })
    }

    /// Gives a slot back, with the copy that may still be using it noted.
    pub(crate) fn give(&self, slot: Slot) {
        self.slots.lock().free.push(slot);
        self.returned.notify_one();
    }

    /// Everything, for the backend's end.
    pub(crate) fn take(&mut self) -> Vec<Resource> {
        self.slots
            .get_mut()
            .free
            .drain(..)
            .map(|slot| slot.memory.into_resource())
            .collect()
    }
}
