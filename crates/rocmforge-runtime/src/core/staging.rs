//! Staging: pinned memory between slices and the device. The driver only ever sees this memory, never the caller's: a copy that
//! is late cannot touch a slice that is gone.

use super::deferred::Resource;
use super::pinned::{Pinned, PinnedSource};
use super::stream_shared::Use;
use crate::error::{HipError, HipResult};
use parking_lot::{Condvar, Mutex};
use rocmforge_memory::Site;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of one slot: large enough for full bus speed, small enough not to be missed.
pub(crate) const SLOT_BYTES: usize = 1 << 20;
/// Slots at most: while one is filled, others are on their way.
pub(crate) const SLOTS: usize = 4;

/// How often a wait for another thread's slot looks at the clock.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A backend's slots. Made when first needed, kept until the backend goes.
pub(crate) struct Staging {
    source: Arc<PinnedSource>,
    slots: Mutex<Slots>,
    returned: Condvar,
}

#[derive(Default)]
struct Slots {
    free: Vec<Slot>,
    made: usize,
}

impl Staging {
    pub(super) fn new(source: Arc<PinnedSource>) -> Self {
        Self {
            source,
            slots: Mutex::default(),
            returned: Condvar::new(),
        }
    }

    /// An idle slot. Waits for copies, ours or another thread's, if all are in use. Not to be called while holding one.
    ///
    /// If other threads keep all of them, the wait ends at the backend's deadline, by its clock or, should nobody be left
    /// who moves that, by the machine's. It says nothing about the device, so it poisons nothing.
    pub(crate) fn take_one(&self) -> HipResult<Slot> {
        let driver = &self.source.driver;
        let (start, began) = (driver.now(), Instant::now());
        let mut slot = {
            let mut slots = self.slots.lock();
            loop {
                let idle = slots.free.iter().position(Slot::is_idle);
                if let Some(index) = idle {
                    break slots.free.swap_remove(index);
                }
                if slots.made < SLOTS {
                    let slot = self.make()?;
                    slots.made += 1;
                    return Ok(slot);
                }
                // The longest in use is the first to be done.
                if !slots.free.is_empty() {
                    break slots.free.remove(0);
                }
                // Other threads hold them all; a poisoned backend gives none back.
                driver.usable()?;
                let waited = driver.now().saturating_sub(start).max(began.elapsed());
                if waited >= driver.deadline() {
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
    pub(crate) fn take_another(&self) -> HipResult<Option<Slot>> {
        let mut slots = self.slots.lock();
        if let Some(index) = slots.free.iter().position(Slot::is_idle) {
            return Ok(Some(slots.free.swap_remove(index)));
        }
        if slots.made < SLOTS {
            let slot = self.make()?;
            slots.made += 1;
            return Ok(Some(slot));
        }
        Ok(None)
    }

    fn make(&self) -> HipResult<Slot> {
        let memory = self.source.allocate(SLOT_BYTES, "staging", Site::caller())?;
        memory.retain();
        Ok(Slot { memory, last: None })
    }

    /// Gives a slot back, with the copy that may still be using it noted.
    pub(crate) fn give(&self, slot: Slot) {
        self.slots.lock().free.push(slot);
        self.returned.notify_one();
    }

    /// Everything, for the backend's end.
    pub(super) fn take(&mut self) -> Vec<Resource> {
        let slots = self.slots.get_mut().free.drain(..);
        slots.map(|slot| slot.memory.into_resource()).collect()
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
