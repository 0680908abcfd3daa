//! Frees that the driver's `used` may not show yet.

use std::collections::VecDeque;
use std::time::Duration;

/// Memory that we have given back and that the driver may still count as used.
///
/// A rise of `used - own` is put down to our own late frees first, so that freeing never lowers the budget. Each free
/// excuses for the grace period only: a program that gives way to a growing desktop frees all the time, and the growth
/// must not hide behind that.
#[derive(Debug, Default)]
pub(super) struct LateFrees {
    /// When it was freed, and what of it the driver may still count; the oldest first.
    credits: VecDeque<(Duration, u64)>,
}

impl LateFrees {
    /// `bytes` were given back at `now`.
    pub(super) fn note(&mut self, bytes: u64, now: Duration) {
        match self.credits.back_mut() {
            Some((at, credit)) if *at == now => *credit = credit.saturating_add(bytes),
            _ => self.credits.push_back((now, bytes)),
        }
    }

    /// What is seen of others, less what our own late frees may account for.
    pub(super) fn excuse(&mut self, previous: Option<u64>, seen: u64, now: Duration, grace: Duration) -> u64 {
        let expired = |at: Duration| now.saturating_sub(at) >= grace;
        while self.credits.front().is_some_and(|&(at, _)| expired(at)) {
            self.credits.pop_front();
        }
        let credits = self.credits.iter().map(|&(_, bytes)| bytes);
        let all = credits.fold(0, u64::saturating_add);
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

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_millis(200);

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn each_free_excuses_for_its_own_grace() {
        let free = || {
            let mut late = LateFrees::default();
            late.note(5, at(0));
            late.note(3, at(100));
            late.note(4, at(100));
            assert_eq!(late.credits, [(at(0), 5), (at(100), 7)], "those of one moment are one");
            late
        };
        for (now, excused) in [(199, 12), (200, 7), (299, 7), (300, 0)] {
            assert_eq!(
                free().excuse(Some(1000), 1012, at(now), GRACE),
                1012 - excused,
                "{now} ms"
            );
        }
        // Only a rise needs an excuse; what needs none has arrived, the oldest first.
        let mut late = free();
        assert_eq!(late.excuse(Some(1000), 1006, at(150), GRACE), 1000);
        assert_eq!(late.credits, [(at(100), 6)]);
        assert_eq!(late.excuse(Some(1000), 900, at(150), GRACE), 900);
        assert_eq!(late.credits, []);
        assert_eq!(
            free().excuse(None, 1012, at(150), GRACE),
            1012,
            "nothing was seen before"
        );
    }
}
