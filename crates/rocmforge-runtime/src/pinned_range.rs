//! Pinned memory that graphs copy from or to at each replay.

use crate::core::Core;
use crate::core::pinned::Pinned;
use crate::core::stream_shared::{Use, Uses};
use crate::error::HipResult;
use crate::hip::unique_id;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;

/// The memory, shared by graphs and by who fills or reads it.
pub(crate) struct PinnedRange {
    pub(crate) id: u64,
    pub(crate) core: Arc<Core>,
    pub(crate) uses: Mutex<Uses>,
    memory: Option<Pinned>,
}

impl PinnedRange {
    pub(crate) fn new(core: &Arc<Core>, memory: Pinned) -> Arc<Self> {
        Arc::new(Self {
            id: unique_id(),
            core: Arc::clone(core),
            uses: Mutex::default(),
            memory: Some(memory),
        })
    }

    pub(crate) fn ptr(&self) -> *mut u8 {
        match &self.memory {
            Some(memory) => memory.ptr(),
            // Only `Drop` takes it.
            None => unreachable!("the memory goes with the range"),
        }
    }

    /// Waits, at most until the deadline, until no replay is under way; and keeps the next one from beginning.
    pub(crate) fn idle(&self) -> HipResult<MutexGuard<'_, Uses>> {
        loop {
            let uses = self.uses.lock();
            let pending: Vec<Use> = uses.pending().cloned().collect();
            if pending.is_empty() {
                return Ok(uses);
            }
            drop(uses);
            for last in pending {
                last.stream.wait(last.cursor)?;
            }
        }
    }
}

impl Drop for PinnedRange {
    fn drop(&mut self) {
        let uses = std::mem::take(self.uses.get_mut());
        if let Some(memory) = self.memory.take() {
            self.core.deferred.release(memory.into_resource(), uses);
        }
    }
}
