//! Scheduler: the choice among the operations that may run, by the configured [`Schedule`].

use crate::config::Schedule;
use crate::machine::thread::HostThread;
use crate::machine::trace::Rng;
use crate::queues::point::StreamId;
use std::collections::BTreeMap;

/// Chooses among ready streams, and says when a stream overtakes the host.
pub(crate) struct Chooser {
    schedule: Schedule,
    rng: Rng,
    pct: Pct,
}

impl Chooser {
    pub(crate) fn new(schedule: Schedule, seed: u64) -> Self {
        let (seed, depth) = match schedule {
            Schedule::Random(own) => (own ^ seed, 0),
            Schedule::Pct { seed: own, depth } => (own ^ seed, depth),
            Schedule::Lazy | Schedule::Eager | Schedule::Reverse => (seed, 0),
        };
        let mut rng = Rng::new(seed);
        let pct = Pct::new(&mut rng, depth);
        Self { schedule, rng, pct }
    }

    /// The stream whose front operation runs now. `ready` has streams with the serial number of their front operation.
    pub(crate) fn stream(&mut self, ready: &[(StreamId, u64)]) -> Option<StreamId> {
        let chosen = match self.schedule {
            _ if ready.is_empty() => None,
            Schedule::Lazy | Schedule::Eager => ready.iter().min_by_key(|(_, serial)| *serial),
            Schedule::Reverse => ready.iter().max_by_key(|(stream, _)| *stream),
            Schedule::Random(_) => {
                let index = self.rng.below(ready.len());
                ready.get(index)
            }
            Schedule::Pct { .. } => ready
                .iter()
                .max_by_key(|(stream, _)| self.pct.priority(&mut self.rng, Runner::Stream(*stream))),
        };
        let stream = chosen.map(|(stream, _)| *stream)?;
        self.pct.step(&mut self.rng, Runner::Stream(stream));
        Some(stream)
    }

    /// Whether a wait may run what it does not wait for. A thread that waits cannot run, so the highest priority among
    /// all others is next.
    pub(crate) fn runs_everything(&self) -> bool {
        matches!(self.schedule, Schedule::Pct { .. })
    }

    /// How many operations an unforced moment of the host lets run, at most.
    pub(crate) fn unforced(&mut self) -> usize {
        match self.schedule {
            Schedule::Random(_) => self.rng.below(3),
            Schedule::Pct { .. } => usize::MAX,
            Schedule::Lazy | Schedule::Eager | Schedule::Reverse => 0,
        }
    }

    /// Which of `ready` may run although nobody waits for it, while `host` could go on.
    pub(crate) fn overtaking(&mut self, host: HostThread, ready: &mut Vec<(StreamId, u64)>) {
        if self.runs_everything() {
            let own = self.pct.priority(&mut self.rng, Runner::Host(host));
            ready.retain(|(stream, _)| self.pct.priority(&mut self.rng, Runner::Stream(*stream)) > own);
        }
    }

    /// A host thread has made a call.
    pub(crate) fn host_step(&mut self, host: HostThread) {
        if self.runs_everything() {
            self.pct.step(&mut self.rng, Runner::Host(host));
        }
    }

    /// Which of some host threads goes next, all of which could.
    pub(crate) fn thread(&mut self, runnable: &[u32]) -> Option<u32> {
        match self.schedule {
            Schedule::Lazy | Schedule::Eager => runnable.first(),
            Schedule::Reverse => runnable.last(),
            Schedule::Random(_) => runnable.get(self.rng.below(runnable.len())),
            Schedule::Pct { .. } => runnable.iter().max_by_key(|thread| {
                self.pct
                    .priority(&mut self.rng, Runner::Host(HostThread::Logical(**thread)))
            }),
        }
        .copied()
    }
}

/// Whoever has a priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Runner {
    Stream(StreamId),
    Host(HostThread),
}

/// Runs are cut into at most 2 to this many steps when change points are drawn.
const HORIZONS: usize = 15;
/// Priorities that were drawn lie above those that change points give.
const DRAWN: u64 = 1 << 63;

/// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatti: A Randomized Scheduler with
/// Probabilistic Guarantees of Finding Bugs, ASPLOS 2010). Everybody has a random priority, the highest that can run
/// does, and at `depth - 1` random steps whoever runs drops below all others.
///
/// The paper takes the number of steps for known. Here its order of magnitude is drawn as well, which costs the
/// factor [`HORIZONS`] and at most a factor of 2 for each change point.
struct Pct {
    priorities: BTreeMap<Runner, u64>,
    /// The step at which the runner gets the index as its priority.
    changes: Vec<u64>,
    steps: u64,
}

impl Pct {
    fn new(rng: &mut Rng, depth: u32) -> Self {
        let changes = match depth.saturating_sub(1) {
            0 => Vec::new(),
            changes => {
                let horizon = 1 << rng.below(HORIZONS);
                (0..changes).map(|_| 1 + rng.below(horizon) as u64).collect()
            }
        };
        Self {
            priorities: BTreeMap::new(),
            changes,
            steps: 0,
        }
    }

    fn priority(&mut self, rng: &mut Rng, runner: Runner) -> u64 {
        *self.priorities.entry(runner).or_insert_with(|| rng.next() | DRAWN)
    }

    fn step(&mut self, rng: &mut Rng, runner: Runner) {
        self.steps += 1;
        if let Some(low) = self.changes.iter().position(|at| *at == self.steps) {
            self.priority(rng, runner);
            self.priorities.insert(runner, low as u64);
        }
    }
}
