//! Supervision of one test: one process, under a deadline, with nothing left behind.

use super::against;
use super::discover::Test;
use super::heartbeat::HeartbeatReader;
use super::output::Output;
use super::process_tree::Mark;
use super::report::{TestResult, Verdict};
use super::runner::Runner;
use super::running::{Ending, Running};
use super::test_process::TestProcess;
use super::test_record::{TestRecord, first_error, seed, tail};
use super::untrusted::OwnFile;
use crate::buffers::BUFFERS_VARIABLE;
use crate::heartbeat::HEARTBEAT_FD_VARIABLE;
use crate::record::REPORT_VARIABLE;
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time that processes which a test left behind may take to end.
const LEFTOVERS: Duration = Duration::from_secs(10);

/// The most bytes of records that are read: a lease has a few hundred.
const MOST_RECORDS: u64 = 16 << 20;

impl Runner {
    /// Runs one test and says how it ended.
    pub(super) fn supervise(&self, test: &Test, round: u32) -> io::Result<TestResult> {
        let stem = format!("{}.{round}", against::file_name(&test.id()));
        let log = self.plan.logs().join(format!("{stem}.log"));
        let mut result = TestResult::new(test.id(), round);
        if test.ignored {
            result.verdict = Verdict::Skipped {
                reason: "marked #[ignore]".to_owned(),
            };
            return Ok(result);
        }
        let mut command = Command::new(&test.binary.executable);
        match &test.arguments {
            Some(arguments) => command.args(arguments),
            None => command.args([
                "--exact",
                &test.name,
                "--include-ignored",
                "--test-threads=1",
                "--nocapture",
            ]),
        };
        command.current_dir(&test.binary.directory);
        command.envs(self.plan.environment.iter().map(|(name, value)| (name, value)));
        let mut records = OwnFile::make(&self.plan.logs().join(format!("{stem}.jsonl")))?;
        command.env(REPORT_VARIABLE, records.path());
        if let Some(folder) = &self.plan.buffers() {
            command.env(BUFFERS_VARIABLE, against::file(folder, &test.id(), round));
        }
        self.lock.pass_to(&mut command).map_err(io::Error::other)?;

        result.begun = crate::heartbeat::now();
        let start = Instant::now();
        let end = self.run_to_end(command, &Mark::new(&stem), &log)?;
        result.seconds = start.elapsed().as_secs_f64();
        let record = records.read_all(MOST_RECORDS).map(|text| TestRecord::parse(&text));
        if let Ok(record) = &record {
            (result.peak_bytes, result.launches, result.retained) =
                (record.peak_bytes, record.launches, record.retained);
        }
        result.samples = end.samples;
        result.left_behind = end.left_behind;
        let text = end.output.as_deref().unwrap_or_default();
        let text = String::from_utf8_lossy(text);
        result.verdict = match (end.ending, &test.arguments) {
            (Ending::Itself(Some(status)), Some(_)) if status.success() => Verdict::Passed,
            (ending, _) => self.judge(ending, &record, &text),
        };
        let is_proof = matches!(result.verdict, Verdict::Unproven { .. }) || !result.failed() && !result.blocked();
        if let (Err(error), true) = (&end.output, is_proof) {
            let reason = error.to_string();
            result.verdict = Verdict::NotRecorded { reason };
        }
        if result.failed() || result.blocked() {
            result.first_error = match &end.output {
                Ok(_) => first_error(&text),
                Err(error) => Some(error.to_string()),
            };
            result.seed = seed(&text);
            result.output = tail(&text).to_owned();
        }
        Ok(result)
    }

    /// Runs `command` until it ends or cannot be ended; then ends what it left behind.
    fn run_to_end(&self, mut command: Command, mark: &Mark, log: &Path) -> io::Result<End> {
        let ((said, says), (heard, beats)) = (io::pipe()?, io::pipe()?);
        command.stdin(Stdio::null()).stdout(says.try_clone()?).stderr(says);
        command.env(HEARTBEAT_FD_VARIABLE, beats.as_raw_fd().to_string());
        let mut running = Running::new(
            Output::new(said, log)?,
            HeartbeatReader::new(heard)?,
            TestProcess::start(&self.process_tree, &mut command, mark, Some(beats.as_fd()))?,
            self,
        );
        // Our own copies of the writing ends: without them the pipes end with the test.
        drop((command, beats));
        let mut ending = running.supervise(Instant::now() + self.plan.deadline)?;

        // The leader is not reaped yet, so its group's number is still its own.
        running.process.signal(Signal::KILL);
        let leader = running.process.id();
        let leftovers = running.process.end_leftovers(self.plan.jobs() == 1, LEFTOVERS);
        match running.process.reap()? {
            Some(status) => ending.exited(status),
            None => ending = Ending::Stuck(format!("process {leader} cannot be killed")),
        }
        if let Some(stuck) = leftovers.stuck.first() {
            ending = Ending::Stuck(format!("process {stuck}, which the test started, cannot be killed"));
        }
        let processes: BTreeSet<u32> = leftovers.ended.keys().copied().chain([leader]).collect();
        if let Some(kfd) = &self.kfd
            && let Some(held) = kfd.wait_until_forgotten(&processes, self.plan.grace.kill)
            && !matches!(ending, Ending::Stuck(_))
        {
            let waited = self.plan.grace.kill.as_secs_f64();
            ending = Ending::Stuck(format!(
                "{waited} s after its end the driver still knows process {held}"
            ));
        }
        if let (Some(breaker), false) = (&self.breaker, matches!(ending, Ending::Stuck(_) | Ending::Late { .. }))
            && let Some(what) = breaker.tripped()
        {
            ending = Ending::Reset(what);
        }
        Ok(End {
            ending,
            output: running.output.finish(),
            samples: running.heartbeat.finish()?,
            left_behind: leftovers.ended.into_values().collect(),
        })
    }

    fn judge(&self, ending: Ending, record: &io::Result<TestRecord>, output: &str) -> Verdict {
        match ending {
            Ending::Itself(status) => match status.and_then(|status| status.code()) {
                Some(0) => match record {
                    Ok(record) => record.proven(output),
                    Err(error) => Verdict::NotRecorded {
                        reason: error.to_string(),
                    },
                },
                Some(status) => Verdict::Failed { status },
                None => Verdict::Crashed {
                    signal: status.and_then(|status| status.signal()).unwrap_or_default(),
                },
            },
            Ending::Late { silent, signal } => Verdict::TimedOut {
                seconds: if silent { self.plan.silence } else { self.plan.deadline }.as_secs_f64(),
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
    output: io::Result<Vec<u8>>,
    samples: Vec<crate::heartbeat::Sample>,
    left_behind: Vec<String>,
}

#[cfg(test)]
pub(crate) mod tests;
