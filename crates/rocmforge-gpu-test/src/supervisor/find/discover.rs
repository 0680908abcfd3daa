//! Discovery of GPU tests: one target named `gpu` in each crate that has any.

use super::narrow;
use crate::cargo;
use crate::supervisor::contain::process_tree::{Mark, ProcessTree};
use crate::supervisor::contain::test_process::TestProcess;
use crate::supervisor::judge::against;
use crate::supervisor::poll::poll;
use crate::supervisor::watch::interrupt::{Interrupt, Urgency};
use crate::supervisor::watch::taken::Taken;
use crate::test_binary::{DiscoverError, LONGEST_NAME, MOST_TESTS, TestBinary, binaries};
use crate::text::{is_printable, line};
use crate::workspace::Workspace;
use rustix::process::Signal;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Cargo takes as long as it takes.
const BUILDING: Duration = Duration::from_hours(24);
/// A test binary lists its tests at once, or not at all. What it says beside that is not for the terminal.
const LISTING: Bounds = Bounds {
    time: Duration::from_secs(60),
    bytes: 16 << 20,
    errors_shown: false,
};
/// Cargo's messages; its progress and the compiler's errors are shown as they come.
const CARGO: Bounds = Bounds {
    time: BUILDING,
    bytes: 256 << 20,
    errors_shown: true,
};
/// Bytes kept of the errors of a command.
const MOST_ERRORS: usize = 4096;

/// What a command may take, and whether its standard error is shown or kept.
#[derive(Clone, Copy)]
struct Bounds {
    time: Duration,
    bytes: usize,
    errors_shown: bool,
}

/// What a command said.
#[derive(Debug)]
struct Said {
    /// How it ended; `None` where it was stopped.
    status: Option<ExitStatus>,
    /// Its standard output, up to the bound.
    text: Vec<u8>,
    /// Whether there was more of it.
    flooded: bool,
    /// The beginning of its standard error, where that is not shown.
    errors: Vec<u8>,
}

/// One test of a binary.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) binary: TestBinary,
    /// libtest's name.
    pub(crate) name: String,
    /// Whether it is marked `#[ignore]`.
    pub(crate) ignored: bool,
    /// What the binary is given, if it is no test binary but a program whose status says it all.
    pub(crate) arguments: Option<Vec<OsString>>,
}

impl Test {
    /// `crate::test`. [No two](all_different) of a run are the same.
    pub(crate) fn id(&self) -> String {
        format!("{}::{}", self.binary.package, self.name)
    }
}

/// Runs commands for the supervisor: they end when the user says so.
pub(crate) struct Discovery<'a> {
    pub(crate) workspace: &'a dyn Workspace,
    pub(crate) process_tree: &'a Arc<ProcessTree>,
    pub(crate) interrupt: &'a Interrupt,
}

impl Discovery<'_> {
    /// What `command` writes to its standard output, and how it ended.
    fn output(&self, command: &mut Command, bounds: Bounds) -> Result<Said, DiscoverError> {
        let (said, says) = io::pipe()?;
        let (aside, complains) = io::pipe()?;
        let (mut text, mut errors) = (Taken::up_to(bounds.bytes, said)?, Taken::up_to(MOST_ERRORS, aside)?);
        command.stdin(Stdio::null()).stdout(says);
        match bounds.errors_shown {
            true => drop(complains),
            false => drop(command.stderr(complains)),
        }
        let started = TestProcess::start(self.process_tree, command, &Mark::new("discover"), &[]);
        let mut process = started.map_err(|source| DiscoverError::Binary {
            path: command.get_program().display().to_string(),
            source,
        })?;
        command.stdout(Stdio::null()).stderr(Stdio::null()); // drops our copies of the writing ends
        let until = Instant::now() + bounds.time;
        let (mut urgency, mut late) = (Urgency::No, false);
        loop {
            let patience = until.saturating_duration_since(Instant::now());
            let patience = if late { BUILDING } else { patience };
            let watched = [
                Some(process.ended()),
                text.readable(),
                errors.readable(),
                self.interrupt.more_than(urgency),
            ];
            let [ended, readable, complained, hurried] = poll(watched, patience)?;
            if readable || ended {
                text.take()?;
            }
            if complained || ended {
                errors.take()?;
            }
            if ended {
                let status = process.reap()?;
                return match urgency {
                    Urgency::No => Ok(Said {
                        status: status.filter(|_| !late),
                        flooded: text.flooded,
                        text: text.bytes,
                        errors: errors.bytes,
                    }),
                    _ => Err(DiscoverError::Interrupted),
                };
            }
            if hurried {
                urgency = self.interrupt.urgency();
                process.signal(if urgency == Urgency::Now {
                    Signal::KILL
                } else {
                    Signal::TERM
                });
            } else if !late && (text.flooded || Instant::now() >= until) {
                late = true;
                process.signal(Signal::KILL);
            }
        }
    }

    /// Builds every crate's test target of this name: `gpu`, or `faults`; those that the filter names, where it names crates.
    pub(crate) fn build(&self, target: &str, filter: Option<&str>) -> Result<Vec<TestBinary>, DiscoverError> {
        let packages = match filter {
            Some(filter) => {
                let metadata = self.output(&mut narrow::metadata(self.workspace.root()), CARGO)?;
                narrow::packages(&metadata.text, target, filter)
            }
            None => Vec::new(),
        };
        if !packages.is_empty() {
            tell!("only those of {}, which --filter names", packages.join(", "));
        }
        let said = self.output(&mut building(self.workspace, target, &packages), CARGO)?;
        match said.status {
            _ if said.flooded => Err(DiscoverError::Flood {
                binary: "cargo".to_owned(),
                most: CARGO.bytes,
            }),
            Some(status) if !status.success() => Err(DiscoverError::Build(status)),
            _ => binaries(&said.text, "test", target),
        }
    }

    /// Lists the tests of each binary, ignored ones marked.
    pub(crate) fn list(&self, binaries: &[TestBinary]) -> Result<Vec<Test>, DiscoverError> {
        let mut tests = Vec::new();
        for binary in binaries {
            let ignored = self.names(&binary.executable, &["--list", "--format", "terse", "--ignored"])?;
            let ignored: HashSet<String> = ignored.into_iter().collect();
            let names = self.names(&binary.executable, &["--list", "--format", "terse"])?;
            if names.is_empty() {
                return Err(DiscoverError::NoTests {
                    binary: binary.executable.display().to_string(),
                });
            }
            for name in names {
                tests.push(Test {
                    binary: binary.clone(),
                    ignored: ignored.contains(&name),
                    arguments: None,
                    name,
                });
            }
        }
        Ok(tests)
    }

    fn names(&self, executable: &Path, arguments: &[&str]) -> Result<Vec<String>, DiscoverError> {
        let said = self.output(Command::new(executable).args(arguments), LISTING)?;
        let binary = executable.display().to_string();
        if said.flooded {
            let most = LISTING.bytes;
            return Err(DiscoverError::Flood { binary, most });
        }
        let end = match said.status {
            Some(status) if status.success() => return parse_listing(&said.text, &binary),
            Some(status) => status.to_string(),
            None => format!("it took longer than {} s", LISTING.time.as_secs()),
        };
        let errors = String::from_utf8_lossy(&said.errors);
        let first = errors.lines().find(|line| !line.trim().is_empty());
        let first = first.map_or_else(String::new, |first| format!(": {}", line(first.trim())));
        Err(DiscoverError::List {
            binary,
            end: end + &first,
        })
    }
}

/// The same tests, if no two would share a name or a log.
pub(crate) fn all_different(tests: Vec<Test>) -> Result<Vec<Test>, DiscoverError> {
    let mut known: HashMap<String, &Path> = HashMap::new();
    for test in &tests {
        let (id, second) = (test.id(), &test.binary.executable);
        if let Some(first) = known.insert(against::file_name(&id), second) {
            let [first, second] = [first, second].map(|path| path.display().to_string());
            return Err(DiscoverError::SameName { id, first, second });
        }
    }
    Ok(tests)
}

/// The command that builds every crate's test target of this name, or those of some crates, and tells where the binaries are.
fn building(workspace: &dyn Workspace, target: &str, packages: &[String]) -> Command {
    let mut command = cargo::command(workspace.root());
    command.arg("test");
    match packages {
        [] => command.args(workspace.selection()),
        some => command
            .args(some.iter().flat_map(|name| ["-p", name]))
            .arg("--all-features"),
    };
    command.args(["--no-run", "--test", target]);
    command.args(["--message-format", "json-render-diagnostics"]);
    command
}

/// Builds every crate's test target of this name, without a supervisor: the terminal's signals end it.
///
/// # Errors
///
/// It does not build, or there is none.
pub fn build_plainly(workspace: &dyn Workspace, target: &str) -> Result<Vec<TestBinary>, DiscoverError> {
    let output = building(workspace, target, &[]).stderr(Stdio::inherit()).output()?;
    if output.status.success() {
        binaries(&output.stdout, "test", target)
    } else {
        Err(DiscoverError::Build(output.status))
    }
}

/// The names in what a test binary lists: a test a line, benchmarks left out.
fn parse_listing(listing: &[u8], binary: &str) -> Result<Vec<String>, DiscoverError> {
    let mut names = Vec::new();
    let lines = listing.split(|&byte| byte == b'\n');
    for name in lines.filter_map(|line| line.strip_suffix(b": test")) {
        if names.len() == MOST_TESTS {
            return Err(DiscoverError::TooManyTests {
                binary: binary.to_owned(),
            });
        }
        if name.len() > LONGEST_NAME {
            return Err(DiscoverError::LongName {
                binary: binary.to_owned(),
                bytes: name.len(),
            });
        }
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() && is_printable(name) => names.push(name.to_owned()),
            _ => {
                return Err(DiscoverError::Name {
                    binary: binary.to_owned(),
                    name: line(&String::from_utf8_lossy(name)),
                });
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
