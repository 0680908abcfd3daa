//! Second run of a binary's tests, on another simulated card.

use crate::device::DEVICE_VARIABLE;
use std::process::{Command, Stdio};

/// The second simulated card.
const SECOND: &str = "sim:gfx1201";

/// Runs this test binary again on the simulated gfx1201: the tests whose names contain one of `filters`, or all but the
/// one named `own` where there are no filters. Does nothing where the environment names a device.
///
/// # Panics
///
/// If a test fails there, or none matches; with the output of the tests.
#[track_caller]
pub fn on_every_card(own: &str, filters: &[&str]) {
    if std::env::var_os(DEVICE_VARIABLE).is_some() {
        return;
    }
    let binary = std::env::current_exe().expect("a test binary knows its path");
    let mut command = Command::new(binary);
    command.args(filters).args(["--skip", own]).env(DEVICE_VARIABLE, SECOND);
    let output = command.stdin(Stdio::null()).output().expect("a test binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "on {SECOND}:\n{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(!text.contains(" 0 passed"), "no test matches {filters:?}:\n{text}");
}
