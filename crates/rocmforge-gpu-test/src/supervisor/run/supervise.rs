//! Supervision of one test: one process, under a deadline, with nothing left behind.

use super::runner::Runner;
use super::running::{Ending, Running};
use crate::buffers::BUFFERS_VARIABLE;
use crate::heartbeat::HEARTBEAT_FD_VARIABLE;
use crate::record::REPORT_FD_VARIABLE;
use crate::supervisor::contain::process_tree::Mark;
use crate::supervisor::contain::test_process::TestProcess;
use crate::supervisor::find::discover::Test;
use crate::supervisor::judge::against;
use crate::supervisor::judge::test_record::{TestRecord, Word, first_error, seed, tail};
use crate::supervisor::report::{Kind, TestResult, Verdict};
use crate::supervisor::untrusted::named;
use crate::supervisor::watch::heartbeat::HeartbeatReader;
use crate::supervisor::watch::output::Output;
use crate::supervisor::watch::taken::Taken;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time that processes which a test left behind may take to end.
const LEFTOVERS: Duration = Duration::from_secs(10);

/// The most bytes of records that are read: a lease has a few hundred.
const MOST_RECORDS: usize = 16 << 20;

/// The most names that are kept of processes that a test left behind: it can leave as many as the machine lets it start.
const MOST_NAMES: usize = 64;

impl Runner {
    /// Runs one test and says how it ended.
    pub(crate) fn supervise(&self, test: &Test, round: u32) -> io::Result<TestResult> {
        let stem = format!("{}.{round}", against::file_name(&test.id()));
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
                // With more than one, libtest prints a test's line whole, after what the test prints.
                "--test-threads=2",
                "--nocapture",
            ]),
        };
        command.current_dir(&test.binary.directory);
        command.envs(self.plan.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.plan.buffers() {
            command.env(BUFFERS_VARIABLE, against::file(folder, &test.id(), round));
        }
        self.lock.pass_to(&mut command).map_err(io::Error::other)?;

        result.begun = crate::heartbeat::now();
        let start = Instant::now();
        let end = self.run_to_end(command, &stem)?;
        result.seconds = start.elapsed().as_secs_f64();
        let record = &end.record;
        if let Ok(record) = record {
            (result.peak_bytes, result.launches, result.retained) =
                (record.peak_bytes, record.launches, record.retained);
        }
        result.samples = end.samples;
        result.left_behind = end.left_behind;
        let text = String::from_utf8_lossy(&end.output);
        result.verdict = match (end.ending, &test.arguments) {
            (Ending::Itself(Some(status)), Some(_)) if status.success() => Verdict::Passed,
            (ending, _) => self.judge(
                ending,
                record,
                &Word {
                    name: &test.name,
                    output: &text,
                },
            ),
        };
        if self.plan.forbid_leftovers && result.verdict.kind() == Kind::Passed && !result.left_behind.is_empty() {
            let names = result.left_behind.clone();
            result.verdict = Verdict::LeftProcesses { names };
        }
        let is_proof = matches!(result.verdict, Verdict::Unproven { .. }) || !result.failed() && !result.blocked();
        if let (Some(error), true) = (&end.lost, is_proof) {
            let reason = error.to_string();
            result.verdict = Verdict::NotRecorded { reason };
        }
        if result.failed() || result.blocked() {
            result.first_error = match &end.lost {
                None => first_error(&text),
                Some(error) => Some(error.to_string()),
            };
            result.seed = seed(&text);
            result.output = tail(&text).to_owned();
        }
        Ok(result)
    }

    /// Runs `command` until it ends or cannot be ended; then ends what it left behind.
    fn run_to_end(&self, mut command: Command, stem: &str) -> io::Result<End> {
        let ((said, says), (recorded, records), (heard, beats)) = (io::pipe()?, io::pipe()?, io::pipe()?);
        command.stdin(Stdio::null()).stdout(says.try_clone()?).stderr(says);
        command.env(REPORT_FD_VARIABLE, records.as_raw_fd().to_string());
        command.env(HEARTBEAT_FD_VARIABLE, beats.as_raw_fd().to_string());
        let pipes = (
            Output::new(said, self.logs.as_fd(), &self.plan.logs(), &format!("{stem}.log"))?,
            Taken::up_to(MOST_RECORDS, recorded)?,
            HeartbeatReader::new(heard)?,
        );
        let passed = [records.as_fd(), beats.as_fd()];
        let process = TestProcess::start(&self.process_tree, &mut command, &Mark::new(stem), &passed);
        let process = process.map_err(|error| named(Path::new(command.get_program()), error))?;
        let mut running = Running::new(pipes, process, self);
        // Our own copies of the writing ends: without them the pipes end with the test.
        drop((command, records, beats));
        let mut members = match self.kfd {
            Some(_) => running.process.members(),
            None => BTreeSet::new(),
        };
        let mut ending = running.supervise(Instant::now() + self.plan.deadline)?;

        let leader = running.process.id();
        let leftovers = running.process.end_leftovers(self.plan.jobs() == 1, LEFTOVERS);
        // The leader is not reaped yet, so its group's number is still its own.
        running.process.end_group();
        match running.process.reap()? {
            Some(status) => ending.exited(status),
            None => ending = Ending::Stuck(format!("process {leader} cannot be killed")),
        }
        if let Some(stuck) = leftovers.stuck.first() {
            ending = Ending::Stuck(format!("process {stuck}, which the test started, cannot be killed"));
        }
        members.extend(leftovers.ended.keys());
        if let Some(kfd) = &self.kfd
            && let Some(held) = kfd.wait_until_forgotten(&members, self.plan.grace.kill)
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
        running.records.take()?;
        let records = &running.records;
        let record = match records.flooded {
            false => Ok(TestRecord::parse(&records.bytes)),
            true => Err(format!("its records have more than {MOST_RECORDS} bytes")),
        };
        let (output, lost) = running.output.finish()?;
        Ok(End {
            ending,
            record,
            output,
            lost,
            samples: running.heartbeat.finish()?,
            left_behind: names(leftovers.ended),
        })
    }

    fn judge(&self, ending: Ending, record: &Result<TestRecord, String>, word: &Word<'_>) -> Verdict {
        match ending {
            Ending::Itself(status) => match status.and_then(|status| status.code()) {
                Some(0) => match record {
                    Ok(record) => record.proven(word),
                    Err(reason) => Verdict::NotRecorded { reason: reason.clone() },
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

/// Names of processes; of many the first.
fn names(processes: BTreeMap<u32, String>) -> Vec<String> {
    let more = processes.len().saturating_sub(MOST_NAMES);
    let mut names: Vec<String> = processes.into_values().take(MOST_NAMES).collect();
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names
}

/// Everything that is known when a test is over.
struct End {
    ending: Ending,
    /// Its records, or why they cannot be used.
    record: Result<TestRecord, String>,
    output: Vec<u8>,
    /// Why its log is not whole.
    lost: Option<io::Error>,
    samples: Vec<crate::heartbeat::Sample>,
    left_behind: Vec<String>,
}

#[cfg(test)]
pub(crate) mod tests;
