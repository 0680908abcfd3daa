//! Tests that attack their supervisor: they escape, forge a pass, or put traps where it reads; each with the expected outcome.
#![allow(clippy::print_stdout)] // a forged line of libtest's

use super::campaign::is_whole;
use super::faults::is_planted;
use super::supervisor::{AMPLE, PATIENCE, Run, send, wait_for};
use rocmforge_gpu_test::lock::{self, CardLock, LOCK_FD_VARIABLE};
use rocmforge_gpu_test::record::REPORT_FD_VARIABLE;
use rocmforge_testkit::data::rng;
use serde_json::Value;
use std::ffi::CString;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Set for the test that is to attack: which attack.
const ATTACK: &str = "ROCMFORGE_PLANT_ATTACK";
/// The attacking test: in the crate's name of this binary.
const NAME: &str = "planted::attacks::planted_attack";
/// The file that an escaped process goes on writing to.
const BEAT: &str = "beat";

fn folder() -> PathBuf {
    std::env::var_os("ROCMFORGE_PLANT_RUN").expect("a run").into()
}

/// Attacks that need no more than one test, and what must become of it.
const MIXED: [(&str, &str); 10] = [
    ("escape", "passed"),
    ("exit", "unproven"),
    ("forge", "unproven"),
    ("forge a line", "unproven"),
    ("become another test", "unproven"),
    ("run another test", "unproven"),
    ("lose the skip", "failed"),
    ("large", "not_recorded"),
    ("log", "passed"),
    ("other logs", "passed"),
];

/// The attack of a round of [`mixed`]: every tenth has one.
fn mixed_in(round: usize) -> Option<(&'static str, &'static str)> {
    (round % 10 == 3).then(|| MIXED[round / 10 % MIXED.len()])
}

/// The attack itself, in a test's process.
#[test]
fn planted_attack() {
    if !is_planted() {
        return;
    }
    if let Ok(attack) = std::env::var(ATTACK) {
        carry_out(&attack);
    }
}

/// Attacks in every tenth round, and does nothing in the others. The round is at the end of its mark.
#[test]
fn mixed() {
    if !is_planted() {
        return;
    }
    let mark = std::env::var("ROCMFORGE_TEST_MARK").expect("a mark");
    let round = mark.rsplit_once('.').expect("a round").1.parse().expect("a number");
    if let Some((attack, _)) = mixed_in(round) {
        carry_out(attack);
    }
}

/// What libtest says at last of a test that passed.
const PASSED: &str = "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s";

/// This binary once more, over a test that passes.
fn another_test() -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", "attacks::planted_victim", "--nocapture"])
        .env_remove(ATTACK);
    command
}

fn carry_out(attack: &str) {
    let reports = || folder().join("reports");
    let log = || reports().join("logs/planted.attacks.planted_attack.0.log");
    match attack {
        "escape" => escape(),
        "escape and stay" => {
            escape();
            std::thread::sleep(Duration::from_secs(1000));
        }
        "exit" => std::process::exit(0),
        "forge" => {
            println!("{PASSED}");
            std::mem::forget(rocmforge_testkit::gpu());
            std::process::exit(0);
        }
        "forge a line" => {
            println!("\n{PASSED}");
            std::process::exit(0);
        }
        "become another test" => panic!("{}", another_test().exec()),
        "run another test" => {
            let status = another_test().status().expect("started");
            std::process::exit(status.code().expect("a status"));
        }
        "forge all and go on" => println!("test attacks::planted_attack ... ok\n\n{PASSED}"),
        "lose the skip" => {
            // SAFETY: nobody uses the descriptor again but by its number, which is looked up.
            unsafe { libc::close(records()) };
            rocmforge_testkit::skip!("nobody must miss this");
        }
        "print at exit" => {
            extern "C" fn at_exit() {
                println!("a library prints at exit");
            }
            // SAFETY: the function takes nothing and returns, and may run at any time.
            unsafe { libc::atexit(at_exit) };
            print!("no line break: ");
        }
        "large" => {
            let mut file = std::fs::OpenOptions::new()
                .append(true)
                .open(format!("/proc/self/fd/{}", records()))
                .expect("a pipe");
            for _ in 0..17 {
                file.write_all(&[b'x'; 1 << 20]).expect("read");
            }
        }
        "log" => {
            let log = logs().into_iter().next().expect("a log");
            std::fs::remove_file(&log).expect("ours");
            symlink("/dev/zero", log).expect("made");
        }
        "other logs" => {
            for log in logs() {
                let mut log = std::fs::OpenOptions::new().append(true).open(log).expect("ours");
                writeln!(log, "\n{PASSED}").expect("written");
            }
        }
        "own log" => std::fs::write(log(), "").expect("truncated"),
        "logs" => swap(&reports().join("logs")),
        "reports" => swap(&reports()),
        "unlock" => {
            let number: i32 = std::env::var(LOCK_FD_VARIABLE)
                .expect("the lock")
                .parse()
                .expect("a number");
            // SAFETY: flock takes a descriptor and a flag.
            unsafe { libc::flock(number, libc::LOCK_UN) };
            std::fs::write(folder().join("unlocked"), "").expect("written");
            wait_for(&folder().join("seen"));
        }
        other => panic!("no such attack: {other}"),
    }
}

/// The descriptor of the pipe of records.
fn records() -> i32 {
    let number = std::env::var(REPORT_FD_VARIABLE).expect("a pipe");
    number.parse().expect("a number")
}

/// The logs of the run that are files.
fn logs() -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder().join("reports/logs"))
        .expect("there")
        .flatten();
    let files = found.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.map(|entry| entry.path()).collect()
}

/// Puts a link to the bystander's folder in the place of a folder.
fn swap(place: &Path) {
    std::fs::rename(place, place.with_extension("moved")).expect("moved");
    symlink(folder().join("bystander"), place).expect("made");
}

/// Does nothing: what a test that passes in the place of another does.
#[test]
fn planted_victim() {}

/// Leaves a process that has left this one's group, session and trace, and forks in a chain. It writes to a file until it is killed,
/// or for a minute.
#[allow(clippy::multiple_unsafe_ops_per_block)] // one child, and all it does is system calls
fn escape() {
    let beat = CString::new(folder().join(BEAT).as_os_str().as_bytes()).expect("no zero");
    // SAFETY: the child makes system calls only: each is async-signal-safe, and it allocates nothing. It never returns.
    unsafe {
        let supervisors_group = libc::getpgid(libc::getppid());
        if libc::fork() != 0 {
            wait_for(&folder().join(BEAT));
            return;
        }
        libc::prctl(libc::PR_SET_PDEATHSIG, 0);
        libc::setpgid(0, supervisors_group);
        libc::setsid();
        for _ in 0..2 {
            if libc::fork() != 0 {
                libc::_exit(0);
            }
        }
        let file = libc::open(beat.as_ptr(), libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND, 0o644);
        for _ in 0..60_000 {
            libc::write(file, c"x".as_ptr().cast(), 1);
            // The chain: whoever is looked at is gone already.
            if libc::fork() != 0 {
                libc::_exit(0);
            }
            libc::usleep(1000);
        }
        libc::_exit(0);
    }
}

/// Whether this machine has more to contain a test with than scans of `/proc`.
fn contains_tests() -> bool {
    let run = Run::new();
    let output = run
        .supervisor("planted::faults::tells", AMPLE)
        .arg("--exact")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    run.report()["containment"] != "scans"
}

/// Ends a test that needs more than scans of processes can guarantee.
macro_rules! needs_containment {
    () => {
        if !contains_tests() {
            rocmforge_testkit::skip!("neither a control group nor a PID namespace can be made here");
        }
    };
}

/// The result of an attack.
fn attacked(attack: &str) -> (Run, Value) {
    attacked_within(attack, "cgroup-pid-namespace")
}

/// The same with no better containment than `most`.
fn attacked_within(attack: &str, most: &str) -> (Run, Value) {
    let run = Run::new();
    let mut command = run.supervisor(NAME, AMPLE);
    let output = command
        .args(["--exact", "--containment", most])
        .env(ATTACK, attack)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("skipped") && text.contains("blocked"),
        "the table is there: {text}"
    );
    let result = run.results().remove(0);
    run.assert_nothing_lives();
    assert!(!beats(&run), "an escaped process lives on");
    (run, result)
}

/// Whether somebody still writes to the file of an escaped process.
fn beats(run: &Run) -> bool {
    let size = || std::fs::metadata(run.directory.path().join(BEAT)).map_or(0, |file| file.len());
    let before = size();
    std::thread::sleep(Duration::from_millis(200));
    size() != before
}

#[test]
fn a_chain_of_forks_that_left_everything_is_ended() {
    needs_containment!();
    // Without a group or a namespace nothing ends a chain of forks for certain: see the documentation.
    for most in [
        "cgroup-pid-namespace",
        "cgroup-user-namespace",
        "pid-namespace",
        "cgroup",
    ] {
        let (run, result) = attacked_within("escape", most);
        assert_eq!(result["outcome"], "passed", "{most}: {result:#}");
        assert!(run.directory.path().join(BEAT).exists(), "{most}: it was there");
    }
}

#[test]
fn a_pass_needs_proof() {
    for (attack, outcome) in [
        ("exit", "unproven"),
        ("forge", "unproven"),
        ("forge a line", "unproven"),
        ("forge all and go on", "unproven"),
        ("become another test", "unproven"),
        ("run another test", "unproven"),
        ("lose the skip", "failed"),
        ("large", "not_recorded"),
        ("own log", "passed"),
        ("other logs", "passed"),
        ("log", "passed"),
        ("print at exit", "passed"),
    ] {
        let (_run, result) = attacked(attack);
        assert_eq!(result["outcome"], outcome, "{attack}: {result:#}");
    }
}

#[test]
fn nothing_is_written_through_a_link_that_a_test_puts_in_the_place_of_a_folder() {
    for (attack, moved) in [("logs", "reports/logs.moved"), ("reports", "reports.moved/logs")] {
        let run = Run::new();
        let bystander = run.directory.path().join("bystander");
        std::fs::create_dir(&bystander).unwrap();
        let precious = ["planted.attacks.planted_victim.0.log", "report.json", "junit.xml"];
        for name in precious {
            std::fs::write(bystander.join(name), "precious").unwrap();
        }
        let mut command = run.supervisor("planted::attacks::planted_", AMPLE);
        // One at a time: the attack comes before the victim.
        let output = command.args(["--jobs", "1"]).env(ATTACK, attack).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{attack}: {said}");
        for name in precious {
            let found = std::fs::read_to_string(bystander.join(name)).unwrap();
            assert_eq!(found, "precious", "{attack}: {name}");
        }
        assert_eq!(
            std::fs::read_dir(&bystander).unwrap().count(),
            precious.len(),
            "{attack}"
        );
        let log = run.directory.path().join(moved).join(precious[0]);
        assert!(
            std::fs::read_to_string(log).unwrap().contains("planted_victim ... ok"),
            "{attack}"
        );
    }
}

#[test]
fn a_test_cannot_give_up_the_card() {
    let run = Run::new();
    let mut command = run.supervisor(NAME, AMPLE);
    let child = command.arg("--exact").env(ATTACK, "unlock").spawn().unwrap();
    wait_for(&run.directory.path().join("unlocked"));
    let locks = run.reports().join("lock");
    assert!(lock::is_held(&locks, "sim"));
    let taken = CardLock::acquire(&locks, "sim", Duration::ZERO, |_| {});
    std::fs::write(run.directory.path().join("seen"), "").unwrap();
    assert!(taken.is_err(), "the card is locked");
    assert!(child.wait_with_output().unwrap().status.success());
}

/// After the supervisor was killed: no process lives, and the card can be taken.
fn assert_gone(run: &Run, case: &str) {
    run.assert_nothing_lives();
    let start = Instant::now();
    while beats(run) {
        let lives = start.elapsed() < PATIENCE;
        assert!(lives, "{case}: an escaped process lives on");
    }
    // The kernel closes what a dead process had open a moment after it has ended.
    let taken = CardLock::acquire(&run.reports().join("lock"), "sim", PATIENCE, |_| {});
    assert!(taken.is_ok(), "{case}: {taken:?}");
}

#[test]
fn a_killed_supervisor_leaves_no_process_and_no_lock() {
    needs_containment!();
    for most in [
        "cgroup-pid-namespace",
        "cgroup-user-namespace",
        "pid-namespace",
        "cgroup",
    ] {
        let run = Run::new();
        let mut command = run.supervisor(NAME, 1000);
        command
            .args(["--exact", "--containment", most])
            .env(ATTACK, "escape and stay");
        let mut child = command.spawn().unwrap();
        wait_for(&run.directory.path().join(BEAT));
        send(&child, "KILL");
        child.wait().unwrap();
        assert_gone(&run, most);
    }
}

/// A folder beside the run, which nothing of it may touch.
struct Bystander(tempfile::TempDir);

impl Bystander {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("mine"), "as it was").unwrap();
        Self(folder)
    }

    fn assert_untouched(&self) {
        let names: Vec<_> = std::fs::read_dir(self.0.path())
            .unwrap()
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(names, ["mine"]);
        assert_eq!(
            std::fs::read_to_string(self.0.path().join("mine")).unwrap(),
            "as it was"
        );
    }
}

/// `ROCMFORGE_PLANTED=all` plants them among 1,000 tests.
#[test]
fn attacks_among_many_tests_leave_nothing_and_change_no_other_verdict() {
    needs_containment!();
    let rounds = if is_whole() { 1000 } else { 100 };
    let (run, bystander) = (Run::new(), Bystander::new());
    let mut command = run.supervisor("planted::attacks::mixed", AMPLE);
    command.args(["--exact", "--jobs", "8", "--repeat", &rounds.to_string()]);
    let output = command.output().unwrap();
    assert_eq!(
        output.status.code(),
        Some(1),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let results = run.results();
    assert_eq!(results.len(), rounds);
    for result in results {
        let round = usize::try_from(result["round"].as_u64().unwrap()).unwrap();
        let expected = mixed_in(round).map_or("passed", |(_, expected)| expected);
        assert_eq!(result["outcome"], expected, "{result:#}");
    }
    run.assert_nothing_lives();
    assert!(!beats(&run), "an escaped process lives on");
    bystander.assert_untouched();
    assert!(CardLock::acquire(&run.reports().join("lock"), "sim", PATIENCE, |_| {}).is_ok());
}

/// `ROCMFORGE_PLANTED=all` does it a hundred times.
#[test]
fn a_supervisor_killed_at_any_moment_leaves_nothing() {
    needs_containment!();
    let mut random = rng(0x9);
    for turn in 0..if is_whole() { 100 } else { 6 } {
        let (run, bystander) = (Run::new(), Bystander::new());
        let mut command = run.supervisor("planted::attacks::mixed", AMPLE);
        command.args(["--exact", "--jobs", "4", "--repeat", "1000"]);
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(random.below(1500) as u64));
        send(&child, "KILL");
        child.wait().unwrap();
        assert_gone(&run, &format!("turn {turn}"));
        bystander.assert_untouched();
    }
}
