//! A ledger entry whose size moves: what a pool holds beyond the buffers it has lent out.

use crate::card::{Allocation, Shared};
use crate::ledger::EntryKind;
use crate::{Bytes, Card, Pressure, Site};
use std::sync::Arc;

/// The idle blocks of a pool and the bytes its sizes are rounded up by, as one entry of the ledger that is meant to live
/// on. Buffers' own entries are carved out of it and absorbed again: committed bytes do not move by that, so at every
/// moment they are what the driver has handed out, to the byte.
pub(crate) struct PoolEntry {
    shared: Arc<Shared>,
    id: u64,
}

impl PoolEntry {
    pub(crate) fn new(card: &Card, label: &str, site: Site) -> Self {
        let shared = Arc::clone(&card.ledger().shared);
        let id = shared.lock().entries.add(EntryKind::Buffer(Bytes::ZERO), label, site);
        shared.retain(id);
        Self { shared, id }
    }

    /// Makes `bytes` of it an entry of their own.
    pub(crate) fn carve(&self, bytes: Bytes, label: &str, site: Site) -> Allocation {
        self.part(bytes, label, site, false)
    }

    /// Makes `bytes` of it an entry of their own that is meant to live on: on their way back to the driver.
    pub(crate) fn give_back(&self, bytes: Bytes, site: Site) -> Allocation {
        self.part(bytes, "pool, given back", site, true)
    }

    fn part(&self, bytes: Bytes, label: &str, site: Site, retained: bool) -> Allocation {
        let mut state = self.shared.lock();
        let entries = &mut state.entries;
        if let Some(entry) = entries.get_mut(self.id) {
            let held = entry.kind.device_bytes();
            debug_assert!(bytes <= held, "{bytes} of {held}");
            entry.kind = EntryKind::Buffer(held.saturating_sub(bytes));
        }
        let id = entries.add(EntryKind::Buffer(bytes), label, site);
        if retained && let Some(entry) = entries.get_mut(id) {
            entry.retained = true;
        }
        drop(state);
        Allocation::entered(Arc::clone(&self.shared), id, bytes)
    }

    /// Takes an entry in, whose memory the driver has not got back. How much is to go instead of being kept: what we hold
    /// beyond the budget; all of it while the driver moves memory off the card.
    pub(crate) fn absorb(&self, allocation: Allocation) -> Bytes {
        let bytes = allocation.bytes();
        let mut state = self.shared.lock();
        if let Some(id) = allocation.leave() {
            state.entries.remove(id);
            if let Some(entry) = state.entries.get_mut(self.id) {
                entry.kind = EntryKind::Buffer(entry.kind.device_bytes().saturating_add(bytes));
            }
        }
        if state.pressure() == Pressure::Black {
            return Bytes(u64::MAX);
        }
        Bytes(state.excess())
    }
}

impl Drop for PoolEntry {
    fn drop(&mut self) {
        self.shared.lock().entries.remove(self.id);
    }
}
