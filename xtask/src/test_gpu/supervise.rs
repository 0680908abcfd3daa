//! One test in one process, under a deadline, with nothing left behind.

use super::against;
use super::breaker::Breaker;
use super::discover::Test;
use super::heart::Heart;
use super::household::{Household, Mark};
use super::interrupt::Interrupt;
use super::kfd::Kfd;
use super::ladder::Grace;
use super::output::Output;
use super::report::{TestResult, Verdict};
use super::running::{Ending, Running};
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
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

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
            .args([
                "--exact",
                &test.name,
                "--include-ignored",
                "--test-threads=1",
                "--nocapture",
            ])
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
        let mut running = Running::new(
            Output::new(said, log)?,
            Heart::new(heard)?,
            self.household.start(&mut command, mark, Some(beats.as_fd()))?,
            self,
            interrupt,
        );
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
            Ending::Itself(status) => match status.and_then(|status| status.code()) {
                Some(0) => told.verdict(),
                Some(status) => Verdict::Failed { status },
                None => Verdict::Crashed {
                    signal: status.and_then(|status| status.signal()).unwrap_or_default(),
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

/// Everything that is known when a test is over.
struct End {
    ending: Ending,
    samples: Vec<rocmforge_testkit::pulse::Sample>,
    left_behind: Vec<String>,
}

#[cfg(test)]
pub(crate) mod tests;
