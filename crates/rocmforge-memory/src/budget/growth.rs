//! The budget falls at once and rises slowly: what somebody else gave back a moment ago may be wanted again.

use std::collections::VecDeque;
use std::time::Duration;

use crate::Policy;

/// Beyond so many ceilings, two neighbours become one.
const MOST: usize = 4096;

/// What the figures allowed in the recent past, as ceilings of the budget.
///
/// What they allow at a reading holds until the next one. It remains a ceiling for [`Policy::grow_after`] longer, and rises
/// from then on by [`Policy::grow_percent`] of the card a second. In force is the lowest ceiling. So the budget falls at
/// once, and how often the figures are read makes no difference to how it rises.
#[derive(Debug, Default)]
pub(super) struct Growth(VecDeque<Ceiling>);

#[derive(Debug)]
struct Ceiling {
    bytes: u64,
    /// Up to when the figures allowed just that.
    until: Duration,
}

impl Ceiling {
    fn at(&self, now: Duration, total: u64, policy: &Policy) -> u64 {
        let rising = now.saturating_sub(self.until).saturating_sub(policy.grow_after);
        self.bytes.saturating_add(grown(total, policy.grow_percent, rising))
    }
}

impl Growth {
    /// What is in force at `now`, if the figures allow `target` on a card of `total` bytes.
    pub(super) fn in_force(&mut self, target: u64, total: u64, now: Duration, policy: &Policy) -> u64 {
        if let Some(last) = self.0.back_mut() {
            last.until = now;
        }
        let mut lowest = target;
        // All rise alike, and the newer ones later: one that has reached a newer one is never the lowest again.
        for index in (0..self.0.len()).rev() {
            let ceiling = self.0[index].at(now, total, policy);
            if ceiling < lowest {
                lowest = ceiling;
            } else {
                self.0.remove(index);
            }
        }
        self.0.push_back(Ceiling {
            bytes: target,
            until: now,
        });
        if self.0.len() > MOST
            && let Some(merged) = self.0.remove(MOST / 2)
        {
            // The higher one counts as the lower: too little is allowed for a while, never too much.
            self.0[MOST / 2 - 1].until = merged.until;
        }
        lowest
    }
}

/// `percent` hundredths of `total` for each second.
fn grown(total: u64, percent: u8, time: Duration) -> u64 {
    if time.is_zero() {
        return 0;
    }
    // Where the product overflows 128 bits, everything has grown long ago.
    let share = u128::from(total) * u128::from(percent);
    let bytes = share.saturating_mul(time.as_nanos()) / 100_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_exact_and_does_not_overflow() {
        assert_eq!(grown(2000, 5, Duration::from_secs(1)), 100);
        assert_eq!(grown(2000, 5, Duration::from_millis(15)), 1);
        assert_eq!(grown(u64::MAX, 100, Duration::MAX), u64::MAX);
        assert_eq!(grown(u64::MAX, 0, Duration::MAX), 0);
        assert_eq!(grown(2000, 5, Duration::ZERO), 0);
    }

    #[test]
    fn a_rise_waits_and_then_comes_a_part_at_a_time() {
        let policy = Policy::desktop();
        for often in [false, true] {
            let mut growth = Growth::default();
            let mut last = 0;
            let mut at = |milliseconds: u64, target| {
                // Readings in between make no difference.
                for between in (last..milliseconds).filter(|_| often).skip(1) {
                    growth.in_force(target, 1000, Duration::from_millis(between), &policy);
                }
                last = milliseconds;
                growth.in_force(target, 1000, Duration::from_millis(milliseconds), &policy)
            };
            assert_eq!(at(0, 300), 300, "the first figure holds");
            assert_eq!(at(60_000, 300), 300);
            assert_eq!(at(60_001, 700), 300);
            assert_eq!(at(70_000, 700), 300);
            assert_eq!(at(70_001, 700), 300);
            // 5 % of 1000 a second.
            assert_eq!(at(71_001, 700), 350);
            assert_eq!(at(73_001, 700), 450);
            assert_eq!(at(73_002, 420), 420, "a fall counts at once");
            assert_eq!(at(73_003, 100), 100);
            assert_eq!(at(83_003, 110), 100);
            assert_eq!(at(99_000, 110), 110, "no more than the figures allow");
        }
    }

    #[test]
    fn merging_never_allows_more() {
        let policy = Policy::desktop();
        // Ceilings rise faster than the figures did, so that each is the lowest for a while.
        let total = 1_000_000;
        let mut growth = Growth::default();
        let steps = MOST as u64 + 100;
        for step in 0..steps {
            let now = Duration::from_millis(step);
            assert_eq!(
                growth.in_force(10 + step, total, now, &policy),
                10,
                "the first stays the lowest"
            );
            assert!(growth.0.len() <= MOST);
        }
        assert_eq!(growth.0.len(), MOST, "and none is given up early");
        let all: Vec<Ceiling> = (0..steps)
            .map(|step| Ceiling {
                bytes: 10 + step,
                until: Duration::from_millis((step + 1).min(steps)),
            })
            .collect();
        for step in 0..steps {
            let now = policy.grow_after + Duration::from_millis(step);
            let lowest = all.iter().map(|ceiling| ceiling.at(now, total, &policy)).min();
            assert!(
                Some(growth.in_force(u64::MAX, total, now, &policy)) <= lowest,
                "step {step}"
            );
        }
    }
}
