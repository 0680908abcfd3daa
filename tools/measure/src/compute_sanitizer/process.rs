//! One process under compute-sanitizer.

use rocmforge_gpu_test::lock::{CardLock, LockError};
use rocmforge_gpu_test::supervisor::TestBinary;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// The exit status of a process in which the tool found something.
const FOUND: i32 = 86;
/// Findings printed of one process, at most.
const PRINTED: &str = "100";
const GLANCE: Duration = Duration::from_millis(20);
/// Time the tool has to end what it watches.
const GRACE: Duration = Duration::from_secs(3);
/// The first of the ports through which the tool talks with what it watches, and how many it takes from there.
const PORTS: (u16, u16) = (49_152, 10);

/// NVIDIA's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(super) enum Tool {
    Memcheck,
    Initcheck,
    Racecheck,
    Synccheck,
}

impl Tool {
    pub(super) const ALL: [Self; 4] = [Self::Memcheck, Self::Initcheck, Self::Racecheck, Self::Synccheck];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Memcheck => "memcheck",
            Self::Initcheck => "initcheck",
            Self::Racecheck => "racecheck",
            Self::Synccheck => "synccheck",
        }
    }
}

/// Tests of one binary to run together.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) tool: Tool,
    pub(super) binary: TestBinary,
    pub(super) tests: Vec<String>,
    /// The faulty kernels, of a process that runs such.
    pub(super) faulty: Vec<String>,
    /// The name of its log.
    pub(super) log: String,
}

/// How a process ended.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if it took too long.
    pub(super) status: Option<ExitStatus>,
    pub(super) output: String,
}

impl Ended {
    /// Whether its tests passed, whatever the tool found.
    pub(super) fn passed(&self) -> bool {
        let code = self.status.and_then(|status| status.code());
        matches!(code, Some(0 | FOUND)) && self.output.contains("test result: ok")
    }
}

/// What every process has in common.
pub(super) struct Stage<'a> {
    pub(super) program: &'a Path,
    pub(super) lock: &'a CardLock,
    pub(super) environment: &'a [(&'static str, String)],
    pub(super) logs: &'a Path,
    pub(super) deadline: Duration,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum StageError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
}

impl Stage<'_> {
    /// Runs the job's tests; its output is kept as a log.
    pub(super) fn run(&self, job: &Job) -> Result<Ended, StageError> {
        let path = self.logs.join(&job.log);
        let io = |source| StageError::Io {
            path: path.clone(),
            source,
        };
        let log = File::create(&path).map_err(io)?;
        let mut command = self.command(job);
        command.stdin(Stdio::null());
        command.stdout(log.try_clone().map_err(io)?).stderr(log);
        self.lock.pass_to(&mut command)?;
        let mut child = command.spawn().map_err(io)?;
        let until = Instant::now() + self.deadline;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                break Some(status);
            }
            if Instant::now() >= until {
                end(&mut child).map_err(io)?;
                break None;
            }
            std::thread::sleep(GLANCE);
        };
        let output = std::fs::read(&path).map_err(io)?;
        Ok(Ended {
            status,
            output: String::from_utf8_lossy(&output).into_owned(),
        })
    }

    fn command(&self, job: &Job) -> Command {
        let mut command = Command::new(self.program);
        command.args(["--tool", job.tool.name(), "--error-exitcode", &FOUND.to_string()]);
        command.args(["--require-cuda-init", "no", "--print-limit", PRINTED]);
        // The assembler is a child that has no kernels. A faulty kernel shall end, and leave the card to the next.
        command.args(["--target-processes", "application-only"]);
        command.args(["--destroy-on-device-error", "kernel"]);
        command.args(["--strip-paths", "no", "--show-backtrace", "no"]);
        command.args(["--port", &own_port().to_string()]);
        command.arg(&job.binary.executable);
        command.args(["--test-threads", "1", "--exact"]).args(&job.tests);
        if !job.faulty.is_empty() {
            command.args(["--ignored", "--nocapture"]);
            command.env("ROCMFORGE_FAULTY", job.faulty.join(","));
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.current_dir(&job.binary.directory);
        command
    }
}

/// Ports that no other process of this run has: they wait for each other otherwise.
fn own_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let (first, each) = PORTS;
    first + NEXT.fetch_add(1, Ordering::Relaxed) % 1000 * each
}

/// Asks the tool to end, which ends what it watches too, and then makes it.
fn end(child: &mut Child) -> std::io::Result<()> {
    if let Some(process) = Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = kill_process(process, Signal::TERM);
    }
    let until = Instant::now() + GRACE;
    while child.try_wait()?.is_none() {
        if Instant::now() >= until {
            child.kill()?;
            child.wait()?;
            break;
        }
        std::thread::sleep(GLANCE);
    }
    Ok(())
}

/// Where the program is: on the path, or where CUDA is usually installed.
pub(super) fn find(path: Option<&std::ffi::OsStr>) -> Option<PathBuf> {
    let folders = path.map(|path| std::env::split_paths(path).collect::<Vec<_>>());
    let usual = ["/usr/local/cuda/bin", "/opt/cuda/bin"].map(PathBuf::from);
    let places = folders.unwrap_or_default().into_iter().chain(usual);
    places
        .map(|folder| folder.join("compute-sanitizer"))
        .find(|program| program.is_file())
}
