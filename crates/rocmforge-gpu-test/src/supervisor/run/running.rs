//! Running test: its output is read, its clock is watched, and if it does not end by itself it is ended.

use super::runner::Runner;
use crate::supervisor::contain::test_process::TestProcess;
use crate::supervisor::poll::poll;
use crate::supervisor::watch::breaker::Breaker;
use crate::supervisor::watch::escalation::{self, Target};
use crate::supervisor::watch::heartbeat::HeartbeatReader;
use crate::supervisor::watch::interrupt::Urgency;
use crate::supervisor::watch::output::Output;
use crate::supervisor::watch::silence::Silence;
use crate::supervisor::watch::taken::Taken;
use rustix::process::Signal;
use std::io;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Interval of the checks for which there is no event: resets, and overdue heartbeats.
const TICK: Duration = Duration::from_millis(250);

/// How a test's process came to its end.
pub(crate) enum Ending {
    /// By itself; the status is not known before it is reaped.
    Itself(Option<ExitStatus>),
    /// By the supervisor, past its deadline or silent for too long.
    Late { silent: bool, signal: &'static str },
    /// By the supervisor, because the user ended the run.
    Interrupted,
    /// Whatever it did, the card was reset under it.
    Reset(String),
    /// Not at all, or the driver did not notice.
    Stuck(String),
}

impl Ending {
    /// With what status, once it is known.
    pub(crate) fn exited(&mut self, with: ExitStatus) {
        if let Self::Itself(status) = self {
            *status = Some(with);
        }
    }
}

/// A test that is running.
pub(crate) struct Running<'a> {
    pub(crate) process: TestProcess,
    pub(crate) output: Output,
    pub(crate) records: Taken,
    pub(crate) heartbeat: HeartbeatReader,
    runner: &'a Runner,
    ended: bool,
    silence: Silence,
}

/// Why the supervisor stopped waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Woken {
    Ended,
    TimeIsUp,
    Silent,
    Hurried,
    Reset(String),
}

impl<'a> Running<'a> {
    pub(crate) fn new(
        (output, records, heartbeat): (Output, Taken, HeartbeatReader),
        process: TestProcess,
        runner: &'a Runner,
    ) -> Self {
        Self {
            process,
            output,
            records,
            heartbeat,
            runner,
            ended: false,
            silence: Silence::default(),
        }
    }

    /// Waits for its end, or ends it: past the moment `until`, silent for too long, after a reset, or for the user.
    pub(crate) fn supervise(&mut self, until: Instant) -> io::Result<Ending> {
        let grace = self.runner.plan.grace;
        let woken = self.wait(until, Urgency::No, true)?;
        let from = match woken {
            Woken::Ended => return Ok(Ending::Itself(None)),
            Woken::Hurried => escalation::From::Terminate,
            _ => escalation::From::Quit,
        };
        let Some(signal) = escalation::escalate(self, from, grace)? else {
            return Ok(Ending::Stuck(format!("process {} cannot be killed", self.process.id())));
        };
        Ok(match woken {
            Woken::Hurried => Ending::Interrupted,
            Woken::Reset(what) => Ending::Reset(what),
            woken => Ending::Late {
                silent: woken == Woken::Silent,
                signal,
            },
        })
    }

    /// Waits for the end of the process until a moment, or until the urgency rises above `urgency`; meanwhile takes
    /// what the test says, and, if `watchful`, looks for resets and silence.
    fn wait(&mut self, until: Instant, urgency: Urgency, watchful: bool) -> io::Result<Woken> {
        loop {
            let now = Instant::now();
            let patience = until.saturating_duration_since(now).min(TICK);
            let watched = [
                Some(self.process.ended()),
                self.output.readable(),
                self.records.readable(),
                self.heartbeat.readable(),
                self.runner.interrupt.more_than(urgency),
            ];
            let [ended, said, recorded, beaten, hurried] = poll(watched, patience)?;
            if said {
                self.output.take()?;
            }
            if recorded {
                self.records.take()?;
            }
            if beaten {
                self.heartbeat.listen()?;
            }
            // First what the test did, then what time it is: a supervisor that woke late must not blame the test.
            if ended {
                self.ended = true;
                return Ok(Woken::Ended);
            }
            if hurried {
                return Ok(Woken::Hurried);
            }
            if Instant::now() >= until {
                return Ok(Woken::TimeIsUp);
            }
            if watchful {
                if let Some(what) = self.runner.breaker.as_ref().and_then(Breaker::tripped) {
                    return Ok(Woken::Reset(what));
                }
                if self.is_silent() {
                    return Ok(Woken::Silent);
                }
            }
        }
    }

    fn is_silent(&mut self) -> bool {
        let look = (Instant::now(), self.heartbeat.last());
        let process = &self.process;
        self.silence.is_over(self.runner.plan.silence, look, || process.state())
    }
}

impl Target for Running<'_> {
    fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    fn ended_within(&mut self, patience: Duration) -> io::Result<bool> {
        // SIGKILL is the last step, so the urgency does not matter.
        let urgency = self.runner.interrupt.urgency();
        self.wait(Instant::now() + patience, urgency, false)?;
        Ok(self.ended)
    }

    fn is_urgent(&self) -> bool {
        self.runner.interrupt.urgency() == Urgency::Now
    }
}
