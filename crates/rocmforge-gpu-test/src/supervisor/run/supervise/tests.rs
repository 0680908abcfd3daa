//! One supervised process each: shell scripts in the place of test binaries.

use super::*;
use crate::card::device::Device;
use crate::lock::CardLock;
use crate::supervisor::report::Summary;
use crate::supervisor::run::plan::Plan;
use crate::supervisor::watch::breaker::Breaker;
use crate::supervisor::watch::escalation::Grace;
use crate::supervisor::watch::interrupt::Interrupt;
use crate::supervisor::watch::kfd::Kfd;
use crate::test_binary::TestBinary;
use rocmforge_machine::process::state_of;
use rocmforge_machine::sysfs::Sysfs;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// A test binary that is a shell script, and its runner.
pub(crate) struct Script {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) test: Test,
    pub(crate) runner: Runner,
}

const SOON: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);
/// Longer than anything takes, were the machine ten times slower.
const ENDLESS: Duration = Duration::from_secs(600);

impl Script {
    pub(crate) fn new(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let lock = CardLock::acquire(&directory.path().join("lock"), "fake", Duration::ZERO, |_| {}).unwrap();
        let grace = Grace {
            quit: LONG,
            terminate: LONG,
            kill: LONG,
        };
        let plan = Plan {
            deadline: LONG,
            silence: LONG,
            grace,
            environment: vec![("ROCMFORGE_DEVICE", "sim".to_owned())],
            wanted_jobs: Some(2),
            repeat: 1,
            forbid_leftovers: false,
            recorded: true,
            directory: directory.path().to_owned(),
            device: Device::Sim(None),
            findings: Vec::new(),
            careful: false,
        };
        for folder in [plan.logs(), plan.buffers().unwrap()] {
            fs::create_dir(folder).unwrap();
        }
        let runner = Runner {
            logs: std::fs::File::open(plan.logs()).unwrap().into(),
            plan,
            process_tree: Arc::default(),
            lock: Arc::new(lock),
            interrupt: Arc::new(Interrupt::new().unwrap()),
            kfd: None,
            breaker: None,
            quarantine: None,
            blocked: Mutex::default(),
        };
        Self {
            test: test(directory.path(), "planted", script),
            directory,
            runner,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Runner)) -> Self {
        change(&mut self.runner);
        self
    }

    fn run(&self) -> TestResult {
        self.runner.supervise(&self.test, 0).unwrap()
    }
}

/// A test whose binary is `script`, in `directory`.
pub(crate) fn test(directory: &Path, name: &str, script: &str) -> Test {
    let executable = directory.join(format!("fake-{name}"));
    // Through `cp`, so that no process that another test starts meanwhile has the file open for writing.
    let source = directory.join(format!("{name}.sh"));
    // At its end it says what libtest says of a test that passed.
    let word = format!(
        "s=$?; [ $s = 0 ] && printf 'running 1 test\\ntest {name} ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;\\n'; exit $s"
    );
    fs::write(&source, format!("#!/bin/sh\n{script}\n{word}\n")).unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp")
        .arg("-p")
        .args([&source, &executable])
        .status()
        .unwrap();
    assert!(copied.success());
    Test {
        binary: TestBinary {
            package: "fake".to_owned(),
            executable,
            directory: directory.to_owned(),
        },
        name: name.to_owned(),
        ignored: false,
        arguments: None,
    }
}

/// Waits shortly for a test that heeds neither SIGQUIT nor SIGTERM.
fn impatient(runner: &mut Runner) {
    (runner.plan.grace.quit, runner.plan.grace.terminate) = (SOON, SOON);
}

/// Runs something under a short deadline, or, where its script had not made the file `up` in its folder before that had passed, under
/// a longer one: a loaded machine takes its time to start a shell. `run` gets the deadline, and returns the script with what
/// became of it.
pub(crate) fn past_deadline<T>(run: impl Fn(Duration) -> (Script, T)) -> (Script, T) {
    /// Files have the time of the last tick of a clock that ticks at least so often.
    const TICK: Duration = Duration::from_millis(20);
    for deadline in [SOON, 10 * SOON, LONG] {
        let start = SystemTime::now();
        let (script, outcome) = run(deadline);
        let up = fs::metadata(script.directory.path().join("up")).and_then(|file| file.modified());
        if up.is_ok_and(|up| up + TICK < start + deadline) {
            return (script, outcome);
        }
    }
    panic!("a shell took longer than {LONG:?} to start")
}

/// What becomes of a script that hangs.
fn hanging(script: &str, change: impl Fn(&mut Runner)) -> TestResult {
    let run = |deadline| {
        let script = Script::new(script)
            .with(|runner| runner.plan.deadline = deadline)
            .with(&change);
        let result = script.run();
        (script, result)
    };
    past_deadline(run).1
}

#[track_caller]
fn assert_late(result: &TestResult, expected: &str) {
    let verdict = &result.verdict;
    assert!(
        matches!(verdict, Verdict::TimedOut { silent: false, signal, .. } if signal == expected),
        "{verdict:?}"
    );
}

#[test]
fn a_pass_carries_what_the_lease_saw() {
    let record = r#"{"kind":"lease","device":"sim","peak_bytes":4096,"launches":3}"#;
    let sample = r#"{"at":1,"held":4096,"budget":8192,"ended":true}"#;
    let script = format!(
        "echo nothing to report; echo '{record}' > /proc/self/fd/$ROCMFORGE_TEST_REPORT_FD; echo '{sample}' > /proc/self/fd/$ROCMFORGE_HEARTBEAT_FD"
    );
    let result = Script::new(&script).run();
    assert_eq!(result.verdict, Verdict::Passed, "{}", result.output);
    assert_eq!((result.peak_bytes, result.launches), (Some(4096), 3));
    assert_eq!(
        result.samples.iter().map(|sample| sample.held).collect::<Vec<_>>(),
        [4096]
    );
    assert_eq!(result.output, "", "it is in its log");
    assert!(result.begun > 0 && result.retained.is_none() && result.left_behind.is_empty());
}

#[test]
fn a_skip_is_not_a_pass() {
    let script = r#"echo '{"kind":"skip","reason":"no model"}' > /proc/self/fd/$ROCMFORGE_TEST_REPORT_FD"#;
    let reason = "no model".to_owned();
    assert_eq!(Script::new(script).run().verdict, Verdict::Skipped { reason });
}

#[test]
fn an_expected_failure_is_reported_and_does_not_hide_a_real_one() {
    let record = r#"echo '{"kind":"expected_failure","reason":"on gfx12: later","failure":"wrong"}' > /proc/self/fd/$ROCMFORGE_TEST_REPORT_FD"#;
    let result = Script::new(record).run();
    let expected = Verdict::ExpectedFailure {
        reason: "on gfx12: later".to_owned(),
        failure: "wrong".to_owned(),
    };
    assert_eq!(result.verdict, expected);
    assert!(!result.passed() && !result.failed());
    let failed = Script::new(&format!("{record}; exit 101")).run();
    assert_eq!(failed.verdict, Verdict::Failed { status: 101 });
}

#[test]
fn an_ignored_test_is_not_started() {
    let mut script = Script::new("touch started");
    script.test.ignored = true;
    assert!(matches!(script.run().verdict, Verdict::Skipped { .. }));
    assert!(!script.directory.path().join("started").exists());
}

#[test]
fn a_failure_keeps_the_output_the_first_error_and_the_seed() {
    let result = Script::new(
        "echo noise; echo \"thread 'x' panicked at tests/x.rs:3:5:\"; echo 'left is not right'; echo later error\n\
         echo 'random data: seed 7 (repeat with ROCMFORGE_SEED=7)'; exit 101",
    )
    .run();
    assert_eq!(result.verdict, Verdict::Failed { status: 101 });
    assert!(result.output.starts_with("noise\n"));
    let first = "thread 'x' panicked at tests/x.rs:3:5: left is not right";
    assert_eq!((result.first_error.as_deref(), result.seed), (Some(first), Some(7)));
    let again = "ROCMFORGE_SEED=7 cargo gpu-test --device sim --exact --filter fake::planted";
    let summary = Summary::new("sim", Vec::new(), Duration::ZERO);
    assert_eq!(summary.reproduction(&result), again);
}

#[test]
fn a_crash_names_its_signal() {
    assert_eq!(
        Script::new("kill -SEGV $$").run().verdict,
        Verdict::Crashed { signal: 11 }
    );
}

#[test]
fn a_binary_that_cannot_be_started_is_an_error() {
    let script = Script::new("");
    fs::remove_file(&script.test.binary.executable).unwrap();
    let run = script.runner.supervise(&script.test, 0);
    let error = run.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    let path = script.test.binary.executable.display().to_string();
    assert!(error.to_string().contains(&path), "{error}");
}

#[test]
fn a_hang_ends_at_the_first_signal_it_heeds() {
    let result = hanging("echo here; touch up; exec sleep 1000", |_| ());
    assert_late(&result, "SIGQUIT");
    assert_eq!(result.output, "here\n");
    let ignores = |signals: &str| format!("trap '' {signals}; touch up; while :; do sleep 0.1; done");
    let result = hanging(&ignores("QUIT"), |runner| runner.plan.grace.quit = SOON);
    assert_late(&result, "SIGTERM");
    let result = hanging(&ignores("QUIT TERM"), impatient);
    assert_late(&result, "SIGKILL");
}

#[test]
fn a_stopped_process_is_killed() {
    let result = hanging("touch up; kill -STOP $$", impatient);
    assert!(matches!(result.verdict, Verdict::TimedOut { .. }));
}

const BEAT: &str = r#"echo '{"at":1,"held":0,"budget":0,"ended":ENDED}' > /proc/self/fd/$ROCMFORGE_HEARTBEAT_FD;"#;

#[test]
fn a_test_that_was_heard_and_stands_still_is_ended_before_its_deadline() {
    let beat = BEAT.replace("ENDED", "false");
    let script = Script::new(&format!("{beat} kill -STOP $$")).with(|runner| {
        impatient(runner);
        runner.plan.silence = SOON;
    });
    let expected = Verdict::TimedOut {
        seconds: 0.3,
        silent: true,
        signal: "SIGKILL".to_owned(),
    };
    assert_eq!(script.run().verdict, expected);
}

#[test]
fn a_test_that_runs_and_says_nothing_has_its_deadline() {
    // Long enough for several ticks. After its beat the shell starts no process, for which it would wait in the kernel.
    let beat = BEAT.replace("ENDED", "false");
    let script = Script::new(&format!("sleep 1.2 & {beat} wait")).with(|runner| runner.plan.silence = SOON);
    assert_eq!(script.run().verdict, Verdict::Passed);
    // After its last beat a test owes none, even stopped: it is judged by its deadline.
    let beat = BEAT.replace("ENDED", "true");
    let result = hanging(&format!("{beat} touch up; kill -STOP $$"), |runner| {
        impatient(runner);
        runner.plan.silence = Duration::from_millis(50);
    });
    assert!(matches!(result.verdict, Verdict::TimedOut { silent: false, .. }));
}

fn is_gone(pid: &str) -> bool {
    matches!(state_of(pid.trim().parse().unwrap()), None | Some('Z'))
}

#[test]
fn children_that_outlive_the_test_are_ended() {
    let script = Script::new(
        "sleep 1000 & echo $! > group.pid\n\
         setsid sh -c 'echo $$ > session.pid; exec sleep 1000' &\n\
         while ! [ -s session.pid ]; do sleep 0.01; done; cd /proc/$(cat session.pid)\n\
         while ! grep -q sleep comm || ! grep -q . environ; do sleep 0.01; done",
    );
    let result = script.run();
    assert_eq!(result.verdict, Verdict::Passed);
    for file in ["group.pid", "session.pid"] {
        let pid = fs::read_to_string(script.directory.path().join(file)).unwrap();
        let start = Instant::now();
        while !is_gone(&pid) && start.elapsed() < LONG {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(is_gone(&pid), "{file}: {pid} lives on");
    }
    assert!(
        result.left_behind.contains(&"sleep".to_owned()),
        "{:?}",
        result.left_behind
    );
}

#[test]
fn a_flood_of_output_does_not_keep_the_supervisor_from_its_clock() {
    let result = hanging("echo flood; touch up; exec yes flood", |_| ());
    assert_late(&result, "SIGQUIT");
    assert!(result.output.len() <= 16 * 1024 && result.output.contains("flood\n"));
}

#[test]
fn the_test_gets_the_path_of_its_record() {
    let script = Script::new("echo here > \"$ROCMFORGE_TEST_BUFFERS\"");
    assert_eq!(script.run().verdict, Verdict::Passed);
    let recorded = fs::read_to_string(against::file(
        &script.runner.plan.buffers().unwrap(),
        "fake::planted",
        0,
    ))
    .unwrap();
    assert_eq!(recorded, "here\n");
}

#[test]
fn the_test_inherits_the_lock() {
    // grep runs in a child of the shell, which inherits the descriptor in turn.
    let result = Script::new(r#"grep -q FLOCK "/proc/self/fdinfo/$ROCMFORGE_GPU_LOCK_FD" "#).run();
    assert_eq!(result.verdict, Verdict::Passed, "{}", result.output);
}

/// Runs while `then` happens after the script has made a file `ready`.
fn run_and(script: &Script, then: impl FnOnce() + Send) -> TestResult {
    let has_ended = AtomicBool::new(false);
    let ready = script.directory.path().join("ready");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ready.exists() && !has_ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(2));
            }
            then();
        });
        let result = script.run();
        has_ended.store(true, Ordering::Relaxed);
        result
    })
}

#[test]
fn an_interrupt_ends_a_test_in_order_and_a_second_one_at_once() {
    let script = Script::new("trap 'touch asked; exit 0' TERM; touch ready; while :; do sleep 0.05; done");
    let result = run_and(&script, || script.runner.interrupt.raise(2));
    assert_eq!(result.verdict, Verdict::Interrupted);
    assert!(script.directory.path().join("asked").exists());

    let endless = |runner: &mut Runner| {
        (runner.plan.deadline, runner.plan.grace.terminate) = (ENDLESS, ENDLESS);
    };
    let script = Script::new("trap '' TERM; touch ready; while :; do sleep 0.05; done").with(endless);
    let start = Instant::now();
    let result = run_and(&script, || {
        script.runner.interrupt.raise(2);
        std::thread::sleep(SOON);
        script.runner.interrupt.raise(2);
    });
    assert_eq!(result.verdict, Verdict::Interrupted);
    assert!(
        start.elapsed() < ENDLESS,
        "the second one does not wait for the grace of the first"
    );

    // Both before the supervisor has done anything: no process is asked.
    let script = Script::new("trap 'touch asked' TERM; touch ready; while :; do sleep 0.05; done").with(endless);
    let start = Instant::now();
    let result = run_and(&script, || {
        [2, 2]
            .into_iter()
            .for_each(|signal| script.runner.interrupt.raise(signal))
    });
    assert_eq!(result.verdict, Verdict::Interrupted);
    assert!(start.elapsed() < ENDLESS);
}

fn machine() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
    std::os::unix::fs::symlink("pid:[4026531836]", root.path().join("proc/self/ns/pid")).unwrap();
    root
}

#[test]
fn a_process_that_the_driver_does_not_forget_is_stuck() {
    let root = machine();
    let folder = root.path().join("sys/class/kfd/kfd/proc");
    let script = Script::new(&format!("mkdir -p {}/$$", folder.display())).with(|runner| {
        runner.kfd = Some(Kfd::new(Sysfs::at(root.path())));
        runner.plan.grace.kill = SOON;
    });
    let Verdict::Stuck { reason } = script.run().verdict else {
        panic!("the driver still knows it")
    };
    assert!(
        reason.contains("0.3 s after its end the driver still knows process"),
        "{reason}"
    );
    // Another process of the driver is none of ours.
    let script = Script::new("true").with(|runner| runner.kfd = Some(Kfd::new(Sysfs::at(root.path()))));
    assert_eq!(script.run().verdict, Verdict::Passed);
}

fn with_breaker(script: &str) -> (tempfile::TempDir, Script) {
    let root = machine();
    let dumps = root.path().join("sys/class/devcoredump");
    fs::create_dir_all(&dumps).unwrap();
    let script = script.replace("RESET", &format!("mkdir {}/devcd1", dumps.display()));
    let script = Script::new(&script).with(|runner| {
        runner.breaker = Some(Breaker::new("0000:03:00.0", root.path(), None));
    });
    (root, script)
}

#[test]
fn a_test_under_which_the_card_was_reset_is_invalidated_whatever_it_did() {
    for script in [
        "RESET",
        "RESET; exit 101",
        "RESET; kill -SEGV $$",
        "RESET; exec sleep 1000",
    ] {
        let (_root, script) = with_breaker(&format!("echo here; {script}"));
        let result = script.run();
        let verdict = &result.verdict;
        assert!(
            matches!(verdict, Verdict::Invalidated { reason } if reason.contains("devcd1")),
            "{verdict}"
        );
        // What it said may be why.
        assert!(result.output.starts_with("here\n"), "{}", result.output);
    }
}

#[test]
fn a_hang_that_led_to_a_reset_stays_a_hang() {
    let run = |deadline| {
        let (_root, script) = with_breaker("trap 'RESET; exit' QUIT; touch up; while :; do sleep 0.05; done");
        let script = script.with(|runner| runner.plan.deadline = deadline);
        let result = script.run();
        (script, result)
    };
    assert_late(&past_deadline(run).1, "SIGQUIT");
}

#[test]
fn a_test_that_leaves_a_process_behind_passes_and_fails_where_that_is_forbidden() {
    let leaves = "setsid sleep 1000 & while ! grep -q sleep /proc/$!/comm; do sleep 0.01; done";
    let result = Script::new(leaves).run();
    assert_eq!((&result.verdict, result.left_behind.len()), (&Verdict::Passed, 1));
    let forbidden = |script: &str| {
        let script = Script::new(script).with(|runner| runner.plan.forbid_leftovers = true);
        script.run().verdict
    };
    let names = vec!["sleep".to_owned()];
    assert_eq!(forbidden(leaves), Verdict::LeftProcesses { names });
    assert_eq!(forbidden("true"), Verdict::Passed);
    // What it failed with says more.
    assert_eq!(forbidden(&format!("{leaves}; exit 3")), Verdict::Failed { status: 3 });
}

#[test]
fn of_many_processes_that_are_left_behind_some_are_named() {
    let result = Script::new("for i in $(seq 70); do sleep 1000 & done").run();
    assert_eq!(result.left_behind.len(), 65);
    assert_eq!(result.left_behind.last().map(String::as_str), Some("and 6 more"));
}
