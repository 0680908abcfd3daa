//! Starting `xtask test-gpu` on this binary, and reading what it says.

use super::faults::PLANT;
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// What a script that stands in for cargo begins with: it answers where the workspace is.
pub(crate) const LOCATE: &str = "[ \"$1\" = locate-project ] && echo \"$ROCMFORGE_PLANT_RUN/Cargo.toml\" && exit 0";

/// Longer than what is waited for takes on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A deadline, in seconds, that no test here passes which ends.
pub(crate) const AMPLE: u64 = 300;

/// A folder for one run: its reports, locks and quarantine.
pub(crate) struct Run {
    pub(crate) directory: tempfile::TempDir,
    /// Marks the processes of this run, whatever becomes of them.
    pub(crate) mark: String,
}

impl Run {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mark = format!("ROCMFORGE_PLANT_RUN={}", directory.path().display());
        Self { directory, mark }
    }

    pub(crate) fn reports(&self) -> PathBuf {
        self.directory.path().join("reports")
    }

    /// The supervisor over the tests of this binary whose names contain `filter`.
    pub(crate) fn supervisor(&self, filter: &str, deadline: u64) -> Command {
        let deadline = deadline.to_string();
        let mut command = self.tests(filter);
        command.args(["--deadline", &deadline]).env(PLANT, &deadline);
        command
    }

    /// The same with the default deadline; the tests do nothing.
    pub(crate) fn tests(&self, filter: &str) -> Command {
        let mut command = self.building();
        let me = std::env::current_exe().unwrap();
        command.args(["--filter", filter, "--binary"]).arg(me);
        command
    }

    /// The supervisor that builds the tests itself.
    pub(crate) fn building(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-gpu-test"));
        command
            // Relative: the tests run elsewhere.
            .args(["--reports", "reports"])
            .current_dir(self.directory.path())
            .env("ROCMFORGE_PLANT_RUN", self.directory.path())
            .env("ROCMFORGE_LOCK_DIRECTORY", self.directory.path().join("rocmforge"))
            .env("XDG_STATE_HOME", self.directory.path())
            .env_remove("ROCMFORGE_PLANT_PART")
            // Looking up the names of a backtrace takes longer on a busy machine than the deadline is.
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        // SAFETY: the closure makes system calls only, each async-signal-safe.
        unsafe { command.pre_exec(heed_the_user) };
        command
    }

    /// A shell script in the folder of the run.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        let [source, path] = [&format!("{name}.sh"), name].map(|name| self.directory.path().join(name));
        std::fs::write(&source, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&source, std::fs::Permissions::from_mode(0o755)).unwrap();
        // By `cp`, so that no process that another test starts meanwhile has the file open for writing.
        assert!(
            Command::new("cp")
                .arg("-p")
                .args([&source, &path])
                .status()
                .unwrap()
                .success()
        );
        path
    }

    /// The results of the run, by test.
    pub(crate) fn results(&self) -> Vec<Value> {
        self.report()["results"].as_array().unwrap().clone()
    }

    /// The report of the run.
    pub(crate) fn report(&self) -> Value {
        let text = std::fs::read_to_string(self.reports().join("report.json")).expect("a report");
        serde_json::from_str(&text).unwrap()
    }

    /// Processes of this run that live: those with its mark, and those in `names` that are nobody's.
    pub(crate) fn living(&self) -> Vec<String> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let marked = processes.filter(|entry| {
            std::fs::read(entry.path().join("environ"))
                .is_ok_and(|all| all.split(|&byte| byte == 0).any(|one| one == self.mark.as_bytes()))
        });
        marked
            .map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default())
            .collect()
    }

    #[track_caller]
    pub(crate) fn assert_nothing_lives(&self) {
        let start = Instant::now();
        // One look may miss a process that forks while it looks.
        let mut empty = 0;
        while empty < 3 {
            let living = self.living();
            empty = if living.is_empty() { empty + 1 } else { 0 };
            assert!(start.elapsed() < PATIENCE, "still alive: {living:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a signal to a process that this one started.
pub(crate) fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

pub(crate) fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < PATIENCE, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// As a shell starts a job in the foreground: a test run in the background ignores SIGINT, and its children would too.
fn heed_the_user() -> std::io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the default action runs no code.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
    Ok(())
}
