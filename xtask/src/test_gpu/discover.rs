//! Which GPU tests there are: one target named `gpu` in each crate that has any.

use super::household::{Household, Mark};
use super::interrupt::{Hurry, Interrupt};
use super::poll::poll;
use crate::cargo;
use rustix::process::Signal;
use serde::Deserialize;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A test binary lists its tests at once, or not at all.
const LISTING: Duration = Duration::from_secs(60);
/// Cargo takes as long as it takes.
const BUILDING: Duration = Duration::from_hours(24);

/// A built test binary.
#[derive(Clone, Debug)]
pub(crate) struct TestBinary {
    /// The crate's name.
    pub(crate) package: String,
    /// The binary.
    pub(crate) executable: PathBuf,
    /// The crate's folder: tests run there, as under `cargo test`.
    pub(crate) directory: PathBuf,
}

/// One test of a binary.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) binary: TestBinary,
    /// libtest's name.
    pub(crate) name: String,
    /// Whether it is marked `#[ignore]`.
    pub(crate) ignored: bool,
}

impl Test {
    /// `crate::test`, unique in the workspace.
    pub(crate) fn id(&self) -> String {
        format!("{}::{}", self.binary.package, self.name)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error("building the GPU tests failed ({0}); the compiler's messages are above")]
    Build(ExitStatus),
    #[error("no crate has a {0} target `{1}` (for tests: tests/{1}/main.rs)")]
    NoTargets(&'static str, String),
    #[error("{binary} cannot list its tests: {end}")]
    List { binary: String, end: String },
    #[error("interrupted")]
    Interrupted,
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("cargo's build messages could not be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// The part of `cargo --message-format=json` that matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Runs commands for the supervisor: they end when the user says so.
pub(crate) struct Runner<'a> {
    pub(crate) household: &'a Household,
    pub(crate) interrupt: &'a Interrupt,
}

impl Runner<'_> {
    /// What `command` writes to its standard output, and how it ended: `None` where it did not within `limit`.
    fn output(&self, command: &mut Command, limit: Duration) -> Result<(Option<ExitStatus>, Vec<u8>), DiscoverError> {
        let (mut said, says) = io::pipe()?;
        rustix::io::ioctl_fionbio(&said, true).map_err(io::Error::from)?;
        command.stdin(Stdio::null()).stdout(says);
        let mut process = self.household.start(command, &Mark::new("discover"), None)?;
        command.stdout(Stdio::null()); // drops our copy of the writing end
        let until = Instant::now() + limit;
        let (mut text, mut hurry, mut open, mut late) = (Vec::new(), Hurry::No, true, false);
        loop {
            let patience = until.saturating_duration_since(Instant::now());
            let patience = if late { BUILDING } else { patience };
            let watched = [
                Some(process.ended()),
                open.then(|| said.as_fd()),
                self.interrupt.more_than(hurry),
            ];
            let [ended, readable, hurried] = poll(watched, patience)?;
            if readable || ended {
                match said.read_to_end(&mut text) {
                    Ok(_) => open = false,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if ended {
                let status = self.household.reap(&mut process)?;
                return match hurry {
                    Hurry::No => Ok((status.filter(|_| !late), text)),
                    _ => Err(DiscoverError::Interrupted),
                };
            }
            if hurried {
                hurry = self.interrupt.hurry();
                process.signal(if hurry == Hurry::Now {
                    Signal::KILL
                } else {
                    Signal::TERM
                });
            } else if !late && Instant::now() >= until {
                late = true;
                process.signal(Signal::KILL);
            }
        }
    }

    /// Builds every crate's test target of this name: `gpu`, or `faults`.
    pub(crate) fn build(&self, target: &str) -> Result<Vec<TestBinary>, DiscoverError> {
        let (status, messages) = self.output(&mut building(target), BUILDING)?;
        match status {
            Some(status) if !status.success() => Err(DiscoverError::Build(status)),
            _ => binaries(&messages, "test", target),
        }
    }

    /// Lists the tests of each binary, ignored ones marked.
    pub(crate) fn list(&self, binaries: &[TestBinary]) -> Result<Vec<Test>, DiscoverError> {
        let mut tests = Vec::new();
        for binary in binaries {
            let ignored = self.names(&binary.executable, &["--list", "--format", "terse", "--ignored"])?;
            for name in self.names(&binary.executable, &["--list", "--format", "terse"])? {
                tests.push(Test {
                    binary: binary.clone(),
                    ignored: ignored.contains(&name),
                    name,
                });
            }
        }
        Ok(tests)
    }

    fn names(&self, executable: &Path, arguments: &[&str]) -> Result<Vec<String>, DiscoverError> {
        let (status, listing) = self.output(Command::new(executable).args(arguments), LISTING)?;
        let end = match status {
            Some(status) if status.success() => return Ok(parse_listing(&String::from_utf8_lossy(&listing))),
            Some(status) => status.to_string(),
            None => format!("it took longer than {} s", LISTING.as_secs()),
        };
        Err(DiscoverError::List {
            binary: executable.display().to_string(),
            end,
        })
    }
}

/// The command that builds every crate's test target of this name, and tells where the binaries are.
fn building(target: &str) -> Command {
    let mut command = cargo();
    command.args(["test", "--workspace", "--all-features", "--no-run", "--test", target]);
    command.args(["--message-format", "json-render-diagnostics"]);
    command
}

/// [`Runner::build`] without a supervisor: the terminal's signals end it.
pub(crate) fn build_plainly(target: &str) -> Result<Vec<TestBinary>, DiscoverError> {
    let output = building(target).stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        binaries(&output.stdout, "test", target)
    } else {
        Err(DiscoverError::Build(output.status))
    }
}

/// A test binary that somebody built already.
pub(crate) fn given(executable: &Path) -> io::Result<TestBinary> {
    let executable = executable.canonicalize()?;
    let stem = executable.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo puts a hash behind the name.
    let package = stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name).to_owned();
    Ok(TestBinary {
        package,
        directory: executable.parent().unwrap_or(Path::new("/")).to_owned(),
        executable,
    })
}

/// The binaries of targets of this kind (`test`) and name that cargo's messages name.
pub(crate) fn binaries(messages: &[u8], kind: &'static str, target: &str) -> Result<Vec<TestBinary>, DiscoverError> {
    let mut binaries = Vec::new();
    for line in messages
        .split(|&byte| byte == b'\n')
        .filter(|line| line.starts_with(b"{"))
    {
        let message: Message = serde_json::from_slice(line)?;
        binaries.extend(binary(message, kind, target));
    }
    binaries.sort_by(|a, b| a.package.cmp(&b.package));
    if binaries.is_empty() {
        Err(DiscoverError::NoTargets(kind, target.to_owned()))
    } else {
        Ok(binaries)
    }
}

fn binary(message: Message, kind: &str, name: &str) -> Option<TestBinary> {
    let target = message.target?;
    if message.reason != "compiler-artifact" || target.name != name || !target.kind.iter().any(|of| of == kind) {
        return None;
    }
    let directory = message.manifest_path?.parent()?.to_owned();
    let package = directory.file_name()?.to_str()?.to_owned();
    Some(TestBinary {
        package,
        executable: message.executable?,
        directory,
    })
}

fn parse_listing(listing: &str) -> Vec<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests;
