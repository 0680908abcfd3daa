//! Running a test again as a child process, for what a process does not survive.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

const ROLE: &str = "ROCMFORGE_TEST_CHILD";

/// How a child ended.
#[derive(Debug)]
pub(crate) enum End {
    Exited(ExitStatus),
    /// It was still running at the limit, and was killed then.
    TimedOut,
}

/// The argument the parent gave, if this process is the child.
pub(crate) fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Runs the test `name` of this binary in a process of its own, in which [`role`] is `role`. Answers how it ended and what
/// it printed.
pub(crate) fn run(name: &str, role: &str) -> (End, String) {
    run_until(name, role, || false)
}

/// The same for a child that must succeed. Answers what it printed.
#[track_caller]
pub(crate) fn succeeds(name: &str, role: &str) -> String {
    let (end, output) = run(name, role);
    assert!(
        matches!(end, End::Exited(status) if status.success()),
        "{end:?}: {output}"
    );
    output
}

/// [`run`], and kills it half a second after `stuck` says that it is where it should hang.
pub(crate) fn run_until(name: &str, role: &str, mut stuck: impl FnMut() -> bool) -> (End, String) {
    let mut limit = Duration::from_secs(60);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let mut start = Instant::now();
    let mut waiting = true;
    let end = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break End::Exited(status);
        }
        if waiting && stuck() {
            (waiting, start, limit) = (false, Instant::now(), Duration::from_millis(500));
        }
        if start.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            break End::TimedOut;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    (end, reader.join().unwrap())
}
