//! The arithmetic of the budget: readings in, one figure out. No locks, no clocks of its own.
//!
//! ```text
//! Budget = min(Cap, T - Others - H, Own + K - slack)   clamped to [0, T - H], our own holdings included
//! ```
//!
//! [`terms`] computes what the figures allow. A smaller result is in force at once, a larger one is reached slowly ([`growth`]). [`shared`] adds up
//! the two kinds of memory of a GPU that shares the system's. [`late`] subtracts our own late frees from the memory of others. A cap in bytes does not
//! depend on the card's figures: the driver's overhead is added to it, and it is in force at once.

mod correction;
mod growth;
mod late;
mod shared;
mod terms;
mod window;

use std::time::Duration;

use crate::policy::GRANULE;
use crate::{Bytes, Class, Limit, Policy, Reading, UnifiedMemory};
use correction::Correction;
use growth::Growth;
use late::LateFrees;
use shared::AsOne;
use window::{Highest, Lowest};

/// Something about the readings that made the budget smaller than it might be, or that was not believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Warning {
    /// `total` or `used` could not be read: the budget is `min(Cap, T/4, (Own + K)/2)`.
    Unreadable,
    /// `used` was larger than `total` and counts as `total`.
    UsedAboveTotal,
    /// `used` was smaller than what we hold ourselves; Others counts as 0.
    UsedBelowOwn,
    /// HIP's free figure was larger than the card and counts as the whole card.
    FreeAboveTotal,
    /// The driver's figure for our process was larger than the card and counts as the whole card.
    OwnAboveTotal,
    /// The GPU shares the system's memory.
    UnifiedMemory,
    /// A display is connected to a card whose policy keeps nothing free for one: what a desktop needs is kept free.
    DisplayConnected,
    /// The driver refused memory that the budget had granted: the budget is lower by [`BudgetSnapshot::correction`].
    ///
    /// [`BudgetSnapshot::correction`]: crate::BudgetSnapshot::correction
    ModelWrong,
}

/// What the ledger says at the moment of a reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LedgerFigures {
    /// Committed bytes.
    pub(crate) live: u64,
    /// Reserved and not yet committed: the driver may or may not have handed them out already.
    pub(crate) reserved: u64,
    /// What cooperating processes had committed when the figures were read.
    pub(crate) peers: u64,
    /// What they have committed since the reading before: a rise of `used` that is not our own late free.
    pub(crate) peers_since: u64,
}

/// The budget and its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    /// What is in force.
    pub(crate) budget: u64,
    /// What the figures allow, and the budget grows to.
    pub(crate) target: u64,
    /// The same without a cap in bytes: what grows slowly.
    figures: u64,
    /// The policy's cap; one in bytes with the driver's overhead on top.
    pub(crate) cap: u64,
    pub(crate) headroom: u64,
    pub(crate) limit: Limit,
}

/// What is remembered between readings: Others is frozen, Own moves by the ledger.
#[derive(Debug)]
pub(crate) struct Tracker {
    policy: Policy,
    total: Option<u64>,
    others: Option<u64>,
    /// The part of Others that cooperating processes hold.
    peers: u64,
    /// What cooperating processes may hold beyond the figures: it counts as Others too.
    beyond: u64,
    /// `Own + K - slack` at the last reading: our own allocations do not move it.
    ceiling: Option<u64>,
    /// The driver's overhead for our process, not in the ledger.
    hidden: u64,
    displays: u32,
    unified: bool,
    /// What stays available to the system, where the GPU shares its memory.
    host_headroom: u64,
    late: LateFrees,
    /// What has been seen of others for as long as a free may be late, reserved bytes taken off.
    standing: Lowest,
    /// Others within the peak window.
    peaks: Highest,
    /// What the driver has moved off the card, and what of it has been away for as long as its `used` may be late.
    evicted: Option<u64>,
    away: Lowest,
    /// How long our queues had been stopped at the last reading.
    stopped: Option<Duration>,
    /// When the driver was last seen moving memory off the card.
    evicting: Option<Duration>,
    growth: Growth,
    /// By how much is still held back of what the figures without `beyond` allow, because the budget grows slowly.
    held_back: u64,
    correction: Correction,
    /// What HIP called free at the last reading.
    free: Option<u64>,
    pub(crate) warnings: Vec<Warning>,
    read_at: Option<Duration>,
    requests: u32,
    terms: Terms,
}

impl Tracker {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            total: None,
            others: None,
            peers: 0,
            beyond: 0,
            ceiling: None,
            hidden: 0,
            displays: 0,
            unified: false,
            host_headroom: 0,
            late: LateFrees::default(),
            standing: Lowest::default(),
            peaks: Highest::default(),
            evicted: None,
            away: Lowest::default(),
            stopped: None,
            evicting: None,
            growth: Growth::default(),
            held_back: 0,
            correction: Correction::default(),
            free: None,
            warnings: Vec::new(),
            read_at: None,
            requests: 0,
            terms: Terms {
                budget: 0,
                target: 0,
                figures: 0,
                cap: 0,
                headroom: 0,
                limit: Limit::Unreadable,
            },
        }
    }

    /// When the frozen figures are too old to decide on, however few requests there were.
    pub(crate) fn due(&self) -> Duration {
        self.read_at
            .map_or(Duration::ZERO, |at| at.saturating_add(self.policy.reread_every))
    }

    /// Whether the frozen figures are too old to decide on.
    pub(crate) fn is_stale(&self, now: Duration) -> bool {
        match self.read_at {
            None => true,
            Some(at) => self.requests >= self.policy.reread_after || now.saturating_sub(at) >= self.policy.reread_every,
        }
    }

    /// Counts a request towards the next reading.
    pub(crate) fn count_request(&mut self) {
        self.requests = self.requests.saturating_add(1);
    }

    /// Notes that we have given `bytes` back: the driver may report them as used for a while yet.
    pub(crate) fn note_free(&mut self, bytes: u64, now: Duration) {
        self.late.note(bytes, now);
    }

    /// Takes in one reading. Figures are clamped, never believed.
    pub(crate) fn update(&mut self, reading: &Reading, holdings: LedgerFigures, now: Duration) {
        self.read_at = Some(now);
        self.requests = 0;
        self.warnings.clear();
        self.displays = reading.displays;
        self.unified = reading.unified_memory;
        let mut reading = *reading;
        self.host_headroom = 0;
        if self.unified {
            self.warnings.push(Warning::UnifiedMemory);
            if self.policy.unified_memory == UnifiedMemory::Available {
                let one = AsOne::of(&reading);
                self.host_headroom = one.map_or(0, |one| one.headroom);
                (reading.total, reading.used) = (one.map(|one| one.total), one.map(|one| one.used));
            }
        }
        let reading = &reading;
        if self.policy.is_refused(self.displays) {
            self.warnings.push(Warning::DisplayConnected);
        }
        // A total of 0 is a driver that has not come up, not a card without memory.
        self.total = reading.total.map(|t| t.0).filter(|&t| t > 0);
        let total = self.total.unwrap_or(u64::MAX);
        let own = self.own(reading, holdings, total);
        self.read_ceiling(reading, holdings, own, total);
        self.read_evictions(reading, total, now);
        self.read_others(reading, holdings, own, now);
        self.conclude(holdings, now);
    }

    /// The driver refused `requested` bytes of `holdings.reserved`.
    pub(crate) fn refused(&mut self, requested: u64, holdings: LedgerFigures, now: Duration) {
        self.correction.refused(requested, self.free, now);
        self.conclude(holdings, now);
    }

    /// What follows from the figures taken in: what they allow, and what of it is in force.
    fn conclude(&mut self, holdings: LedgerFigures, now: Duration) {
        self.correction.lift(now, self.policy.peak_window);
        if self.correction.bytes() > 0 {
            self.warnings.push(Warning::ModelWrong);
        }
        let figures = self.allowed(0).figures;
        let total = self.total.unwrap_or(figures);
        self.held_back = figures - self.growth.in_force(figures, total, now, &self.policy);
        self.terms = self.in_force(self.beyond);
        let terms = self.terms;
        let held = holdings.live.saturating_add(holdings.reserved);
        let usage = held.saturating_add(self.hidden);
        // Over, when it has stopped for a while and we hold no more than we may.
        let over = |at: Duration| now.saturating_sub(at) >= self.policy.late_free_grace && usage <= terms.budget;
        self.evicting = self.evicting.filter(|&at| !over(at));
    }

    /// What is off the card, and whether more of it is than at the last reading.
    fn read_evictions(&mut self, reading: &Reading, total: u64, now: Duration) {
        let evicted = reading.evicted.map(|bytes| bytes.0.min(total));
        let rises = |before: Option<u64>, after: Option<u64>| before.zip(after).is_some_and(|(b, a)| a > b);
        let stops = self.stopped.zip(reading.stopped).is_some_and(|(b, a)| a > b);
        if rises(self.evicted, evicted) || stops {
            self.evicting = Some(now);
        }
        (self.evicted, self.stopped) = (evicted.or(self.evicted), reading.stopped.or(self.stopped));
    }

    /// What the driver holds for us, and with it the overhead that the ledger does not know.
    fn own(&mut self, reading: &Reading, holdings: LedgerFigures, total: u64) -> u64 {
        let Some(Bytes(own)) = reading.own else {
            self.hidden = 0;
            return holdings.live.checked_next_multiple_of(GRANULE).unwrap_or(holdings.live);
        };
        if own > total {
            self.warnings.push(Warning::OwnAboveTotal);
        }
        // The ledger is exact, so it is the lower bound of what the driver can hold for us.
        let own = own.min(total).max(holdings.live);
        // A reservation may or may not have reached the driver; the overhead lies between the two answers.
        let most = own - holdings.live;
        self.hidden = self.hidden.clamp(most.saturating_sub(holdings.reserved), most);
        own
    }

    fn read_ceiling(&mut self, reading: &Reading, holdings: LedgerFigures, own: u64, total: u64) {
        self.free = reading.hip_free.map(|free| free.0.min(total));
        let previous = self.ceiling.take();
        let Some(Bytes(free)) = reading.hip_free else {
            // A driver that no longer answers has not thereby more memory: what it said last holds.
            self.ceiling = previous;
            return;
        };
        if free > total {
            self.warnings.push(Warning::FreeAboveTotal);
        }
        let seen = own.saturating_add(free.min(total)).saturating_sub(self.policy.slack.0);
        // What is reserved may already be missing from the driver's free figure and not yet be in Own.
        let most = seen.saturating_add(holdings.reserved);
        self.ceiling = Some(previous.map_or(seen, |p| p.clamp(seen, most)));
    }

    fn read_others(&mut self, reading: &Reading, holdings: LedgerFigures, own: u64, now: Duration) {
        let (Some(total), Some(Bytes(used))) = (self.total, reading.used) else {
            self.warnings.push(Warning::Unreadable);
            self.others = None;
            return;
        };
        if used > total {
            self.warnings.push(Warning::UsedAboveTotal);
        }
        let used = used.min(total);
        // Our rounding up to the driver's granule is not an inconsistency of the driver's.
        if used < holdings.live.min(own) {
            self.warnings.push(Warning::UsedBelowOwn);
        }
        // What was moved away is wanted back. It counts once it is certain that `used` does not count it any more.
        let away = self
            .away
            .push(now, self.evicted.unwrap_or(0), self.policy.late_free_grace);
        let raw = used.saturating_add(away).saturating_sub(own).min(total);
        let previous = self.others.map(|others| others.saturating_add(holdings.peers_since));
        let seen = match previous {
            // Reserved bytes may already be in `used` and not yet in Own.
            Some(previous) => previous.clamp(raw.saturating_sub(holdings.reserved), raw),
            None => raw,
        };
        let grace = self.policy.late_free_grace;
        let excused = self.late.excuse(previous, seen, now, grace);
        // A program that frees all the time always has an excuse, and what has risen for so long has risen all the same.
        let standing = self.standing.push(now, raw.saturating_sub(holdings.reserved), grace);
        let others = excused.max(standing);
        (self.others, self.peers) = (Some(others), holdings.peers.min(others));
        // A cooperating process that ends leaves nothing behind that the desktop might want again.
        self.peaks.push(now, others - self.peers, self.policy.peak_window);
    }

    /// Takes in what cooperating processes may hold beyond the figures last read. It comes and goes at once.
    pub(crate) fn set_beyond(&mut self, bytes: u64) {
        if self.beyond != bytes {
            self.beyond = bytes;
            self.terms = self.in_force(self.beyond);
        }
    }

    /// What cooperating processes may hold beyond the figures.
    pub(crate) fn beyond(&self) -> u64 {
        self.beyond
    }

    /// What the figures allow, less what they have shown to be wrong by.
    fn allowed(&self, beyond: u64) -> Terms {
        let mut terms = self.compute(beyond);
        let correction = self.correction.bytes();
        if correction > 0 {
            terms.target = terms.target.saturating_sub(correction);
            terms.figures = terms.figures.saturating_sub(correction);
            (terms.budget, terms.limit) = (terms.target, Limit::DriverRefused);
        }
        terms
    }

    /// What is in force if cooperating processes hold `beyond` more than the figures say.
    fn in_force(&self, beyond: u64) -> Terms {
        let mut terms = self.allowed(beyond);
        let grown = terms.figures.saturating_sub(self.held_back);
        if grown < terms.budget {
            (terms.budget, terms.limit) = (grown, Limit::Growth);
        }
        terms
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    /// What of the budget may be in use after a request of `class`: the driver's overhead, which no request made, and the class's
    /// part of what it leaves.
    pub(crate) fn room(&self, class: Class) -> u64 {
        self.room_in(self.terms.budget, class)
    }

    /// The same if no cooperating process held anything beyond the figures.
    pub(crate) fn room_without_peers(&self, class: Class) -> u64 {
        self.room_in(self.in_force(0).budget, class)
    }

    fn room_in(&self, budget: u64, class: Class) -> u64 {
        let overhead = self.hidden.min(budget);
        overhead + class.room(budget - overhead)
    }

    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    pub(crate) fn others(&self) -> Option<u64> {
        self.others
    }

    /// What the driver has shown the figures to be wrong by, and how often.
    pub(crate) fn correction(&self) -> (u64, u64) {
        (self.correction.bytes(), self.correction.times)
    }

    /// What the driver has moved off the card, where it says so.
    pub(crate) fn evicted(&self) -> Option<u64> {
        self.evicted
    }

    /// Whether the driver was seen moving memory off the card, and we have not given way since.
    pub(crate) fn is_evicting(&self) -> bool {
        self.evicting.is_some()
    }

    pub(crate) fn hidden(&self) -> u64 {
        self.hidden
    }

    pub(crate) fn is_unified(&self) -> bool {
        self.unified
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }
}
