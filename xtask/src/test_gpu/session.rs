//! A run of many tests: several at a time, until all are done, the card is lost or the user has enough.

use super::breaker::Breaker;
use super::discover::Test;
use super::interrupt::{Hurry, Interrupt};
use super::quarantine::{Cause, QuarantineFile};
use super::report::{TestResult, Verdict};
use super::supervise::Supervision;
use rocmforge_testkit::lock::CardLock;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, mpsc};

/// Everything that the tests of a run have in common.
pub(crate) struct Session<'a> {
    pub(crate) supervision: &'a Supervision,
    pub(crate) lock: &'a CardLock,
    /// Where the tests' output goes.
    pub(crate) logs: &'a Path,
    pub(crate) interrupt: &'a Interrupt,
    /// Where a lost card is remembered; `None` in simulation, where a card is lost with its process.
    pub(crate) quarantine: Option<&'a QuarantineFile>,
    /// Tests at a time.
    pub(crate) jobs: usize,
    /// Why no test may start any more.
    pub(crate) blocked: Mutex<Option<String>>,
}

impl Session<'_> {
    /// Runs every test `repeat` times and returns a result for each; `seen` is shown them as they come.
    pub(crate) fn run(&self, tests: &[Test], repeat: u32, mut seen: impl FnMut(&TestResult)) -> Vec<TestResult> {
        let rounds = (0..repeat).flat_map(|round| tests.iter().map(move |test| (round, test)));
        let queue: Mutex<VecDeque<(u32, &Test)>> = Mutex::new(rounds.collect());
        let (send, receive) = mpsc::channel();
        let mut results = std::thread::scope(|scope| {
            for _ in 0..self.jobs {
                let (send, queue) = (send.clone(), &queue);
                scope.spawn(move || {
                    while let Some((round, test)) = { queue.lock().expect("no worker panics").pop_front() } {
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
        if self.interrupt.hurry() != Hurry::No {
            return without(Verdict::Interrupted);
        }
        if let Some(reason) = self.blocked.lock().expect("no worker panics").clone() {
            return without(Verdict::Blocked { reason });
        }
        let run = self.supervision.run(test, round, self.lock, self.logs, self.interrupt);
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
        let quarantine = self.quarantine?;
        let (cause, reason) = match &result.verdict {
            Verdict::Stuck { reason } => (Cause::Stuck, reason.clone()),
            _ => (
                Cause::Reset,
                self.supervision.breaker.as_ref().and_then(Breaker::tripped)?,
            ),
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
