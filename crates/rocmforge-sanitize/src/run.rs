//! Running a plan, once for each seed.

use crate::error::Error;
use crate::outcome::{Outcome, Summary};
use crate::plan::Plan;
use crate::seed_run::run_seed_without;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// Runs all seeds, several at a time, and puts together what they found. The result does not depend on how many run at a
/// time.
///
/// A launch that does not end is judged in the first seed that shows it; later seeds leave it out, with what waits for it.
///
/// # Errors
/// The machine cannot be made or refuses the sanitizer's own calls. A faulty kernel is not an error.
pub fn run(plan: &Plan) -> Result<Outcome, Error> {
    let seeds = &plan.file.seeds;
    let workers = std::thread::available_parallelism()
        .map_or(1, |n| n.get())
        .min(seeds.len());
    let sum: Mutex<Sum> = Mutex::default();
    // A worker that panics takes the scope along: nobody looks at what it has left.
    let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let job = lock().job(seeds.len());
                    let Some((index, without)) = job else { break };
                    let result = run_seed_without(plan, seeds[index], &without);
                    let result = result.map(|run| Summary::of(run, index == 0));
                    lock().add(index, without, result);
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap_or_else(PoisonError::into_inner);
    sum.failed.map_or(Ok(sum.outcome), Err)
}

/// A run that has ended, and the launches it had to leave out.
type Ended = (BTreeSet<usize>, Result<Summary, Error>);

/// Adds runs up in the order of the seeds, whenever each ends.
#[derive(Default)]
struct Sum {
    outcome: Outcome,
    failed: Option<Error>,
    /// Seeds that have been handed out, and those that must be run again.
    handed: usize,
    again: Vec<usize>,
    /// The seed that is added next.
    next: usize,
    waiting: BTreeMap<usize, Ended>,
}

impl Sum {
    /// The next seed to run, by its index, and the launches to leave out.
    fn job(&mut self, seeds: usize) -> Option<(usize, BTreeSet<usize>)> {
        if self.failed.is_some() {
            return None;
        }
        let index = match self.again.pop() {
            Some(index) => index,
            None if self.handed < seeds => {
                self.handed += 1;
                self.handed - 1
            }
            None => return None,
        };
        Some((index, self.outcome.endless_launches()))
    }

    fn add(&mut self, index: usize, without: BTreeSet<usize>, result: Result<Summary, Error>) {
        self.waiting.insert(index, (without, result));
        while let Some((without, result)) = self.waiting.remove(&self.next) {
            if without != self.outcome.endless_launches() {
                // It started before an earlier seed showed a launch that does not end. The worker that is here runs it again.
                self.again.push(self.next);
                break;
            }
            self.next += 1;
            match result {
                Ok(summary) => self.outcome.add(summary),
                Err(error) => {
                    self.failed.get_or_insert(error);
                }
            }
        }
    }
}
