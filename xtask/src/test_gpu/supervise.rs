//! One test in one process, under a deadline, with nothing left behind.

use super::against;
use super::breaker::Breaker;
use super::child::Tamed;
use super::discover::Test;
use super::heart::Heart;
use super::household::{self, Household, Mark};
use super::interrupt::{Hurry, Interrupt};
use super::kfd::Kfd;
use super::ladder::{self, Grace, Target};
use super::output::Output;
use super::poll::poll;
use super::report::{TestResult, Verdict};
use super::told::{Told, first_error, seed, tail};
use rocmforge_testkit::against::BUFFERS_VARIABLE;
use rocmforge_testkit::lock::CardLock;
use rocmforge_testkit::pulse::HEARTBEAT_FD_VARIABLE;
use rocmforge_testkit::report::REPORT_VARIABLE;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the supervisor looks at what nobody tells it: resets, and tests that fell silent.
const TICK: Duration = Duration::from_millis(250);
/// Time that processes which a test left behind may take to end.
const LEFTOVERS: Duration = Duration::from_secs(10);

/// How tests are run.
pub(crate) struct Supervision {
    /// Time a test may take.
    pub(crate) deadline: Duration,
    /// Time that a test whose lease has been heard may be silent, and then stand still.
    pub(crate) silence: Duration,
    /// The ladder after either.
    pub(crate) grace: Grace,
    /// What the test's process is told.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where tests record the buffers they compare, if they are to.
    pub(crate) buffers: Option<PathBuf>,
    /// Whether no two tests run at once.
    pub(crate) alone: bool,
    pub(crate) household: Arc<Household>,
    /// The driver's list of processes, on a real card.
    pub(crate) kfd: Option<Kfd>,
    /// What watches a real card for resets.
    pub(crate) breaker: Option<Breaker>,
}

impl Supervision {
    /// Runs one test and says how it ended.
    pub(crate) fn run(
        &self,
        test: &Test,
        round: u32,
        lock: &CardLock,
        logs: &Path,
        interrupt: &Interrupt,
    ) -> io::Result<TestResult> {
        let stem = format!("{}.{round}", against::file_name(&test.id()));
        let (log, records) = (logs.join(format!("{stem}.log")), logs.join(format!("{stem}.jsonl")));
        let mut result = TestResult::new(test.id(), round);
        if test.ignored {
            result.verdict = Verdict::Skipped {
                reason: "marked #[ignore]".to_owned(),
            };
            return Ok(result);
        }
        let mut command = Command::new(&test.binary.executable);
        command
            .args(["--exact", &test.name, "--test-threads=1", "--nocapture"])
            .current_dir(&test.binary.directory);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.env(REPORT_VARIABLE, &records);
        if let Some(folder) = &self.buffers {
            command.env(BUFFERS_VARIABLE, against::file(folder, &test.id(), round));
        }
        lock.pass_to(&mut command).map_err(io::Error::other)?;

        result.begun = rocmforge_testkit::pulse::now();
        let start = Instant::now();
        let end = self.run_to_end(command, &Mark::new(&stem), &log, interrupt)?;
        result.seconds = start.elapsed().as_secs_f64();
        let told = Told::read(&records);
        (result.peak_bytes, result.launches, result.retained) = (told.peak_bytes, told.launches, told.retained);
        result.samples = end.samples;
        result.left_behind = end.left_behind;
        result.verdict = self.judge(end.ending, &told);
        if result.failed() || result.blocked() {
            let text = fs::read(&log).unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            result.first_error = first_error(&text);
            result.seed = seed(&text);
            result.output = tail(&text).to_owned();
        }
        Ok(result)
    }

    /// Runs `command` until it ends or cannot be ended; then ends what it left behind.
    fn run_to_end(&self, mut command: Command, mark: &Mark, log: &Path, interrupt: &Interrupt) -> io::Result<End> {
        let ((said, says), (heard, beats)) = (io::pipe()?, io::pipe()?);
        command.stdin(Stdio::null()).stdout(says.try_clone()?).stderr(says);
        command.env(HEARTBEAT_FD_VARIABLE, beats.as_raw_fd().to_string());
        let mut running = Running {
            output: Output::new(said, log)?,
            heart: Heart::new(heard)?,
            process: self.household.start(&mut command, mark, Some(beats.as_fd()))?,
            supervision: self,
            interrupt,
            ended: false,
            still_since: None,
        };
        // Our own copies of the writing ends: without them the pipes end with the test.
        drop((command, beats));
        let mut ending = running.supervise(Instant::now() + self.deadline)?;

        // The leader is not reaped yet, so its group's number is still its own.
        running.process.signal(Signal::KILL);
        let leader = running.process.id();
        let leftovers = self.household.end_leftovers(mark, leader, self.alone, LEFTOVERS);
        match self.household.reap(&mut running.process)? {
            Some(status) => ending.exited(status),
            None => ending = Ending::Stuck(format!("process {leader} cannot be killed")),
        }
        if let Some(stuck) = leftovers.stuck.first() {
            ending = Ending::Stuck(format!("process {stuck}, which the test started, cannot be killed"));
        }
        let processes: BTreeSet<u32> = leftovers.ended.keys().copied().chain([leader]).collect();
        if let Some(kfd) = &self.kfd
            && let Some(held) = kfd.wait_until_forgotten(&processes, self.grace.kill)
            && !matches!(ending, Ending::Stuck(_))
        {
            let waited = self.grace.kill.as_secs_f64();
            ending = Ending::Stuck(format!(
                "{waited} s after its end the driver still knows process {held}"
            ));
        }
        if let (Some(breaker), false) = (&self.breaker, matches!(ending, Ending::Stuck(_) | Ending::Late { .. }))
            && let Some(what) = breaker.tripped()
        {
            ending = Ending::Reset(what);
        }
        running.output.finish()?;
        Ok(End {
            ending,
            samples: running.heart.finish()?,
            left_behind: leftovers.ended.into_values().collect(),
        })
    }

    fn judge(&self, ending: Ending, told: &Told) -> Verdict {
        match ending {
            Ending::Itself(Some(status)) if status.success() => told.verdict(),
            Ending::Itself(status) => match status.and_then(|status| status.signal()) {
                Some(signal) => Verdict::Crashed { signal },
                None => Verdict::Failed {
                    status: status.and_then(|status| status.code()).unwrap_or(-1),
                },
            },
            Ending::Late { silent, signal } => Verdict::TimedOut {
                seconds: if silent { self.silence } else { self.deadline }.as_secs_f64(),
                silent,
                signal: signal.to_owned(),
            },
            Ending::Interrupted => Verdict::Interrupted,
            Ending::Reset(reason) => Verdict::Invalidated { reason },
            Ending::Stuck(reason) => Verdict::Stuck { reason },
        }
    }
}

/// How a test's process came to its end.
enum Ending {
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
    fn exited(&mut self, with: ExitStatus) {
        if let Self::Itself(status) = self {
            *status = Some(with);
        }
    }
}

/// Everything that is known when a test is over.
struct End {
    ending: Ending,
    samples: Vec<rocmforge_testkit::pulse::Sample>,
    left_behind: Vec<String>,
}

/// A test that is running.
struct Running<'a> {
    process: Tamed,
    output: Output,
    heart: Heart,
    supervision: &'a Supervision,
    interrupt: &'a Interrupt,
    ended: bool,
    /// Since when it does not run.
    still_since: Option<Instant>,
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

impl Running<'_> {
    fn supervise(&mut self, until: Instant) -> io::Result<Ending> {
        let grace = self.supervision.grace;
        let woken = self.wait(until, Hurry::No, true)?;
        let from = match woken {
            Woken::Ended => return Ok(Ending::Itself(None)),
            Woken::Hurried => ladder::From::Terminate,
            _ => ladder::From::Quit,
        };
        let Some(signal) = ladder::climb(self, from, grace)? else {
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

    /// Waits for the end of the process until a moment, or until there is more of a hurry than `hurry`; meanwhile takes
    /// what the test says, and, if `watchful`, looks for resets and silence.
    fn wait(&mut self, until: Instant, hurry: Hurry, watchful: bool) -> io::Result<Woken> {
        loop {
            let now = Instant::now();
            let patience = until.saturating_duration_since(now).min(TICK);
            let watched = [
                Some(self.process.ended()),
                self.output.readable(),
                self.heart.readable(),
                self.interrupt.more_than(hurry),
            ];
            let [ended, said, beaten, hurried] = poll(watched, patience)?;
            if said {
                self.output.take()?;
            }
            if beaten {
                self.heart.listen()?;
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
                if let Some(what) = self.supervision.breaker.as_ref().and_then(Breaker::tripped) {
                    return Ok(Woken::Reset(what));
                }
                if self.is_silent() {
                    return Ok(Woken::Silent);
                }
            }
        }
    }

    /// Whether the test has been heard, fell silent, and at every look since then its process did not run: stopped, or
    /// waiting in the kernel. One look says little: a process that starts another waits in the kernel for a moment. One
    /// that runs and says nothing has its deadline.
    fn is_silent(&mut self) -> bool {
        let silence = self.supervision.silence;
        let silent = self.heart.last().is_some_and(|last| last.elapsed() >= silence);
        if !silent || !matches!(household::state_of(self.process.id()), Some('T' | 'D')) {
            self.still_since = None;
            return false;
        }
        self.still_since.get_or_insert_with(Instant::now).elapsed() >= silence
    }
}

impl Target for Running<'_> {
    fn signal(&mut self, signal: Signal) {
        self.process.signal(signal);
    }

    fn ended_within(&mut self, patience: Duration) -> io::Result<bool> {
        // SIGKILL has no step after it to hurry to.
        let hurry = self.interrupt.hurry();
        self.wait(Instant::now() + patience, hurry, false)?;
        Ok(self.ended)
    }

    fn in_a_hurry(&self) -> bool {
        self.interrupt.hurry() == Hurry::Now
    }
}

#[cfg(test)]
pub(crate) mod tests;
