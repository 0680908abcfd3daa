//! Runner: runs tests in parallel until all have ended, the device is lost, or the user interrupts.

use super::plan::Plan;
use crate::card::quarantine::{Cause, QuarantineFile};
use crate::lock::CardLock;
use crate::supervisor::contain::process_tree::ProcessTree;
use crate::supervisor::find::discover::Test;
use crate::supervisor::report::{TestResult, Verdict};
use crate::supervisor::watch::breaker::Breaker;
use crate::supervisor::watch::interrupt::{Interrupt, Urgency};
use crate::supervisor::watch::kfd::Kfd;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, mpsc};

/// Runs tests on one device: the plan, and what of the machine it needs.
pub(crate) struct Runner {
    pub(crate) plan: Plan,
    /// The folder of logs, open: a test may put another in its place.
    pub(crate) logs: OwnedFd,
    pub(crate) process_tree: Arc<ProcessTree>,
    pub(crate) lock: Arc<CardLock>,
    pub(crate) interrupt: Arc<Interrupt>,
    /// The driver's list of processes, on a real card.
    pub(crate) kfd: Option<Kfd>,
    /// What watches a real card for resets.
    pub(crate) breaker: Option<Breaker>,
    /// Where a lost card is remembered; `None` in simulation, where a card is lost with its process.
    pub(crate) quarantine: Option<QuarantineFile>,
    /// Why no test may start any more.
    pub(crate) blocked: Mutex<Option<String>>,
}

impl Runner {
    /// Runs every test as often as planned and returns a result for each; `seen` is shown them as they come.
    pub(crate) fn run(&self, tests: &[Test], mut seen: impl FnMut(&TestResult)) -> Vec<TestResult> {
        let rounds = (0..self.plan.repeat).flat_map(|round| tests.iter().map(move |test| (round, test)));
        let queue = Mutex::new(rounds);
        let (send, receive) = mpsc::channel();
        let mut results = std::thread::scope(|scope| {
            for _ in 0..self.plan.jobs() {
                let (send, queue) = (send.clone(), &queue);
                scope.spawn(move || {
                    while let Some((round, test)) = { queue.lock().expect("no worker panics").next() } {
                        let _ = send.send(self.run_one(test, round));
                    }
                });
            }
            drop(send);
            receive.iter().inspect(|result| seen(result)).collect::<Vec<_>>()
        });
        results.sort_by(|a, b| (&a.id, a.round).cmp(&(&b.id, b.round)));
        results
    }

    fn run_one(&self, test: &Test, round: u32) -> TestResult {
        let without = |verdict| {
            let mut result = TestResult::new(test.id(), round);
            result.verdict = verdict;
            result
        };
        if self.interrupt.urgency() != Urgency::No {
            return without(Verdict::Interrupted);
        }
        if let Some(reason) = self.blocked.lock().expect("no worker panics").clone() {
            return without(Verdict::Blocked { reason });
        }
        let run = self.supervise(test, round);
        let mut result = run.unwrap_or_else(|error| {
            without(Verdict::NotStarted {
                reason: error.to_string(),
            })
        });
        if let Some(trouble) = self.note_loss(&result) {
            result.first_error = Some(trouble);
        }
        result
    }

    /// Blocks the tests to come, in this run and later ones, if the card was lost. Says what went wrong with that.
    fn note_loss(&self, result: &TestResult) -> Option<String> {
        let quarantine = self.quarantine.as_ref()?;
        let (cause, reason) = match &result.verdict {
            Verdict::Stuck { reason } => (Cause::Stuck, reason.clone()),
            _ => (Cause::Reset, self.breaker.as_ref().and_then(Breaker::tripped)?),
        };
        let mut blocked = self.blocked.lock().expect("no worker panics");
        if blocked.is_some() && cause == Cause::Reset {
            return None;
        }
        *blocked = Some(format!("{reason} (during {})", result.id));
        let written = quarantine.write(cause, &result.id, &reason);
        let path = quarantine.path().display();
        written
            .err()
            .map(|error| format!("the quarantine could not be written to {path}: {error}"))
    }
}

#[cfg(test)]
mod tests;
