//! One card: its budget and its ledger under one mutex, and the two tokens that move bytes between them.

mod chain;
pub(crate) mod shared;
mod snapshot;
mod statistics;
mod tokens;

use std::fmt;
use std::sync::Arc;

use crate::budget::Tracker;
use crate::entries::{Entries, EntryKind};
use crate::ledger::Ledger;
use crate::pressure::{Pressure, PressureChange, Subscription};
use crate::sync::{AtomicU8, AtomicU64, Mutex, Ordering};
use crate::{
    Bytes, Class, DeviceKey, DisplayInUse, Headroom, LaunchesStopped, Limit, OutOfBudget, PeerLedger, PeersError,
    Policy, Readings, Refusal, Relief, Shortage, Site, Step,
};
pub use chain::Registration;
use chain::{Inside, Relieving};
use shared::{Shared, State};
pub use snapshot::BudgetSnapshot;
use statistics::Counts;
pub use statistics::Statistics;
pub use tokens::{Allocation, Reservation};

/// One GPU's memory, shared by everything that allocates on it.
pub struct Card {
    key: DeviceKey,
    ledger: Ledger,
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
        shared.subscribers.notify();
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
            shared.subscribers.notify();
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
        shared.subscribers.notify();
        stopped.map_or(Ok(()), Err)
    }

    /// Calls `handler` at every change of the card's pressure, until the subscription is dropped.
    ///
    /// It is called by the thread that notices the change, at a reservation, a launch or a look, never in a destructor, and
    /// with none of the card's locks held: it may reserve, free, look and subscribe. A change that the
    /// function causes is notified after it has returned. A fall of the level after a free is notified at the next of these occasions.
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
            state.snapshot()
        };
        shared.subscribers.notify();
        snapshot
    }
}

impl Card {
    /// Registers a way to give memory back; `handler` says how many bytes it has freed.
    ///
    /// It is called by the thread that needs the memory, at most once for a request, with none of the card's locks held: it may
    /// reserve, free, look and register. What it reserves itself does not call handlers again. It must not wait for another
    /// thread that reserves.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Reading, Site, Step};
    ///
    /// let reading = Reading { total: Some(Bytes::gib(20)), used: Some(Bytes::gib(2)), ..Reading::default() };
    /// let card = Card::new(DeviceKey::new("sim:0"), Policy::desktop(), Box::new(FixedReadings(reading)));
    /// let cache = Arc::new(Mutex::new(vec![card.try_reserve(Bytes::gib(10), Class::Cache, "cache")?.commit()]));
    /// let registration = card.on_pressure(Step::DropCaches, {
    ///     let cache = Arc::clone(&cache);
    ///     move |_shortage| cache.lock().unwrap().drain(..).map(|entry| entry.bytes()).sum()
    /// });
    /// let weights = card.reserve(Bytes::gib(8), Class::Required, "weights")?;
    /// assert!(cache.lock().unwrap().is_empty());
    /// # drop((registration, weights));
    /// # Ok::<(), rocmforge_memory::OutOfBudget>(())
    /// ```
    pub fn on_pressure(
        &self,
        step: Step,
        handler: impl Fn(&Shortage) -> Bytes + Send + Sync + 'static,
    ) -> Registration {
        self.ledger.shared.chain.register(step, Arc::new(handler))
    }

    /// [`Card::try_reserve`], and before it is refused the registered steps, each at most once and only as far as needed.
    ///
    /// A request of [`Class::Cache`] takes no step, nor does one that would not fit if all were given back.
    ///
    /// # Errors
    /// [`OutOfBudget`] with every figure of the decision and what the steps freed; nothing is taken then.
    #[track_caller]
    pub fn reserve(self: &Arc<Self>, bytes: Bytes, class: Class, label: &str) -> Result<Reservation, OutOfBudget> {
        self.reserve_with(bytes, class, label, Site::caller(), || Ok(false))
    }

    /// [`Card::reserve`] for callers that captured the site themselves and keep memory back that is free but still in use:
    /// `free_deferred` waits for it, and says whether there was any. It is called before the first step and after each.
    ///
    /// # Errors
    /// [`OutOfBudget`] as for [`Card::reserve`], or what `free_deferred` said.
    pub fn reserve_with<E: From<OutOfBudget>>(
        self: &Arc<Self>,
        bytes: Bytes,
        class: Class,
        label: &str,
        site: Site,
        mut free_deferred: impl FnMut() -> Result<bool, E>,
    ) -> Result<Reservation, E> {
        let mut refused = match self.try_reserve_at(bytes, class, label, site) {
            Ok(reservation) => return Ok(reservation),
            Err(refused) => refused,
        };
        if free_deferred()? {
            refused = match self.try_reserve_at(bytes, class, label, site) {
                Ok(reservation) => return Ok(reservation),
                Err(refused) => refused,
            };
        }
        let Some(_inside) = Inside::enter().filter(|_| class != Class::Cache) else {
            return Err(refused.into());
        };
        let shared = &self.ledger.shared;
        let mut relief = Relief::default();
        for step in Step::ALL {
            let missing = shared.lock().missing(bytes, class);
            let Some(missing) = missing else { break };
            let shortage = Shortage {
                device: self.key.clone(),
                step,
                needed: Bytes(missing),
                request: Some((class, label.to_owned())),
            };
            let Some(freed) = shared.chain.take(&shortage) else {
                continue;
            };
            relief.0.push((step, freed));
            free_deferred()?;
            refused = match self.try_reserve_at(bytes, class, label, site) {
                Ok(reservation) => return Ok(reservation),
                Err(refused) => refused,
            };
        }
        Err(refused.after(relief).into())
    }

    /// Under [`Pressure::Red`] and worse, takes the registered steps until no more is held than the budget allows. Nothing
    /// otherwise, nor while another thread is at it. A program that was notified of the pressure calls it, and the runtime does
    /// at each launch.
    pub fn relieve(&self) -> Relief {
        let nothing = || Ok::<_, std::convert::Infallible>(false);
        match self.relieve_with(nothing) {
            Ok(relief) => relief,
            Err(never) => match never {},
        }
    }

    /// [`Card::relieve`] with a way to wait for what is free but still in use, as in [`Card::reserve_with`].
    ///
    /// # Errors
    /// What `free_deferred` said.
    pub fn relieve_with<E>(&self, mut free_deferred: impl FnMut() -> Result<bool, E>) -> Result<Relief, E> {
        let mut relief = Relief::default();
        if self.look() < Pressure::Red {
            return Ok(relief);
        }
        let shared = &self.ledger.shared;
        let Some(_inside) = Inside::enter() else {
            return Ok(relief);
        };
        let Some(_relieving) = Relieving::begin(&shared.chain) else {
            return Ok(relief);
        };
        free_deferred()?;
        for step in Step::ALL {
            let excess = shared.lock().excess();
            if excess == 0 {
                break;
            }
            let shortage = Shortage {
                device: self.key.clone(),
                step,
                needed: Bytes(excess),
                request: None,
            };
            if let Some(freed) = shared.chain.take(&shortage) {
                relief.0.push((step, freed));
                free_deferred()?;
            }
        }
        shared.subscribers.notify();
        Ok(relief)
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
