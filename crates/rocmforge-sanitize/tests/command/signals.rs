//! Signals to `rocmforge-sanitize run`: the program ends by them, and no folder stays.

use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Sends `signal` to the sanitizer while its program runs. Returns the exit status and what is left in the temporary folder.
fn ended_by(signal: Signal, program: &str) -> (Option<i32>, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sanitizer = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"))
        .env("TMPDIR", folder.path())
        .args(["run", "--", "sh", "-c", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program under test is built");
    let mut line = String::new();
    let out = sanitizer.stdout.take().expect("it is piped");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    let entries = || std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(entries(), 1, "the stub libraries");
    kill_process(Pid::from_child(&sanitizer), signal).expect("it runs");
    let status = sanitizer.wait().expect("it ends");
    (status.code(), entries())
}

#[test]
fn termination_ends_the_program_and_leaves_nothing() {
    assert_eq!(ended_by(Signal::TERM, "echo ready; exec sleep 60"), (Some(128 + 15), 0));
}

#[test]
fn a_program_may_end_in_its_own_way() {
    let program = "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    assert_eq!(ended_by(Signal::TERM, program), (Some(7), 0));
}

#[test]
fn an_interrupt_is_left_to_the_program() {
    assert_eq!(ended_by(Signal::INT, "echo ready; sleep 0.3; exit 5"), (Some(5), 0));
}
