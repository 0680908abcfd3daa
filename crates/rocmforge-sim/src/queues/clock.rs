//! Vector clocks: what is ordered before what, whatever the schedule picks.

use crate::machine::thread::HostThread;
use crate::queues::point::StreamId;

/// Who has a time of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    Host(HostThread),
    Stream(StreamId),
}

/// One moment of one party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    pub(crate) party: Party,
    pub(crate) time: u64,
}

/// How much of every party's time is in the past; parties that are not named have none of it there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clock(Vec<(Party, u64)>);

impl Clock {
    pub(crate) fn get(&self, party: Party) -> u64 {
        match self.0.binary_search_by_key(&party, |(party, _)| *party) {
            Ok(at) => self.0[at].1,
            Err(_) => 0,
        }
    }

    /// Moves one party's time on; it never goes back.
    pub(crate) fn reach(&mut self, epoch: Epoch) {
        match self.0.binary_search_by_key(&epoch.party, |(party, _)| *party) {
            Ok(at) => self.0[at].1 = self.0[at].1.max(epoch.time),
            Err(at) => self.0.insert(at, (epoch.party, epoch.time)),
        }
    }

    /// Takes over the past of `other`.
    pub(crate) fn join(&mut self, other: &Clock) {
        for (party, time) in &other.0 {
            self.reach(Epoch {
                party: *party,
                time: *time,
            });
        }
    }

    /// Keeps what is in both pasts.
    pub(crate) fn meet(&mut self, other: &Clock) {
        self.0.retain_mut(|(party, time)| {
            *time = (*time).min(other.get(*party));
            *time > 0
        });
    }

    /// Whether that moment is in the past.
    pub(crate) fn covers(&self, epoch: Epoch) -> bool {
        self.get(epoch.party) >= epoch.time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(times: &[(StreamId, u64)]) -> Clock {
        let mut clock = Clock::default();
        for (stream, time) in times {
            clock.reach(Epoch {
                party: Party::Stream(*stream),
                time: *time,
            });
        }
        clock
    }

    #[test]
    fn joining_and_meeting_are_the_pointwise_maximum_and_minimum() {
        let (a, b) = (clock(&[(1, 5), (3, 2)]), clock(&[(1, 3), (2, 7), (3, 2)]));
        let mut joined = a.clone();
        joined.join(&b);
        assert_eq!(joined, clock(&[(1, 5), (2, 7), (3, 2)]));
        let mut met = a.clone();
        met.meet(&b);
        assert_eq!(met, clock(&[(1, 3), (3, 2)]));
        let at = |stream, time| Epoch {
            party: Party::Stream(stream),
            time,
        };
        assert!(joined.covers(at(2, 7)) && !joined.covers(at(2, 8)) && !joined.covers(at(9, 1)));
    }

    #[test]
    fn time_does_not_go_back() {
        let mut clock = clock(&[(1, 5)]);
        clock.reach(Epoch {
            party: Party::Stream(1),
            time: 3,
        });
        assert_eq!(clock.get(Party::Stream(1)), 5);
    }
}
