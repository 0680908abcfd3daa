//! A step of making a model: a program whose output goes to a file, and whose last line is shown while it runs.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::{FetchError, at};

/// How often the last line is looked at.
const REDRAW: Duration = Duration::from_millis(200);
/// The lines of a program that failed which are shown.
const SHOWN: usize = 20;
/// The end of a file in which these lines are looked for.
const TAIL: u64 = 64 << 10;

/// Runs the program to its end. `what` it does is named if it fails, with its last lines. Its output goes to `log`.
pub(super) fn run(what: &str, command: &mut Command, log: &Path) -> Result<(), FetchError> {
    let output = File::create(log).map_err(at(log))?;
    let errors = output.try_clone().map_err(at(log))?;
    let start = |source| FetchError::Start {
        what: what.to_owned(),
        source,
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(start)?;
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {wide_msg}") {
        bar.set_style(style);
    }
    let status = loop {
        if let Some(status) = child.try_wait().map_err(start)? {
            break status;
        }
        if let Some(line) = tail(log).ok().and_then(|text| text.lines().last().map(str::to_owned)) {
            bar.set_message(line);
        }
        bar.tick();
        thread::sleep(REDRAW);
    };
    bar.finish_and_clear();
    if status.success() {
        return Ok(());
    }
    let said = tail(log)?;
    Err(FetchError::Step {
        what: what.to_owned(),
        status,
        said: last_lines(&said),
    })
}

/// The end of a file.
fn tail(path: &Path) -> Result<String, FetchError> {
    let size = fs::metadata(path).map_err(at(path))?.len();
    let mut file = File::open(path).map_err(at(path))?;
    file.seek(SeekFrom::Start(size.saturating_sub(TAIL)))
        .map_err(at(path))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes).map_err(at(path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The last lines that say something.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    match lines.get(lines.len().saturating_sub(SHOWN)..) {
        Some(last) if !last.is_empty() => last.join("\n"),
        _ => "it said nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Result<(), FetchError> {
        let work = tempfile::tempdir().expect("a directory");
        let log = work.path().join("log");
        run("the step", Command::new("sh").args(["-c", script]), &log)
    }

    #[test]
    fn a_step_that_fails_is_named_with_its_last_lines() {
        assert!(shell("echo fine").is_ok());
        let error = shell("seq 100; echo 'no rule' >&2; exit 3").expect_err("status 3");
        let text = error.to_string();
        assert!(text.contains("the step failed (exit status: 3)"), "{text}");
        assert!(text.ends_with("99\n100\nno rule") && !text.contains("\n80\n"), "{text}");
        let error = shell("exit 1").expect_err("status 1");
        assert!(error.to_string().ends_with("it said nothing"), "{error}");
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let work = tempfile::tempdir().expect("a directory");
        let error = run("the step", &mut Command::new("/no/such"), &work.path().join("log")).expect_err("no program");
        assert!(error.to_string().contains("the step could not be started"), "{error}");
    }
}
