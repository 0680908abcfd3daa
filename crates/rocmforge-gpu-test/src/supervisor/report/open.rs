//! Opening the page of a run, for `--open`: what cannot be opened is said, and is no failure of the run.

use std::env::split_paths;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The desktop's program that opens a file with the user's own.
const OPENER: &str = "xdg-open";
/// Time in which a failure of it is noticed. It may run as long as the browser does.
const NOTICED: Duration = Duration::from_secs(1);

/// Why a page is not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("--open: this run has written no report.html")]
    NoPage,
    #[error("--open: there is no display (neither DISPLAY nor WAYLAND_DISPLAY is set); the page is {0}")]
    NoDisplay(PathBuf),
    #[error("--open: there is no {OPENER} in PATH (package xdg-utils); the page is {0}")]
    NoOpener(PathBuf),
    #[error("--open: {OPENER} failed ({why}); the page is {page}")]
    Failed { why: String, page: PathBuf },
}

/// Opens a page, if there is one and something to open it with; `variable` looks up the environment.
pub(crate) fn open(page: Option<&Path>, variable: impl Fn(&str) -> Option<OsString>) -> Result<(), OpenError> {
    let page = page.ok_or(OpenError::NoPage)?;
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    if !is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") {
        return Err(OpenError::NoDisplay(page.to_owned()));
    }
    let path = variable("PATH").unwrap_or_default();
    // A relative folder in PATH is whatever lies where we are.
    let places = split_paths(&path).filter(|folder| folder.is_absolute());
    let opener = places.map(|folder| folder.join(OPENER)).find(|file| is_program(file));
    let opener = opener.ok_or_else(|| OpenError::NoOpener(page.to_owned()))?;
    let failed = |why: String| OpenError::Failed {
        why,
        page: page.to_owned(),
    };
    let mut command = Command::new(opener);
    // Ctrl-C after the run is not meant for the browser.
    command.arg(page).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    let start = Instant::now();
    while start.elapsed() < NOTICED {
        match child.try_wait() {
            Ok(Some(status)) if !status.success() => return Err(failed(status.to_string())),
            Ok(None) => std::thread::sleep(Duration::from_millis(10)),
            Ok(Some(_)) | Err(_) => break,
        }
    }
    Ok(())
}

fn is_program(file: &Path) -> bool {
    file.metadata()
        .is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}
