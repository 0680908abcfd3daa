//! The user ends a run, or somebody ends the supervisor.

use super::lock::{end, waiting};
use super::supervisor::{AMPLE, LOCATE, PATIENCE, Run, send, wait_for};
use rocmforge_gpu_test::lock::{self, CardLock};
use rustix::io::ioctl_fionbio;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::Child;
use std::time::{Duration, Instant};

/// A run of tests that never end, when the first of them is up: 0 sleeps, 5 ignores what it can.
fn started(run: &Run, jobs: &str) -> Child {
    let mut command = run.supervisor("faults::hangs::n00", 1000);
    let child = command.args(["--jobs", jobs]).spawn().unwrap();
    wait_for(&run.reports().join("logs/planted.faults.hangs.n000.0.log"));
    child
}

fn outcomes(run: &Run) -> Vec<String> {
    let results = run.results().into_iter();
    results
        .map(|result| result["outcome"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_interrupt_ends_the_tests_and_writes_the_reports() {
    for (signal, status) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let run = Run::new();
        let child = started(&run, "2");
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(status),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        run.assert_nothing_lives();
        let outcomes = outcomes(&run);
        assert_eq!(outcomes.len(), 8);
        assert!(outcomes.iter().all(|outcome| outcome == "interrupted"), "{outcomes:?}");
        assert!(run.reports().join("report.html").exists() && run.reports().join("junit.xml").exists());
    }
}

#[test]
fn an_interrupt_before_the_first_test_promises_no_reports() {
    let run = Run::new();
    // Reports of a run before this one tell nothing of it.
    assert!(run.tests("faults::tells").output().unwrap().status.success());
    assert!(run.reports().join("report.html").exists());
    let cargo = run.script(
        "cargo",
        &format!("{LOCATE}; touch \"$ROCMFORGE_PLANT_RUN/building\"; exec sleep 100000"),
    );
    let child = run.building().env("CARGO", cargo).spawn().unwrap();
    wait_for(&run.directory.path().join("building"));
    send(&child, "INT");
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{text}");
    assert!(
        text.ends_with("error: ended by the user (signal 2) before the first test: there is no report of this run\n"),
        "{text}"
    );
    run.assert_nothing_lives();
}

#[test]
fn an_interrupt_while_waiting_for_the_card_names_it() {
    let run = Run::new();
    let locks = run.reports().join("lock");
    let held = CardLock::acquire(&locks, "sim", PATIENCE, |_| {}).unwrap();
    let waits = waiting(&mut run.supervisor("faults::hangs::n000", 1000));
    send(&waits.0, "INT");
    let (code, text) = end(waits);
    assert_eq!(code, Some(130), "{text}");
    let said = "error: ended by the user (signal 2) while waiting for sim: there is no report on it\n";
    assert!(text.ends_with(said), "{text}");
    drop(held);
}

#[test]
fn a_second_interrupt_does_not_wait() {
    let run = Run::new();
    let mut command = run.supervisor("faults::hangs::n005", 1000);
    let child = command.spawn().unwrap();
    wait_for(&run.reports().join("logs/planted.faults.hangs.n005.0.log"));
    send(&child, "INT");
    std::thread::sleep(Duration::from_millis(50));
    send(&child, "INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    run.assert_nothing_lives();
    assert_eq!(outcomes(&run), ["interrupted"]);
}

#[test]
fn a_second_interrupt_ends_even_a_supervisor_that_is_stuck_itself() {
    let run = Run::new();
    // Nobody reads what it says, and the pipe is full: it waits for ever at its table.
    let (reader, mut writer) = std::io::pipe().unwrap();
    ioctl_fionbio(&writer, true).unwrap();
    while writer.write(&[b'x'; 4096]).is_ok() {}
    ioctl_fionbio(&writer, false).unwrap();
    let mut child = run.supervisor("faults::tells", AMPLE).stdout(writer).spawn().unwrap();
    wait_for(&run.reports().join("report.html"));
    send(&child, "INT");
    std::thread::sleep(Duration::from_millis(50));
    assert!(
        child.try_wait().unwrap().is_none(),
        "one interrupt is asked for in order"
    );
    send(&child, "TERM");
    assert_eq!(child.wait().unwrap().code(), Some(143));
    drop(reader);
    run.assert_nothing_lives();
}

#[test]
fn a_killed_supervisor_takes_its_tests_along_and_gives_up_the_lock() {
    let run = Run::new();
    let mut child = started(&run, "1");
    send(&child, "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    run.assert_nothing_lives();
    // The kernel closes what a dead process had open a moment after it has ended.
    let start = Instant::now();
    while lock::is_held(&run.reports().join("lock"), "sim") {
        assert!(start.elapsed() < PATIENCE, "the lock is not given up");
        std::thread::sleep(Duration::from_millis(5));
    }
}
