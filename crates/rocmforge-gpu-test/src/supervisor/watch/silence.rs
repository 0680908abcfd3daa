//! Silence of a test: its heartbeat is overdue and its process does not run.

use std::time::{Duration, Instant};

/// The looks at one test.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    /// Since when it does not run.
    still_since: Option<Instant>,
}

impl Silence {
    /// Whether the test has been silent for `limit` or longer, and at every look in as long a time since then its process did not
    /// run: `state` says that it was stopped, or waiting in the kernel. One look says little: a process that starts another
    /// waits in the kernel for a moment. One that runs and says nothing has its deadline.
    ///
    /// `last_beat` is when the test was last heard; `None` if it owes no beat.
    pub(crate) fn is_over(
        &mut self,
        limit: Duration,
        (now, last_beat): (Instant, Option<Instant>),
        state: impl FnOnce() -> Option<char>,
    ) -> bool {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        let silent = last_beat.is_some_and(|last| since(last) >= limit);
        if !silent || !matches!(state(), Some('T' | 'D')) {
            self.still_since = None;
            return false;
        }
        since(*self.still_since.get_or_insert(now)) >= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(3);

    /// What is said at each of these looks: seconds since the start, second of the last beat, and state of the process.
    fn looks<const N: usize>(looks: [(u64, Option<u64>, Option<char>); N]) -> [bool; N] {
        let (start, mut silence) = (Instant::now(), Silence::default());
        let at = |second| start + Duration::from_secs(second);
        looks.map(|(now, last, state)| silence.is_over(LIMIT, (at(now), last.map(at)), || state))
    }

    #[test]
    fn who_is_silent_and_still_for_long_enough_is_given_up() {
        let (beat, stopped) = (Some(0), Some('T'));
        // Silent from the third second on, and still for three more.
        let seen = looks([
            (0, beat, stopped),
            (2, beat, stopped),
            (3, beat, stopped),
            (5, beat, stopped),
            (6, beat, stopped),
        ]);
        assert_eq!(seen, [false, false, false, false, true]);
        assert_eq!(looks([(9, beat, Some('D')), (12, beat, Some('D'))]), [false, true]);
    }

    #[test]
    fn who_runs_at_one_look_or_beats_again_starts_anew() {
        let (beat, stopped) = (Some(0), Some('T'));
        let moves = looks([
            (3, beat, stopped),
            (5, beat, Some('S')),
            (6, beat, stopped),
            (8, beat, stopped),
            (9, beat, stopped),
        ]);
        assert_eq!(moves, [false, false, false, false, true]);
        let speaks = looks([(3, beat, stopped), (6, Some(5), stopped), (9, Some(5), stopped)]);
        assert_eq!(speaks, [false; 3]);
    }

    #[test]
    fn a_test_that_runs_has_no_heartbeat_or_has_ended_is_left_to_the_deadline() {
        for state in ['R', 'S', 'Z', 'X'] {
            assert_eq!(
                looks([(3, Some(0), Some(state)), (100, Some(0), Some(state))]),
                [false; 2]
            );
        }
        assert_eq!(looks([(3, None, Some('T')), (100, None, Some('T'))]), [false; 2]);
        assert_eq!(looks([(3, Some(0), None), (100, Some(0), None)]), [false; 2]);
    }
}
