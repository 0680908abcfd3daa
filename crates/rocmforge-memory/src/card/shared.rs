//! State of a card behind its mutex, shared with the ledger's handles and the tokens.

use std::sync::Arc;

use super::chain::Chain;
use super::snapshot::BudgetSnapshot;
use super::statistics::Counts;
use crate::budget::{LedgerFigures, Terms, Tracker};
use crate::entries::Entries;
use crate::peers::Claim;
use crate::pressure::{Pressure, PressureChange, Subscribers};
use crate::sync::{AtomicU8, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::{Bytes, Class, DeviceKey, Limit, PeerLedger, PeersError, Readings};

/// What a card, its ledger handles and its tokens hold in common.
pub(crate) struct Shared {
    pub(super) key: DeviceKey,
    pub(super) state: Mutex<State>,
    pub(super) readings: Box<dyn Readings>,
    /// The pressure, to be looked at without the mutex.
    pub(super) pressure: AtomicU8,
    /// When the next reading is due, in nanoseconds; to be looked at without the mutex.
    pub(super) due: AtomicU64,
    pub(super) subscribers: Arc<Subscribers>,
    pub(super) chain: Arc<Chain>,
}

/// Everything that changes, behind the card's one mutex.
pub(crate) struct State {
    pub(crate) entries: Entries,
    /// Committed bytes.
    pub(crate) live: u64,
    /// Reserved and not yet committed bytes.
    pub(super) reserved: u64,
    /// The part of `reserved` that the driver is being asked to take back.
    pub(super) returning: u64,
    /// The ledger of the user's processes on this card, if it is shared.
    pub(super) peers: Option<PeerLedger>,
    /// The highest `live`.
    pub(crate) peak: u64,
    pub(super) tracker: Tracker,
    pub(super) pressure: Pressure,
    pub(super) counts: Counts,
}

impl State {
    pub(super) fn ledger_figures(&self) -> LedgerFigures {
        LedgerFigures {
            live: self.live,
            reserved: self.reserved,
            peers: self.peers.as_ref().map_or(0, PeerLedger::contained),
            peers_since: self.peers.as_ref().map_or(0, PeerLedger::committed_since),
        }
    }

    /// What counts against the budget now.
    pub(super) fn usage(&self) -> u64 {
        self.live
            .saturating_add(self.tracker.hidden())
            .saturating_add(self.reserved)
    }

    /// By how much we hold more than the budget, as far as the last reading knows.
    pub(crate) fn excess(&self) -> u64 {
        self.usage().saturating_sub(self.tracker.terms().budget)
    }

    /// How tight the card is by the figures as they are now.
    pub(crate) fn pressure(&self) -> Pressure {
        let (usage, terms) = (self.usage(), self.tracker.terms());
        if usage > 0 && (self.tracker.is_evicting() || self.is_floor_broken(terms)) {
            Pressure::Black
        } else if usage > terms.budget {
            Pressure::Red
        } else if usage > self.tracker.room(Class::Cache) {
            Pressure::Yellow
        } else {
            Pressure::Green
        }
    }

    /// Whether half of the headroom is in use, and by more than we may hold.
    pub(super) fn is_floor_broken(&self, terms: Terms) -> bool {
        let (Some(total), Some(others)) = (self.tracker.total(), self.tracker.others()) else {
            return false;
        };
        let wanted = others.saturating_add(self.usage());
        self.excess() > 0 && wanted > total.saturating_sub(terms.headroom / 2)
    }

    /// What a request of `class` can have, and what stands in the way of more.
    pub(super) fn available(&self, class: Class) -> (u64, Terms) {
        let mut terms = self.tracker.terms();
        if class == Class::Cache && terms.budget > 0 {
            terms.limit = Limit::CacheShare;
        }
        (self.tracker.room(class).saturating_sub(self.usage()), terms)
    }

    /// What would have to be given back for `bytes` more to fit. `None` if they would not fit an empty card.
    pub(super) fn missing(&self, bytes: Bytes, class: Class) -> Option<u64> {
        let room = self.tracker.room(class);
        let wanted = self.usage().saturating_add(bytes.0);
        // The driver's overhead is there on an empty card too.
        let empty = room.saturating_sub(self.tracker.hidden());
        (bytes.0 <= empty).then(|| wanted.saturating_sub(room))
    }

    /// Bytes that we hold or may be given, to be covered by our claim among the processes.
    pub(super) fn held(&self) -> u64 {
        self.live.saturating_add(self.reserved.saturating_sub(self.returning))
    }

    /// Makes sure that no other process is promised the same bytes. `false` if others have claimed them.
    pub(super) fn claim(&mut self, bytes: u64, class: Class) -> Result<bool, PeersError> {
        let held = self.held();
        let Some(peers) = &mut self.peers else { return Ok(true) };
        if peers.covers(held.saturating_add(bytes)) {
            return Ok(true);
        }
        let tracker = &mut self.tracker;
        let apart = tracker.hidden().saturating_add(self.returning);
        let claimed = peers.claim(self.live, held, bytes, |beyond| {
            tracker.set_beyond(beyond);
            tracker.room(class).saturating_sub(apart)
        })?;
        Ok(claimed == Claim::Granted)
    }

    /// To be called after every change of what we hold.
    pub(super) fn notify_peers(&mut self) {
        let held = self.held();
        if let Some(peers) = &mut self.peers {
            peers.publish(self.live, held);
        }
    }

    /// The budget at this moment.
    pub(super) fn snapshot(&self) -> BudgetSnapshot {
        let (available, terms) = self.available(Class::Required);
        let tracker = &self.tracker;
        BudgetSnapshot {
            total: tracker.total().map(Bytes),
            others: tracker.others().map(Bytes),
            peers: Bytes(tracker.beyond()),
            headroom: Bytes(terms.headroom),
            cap: Bytes(terms.cap),
            budget: Bytes(terms.budget),
            target: Bytes(terms.target),
            pressure: self.pressure,
            evicted: tracker.evicted().map(Bytes),
            own: Bytes(self.live.saturating_add(tracker.hidden())),
            committed: Bytes(self.live),
            reserved: Bytes(self.reserved),
            available: Bytes(available),
            peak: Bytes(self.peak),
            correction: Bytes(tracker.correction().0),
            driver_refusals: tracker.correction().1,
            limit: terms.limit,
            unified_memory: tracker.is_unified(),
            warnings: tracker.warnings.clone(),
        }
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

    /// Reads every figure. `sure` looks which of the other processes still live.
    pub(super) fn refresh(&self, state: &mut State, sure: bool) {
        state.counts.readings += 1;
        if let Some(peers) = &mut state.peers {
            peers.look(sure);
        }
        let holdings = state.ledger_figures();
        let tracker = &mut state.tracker;
        tracker.update(&self.readings.read(), holdings, self.readings.now());
        if let Some(peers) = &mut state.peers {
            peers.figures_read(tracker.others().is_some());
            tracker.set_beyond(peers.beyond());
        }
        let due = u64::try_from(state.tracker.due().as_nanos()).unwrap_or(u64::MAX);
        self.due.store(due, Ordering::Relaxed);
        self.note_pressure(state);
    }

    /// To be called after every change of what is held or may be held, with the mutex still held. Subscribers are notified
    /// by the next [`Subscribers::notify`]: never from here, and never from a destructor.
    pub(crate) fn note_pressure(&self, state: &mut State) {
        let to = state.pressure();
        let from = std::mem::replace(&mut state.pressure, to);
        if from == to {
            return;
        }
        state.counts.entered[to as usize] += 1;
        self.pressure.store(to as u8, Ordering::Release);
        let terms = state.tracker.terms();
        self.subscribers.note(PressureChange {
            device: self.key.clone(),
            at: self.readings.now(),
            from,
            to,
            budget: Bytes(terms.budget),
            own: Bytes(state.usage()),
            others: Bytes(state.tracker.others().unwrap_or(0)),
            headroom: Bytes(terms.headroom),
        });
    }
}
