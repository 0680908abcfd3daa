//! The arithmetic of the budget: readings in, one figure out. No locks, no clocks of its own.
//!
//! ```text
//! Budget = min(Cap, T - Others - H, Own + K - slack)   clamped to [0, T - H], our own holdings included
//! ```

use std::collections::VecDeque;
use std::time::Duration;

use crate::policy::GRANULE;
use crate::{Bytes, Cap, DISPLAY_HEADROOM, HEADLESS_HEADROOM, Headroom, Limit, Policy, Reading, UnifiedMemory};

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
}

/// What the ledger says at the moment of a reading.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holdings {
    /// Committed bytes.
    pub(crate) live: u64,
    /// Reserved and not yet committed: the driver may or may not have handed them out already.
    pub(crate) reserved: u64,
}

/// The budget and its terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Terms {
    pub(crate) budget: u64,
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
    /// `Own + K - slack` at the last reading: our own allocations do not move it.
    ceiling: Option<u64>,
    /// The driver's overhead for our process, not in the ledger.
    hidden: u64,
    displays: u32,
    unified: bool,
    late: LateFrees,
    peaks: Peaks,
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
            ceiling: None,
            hidden: 0,
            displays: 0,
            unified: false,
            late: LateFrees::default(),
            peaks: Peaks::default(),
            warnings: Vec::new(),
            read_at: None,
            requests: 0,
            terms: Terms {
                budget: 0,
                cap: 0,
                headroom: 0,
                limit: Limit::Unreadable,
            },
        }
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
    pub(crate) fn note_free(&mut self, bytes: u64) {
        self.late.fresh = self.late.fresh.saturating_add(bytes);
    }

    /// Takes in one reading. Figures are clamped, never believed.
    pub(crate) fn update(&mut self, reading: &Reading, holdings: Holdings, now: Duration) {
        self.read_at = Some(now);
        self.requests = 0;
        self.warnings.clear();
        self.displays = reading.displays;
        self.unified = reading.unified_memory;
        if self.unified {
            self.warnings.push(Warning::UnifiedMemory);
        }
        // A total of 0 is a driver that has not come up, not a card without memory.
        self.total = reading.total.map(|t| t.0).filter(|&t| t > 0);
        let total = self.total.unwrap_or(u64::MAX);
        let own = self.own(reading, holdings, total);
        self.read_ceiling(reading, holdings, own, total);
        self.read_others(reading, holdings, own, now);
        self.terms = self.compute();
    }

    /// What the driver holds for us, and with it the overhead that the ledger does not know.
    fn own(&mut self, reading: &Reading, holdings: Holdings, total: u64) -> u64 {
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

    fn read_ceiling(&mut self, reading: &Reading, holdings: Holdings, own: u64, total: u64) {
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

    fn read_others(&mut self, reading: &Reading, holdings: Holdings, own: u64, now: Duration) {
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
        let raw = used.saturating_sub(own);
        let seen = match self.others {
            // Reserved bytes may already be in `used` and not yet in Own.
            Some(previous) => previous.clamp(raw.saturating_sub(holdings.reserved), raw),
            None => raw,
        };
        let others = self.late.excuse(self.others, seen, now, self.policy.late_free_grace);
        self.others = Some(others);
        self.peaks.push(now, others, self.policy.peak_window);
    }

    fn compute(&self) -> Terms {
        let headroom = self.headroom();
        if self.unified && self.policy.unified_memory == UnifiedMemory::Refuse {
            return Terms {
                budget: 0,
                cap: 0,
                headroom,
                limit: Limit::UnifiedMemory,
            };
        }
        let (Some(total), Some(others), false) = (self.total, self.others, self.unified) else {
            return self.fallback(headroom);
        };
        let cap = match self.policy.cap {
            Cap::Share(percent) => Bytes(total - others.min(total)).percent(percent).0,
            Cap::Fixed(bytes) => bytes.0,
            Cap::Quarter(bytes) => bytes.0.min(total / 4),
        };
        let ceiling = total.saturating_sub(headroom);
        let terms = [
            (cap, Limit::Cap),
            (ceiling.saturating_sub(others), Limit::Desktop),
            (self.ceiling.unwrap_or(u64::MAX), Limit::Driver),
            (ceiling, Limit::Total),
        ];
        let (budget, limit) = terms
            .into_iter()
            .min_by_key(|&(bytes, _)| bytes)
            .unwrap_or((0, Limit::Total));
        Terms {
            budget,
            cap,
            headroom,
            limit,
        }
    }

    /// Without the desktop's figure: `min(Cap, T/4, (Own + K)/2)`, never K itself, which does not see the desktop.
    fn fallback(&self, headroom: u64) -> Terms {
        let quarter = self.total.map(|t| t / 4);
        // `ceiling` is Own + K - slack: invariant under our own allocations, as K alone would not be.
        let half = self.ceiling.map(|c| c / 2);
        let known = match (quarter, half) {
            (Some(q), Some(h)) => Some(q.min(h)),
            (q, h) => q.or(h),
        };
        let cap = match self.policy.cap {
            Cap::Share(percent) => known.map_or(0, |k| Bytes(self.total.unwrap_or(k)).percent(percent).0),
            Cap::Fixed(bytes) | Cap::Quarter(bytes) => bytes.0,
        };
        let known = known.map(|k| k.min(self.total.map_or(u64::MAX, |t| t.saturating_sub(headroom))));
        let budget = cap.min(known.unwrap_or(u64::MAX));
        let limit = if budget == cap && known.is_none_or(|k| cap < k) {
            Limit::Cap
        } else {
            Limit::Unreadable
        };
        Terms {
            budget,
            cap,
            headroom,
            limit,
        }
    }

    fn headroom(&self) -> u64 {
        match self.policy.headroom {
            Headroom::Fixed(bytes) => bytes.0,
            Headroom::Auto if self.displays == 0 => HEADLESS_HEADROOM.0,
            // The factor of the recent peak is 1: with more, the desktop giving memory back would lower the budget.
            Headroom::Auto => DISPLAY_HEADROOM
                .0
                .max(self.total.unwrap_or(0) / 10)
                .max(self.peaks.highest().saturating_sub(self.others.unwrap_or(0))),
        }
    }

    pub(crate) fn terms(&self) -> Terms {
        self.terms
    }

    pub(crate) fn total(&self) -> Option<u64> {
        self.total
    }

    pub(crate) fn others(&self) -> Option<u64> {
        self.others
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

/// Memory that we have given back and that the driver may still count as used.
///
/// A rise of `used - own` is put down to our own late frees first, so that freeing never lowers the budget. Each free
/// excuses for the grace period only: a program that gives way to a growing desktop frees all the time, and the growth
/// must not hide behind that.
#[derive(Debug, Default)]
struct LateFrees {
    /// Freed since the last reading.
    fresh: u64,
    /// Freed before, with the time of the first reading after it; the oldest first.
    credits: VecDeque<(Duration, u64)>,
}

impl LateFrees {
    fn excuse(&mut self, previous: Option<u64>, seen: u64, now: Duration, grace: Duration) -> u64 {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh > 0 {
            self.credits.push_back((now, fresh));
        }
        let expired = |at: Duration| now.saturating_sub(at) >= grace;
        while self.credits.front().is_some_and(|&(at, _)| expired(at)) {
            self.credits.pop_front();
        }
        let all = self
            .credits
            .iter()
            .fold(0u64, |sum, &(_, bytes)| sum.saturating_add(bytes));
        let excused = seen.saturating_sub(previous.unwrap_or(seen)).min(all);
        // What needs no excuse any more has reached the driver's figure.
        let mut arrived = all - excused;
        while let Some((_, bytes)) = self.credits.front_mut().filter(|_| arrived > 0) {
            let part = arrived.min(*bytes);
            *bytes -= part;
            arrived -= part;
            if *bytes == 0 {
                self.credits.pop_front();
            }
        }
        seen - excused
    }
}

/// The highest Others within a window, as a queue of falling values.
#[derive(Debug, Default)]
struct Peaks(VecDeque<(Duration, u64)>);

impl Peaks {
    fn push(&mut self, now: Duration, others: u64, window: Duration) {
        while self.0.front().is_some_and(|&(at, _)| now.saturating_sub(at) > window) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|&(_, value)| value <= others) {
            self.0.pop_back();
        }
        self.0.push_back((now, others));
        // Enough for a window of slowly falling values; beyond it, a newer low is merged into its elder.
        if self.0.len() > 256 {
            self.0.remove(128);
        }
    }

    fn highest(&self) -> u64 {
        self.0.front().map_or(0, |&(_, value)| value)
    }
}
