//! Limited commands: they may take only so long, and say only so much.

use std::io::Read;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// More than any answer of interest.
const MOST_OUTPUT: u64 = 1 << 20;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with this status.
    With(ExitStatus),
    /// It was stopped when its time was over.
    TimedOut,
}

/// Runs `command` for at most `limit` and returns what it wrote to its standard output, as far as it came.
///
/// # Errors
///
/// It cannot be started or waited for.
pub fn run_limited(command: &mut Command, limit: Duration) -> std::io::Result<(Ended, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (sender, output) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        // Not joined: a process that the child left behind may hold the pipe open for ever.
        thread::spawn(move || {
            let mut stdout = stdout.take(MOST_OUTPUT);
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = stdout.read(&mut chunk) {
                if sender.send(chunk[..length].to_vec()).is_err() {
                    break;
                }
            }
        });
    }
    let deadline = Instant::now() + limit;
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            break Ended::With(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            break Ended::TimedOut;
        }
        thread::sleep(Duration::from_millis(10));
    };
    let mut bytes = Vec::new();
    while let Ok(chunk) = output.recv_timeout(Duration::from_millis(200)) {
        bytes.extend(chunk);
    }
    Ok((ended, String::from_utf8_lossy(&bytes).into_owned()))
}
