//! Pinned memory between slices and the device. The driver only ever sees this memory, never the caller's: a copy that
//! is late cannot touch a slice that is gone.

use crate::core::{Core, Resource};
use crate::error::{HipError, HipResult};
use crate::hip::{self, Address};
use crate::tracker::Use;
use parking_lot::{Condvar, Mutex};
use rocmforge_memory::{Bytes, HandleKind, HandleToken, HostAllocation, HostKind, Site};
use std::time::{Duration, Instant};

/// Bytes of one slot: large enough for full bus speed, small enough not to be missed.
pub(crate) const SLOT_BYTES: usize = 1 << 20;
/// Slots at most: while one is filled, others are on their way.
pub(crate) const SLOTS: usize = 4;

/// How often a wait for another thread's slot looks at the clock.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Pinned host memory.
pub(crate) struct Pinned {
    ptr: Address,
    bytes: usize,
    token: Option<HandleToken>,
    host: HostAllocation,
}

impl Pinned {
    pub(crate) fn new(core: &Core, bytes: usize, label: &str, site: Site) -> HipResult<Self> {
        let size = Bytes(bytes as u64);
        let reservation = core.host.try_reserve_at(size, HostKind::Pinned, label, site)?;
        let ptr = hip::memory::host_malloc(&core.driver, bytes)?;
        core.driver.name_allocation(ptr.0, label, site);
        let token = core.card.ledger().track(HandleKind::PinnedHost(size), label, site);
        Ok(Self {
            ptr,
            bytes,
            token: Some(token),
            host: reservation.commit(),
        })
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        self.ptr.0.cast()
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
            ptr: self.ptr,
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
    ///
    /// If other threads keep all of them, the wait ends at the backend's deadline, by its clock or, should nobody be left
    /// who moves that, by the machine's. It says nothing about the device, so it poisons nothing.
    pub(crate) fn take_one(&self, core: &Core) -> HipResult<Slot> {
        let (start, began) = (core.driver.now(), Instant::now());
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
                // Other threads hold them all; a poisoned backend gives none back.
                core.driver.usable()?;
                let waited = core.driver.now().saturating_sub(start).max(began.elapsed());
                if waited >= core.driver.deadline() {
                    return Err(HipError::StagingBusy { waited });
                }
                self.returned.wait_for(&mut slots, LOOK_AGAIN);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendOptions, HipBackend, HipBuffer, Policy, Provider};
    use rocmforge_sim::{SimConfig, SimHost};

    #[test]
    fn a_wait_for_slots_that_others_keep_ends_at_the_deadline() {
        let sim = SimHost::new(SimConfig::default());
        let provider = Provider::new(sim.api())
            .with_clock(sim.clock())
            .with_readings(Box::new(sim.readings(0)));
        let options = BackendOptions {
            policy: Policy::tests(),
            deadline: Duration::from_millis(30),
            ..BackendOptions::default()
        };
        let backend = HipBackend::open(provider, options).unwrap();
        let core = backend.core();
        let kept: Vec<Slot> = (0..SLOTS).map(|_| core.staging.take_one(core).unwrap()).collect();
        // The simulated clock stands still: nobody waits on it.
        let error = HipBuffer::from_slice(backend.stream(), &[1u8], "refused").unwrap_err();
        assert!(
            matches!(error, HipError::StagingBusy { waited } if waited >= Duration::from_millis(30)),
            "{error}"
        );
        assert!(backend.is_poisoned().is_none());
        for slot in kept {
            core.staging.give(slot);
        }
        let buffer = HipBuffer::from_slice(backend.stream(), &[1u8], "accepted").unwrap();
        assert_eq!(buffer.to_vec(backend.stream()).unwrap(), [1]);
    }
}
