//! Escalation of signals for a process that does not end by itself: SIGQUIT, SIGTERM, SIGKILL.

use rustix::process::Signal;
use std::io;
use std::time::Duration;

/// Time between the signals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grace {
    /// From SIGQUIT (a debug agent dumps the waves) to SIGTERM.
    pub(crate) quit: Duration,
    /// From SIGTERM to SIGKILL.
    pub(crate) terminate: Duration,
    /// From SIGKILL to giving the process up as unkillable, and what the driver may take to forget it.
    pub(crate) kill: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        // The kernel driver waits 9 s for a queue to be preempted, so a killed process may need that long to go.
        Self {
            quit: Duration::from_secs(1),
            terminate: Duration::from_secs(2),
            kill: Duration::from_secs(15),
        }
    }
}

/// What is to be ended.
pub(crate) trait Target {
    /// Sends a signal; that the target is gone already is no error.
    fn signal(&mut self, signal: Signal);
    /// Waits for the end of the target at most `patience`, or until the urgency rises. Says whether it
    /// has ended.
    fn ended_within(&mut self, patience: Duration) -> io::Result<bool>;
    /// Whether there is no time for anything but SIGKILL.
    fn is_urgent(&self) -> bool;
}

/// The first signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// With SIGQUIT: somebody will want to know where the target was.
    Quit,
    /// With SIGTERM: nobody asks.
    Terminate,
}

/// Sends one signal after the other until the target has ended, and names the signal that it heeded; `None` if not even SIGKILL ended it in time.
pub(crate) fn escalate(target: &mut impl Target, from: From, grace: Grace) -> io::Result<Option<&'static str>> {
    let quit = (Signal::QUIT, "SIGQUIT", grace.quit);
    let terminate = (Signal::TERM, "SIGTERM", grace.terminate);
    let polite: &[_] = match from {
        From::Quit => &[quit, terminate],
        From::Terminate => &[terminate],
    };
    for &(signal, name, patience) in polite {
        if target.is_urgent() {
            break;
        }
        target.signal(signal);
        if target.ended_within(patience)? {
            return Ok(Some(name));
        }
    }
    target.signal(Signal::KILL);
    Ok(target.ended_within(grace.kill)?.then_some("SIGKILL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that heeds one signal, or none, on a clock of its own.
    struct Fake {
        heeds: Option<Signal>,
        urgent_after: Option<usize>,
        sent: Vec<(Signal, Duration)>,
        clock: Duration,
        dead: bool,
    }

    impl Fake {
        fn that_heeds(heeds: Option<Signal>) -> Self {
            Self {
                heeds,
                urgent_after: None,
                sent: Vec::new(),
                clock: Duration::ZERO,
                dead: false,
            }
        }
    }

    impl Target for Fake {
        fn signal(&mut self, signal: Signal) {
            self.sent.push((signal, self.clock));
            self.dead |= self.heeds == Some(signal);
        }

        fn ended_within(&mut self, patience: Duration) -> io::Result<bool> {
            if !self.dead && !self.is_urgent() {
                self.clock += patience;
            }
            Ok(self.dead)
        }

        fn is_urgent(&self) -> bool {
            self.urgent_after.is_some_and(|after| self.sent.len() >= after)
        }
    }

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_escalation_ends_at_the_signal_that_is_heeded() {
        for (heeds, name, steps) in [
            (Signal::QUIT, "SIGQUIT", 1),
            (Signal::TERM, "SIGTERM", 2),
            (Signal::KILL, "SIGKILL", 3),
        ] {
            let mut target = Fake::that_heeds(Some(heeds));
            assert_eq!(escalate(&mut target, From::Quit, Grace::default()).unwrap(), Some(name));
            assert_eq!(target.sent.len(), steps);
        }
    }

    #[test]
    fn a_target_that_heeds_nothing_is_given_up_after_eighteen_seconds() {
        let mut target = Fake::that_heeds(None);
        assert_eq!(escalate(&mut target, From::Quit, Grace::default()).unwrap(), None);
        let sent = [(Signal::QUIT, s(0)), (Signal::TERM, s(1)), (Signal::KILL, s(3))];
        assert_eq!(target.sent, sent);
        assert_eq!(target.clock, s(18));
    }

    #[test]
    fn nobody_asks_an_interrupted_test_where_it_was() {
        let mut target = Fake::that_heeds(Some(Signal::KILL));
        assert_eq!(
            escalate(&mut target, From::Terminate, Grace::default()).unwrap(),
            Some("SIGKILL")
        );
        assert_eq!(target.sent, [(Signal::TERM, s(0)), (Signal::KILL, s(2))]);
    }

    #[test]
    fn urgency_leaves_only_the_last_step() {
        for (after, sent) in [(0, 1), (1, 2), (2, 3)] {
            let mut target = Fake::that_heeds(Some(Signal::KILL));
            target.urgent_after = Some(after);
            assert_eq!(
                escalate(&mut target, From::Quit, Grace::default()).unwrap(),
                Some("SIGKILL")
            );
            assert_eq!(target.sent.len(), sent);
            assert_eq!(target.sent.last().map(|&(signal, _)| signal), Some(Signal::KILL));
        }
    }
}
