//! One card: its budget and its ledger under one mutex, and the two tokens that move bytes between them.

mod chain;
mod snapshot;
mod statistics;
mod tokens;

use std::fmt;
use std::sync::Arc;

use crate::budget::{LedgerFigures, Terms, Tracker};
use crate::ledger::{Entries, EntryKind, Ledger};
use crate::peers::Claim;
use crate::pressure::{Pressure, PressureChange, Subscribers, Subscription};
use crate::sync::{AtomicU8, AtomicU64, Mutex, MutexGuard, Ordering};
use crate::{
    Bytes, Class, DeviceKey, DisplayInUse, Headroom, LaunchesStopped, Limit, OutOfBudget, PeerLedger, PeersError,
    Policy, Readings, Refusal, Site,
};
pub(crate) use chain::Chain;
pub use chain::{Registration, Relief, Shortage, Step};
pub use snapshot::BudgetSnapshot;
use statistics::Counts;
pub use statistics::Statistics;
pub use tokens::{Allocation, Reservation};

/// One GPU's memory, shared by everything that allocates on it.
pub struct Card {
    key: DeviceKey,
    ledger: Ledger,
}

/// What a card, its ledger handles and its tokens hold in common.
pub(crate) struct Shared {
    key: DeviceKey,
    state: Mutex<State>,
    readings: Box<dyn Readings>,
    /// The pressure, to be looked at without the mutex.
    pressure: AtomicU8,
    /// When the next reading is due, in nanoseconds; to be looked at without the mutex.
    due: AtomicU64,
    subscribers: Arc<Subscribers>,
    chain: Arc<Chain>,
}

/// Everything that changes, behind the card's one mutex.
pub(crate) struct State {
    pub(crate) entries: Entries,
    /// Committed bytes.
    pub(crate) live: u64,
    /// Reserved and not yet committed bytes.
    reserved: u64,
    /// The part of `reserved` that the driver is being asked to take back.
    returning: u64,
    /// The ledger of the user's processes on this card, if it is shared.
    peers: Option<PeerLedger>,
    /// The highest `live`.
    pub(crate) peak: u64,
    tracker: Tracker,
    pressure: Pressure,
    counts: Counts,
}

impl State {
    fn ledger_figures(&self) -> LedgerFigures {
        LedgerFigures {
            live: self.live,
            reserved: self.reserved,
            peers: self.peers.as_ref().map_or(0, PeerLedger::contained),
            peers_since: self.peers.as_ref().map_or(0, PeerLedger::committed_since),
        }
    }

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
    fn is_floor_broken(&self, terms: Terms) -> bool {
        let (Some(total), Some(others)) = (self.tracker.total(), self.tracker.others()) else {
            return false;
        };
        let wanted = others.saturating_add(self.usage());
        self.excess() > 0 && wanted > total.saturating_sub(terms.headroom / 2)
    }

    /// What a request of `class` can have, and what stands in the way of more.
    fn available(&self, class: Class) -> (u64, Terms) {
        let mut terms = self.tracker.terms();
        if class == Class::Cache && terms.budget > 0 {
            terms.limit = Limit::CacheShare;
        }
        (self.tracker.room(class).saturating_sub(self.usage()), terms)
    }

    /// Bytes that we hold or may be given, to be covered by our claim among the processes.
    fn held(&self) -> u64 {
        self.live.saturating_add(self.reserved.saturating_sub(self.returning))
    }

    /// Makes sure that no other process is promised the same bytes. `false` if others have claimed them.
    fn claim(&mut self, bytes: u64, class: Class) -> Result<bool, PeersError> {
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
    fn tell_peers(&mut self) {
        let held = self.held();
        if let Some(peers) = &mut self.peers {
            peers.publish(self.live, held);
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
    fn refresh(&self, state: &mut State, sure: bool) {
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

    /// To be called after every change of what is held or may be held, with the mutex still held. Who has subscribed is told
    /// by the next [`Subscribers::tell`]: never from here, and never from a destructor.
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

impl Card {
    /// A card under `policy`, with figures from `readings`.
    ///
    /// # Errors
    /// The policy leaves the desktop nothing, and a display is connected to the card ([`Policy::on_display`]).
    pub fn open(key: DeviceKey, policy: Policy, readings: Box<dyn Readings>) -> Result<Arc<Card>, DisplayInUse> {
        Self::open_checked(key, policy, readings, None)
    }

    /// [`Card::open`] for a card whose budget takes into account what the user's other processes have claimed on it.
    ///
    /// # Errors
    /// As [`Card::open`].
    pub fn open_shared(
        key: DeviceKey,
        policy: Policy,
        readings: Box<dyn Readings>,
        peers: PeerLedger,
    ) -> Result<Arc<Card>, DisplayInUse> {
        Self::open_checked(key, policy, readings, Some(peers))
    }

    fn open_checked(
        key: DeviceKey,
        policy: Policy,
        readings: Box<dyn Readings>,
        peers: Option<PeerLedger>,
    ) -> Result<Arc<Card>, DisplayInUse> {
        let displays = readings.read().displays;
        match policy.headroom {
            Headroom::Fixed(headroom) if policy.is_refused(displays) => Err(DisplayInUse {
                device: key,
                displays,
                headroom,
            }),
            _ => Ok(Self::make(key, policy, readings, peers)),
        }
    }

    /// [`Card::open`] that refuses no policy: one that leaves the desktop nothing keeps what a desktop needs free as long as
    /// a display is connected.
    pub fn new(key: DeviceKey, policy: Policy, readings: Box<dyn Readings>) -> Arc<Card> {
        Self::make(key, policy, readings, None)
    }

    fn make(key: DeviceKey, policy: Policy, readings: Box<dyn Readings>, peers: Option<PeerLedger>) -> Arc<Card> {
        let tracker = Tracker::new(policy);
        let state = State {
            entries: Entries::default(),
            live: 0,
            reserved: 0,
            returning: 0,
            peers,
            peak: 0,
            tracker,
            pressure: Pressure::Green,
            counts: Counts::default(),
        };
        let shared = Arc::new(Shared {
            key: key.clone(),
            state: Mutex::new(state),
            readings,
            pressure: AtomicU8::new(Pressure::Green as u8),
            due: AtomicU64::new(0),
            subscribers: Arc::default(),
            chain: Arc::default(),
        });
        shared.refresh(&mut shared.lock(), true);
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
        let result = {
            let mut state = shared.lock();
            self.take(&mut state, bytes, class, label, site)
        };
        shared.subscribers.tell();
        result
    }

    /// The step that checks and takes.
    fn take(
        &self,
        state: &mut State,
        bytes: Bytes,
        class: Class,
        label: &str,
        site: Site,
    ) -> Result<Reservation, OutOfBudget> {
        let shared = &self.ledger.shared;
        let mut sure = false;
        if state.tracker.is_stale(shared.readings.now()) {
            shared.refresh(state, false);
            // No other process has a claim, so there is none that might have ended.
            sure = state.peers.as_ref().is_none_or(PeerLedger::is_alone);
        }
        state.tracker.count_request();
        loop {
            let fits = bytes.0 <= state.available(class).0;
            let claimed = if fits { state.claim(bytes.0, class) } else { Ok(false) };
            match claimed {
                Ok(true) => break,
                // The frozen figures say no: ask the driver before telling the user so.
                Ok(false) if !sure => {
                    shared.refresh(state, true);
                    sure = true;
                }
                refused => {
                    let refusal = self.refuse(state, bytes, class, label, site, refused.err());
                    state.counts.refused(refusal.limit);
                    return Err(refusal);
                }
            }
        }
        state.reserved += bytes.0;
        state.counts.granted += 1;
        state.counts.peak = state.counts.peak.max(state.usage());
        shared.note_pressure(state);
        let id = state.entries.add(EntryKind::Reserved(bytes), label, site);
        Ok(Reservation::taken(shared, id, bytes))
    }

    fn refuse(
        &self,
        state: &State,
        requested: Bytes,
        class: Class,
        label: &str,
        site: Site,
        peers_error: Option<PeersError>,
    ) -> OutOfBudget {
        let (available, terms) = state.available(class);
        let tracker = &state.tracker;
        let without_peers = tracker.room_without_peers(class).saturating_sub(state.usage());
        let (available, limit) = if peers_error.is_some() {
            (0, Limit::Peers)
        } else if requested.0 <= without_peers {
            (available, Limit::Peers)
        } else {
            (available, terms.limit)
        };
        OutOfBudget::new(Refusal {
            device: self.key.clone(),
            requested,
            available: Bytes(available),
            budget: Bytes(terms.budget),
            total: Bytes(tracker.total().unwrap_or(0)),
            others: Bytes(tracker.others().unwrap_or(0)),
            peers: Bytes(tracker.beyond()),
            headroom: Bytes(terms.headroom),
            own: Bytes(state.live.saturating_add(tracker.hidden())),
            reserved: Bytes(state.reserved),
            class,
            label: label.to_owned(),
            site,
            limit,
            peers_error,
            relief: Relief::default(),
        })
    }

    /// How tight the card was when it was last looked at. Costs one load.
    pub fn pressure(&self) -> Pressure {
        let level = self.ledger.shared.pressure.load(Ordering::Acquire);
        Pressure::ALL[usize::from(level) % Pressure::ALL.len()]
    }

    /// Reads the figures again if they are older than [`Policy::reread_every`], tells who has subscribed, and says how tight
    /// the card is. A program that neither allocates nor launches calls it a few times a second.
    pub fn look(&self) -> Pressure {
        let shared = &self.ledger.shared;
        let now = u64::try_from(shared.readings.now().as_nanos()).unwrap_or(u64::MAX);
        if now >= shared.due.load(Ordering::Relaxed) {
            let mut state = shared.lock();
            if state.tracker.is_stale(shared.readings.now()) {
                shared.refresh(&mut state, false);
            }
            drop(state);
            shared.subscribers.tell();
        }
        self.pressure()
    }

    /// Whether anything may be launched: a [`look`](Self::look), and under [`Pressure::Black`] a refusal with its figures.
    ///
    /// # Errors
    /// The card is over-committed, and we hold more than we may or the driver is moving memory off the card.
    pub fn check_launch(&self) -> Result<(), LaunchesStopped> {
        if self.look() < Pressure::Black {
            return Ok(());
        }
        let shared = &self.ledger.shared;
        let stopped = {
            let mut state = shared.lock();
            // The figures may be a moment old; who is refused gets those of now.
            shared.refresh(&mut state, true);
            (state.pressure == Pressure::Black).then(|| LaunchesStopped {
                device: self.key.clone(),
                budget: Bytes(state.tracker.terms().budget),
                own: Bytes(state.usage()),
                others: Bytes(state.tracker.others().unwrap_or(0)),
                total: Bytes(state.tracker.total().unwrap_or(0)),
                evicting: state.tracker.is_evicting(),
            })
        };
        shared.subscribers.tell();
        stopped.map_or(Ok(()), Err)
    }

    /// Calls `handler` at every change of the card's pressure, until the subscription is dropped.
    ///
    /// It is called by the thread that notices the change, at a reservation, a launch or a look, never in a destructor, and
    /// with none of the card's locks held: it may reserve, free, look and subscribe. What it brings about is told after it
    /// has returned. A change for the better that a free brings about is told at the next of these occasions.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use std::sync::Arc;
    /// use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Pressure, Reading};
    ///
    /// let reading = Reading { total: Some(Bytes::gib(20)), used: Some(Bytes::gib(2)), ..Reading::default() };
    /// let card = Card::new(DeviceKey::new("sim:0"), Policy::desktop(), Box::new(FixedReadings(reading)));
    /// let tight = Arc::new(AtomicBool::new(false));
    /// let subscription = card.subscribe({
    ///     let tight = Arc::clone(&tight);
    ///     move |change| tight.store(change.to >= Pressure::Yellow, Ordering::Relaxed)
    /// });
    /// let weights = card.try_reserve(Bytes::gib(12), Class::Required, "weights")?;
    /// assert!(tight.load(Ordering::Relaxed));
    /// drop((subscription, weights));
    /// # Ok::<(), rocmforge_memory::OutOfBudget>(())
    /// ```
    pub fn subscribe(&self, handler: impl Fn(&PressureChange) + Send + Sync + 'static) -> Subscription {
        self.ledger.shared.subscribers.add(Arc::new(handler))
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

    /// The budget as it was last decided. Reads nothing and changes nothing: for observers.
    pub fn last_budget(&self) -> Bytes {
        Bytes(self.ledger.shared.lock().tracker.terms().budget)
    }

    /// The budget and its terms, from figures read in this call.
    pub fn budget(&self) -> BudgetSnapshot {
        let shared = &self.ledger.shared;
        let snapshot = {
            let mut state = shared.lock();
            shared.refresh(&mut state, true);
            BudgetSnapshot::of(&state)
        };
        shared.subscribers.tell();
        snapshot
    }
}

impl Card {
    /// What has happened on the card so far, to be printed.
    pub fn statistics(&self) -> Statistics {
        let budget = self.budget();
        let shared = &self.ledger.shared;
        let steps = shared.chain.taken();
        Statistics::new(self.key.clone(), budget, &shared.lock().counts, steps)
    }
}

impl fmt::Debug for Card {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Card").field("key", &self.key).finish_non_exhaustive()
    }
}
