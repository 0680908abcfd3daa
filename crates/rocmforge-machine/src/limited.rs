//! Limited commands: child programs with a time limit and a limit on their output.

use rustix::io::ioctl_fionbio;
use std::io::{ErrorKind, Read};
use std::process::{ChildStdout, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// More than any answer of interest, in bytes.
const MOST_OUTPUT: usize = 1 << 20;
/// Time between two looks at a command.
const PAUSE: Duration = Duration::from_millis(10);

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
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn()?;
    let mut output = Output::of(child.stdout.take())?;
    let deadline = Instant::now() + limit;
    let ended = loop {
        let status = child.try_wait()?;
        // After the look: all that it wrote before its end is there. Not to the end of the file: a process that the child left
        // behind may hold the pipe open for ever.
        output.take();
        if let Some(status) = status {
            break Ended::With(status);
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            output.take();
            break Ended::TimedOut;
        }
        thread::sleep(PAUSE);
    };
    Ok((ended, String::from_utf8_lossy(&output.bytes).into_owned()))
}

/// What a command has written so far.
struct Output {
    /// Until its end, or until there was enough of it: a later write of the child fails, as the pipe has no reader.
    from: Option<ChildStdout>,
    bytes: Vec<u8>,
}

impl Output {
    fn of(from: Option<ChildStdout>) -> std::io::Result<Self> {
        if let Some(from) = &from {
            ioctl_fionbio(from, true)?;
        }
        let bytes = Vec::new();
        Ok(Self { from, bytes })
    }

    /// Takes what is there, without waiting for more.
    fn take(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(from) = &mut self.from {
            match from.read(&mut chunk) {
                Ok(length @ 1..) if self.bytes.len() < MOST_OUTPUT => self.bytes.extend(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => self.from = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn shell(script: &str, limit: Duration) -> (Ended, String) {
        run_limited(Command::new("sh").args(["-c", script]), limit).unwrap()
    }

    #[test]
    fn all_that_a_command_says_is_heard_whoever_holds_its_pipe_afterwards() {
        for _ in 0..3 {
            let (ended, text) = shell("sleep 30 & head -c 300000 /dev/zero | tr '\\0' x; kill -KILL $$", LONG);
            assert!(matches!(ended, Ended::With(status) if !status.success()), "{ended:?}");
            // Several times what a pipe holds.
            assert_eq!(text.len(), 300_000);
        }
    }

    #[test]
    fn a_command_that_does_not_end_is_stopped_and_what_it_said_is_kept() {
        let (ended, text) = shell("echo here; exec sleep 1000", Duration::from_millis(300));
        assert_eq!(ended, Ended::TimedOut);
        assert!(text.is_empty() || text == "here\n", "{text}");
    }

    #[test]
    fn a_flood_is_cut_and_ends_the_command() {
        let (ended, text) = shell("exec yes", LONG);
        assert!(matches!(ended, Ended::With(status) if !status.success()), "{ended:?}");
        assert!(
            (MOST_OUTPUT..MOST_OUTPUT + 4096).contains(&text.len()),
            "{}",
            text.len()
        );
    }
}
