//! Ledger entry of a pool: what it holds beyond the buffers that are in use.

use crate::card::Allocation;
use crate::card::shared::Shared;
use crate::entries::EntryKind;
use crate::{Bytes, Ledger, Pressure, Site};
use std::sync::Arc;

/// The idle blocks of a pool and the bytes its sizes are rounded up by, as one entry of the ledger that is meant to live
/// on. Bytes move between it and the entries of buffers in one step: committed bytes do not change by that, so at every
/// moment they are what the driver has handed out, to the byte.
pub(super) struct PoolEntry {
    shared: Arc<Shared>,
    id: u64,
}

impl PoolEntry {
    pub(super) fn new(ledger: &Ledger, site: Site) -> Self {
        let shared = Arc::clone(&ledger.shared);
        let kind = EntryKind::Buffer(Bytes::ZERO);
        let id = shared.lock().entries.add(kind, "pool, idle", site);
        shared.retain(id);
        Self { shared, id }
    }

    /// Moves `bytes` to an entry of their own, for a buffer.
    pub(super) fn split(&self, bytes: Bytes, label: &str, site: Site) -> Allocation {
        self.part(bytes, label, site, false)
    }

    /// Moves `bytes` to an entry of their own that is meant to live on: on their way back to the driver.
    pub(super) fn give_back(&self, bytes: Bytes, site: Site) -> Allocation {
        self.part(bytes, "pool, given back", site, true)
    }

    fn part(&self, bytes: Bytes, label: &str, site: Site, retained: bool) -> Allocation {
        let mut state = self.shared.lock();
        let entries = &mut state.entries;
        let id = entries.add(EntryKind::Buffer(Bytes::ZERO), label, site);
        entries.transfer(bytes, self.id, id);
        if let Some(entry) = entries.get_mut(id) {
            entry.retained = retained;
        }
        drop(state);
        Allocation::entered(Arc::clone(&self.shared), id, bytes)
    }

    /// Leaves a buffer `bytes` of what its entry stands for, and takes the rest.
    pub(super) fn take_rest(&self, allocation: &mut Allocation, bytes: Bytes) {
        allocation.keep(bytes, self.id);
    }

    /// Takes a buffer's entry in, whose memory the driver has not got back. How much is to go instead of being kept: what we hold
    /// beyond the budget; all of it while the driver moves memory off the card.
    pub(super) fn absorb(&self, allocation: Allocation) -> Bytes {
        let excess = allocation.merge(self.id, |state| match state.pressure() {
            Pressure::Black => u64::MAX,
            _ => state.excess(),
        });
        excess.map_or(Bytes::ZERO, Bytes)
    }
}

impl Drop for PoolEntry {
    fn drop(&mut self) {
        self.shared.lock().entries.remove(self.id);
    }
}
