//! The terms of the budget, from the figures as they were taken in.

use super::{Terms, Tracker};
use crate::{Bytes, Cap, DISPLAY_HEADROOM, HEADLESS_HEADROOM, Headroom, Limit, UnifiedMemory};

impl Tracker {
    /// The terms if cooperating processes hold `beyond` more than the figures say.
    pub(super) fn compute(&self, beyond: u64) -> Terms {
        let headroom = self.headroom();
        // Of shared memory nothing is guessed: what the system can spare is known, or it is nothing.
        let known = self.total.is_some() && self.others.is_some();
        let nothing = match self.policy.unified_memory {
            UnifiedMemory::Refuse => Some(Limit::UnifiedMemory),
            UnifiedMemory::Available if !known => Some(Limit::Unreadable),
            UnifiedMemory::Available | UnifiedMemory::Quarter => None,
        };
        if let Some(limit) = nothing.filter(|_| self.unified) {
            return Terms {
                budget: 0,
                target: 0,
                figures: 0,
                cap: 0,
                headroom,
                limit,
            };
        }
        let guessed = self.unified && self.policy.unified_memory == UnifiedMemory::Quarter;
        let (Some(total), Some(others), false) = (self.total, self.others, guessed) else {
            return self.fallback(headroom, beyond);
        };
        let others = others.saturating_add(beyond);
        let cap = match self.policy.cap {
            Cap::Share(percent) => Bytes(total - others.min(total)).percent(percent).0,
            Cap::Fixed(bytes) => self.asked_for(bytes.0),
            Cap::Quarter(bytes) => self.asked_for(bytes.0.min(total / 4)),
        };
        let share = matches!(self.policy.cap, Cap::Share(_)).then_some(cap);
        let ceiling = total.saturating_sub(headroom);
        let figures = [
            (share.unwrap_or(u64::MAX), Limit::Cap),
            (
                ceiling.saturating_sub(others),
                if self.unified { Limit::System } else { Limit::Desktop },
            ),
            (
                self.ceiling.map_or(u64::MAX, |c| c.saturating_sub(beyond)),
                Limit::Driver,
            ),
            (ceiling, Limit::Total),
        ];
        let least = figures.into_iter().min_by_key(|&(bytes, _)| bytes);
        let (figures, limit) = least.unwrap_or((0, Limit::Total));
        let (budget, limit) = if cap <= figures {
            (cap, Limit::Cap)
        } else {
            (figures, limit)
        };
        Terms {
            budget,
            target: budget,
            figures,
            cap,
            headroom,
            limit,
        }
    }

    /// A cap in bytes, which is for what the program asks for: what the driver holds for us beyond the ledger comes on top, so
    /// that it leaves the program its bytes, and is limited by what the card has.
    fn asked_for(&self, cap: u64) -> u64 {
        cap.saturating_add(self.hidden)
    }

    /// Without the desktop's figure: `min(Cap, T/4, (Own + K)/2)`, never K itself, which does not see the desktop.
    fn fallback(&self, headroom: u64, beyond: u64) -> Terms {
        let quarter = self.total.map(|t| t / 4);
        // `ceiling` is Own + K - slack: invariant under our own allocations, as K alone would not be.
        let half = self.ceiling.map(|c| c / 2);
        let known = match (quarter, half) {
            (Some(q), Some(h)) => Some(q.min(h)),
            (q, h) => q.or(h),
        };
        let cap = match self.policy.cap {
            // A share of what nobody knows is nothing.
            Cap::Share(percent) => known.map(|k| Bytes(self.total.unwrap_or(k)).percent(percent).0),
            Cap::Fixed(bytes) | Cap::Quarter(bytes) => Some(self.asked_for(bytes.0)),
        };
        let known = known.map(|k| k.min(self.total.map_or(u64::MAX, |t| t.saturating_sub(headroom))));
        let known = known.map(|k| k.saturating_sub(beyond));
        let (budget, limit) = match cap {
            Some(cap) if known.is_none_or(|known| cap < known) => (cap, Limit::Cap),
            _ => (known.unwrap_or(0), Limit::Unreadable),
        };
        let cap = cap.unwrap_or(0);
        Terms {
            budget,
            target: budget,
            figures: match self.policy.cap {
                Cap::Share(_) => budget,
                Cap::Fixed(_) | Cap::Quarter(_) => known.unwrap_or(cap),
            },
            cap,
            headroom,
            limit,
        }
    }

    fn headroom(&self) -> u64 {
        self.card_headroom().max(self.host_headroom)
    }

    fn card_headroom(&self) -> u64 {
        match self.policy.headroom {
            Headroom::Fixed(bytes) if !self.policy.is_refused(self.displays) => bytes.0,
            Headroom::Auto if self.displays == 0 => HEADLESS_HEADROOM.0,
            // The factor of the recent peak is 1: with more, the desktop giving memory back would lower the budget.
            Headroom::Auto | Headroom::Fixed(_) => DISPLAY_HEADROOM.0.max(self.total.unwrap_or(0) / 10).max(
                self.peaks
                    .highest()
                    .saturating_sub(self.others.unwrap_or(0).saturating_sub(self.peers)),
            ),
        }
    }
}
