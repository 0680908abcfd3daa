//! One card: its budget and its ledger under one mutex, and the two tokens that move bytes between them.

use std::fmt;
use std::sync::Arc;

use crate::budget::{Holdings, Terms, Tracker, Warning};
use crate::ledger::{Entries, EntryKind, Ledger};
use crate::policy::CACHE_SHARE;
use crate::sync::{Mutex, MutexGuard};
use crate::{Bytes, Class, DeviceKey, Limit, OutOfBudget, Policy, Readings, Refusal, Site};

/// One GPU's memory, shared by everything that allocates on it.
pub struct Card {
    key: DeviceKey,
    ledger: Ledger,
}

/// What a card, its ledger handles and its tokens hold in common.
pub(crate) struct Shared {
    state: Mutex<State>,
    readings: Box<dyn Readings>,
}

/// Everything that changes, behind the card's one mutex.
pub(crate) struct State {
    pub(crate) entries: Entries,
    /// Committed bytes.
    pub(crate) live: u64,
    /// Reserved and not yet committed bytes.
    reserved: u64,
    /// The highest `live`.
    pub(crate) peak: u64,
    tracker: Tracker,
}

impl State {
    /// What counts against the budget now.
    fn usage(&self) -> u64 {
        self.live
            .saturating_add(self.tracker.hidden())
            .saturating_add(self.reserved)
    }

    /// By how much we hold more than the budget, as far as the last reading knows.
    pub(crate) fn excess(&self) -> u64 {
        self.usage().saturating_sub(self.tracker.terms().budget)
    }

    /// What a request of `class` can have, and what stands in the way of more.
    fn available(&self, class: Class) -> (u64, Terms) {
        let mut terms = self.tracker.terms();
        let room = match class {
            Class::Required | Class::Growth => terms.budget,
            Class::Cache => {
                if terms.budget > 0 {
                    terms.limit = Limit::CacheShare;
                }
                Bytes(terms.budget).percent(CACHE_SHARE).0
            }
        };
        (room.saturating_sub(self.usage()), terms)
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(crate) fn retain(&self, id: u64) {
        if let Some(entry) = self.lock().entries.get_mut(id) {
            entry.retained = true;
        }
    }

    pub(crate) fn abandon(&self, id: u64) {
        self.lock().entries.abandon(id);
    }

    fn refresh(&self, state: &mut State) {
        let holdings = Holdings {
            live: state.live,
            reserved: state.reserved,
        };
        state
            .tracker
            .update(&self.readings.read(), holdings, self.readings.now());
    }
}

impl Card {
    /// A card under `policy`, with figures from `readings`.
    pub fn new(key: DeviceKey, policy: Policy, readings: Box<dyn Readings>) -> Arc<Card> {
        let tracker = Tracker::new(policy);
        let state = State {
            entries: Entries::default(),
            live: 0,
            reserved: 0,
            peak: 0,
            tracker,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            readings,
        });
        shared.refresh(&mut shared.lock());
        Arc::new(Card {
            key,
            ledger: Ledger { shared },
        })
    }

    /// Takes `bytes` out of the budget, or refuses; check and take are one step.
    ///
    /// This is the only way to a buffer. A refusal is always decided on figures read in this call. Zero bytes always
    /// fit.
    ///
    /// ```
    /// use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Reading};
    ///
    /// let reading = Reading { total: Some(Bytes::gib(20)), used: Some(Bytes::gib(2)), ..Reading::default() };
    /// let card = Card::new(DeviceKey::new("sim:0"), Policy::desktop(), Box::new(FixedReadings(reading)));
    /// let weights = card.try_reserve(Bytes::gib(8), Class::Required, "weights")?.commit();
    /// let refusal = card.try_reserve(Bytes::gib(8), Class::Growth, "kv cache").unwrap_err();
    /// assert_eq!(refusal.own, Bytes::gib(8));
    /// assert!(refusal.available < Bytes::gib(8));
    /// drop(weights);
    /// # Ok::<(), rocmforge_memory::OutOfBudget>(())
    /// ```
    ///
    /// # Errors
    /// [`OutOfBudget`] with every figure of the decision; nothing is taken then.
    #[track_caller]
    pub fn try_reserve(self: &Arc<Self>, bytes: Bytes, class: Class, label: &str) -> Result<Reservation, OutOfBudget> {
        self.try_reserve_at(bytes, class, label, Site::caller())
    }

    /// [`Card::try_reserve`] for callers that captured the site themselves.
    ///
    /// # Errors
    /// [`OutOfBudget`] with every figure of the decision; nothing is taken then.
    pub fn try_reserve_at(
        self: &Arc<Self>,
        bytes: Bytes,
        class: Class,
        label: &str,
        site: Site,
    ) -> Result<Reservation, OutOfBudget> {
        let shared = &self.ledger.shared;
        let mut state = shared.lock();
        let mut fresh = false;
        if state.tracker.is_stale(shared.readings.now()) {
            shared.refresh(&mut state);
            fresh = true;
        }
        state.tracker.count_request();
        let (mut available, mut terms) = state.available(class);
        if bytes.0 > available && !fresh {
            // The frozen figures say no: ask the driver before telling the user so.
            shared.refresh(&mut state);
            (available, terms) = state.available(class);
        }
        if bytes.0 > available {
            return Err(OutOfBudget::new(Refusal {
                device: self.key.clone(),
                requested: bytes,
                available: Bytes(available),
                budget: Bytes(terms.budget),
                total: Bytes(state.tracker.total().unwrap_or(0)),
                others: Bytes(state.tracker.others().unwrap_or(0)),
                headroom: Bytes(terms.headroom),
                own: Bytes(state.live.saturating_add(state.tracker.hidden())),
                reserved: Bytes(state.reserved),
                class,
                label: label.to_owned(),
                site,
                limit: terms.limit,
            }));
        }
        state.reserved += bytes.0;
        let id = state.entries.add(EntryKind::Reserved(bytes), label, site);
        Ok(Reservation {
            shared: Some(shared.clone()),
            id,
            bytes,
        })
    }

    /// The card's name.
    pub fn key(&self) -> &DeviceKey {
        &self.key
    }

    /// The policy the card was opened with.
    pub fn policy(&self) -> Policy {
        *self.ledger.shared.lock().tracker.policy()
    }

    /// Everything alive on the card.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The budget and its terms, from figures read in this call.
    pub fn budget(&self) -> BudgetSnapshot {
        let shared = &self.ledger.shared;
        let mut state = shared.lock();
        shared.refresh(&mut state);
        let (available, terms) = state.available(Class::Required);
        let tracker = &state.tracker;
        BudgetSnapshot {
            total: tracker.total().map(Bytes),
            others: tracker.others().map(Bytes),
            headroom: Bytes(terms.headroom),
            cap: Bytes(terms.cap),
            budget: Bytes(terms.budget),
            own: Bytes(state.live.saturating_add(tracker.hidden())),
            committed: Bytes(state.live),
            reserved: Bytes(state.reserved),
            available: Bytes(available),
            peak: Bytes(state.peak),
            limit: terms.limit,
            unified_memory: tracker.is_unified(),
            warnings: tracker.warnings.clone(),
        }
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card").field("key", &self.key).finish_non_exhaustive()
    }
}

/// A card's budget at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetSnapshot {
    /// The card's memory (T), if known.
    pub total: Option<Bytes>,
    /// What everybody else holds, if known.
    pub others: Option<Bytes>,
    /// What is kept free for the desktop (H).
    pub headroom: Bytes,
    /// The policy's cap in bytes.
    pub cap: Bytes,
    /// What we may hold in all, our own holdings included.
    pub budget: Bytes,
    /// What we hold, with the driver's overhead for us where the driver tells it.
    pub own: Bytes,
    /// Bytes of live allocations in the ledger.
    pub committed: Bytes,
    /// Reserved and not yet committed.
    pub reserved: Bytes,
    /// What a request of class `Required` can have.
    pub available: Bytes,
    /// The most that was ever committed at once.
    pub peak: Bytes,
    /// What the budget is limited by.
    pub limit: Limit,
    /// Whether the GPU shares the system's memory.
    pub unified_memory: bool,
    /// What was wrong with the readings.
    pub warnings: Vec<Warning>,
}

/// Bytes taken out of the budget, not yet allocated. Dropping it gives them back.
///
/// It cannot be cloned and has no constructor but [`Card::try_reserve`].
#[must_use = "dropping a reservation gives it back"]
pub struct Reservation {
    /// `None` once committed: the allocation has taken the entry over.
    shared: Option<Arc<Shared>>,
    id: u64,
    bytes: Bytes,
}

impl Reservation {
    /// How many bytes were reserved.
    pub fn bytes(&self) -> Bytes {
        self.bytes
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

    /// Gives the entry up to the caller, who takes it out of the ledger or puts it under another owner.
    pub(crate) fn leave(mut self) -> Option<u64> {
        self.shared.take().map(|_| self.id)
    }

    /// How many bytes it stands for.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Its number in the ledger.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// What it is for.
    pub fn label(&self) -> Arc<str> {
        self.shared
            .as_ref()
            .map_or_else(|| "".into(), |shared| shared.lock().entries.label(self.id))
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
        }
    }

    /// Leaves the memory to the driver: entry and bytes stay, marked abandoned, for as long as the card is open.
    pub fn abandon(mut self) {
        if let Some(shared) = self.shared.take() {
            if self.returning {
                let mut state = shared.lock();
                state.reserved = state.reserved.saturating_sub(self.bytes.0);
                state.live = state.live.saturating_add(self.bytes.0);
            }
            shared.abandon(self.id);
        }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            let mut state = shared.lock();
            if self.returning {
                state.reserved = state.reserved.saturating_sub(self.bytes.0);
            } else {
                state.live = state.live.saturating_sub(self.bytes.0);
            }
            state.entries.remove(self.id);
            state.tracker.note_free(self.bytes.0);
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
