//! The two tokens that move bytes through the ledger: a reservation becomes an allocation, and both give back when dropped.

use std::fmt;
use std::sync::Arc;

use super::shared::{Shared, State};
use crate::Bytes;
use crate::entries::EntryKind;

/// Bytes taken out of the budget, not yet allocated. Dropping it gives them back.
///
/// It cannot be cloned and has no constructor but [`Card::try_reserve`](crate::Card::try_reserve).
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation {
    /// `None` once committed: the allocation has taken the entry over.
    shared: Option<Arc<Shared>>,
    id: u64,
    bytes: Bytes,
}

impl Reservation {
    pub(super) fn taken(shared: &Arc<Shared>, id: u64, bytes: Bytes) -> Self {
        Self {
            shared: Some(Arc::clone(shared)),
            id,
            bytes,
        }
    }

    /// How many bytes were reserved.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Gives the bytes back because the driver refused them although they were granted: the figures were wrong. The budget
    /// falls by what was missing and 64 MiB, for ten minutes after the last time, which [`BudgetSnapshot`] shows.
    ///
    /// [`BudgetSnapshot`]: crate::BudgetSnapshot
    pub fn refused_by_driver(self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.lock();
            // What the driver calls free now, with the request still counted as on its way.
            shared.refresh(&mut state, true);
            let (holdings, now) = (state.ledger_figures(), shared.readings.now());
            state.tracker.refused(self.bytes.0, holdings, now);
            shared.note_pressure(&mut state);
        }
    }

    /// Enters the bytes in the ledger as allocated: call it once the driver has handed out the memory.
    pub fn commit(mut self) -> Allocation {
        let shared = self.shared.take();
        if let Some(shared) = &shared {
            let mut state = shared.lock();
            state.reserved = state.reserved.saturating_sub(self.bytes.0);
            state.live = state.live.saturating_add(self.bytes.0);
            state.peak = state.peak.max(state.live);
            if let Some(entry) = state.entries.get_mut(self.id) {
                entry.kind = EntryKind::Buffer(self.bytes);
            }
            state.notify_peers();
        }
        Allocation {
            shared,
            id: self.id,
            bytes: self.bytes,
            returning: false,
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.lock();
            state.reserved = state.reserved.saturating_sub(self.bytes.0);
            state.entries.remove(self.id);
            state.notify_peers();
            shared.note_pressure(&mut state);
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation")
            .field("id", &self.id)
            .field("bytes", &self.bytes)
            .finish()
    }
}

/// Live bytes in the ledger. The buffer owns it and drops it after the driver has taken the memory back.
#[must_use = "dropping an allocation takes its bytes out of the ledger"]
pub struct Allocation {
    /// `None` once abandoned: the entry stays.
    shared: Option<Arc<Shared>>,
    id: u64,
    bytes: Bytes,
    /// Whether the bytes count as reserved again: the driver is being asked to take them back.
    returning: bool,
}

impl Allocation {
    /// The owner of an entry that stands for committed bytes.
    pub(crate) fn entered(shared: Arc<Shared>, id: u64, bytes: Bytes) -> Self {
        Self {
            shared: Some(shared),
            id,
            bytes,
            returning: false,
        }
    }

    /// Moves what it stands for beyond `keep` bytes to another buffer's entry of the same card.
    pub(crate) fn keep(&mut self, keep: Bytes, rest: u64) {
        if let Some(shared) = &self.shared {
            let given = self.bytes.saturating_sub(keep);
            shared.lock().entries.transfer(given, self.id, rest);
            self.bytes = keep;
        }
    }

    /// Moves all that it stands for to another buffer's entry of the same card, and ends. What to tell of the card then.
    pub(crate) fn merge<T>(mut self, into: u64, look: impl FnOnce(&State) -> T) -> Option<T> {
        let shared = self.shared.take()?;
        let mut state = shared.lock();
        state.entries.transfer(self.bytes, self.id, into);
        state.entries.remove(self.id);
        Some(look(&state))
    }

    /// How many bytes it stands for.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Its number in the ledger.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Declares that it lives on by design (a cache of the backend): no leak. Its bytes still count.
    pub fn retain(&self) {
        if let Some(shared) = &self.shared {
            shared.retain(self.id);
        }
    }

    /// Call it right before the driver is asked to take the memory back: from then until the drop nobody can tell
    /// whether the driver still counts it, as with a reservation before its commit, and figures read meanwhile are
    /// taken so. The bytes still count against the budget.
    pub fn begin_return(&mut self) {
        if let Some(shared) = &self.shared
            && !std::mem::replace(&mut self.returning, true)
        {
            let mut state = shared.lock();
            state.live = state.live.saturating_sub(self.bytes.0);
            state.reserved = state.reserved.saturating_add(self.bytes.0);
            state.returning = state.returning.saturating_add(self.bytes.0);
            state.notify_peers();
        }
    }

    /// Leaves the memory to the driver: entry and bytes stay, marked abandoned, for as long as the card is open; with
    /// the reason, for whoever reads the ledger.
    pub fn abandon(mut self, reason: Option<&str>) {
        if let Some(shared) = self.shared.take() {
            let mut state = shared.lock();
            if self.returning {
                state.reserved = state.reserved.saturating_sub(self.bytes.0);
                state.returning = state.returning.saturating_sub(self.bytes.0);
                state.live = state.live.saturating_add(self.bytes.0);
            }
            state.entries.abandon(self.id, reason);
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.lock();
            if self.returning {
                state.reserved = state.reserved.saturating_sub(self.bytes.0);
                state.returning = state.returning.saturating_sub(self.bytes.0);
            } else {
                state.live = state.live.saturating_sub(self.bytes.0);
            }
            state.entries.remove(self.id);
            state.tracker.note_free(self.bytes.0, shared.readings.now());
            state.notify_peers();
            shared.note_pressure(&mut state);
        }
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allocation")
            .field("id", &self.id)
            .field("bytes", &self.bytes)
            .finish()
    }
}
