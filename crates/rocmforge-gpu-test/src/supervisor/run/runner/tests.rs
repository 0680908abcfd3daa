//! Runs of several scripts: what one test does to the others.

use super::*;
use crate::supervisor::report::Kind;
use crate::supervisor::run::supervise::tests::{Script, past_deadline, test};
use std::time::Duration;

/// A machine with a driver that keeps every process, and a quarantine.
struct Card {
    script: Script,
    quarantine: QuarantineFile,
    _root: tempfile::TempDir,
}

impl Card {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let folder = |path: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(&path).unwrap();
            path
        };
        std::os::unix::fs::symlink("pid:[4026531836]", folder("proc/self/ns").join("pid")).unwrap();
        std::fs::write(folder("proc/sys/kernel/random").join("boot_id"), "one\n").unwrap();
        let mut script = Script::new("");
        script.runner.plan.environment.extend([
            ("DRIVER", folder("sys/class/kfd/kfd/proc").display().to_string()),
            ("DUMPS", folder("sys/class/devcoredump").display().to_string()),
        ]);
        script.runner.kfd = Some(crate::supervisor::watch::kfd::Kfd::new(
            rocmforge_machine::sysfs::Sysfs::at(root.path()),
        ));
        script.runner.breaker = Some(Breaker::new("0000:03:00.0", root.path(), None));
        script.runner.plan.grace.kill = Duration::from_millis(200);
        Self {
            quarantine: QuarantineFile::new(&root.path().join("state"), "0000:03:00.0", root.path()),
            script,
            _root: root,
        }
    }

    fn run(&mut self, scripts: &[(&str, &str)], jobs: usize, quarantine: bool) -> Vec<Verdict> {
        let folder = self.script.directory.path();
        let tests: Vec<Test> = scripts
            .iter()
            .map(|(name, script)| test(folder, name, script))
            .collect();
        let runner = &mut self.script.runner;
        runner.plan.wanted_jobs = Some(jobs);
        runner.quarantine = quarantine.then(|| self.quarantine.clone());
        *runner.blocked.lock().unwrap() = None;
        let mut seen = 0;
        let results = runner.run(&tests, |_| seen += 1);
        assert_eq!(seen, scripts.len());
        results.into_iter().map(|result| result.verdict).collect()
    }
}

fn kinds(verdicts: &[Verdict]) -> Vec<Kind> {
    verdicts.iter().map(Verdict::kind).collect()
}

#[test]
fn a_failure_does_not_keep_others_from_running() {
    let mut card = Card::new();
    let verdicts = card.run(&[("a", "exit 1"), ("b", "kill -KILL $$"), ("c", "true")], 1, true);
    assert_eq!(kinds(&verdicts), [Kind::Failed, Kind::Failed, Kind::Passed]);
    assert_eq!(card.quarantine.read(), None);
}

#[test]
fn a_stuck_test_blocks_those_after_it_and_those_of_later_runs() {
    let mut card = Card::new();
    let verdicts = card.run(
        &[("a", "true"), ("b", "mkdir $DRIVER/$$"), ("c", "true"), ("d", "true")],
        1,
        true,
    );
    assert_eq!(
        kinds(&verdicts),
        [Kind::Passed, Kind::Failed, Kind::Blocked, Kind::Blocked]
    );
    assert!(verdicts[2].to_string().contains("(during fake::b)"), "{}", verdicts[2]);
    let held = card.quarantine.read().unwrap();
    assert_eq!((held.cause, held.test.as_str()), (Cause::Stuck, "fake::b"));
}

#[test]
fn a_reset_invalidates_the_test_and_blocks_the_rest() {
    let mut card = Card::new();
    let verdicts = card.run(&[("a", "mkdir $DUMPS/devcd1; exit 101"), ("b", "true")], 1, true);
    assert!(matches!(verdicts[0], Verdict::Invalidated { .. }));
    assert!(matches!(verdicts[1], Verdict::Blocked { .. }));
    assert_eq!(card.quarantine.read().map(|held| held.cause), Some(Cause::Reset));
}

#[test]
fn siblings_of_a_reset_are_invalidated_too() {
    let mut card = Card::new();
    let wait = "touch $0.up; while ! [ -e fake-a.up ] || ! [ -e fake-b.up ]; do sleep 0.01; done;";
    let (a, b) = (
        format!("{wait} mkdir $DUMPS/devcd1"),
        format!("{wait} while ! [ -e $DUMPS/devcd1 ]; do sleep 0.01; done"),
    );
    let verdicts = card.run(&[("a", &a), ("b", &b)], 2, true);
    for verdict in verdicts {
        assert!(matches!(verdict, Verdict::Invalidated { .. }), "{verdict}");
    }
}

#[test]
fn a_process_that_sticks_after_a_reset_is_the_graver_of_the_two() {
    let mut card = Card::new();
    let resets = "while ! [ -e b.up ]; do sleep 0.01; done; mkdir $DUMPS/devcd1";
    let sticks = "trap 'mkdir $DRIVER/$$; exit' QUIT; touch b.up; while :; do sleep 0.05; done";
    let verdicts = card.run(&[("a", resets), ("b", sticks)], 2, true);
    assert!(matches!(verdicts[0], Verdict::Invalidated { .. }), "{}", verdicts[0]);
    assert!(matches!(verdicts[1], Verdict::Stuck { .. }), "{}", verdicts[1]);
    assert_eq!(card.quarantine.read().map(|held| held.cause), Some(Cause::Stuck));
}

#[test]
fn a_hang_that_led_to_a_reset_blocks_the_rest_too() {
    let hang = "trap 'mkdir $DUMPS/devcd1; exit' QUIT; touch up; while :; do sleep 0.05; done";
    let run = |deadline| {
        let mut card = Card::new();
        card.script.runner.plan.deadline = deadline;
        let verdicts = card.run(&[("a", hang), ("b", "true")], 1, true);
        (card.script, verdicts)
    };
    let (_, verdicts) = past_deadline(run);
    assert!(matches!(verdicts[0], Verdict::TimedOut { .. }), "{}", verdicts[0]);
    assert!(matches!(verdicts[1], Verdict::Blocked { .. }), "{}", verdicts[1]);
}

#[test]
fn in_simulation_nothing_is_blocked() {
    let mut card = Card::new();
    let verdicts = card.run(&[("a", "mkdir $DRIVER/$$"), ("b", "true")], 1, false);
    assert_eq!(kinds(&verdicts), [Kind::Failed, Kind::Passed]);
    assert_eq!(card.quarantine.read(), None);
}

#[test]
fn a_binary_that_is_gone_fails_its_test_only() {
    let mut card = Card::new();
    let folder = card.script.directory.path();
    let mut tests = vec![test(folder, "a", "true"), test(folder, "b", "true")];
    tests[0].binary.executable = folder.join("gone");
    let runner = &mut card.script.runner;
    (runner.plan.wanted_jobs, runner.plan.repeat) = (Some(1), 2);
    let results = runner.run(&tests, |_| {});
    let rounds: Vec<_> = results
        .iter()
        .map(|result| (result.id.as_str(), result.round))
        .collect();
    assert_eq!(rounds, [("fake::a", 0), ("fake::a", 1), ("fake::b", 0), ("fake::b", 1)]);
    assert!(matches!(&results[0].verdict, Verdict::NotStarted { .. }));
    assert!(results[0].failed() && results[2].passed());
}

#[test]
fn after_an_interrupt_nothing_is_started() {
    let mut card = Card::new();
    card.script.runner.interrupt.raise(2);
    let verdicts = card.run(&[("a", "touch started"), ("b", "touch started")], 1, true);
    assert_eq!(verdicts, [Verdict::Interrupted, Verdict::Interrupted]);
    assert!(!card.script.directory.path().join("started").exists());
}
