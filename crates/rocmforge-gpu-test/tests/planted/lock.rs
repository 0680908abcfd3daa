//! Runs on a card whose lock another process holds.

use super::card::CARD;
use super::supervisor::{PATIENCE, Run};
use rocmforge_gpu_test::lock::CardLock;
use rocmforge_test_support::machines::Machine;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

/// Starts the supervisor, and returns when it says that it waits; with what it has said.
pub(crate) fn waiting(command: &mut Command) -> (Child, impl BufRead + use<>, String) {
    let mut child = command.spawn().unwrap();
    let (mut said, mut text) = (BufReader::new(child.stderr.take().unwrap()), String::new());
    while !text.contains("waiting for ") {
        assert_ne!(said.read_line(&mut text).unwrap(), 0, "{text}");
    }
    (child, said, text)
}

/// How the supervisor ends, and all that it has said.
pub(crate) fn end((mut child, mut said, mut text): (Child, impl BufRead, String)) -> (Option<i32>, String) {
    said.read_to_string(&mut text).unwrap();
    (child.wait().unwrap().code(), text)
}

#[test]
fn a_card_that_is_given_up_is_taken_and_one_that_is_not_is_an_error() {
    let run = Run::new();
    let lock = || CardLock::acquire(&run.reports().join("lock"), "sim", PATIENCE, |_| {}).unwrap();
    let held = lock();
    let waits = waiting(&mut run.tests("faults::tells"));
    assert!(
        waits
            .2
            .contains(&format!("waiting for sim: in use by pid {} ", std::process::id())),
        "{}",
        waits.2
    );
    // Longer than it takes to look twice.
    std::thread::sleep(Duration::from_millis(1200));
    drop(held);
    let (code, text) = end(waits);
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("waiting for").count(), 1, "{text}");

    let held = lock();
    let (code, text) = end(waiting(run.tests("faults::tells").args(["--patience", "1"])));
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains(&format!("pid {}", std::process::id())) && text.contains("1 s"),
        "{text}"
    );
    drop(held);
}

#[test]
fn a_card_put_in_quarantine_meanwhile_is_not_used_unless_the_user_says_so() {
    for (cause, flags, expected) in [
        ("reset", &[][..], 3),
        ("reset", &["--after-reset"], 0),
        ("stuck", &["--after-reset"], 3),
    ] {
        let (run, tree) = (Run::new(), Machine::headless());
        let state = run.directory.path().join("rocmforge");
        let held = CardLock::acquire(&state, &CARD[4..], PATIENCE, |_| {}).unwrap();
        let mut command = run.tests("faults::tells");
        command.args(["--device", CARD, "--root"]).arg(tree.path()).args(flags);
        let waits = waiting(&mut command);
        let quarantine = serde_json::json!({
            "boot": "boot-one", "cause": cause, "test": "a::b", "reason": "it happened", "since": 1
        });
        let file = state.join(format!("gpu-{}.quarantine", &CARD[4..]));
        std::fs::write(file, quarantine.to_string()).unwrap();
        drop(held);
        let (code, text) = end(waits);
        assert_eq!(code, Some(expected), "{text}");
        let said = "1 of 1 test runs were blocked: it happened (during a::b)";
        assert_eq!(text.contains(said), expected == 3, "{text}");
    }
}
