//! One test in one process, under a deadline, with nothing left behind.

use super::against;
use super::discover::Test;
use super::report::{TestResult, Verdict};
use rocmforge_testkit::against::BUFFERS_VARIABLE;
use rocmforge_testkit::lock::CardLock;
use rocmforge_testkit::report::{REPORT_VARIABLE, Record};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How often the supervisor looks whether a test has ended.
const POLL: Duration = Duration::from_millis(5);
/// Bytes of a test's output kept in the reports: its end.
const OUTPUT_TAIL: usize = 16 * 1024;

/// Time between the steps of the ladder SIGQUIT, SIGTERM, SIGKILL.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grace {
    /// From SIGQUIT (a debug agent dumps the waves) to SIGTERM.
    pub(crate) quit: Duration,
    /// From SIGTERM to SIGKILL.
    pub(crate) terminate: Duration,
    /// From SIGKILL to giving the process up as unkillable.
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

/// How tests are run.
pub(crate) struct Supervision {
    /// Time a test may take.
    pub(crate) deadline: Duration,
    /// The ladder after the deadline.
    pub(crate) grace: Grace,
    /// What the test's process is told.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// Where tests record the buffers they compare, if they are to.
    pub(crate) buffers: Option<PathBuf>,
}

impl Supervision {
    /// Runs one test and says how it ended.
    pub(crate) fn run(&self, test: &Test, round: u32, lock: &CardLock, logs: &Path) -> io::Result<TestResult> {
        let id = test.id();
        let stem = format!("{}.{round}", id.replace("::", "."));
        let (log, records) = (logs.join(format!("{stem}.log")), logs.join(format!("{stem}.jsonl")));
        let mut result = TestResult::new(id, round);
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

        let start = Instant::now();
        let ended = self.run_to_end(&mut command, &log)?;
        result.seconds = start.elapsed().as_secs_f64();
        result.read_records(&records);
        result.verdict = match ended {
            Ended::Exited(status) if status.success() => match result.skip_reason.take() {
                Some(reason) => Verdict::Skipped { reason },
                None => Verdict::Passed,
            },
            Ended::Exited(status) => match status.signal() {
                Some(signal) => Verdict::Crashed { signal },
                None => Verdict::Failed {
                    status: status.code().unwrap_or(-1),
                },
            },
            Ended::TimedOut { signal } => Verdict::TimedOut {
                seconds: self.deadline.as_secs_f64(),
                signal: signal.to_owned(),
            },
            Ended::Unkillable => Verdict::Unkillable,
        };
        if result.failed() {
            result.output = tail(&log);
        }
        Ok(result)
    }

    /// Runs `command` in a process group of its own until it ends or cannot be ended; then ends what it left behind.
    fn run_to_end(&self, command: &mut Command, log: &Path) -> io::Result<Ended> {
        let output = File::create(log)?;
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0);
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let ended = self.wait(&mut child, group)?;
        // Children that the test started and did not wait for. There may be none.
        let _ = kill_process_group(group, Signal::KILL);
        Ok(ended)
    }

    fn wait(&self, child: &mut Child, group: Pid) -> io::Result<Ended> {
        if let Some(status) = wait_for(child, self.deadline)? {
            return Ok(Ended::Exited(status));
        }
        let ladder = [
            (Signal::QUIT, "SIGQUIT", self.grace.quit),
            (Signal::TERM, "SIGTERM", self.grace.terminate),
            (Signal::KILL, "SIGKILL", self.grace.kill),
        ];
        for (signal, name, grace) in ladder {
            let _ = kill_process_group(group, signal); // it may have ended just now
            if wait_for(child, grace)?.is_some() {
                return Ok(Ended::TimedOut { signal: name });
            }
        }
        Ok(Ended::Unkillable)
    }
}

enum Ended {
    Exited(ExitStatus),
    TimedOut { signal: &'static str },
    Unkillable,
}

fn wait_for(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= patience {
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

impl TestResult {
    fn read_records(&mut self, path: &Path) {
        let Ok(text) = fs::read_to_string(path) else { return };
        for line in text.lines() {
            match serde_json::from_str(line) {
                Ok(Record::Skip { reason }) => self.skip_reason = Some(reason),
                Ok(Record::Lease {
                    peak_bytes, launches, ..
                }) => {
                    self.peak_bytes = Some(self.peak_bytes.unwrap_or(0).max(peak_bytes));
                    self.launches += launches;
                }
                // A line cut short by a kill says nothing.
                Err(_) => {}
            }
        }
    }
}

fn tail(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(OUTPUT_TAIL)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_gpu::discover::TestBinary;
    use std::os::unix::fs::PermissionsExt;

    /// Runs a shell script as if it were a test binary.
    fn supervise(script: &str, deadline: Duration) -> (TestResult, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let executable = directory.path().join("fake-test");
        fs::write(&executable, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&executable, fs::Permissions::from_mode(0o755)).unwrap();
        let lock = CardLock::acquire(&directory.path().join("lock"), "fake", Duration::ZERO, |_| {}).unwrap();
        let binary = TestBinary {
            package: "fake".to_owned(),
            executable,
            directory: directory.path().to_owned(),
        };
        let test = Test {
            binary,
            name: "planted".to_owned(),
            ignored: false,
        };
        let grace = Grace {
            quit: Duration::from_millis(200),
            terminate: Duration::from_millis(200),
            kill: Duration::from_secs(5),
        };
        let supervision = Supervision {
            deadline,
            grace,
            environment: vec![("ROCMFORGE_DEVICE", "sim".to_owned())],
            buffers: Some(directory.path().to_owned()),
        };
        let result = supervision.run(&test, 0, &lock, directory.path()).unwrap();
        (result, directory)
    }

    const SOON: Duration = Duration::from_millis(300);
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_pass_carries_what_the_lease_saw() {
        let record = r#"{"kind":"lease","device":"sim","peak_bytes":4096,"launches":3}"#;
        let (result, _) = supervise(&format!("echo '{record}' >> \"$ROCMFORGE_TEST_REPORT\""), LONG);
        assert_eq!(result.verdict, Verdict::Passed);
        assert_eq!((result.peak_bytes, result.launches), (Some(4096), 3));
    }

    #[test]
    fn a_skip_is_not_a_pass() {
        let (result, _) = supervise(
            r#"echo '{"kind":"skip","reason":"no model"}' >> "$ROCMFORGE_TEST_REPORT""#,
            LONG,
        );
        assert_eq!(
            result.verdict,
            Verdict::Skipped {
                reason: "no model".to_owned()
            }
        );
    }

    #[test]
    fn a_failure_keeps_the_output() {
        let (result, _) = supervise("echo the reason; exit 101", LONG);
        assert_eq!(result.verdict, Verdict::Failed { status: 101 });
        assert!(result.output.contains("the reason"));
    }

    #[test]
    fn a_crash_names_its_signal() {
        let (result, _) = supervise("kill -SEGV $$", LONG);
        assert_eq!(result.verdict, Verdict::Crashed { signal: 11 });
    }

    #[test]
    fn a_hang_ends_at_the_first_signal_it_heeds() {
        let (result, _) = supervise("exec sleep 1000", SOON);
        assert_eq!(
            result.verdict,
            Verdict::TimedOut {
                seconds: 0.3,
                signal: "SIGQUIT".to_owned()
            }
        );
    }

    #[test]
    fn a_hang_that_heeds_nothing_is_killed() {
        let (result, _) = supervise("trap '' QUIT TERM; while :; do sleep 0.1; done", SOON);
        assert_eq!(
            result.verdict,
            Verdict::TimedOut {
                seconds: 0.3,
                signal: "SIGKILL".to_owned()
            }
        );
    }

    #[test]
    fn a_stopped_process_is_killed() {
        let (result, _) = supervise("kill -STOP $$", SOON);
        assert!(
            matches!(result.verdict, Verdict::TimedOut { .. }),
            "{:?}",
            result.verdict
        );
    }

    #[test]
    fn a_child_that_outlives_the_test_is_ended() {
        let (result, directory) = supervise("sleep 1000 & echo $! > child.pid", LONG);
        assert_eq!(result.verdict, Verdict::Passed);
        let pid = fs::read_to_string(directory.path().join("child.pid")).unwrap();
        let process = format!("/proc/{}/stat", pid.trim());
        let gone = || fs::read_to_string(&process).map_or(true, |stat| stat.contains(") Z "));
        let start = Instant::now();
        while !gone() && start.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(POLL);
        }
        assert!(gone(), "the grandchild {pid} lives on");
    }

    #[test]
    fn the_test_is_told_where_to_record() {
        let (result, directory) = supervise("echo here > \"$ROCMFORGE_TEST_BUFFERS\"", LONG);
        assert_eq!(result.verdict, Verdict::Passed);
        let recorded = fs::read_to_string(against::file(directory.path(), "fake::planted", 0)).unwrap();
        assert_eq!(recorded, "here\n");
    }

    #[test]
    fn the_test_inherits_the_lock() {
        let (result, _) = supervise(r#"grep -q FLOCK "/proc/self/fdinfo/$ROCMFORGE_GPU_LOCK_FD" "#, LONG);
        // grep runs in a child of the shell, which inherits the descriptor in turn.
        assert_eq!(result.verdict, Verdict::Passed, "{}", result.output);
    }
}
