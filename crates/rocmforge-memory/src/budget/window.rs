//! The highest of a figure within a stretch of time.

use std::collections::VecDeque;
use std::time::Duration;

/// Beyond so many falling values, two neighbours become one.
const MOST: usize = 4096;

/// The highest value of the last stretch of time, as a queue of falling values.
///
/// A value holds from its reading until the next one: it leaves when the whole window has passed since its successor.
#[derive(Debug, Default)]
pub(super) struct Highest(VecDeque<Held>);

#[derive(Debug)]
struct Held {
    value: u64,
    /// When it held last.
    until: Duration,
}

impl Highest {
    /// Takes in the value read at `now`, and says the highest of the `window` before.
    pub(super) fn push(&mut self, now: Duration, value: u64, window: Duration) -> u64 {
        if let Some(last) = self.0.back_mut() {
            last.until = now;
        }
        while (self.0.front()).is_some_and(|held| now.saturating_sub(held.until) >= window) {
            self.0.pop_front();
        }
        while self.0.back().is_some_and(|held| held.value <= value) {
            self.0.pop_back();
        }
        self.0.push_back(Held { value, until: now });
        if self.0.len() > MOST {
            // The lower one counts as the higher: too much is kept free for a while, never too little.
            if let Some(merged) = self.0.remove(MOST / 2) {
                self.0[MOST / 2 - 1].until = merged.until;
            }
        }
        self.highest()
    }

    pub(super) fn highest(&self) -> u64 {
        self.0.front().map_or(0, |held| held.value)
    }
}

/// The lowest of a figure within a stretch of time, by the same rules.
#[derive(Debug, Default)]
pub(super) struct Lowest(Highest);

impl Lowest {
    pub(super) fn push(&mut self, now: Duration, value: u64, window: Duration) -> u64 {
        !self.0.push(now, !value, window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(10);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_value_stays_for_the_window_after_its_successor() {
        let mut highest = Highest::default();
        assert_eq!(highest.highest(), 0);
        assert_eq!(highest.push(at(0), 9, WINDOW), 9);
        // It held until now, however long ago it was read.
        assert_eq!(highest.push(at(60), 5, WINDOW), 9);
        assert_eq!(highest.push(at(69), 6, WINDOW), 9);
        assert_eq!(highest.push(at(70), 4, WINDOW), 6);
        assert_eq!(highest.push(at(70), 4, Duration::ZERO), 4);
    }

    #[test]
    fn the_lowest_is_the_mirror_image() {
        let mut lowest = Lowest::default();
        assert_eq!(lowest.push(at(0), 3, WINDOW), 3);
        assert_eq!(lowest.push(at(5), 7, WINDOW), 3);
        assert_eq!(lowest.push(at(14), 7, WINDOW), 3);
        assert_eq!(lowest.push(at(15), 8, WINDOW), 7);
        assert_eq!(lowest.push(at(15), 2, WINDOW), 2);
    }

    #[test]
    fn merging_never_forgets_a_high_value() {
        let (mut highest, mut all) = (Highest::default(), Vec::new());
        let most = 3 * MOST as u64;
        for step in 0..most {
            all.push(most - step);
            let now = Duration::from_millis(step);
            let window = Duration::from_millis(2 * MOST as u64);
            let first = step.saturating_sub(2 * MOST as u64) as usize;
            assert!(highest.push(now, most - step, window) >= all[first]);
            assert!(highest.0.len() <= MOST);
        }
        assert_eq!(highest.0.len(), MOST, "and none is given up early");
    }
}
