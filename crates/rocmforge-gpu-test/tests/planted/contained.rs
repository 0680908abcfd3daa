//! Tests that attack what contains them: they try to leave their control group, and to stop, kill, limit or change their supervisor.
//! Each way to contain a test is chosen by name, as this user and, where this is root, as nobody.

use super::faults::is_planted;
use super::supervisor::{AMPLE, PATIENCE, Run, wait_for};
use serde_json::Value;
use std::fs;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Set for the test that is to attack: which attack.
const ATTACK: &str = "ROCMFORGE_PLANT_BREAKOUT";
/// The attacking test.
const NAME: &str = "planted::contained::attacks";
/// User and group of nobody.
const NOBODY: u32 = 65534;

/// Ways to contain a test, as the option and the report call them, and the attacks against which they hold.
const KINDS: [(&str, &str, &[&str]); 4] = [
    ("cgroup-pid-namespace", "cgroup+pid_namespace", PROCESSES_APART),
    (
        "cgroup-user-namespace",
        "cgroup+user_namespace",
        &["leave", "memory", "groups", "settings", "queues", "join"],
    ),
    ("pid-namespace", "pid_namespace", PROCESSES_APART),
    ("cgroup", "cgroup", &["groups", "join"]),
];

/// Attacks against which a namespace of processes holds.
const PROCESSES_APART: &[&str] = &[
    "leave", "memory", "groups", "settings", "queues", "stop", "kill", "limit", "trace",
];

/// The key of what the attack on System V's objects makes.
const KEY: libc::key_t = 0x726f_636b;

fn folder() -> PathBuf {
    std::env::var_os("ROCMFORGE_PLANT_RUN").expect("a run").into()
}

/// The attack, in a test's process. It fails if it succeeds.
#[test]
fn attacks() {
    let Ok(attack) = std::env::var(ATTACK) else { return };
    if !is_planted() {
        return;
    }
    let listed = folder().join("processes");
    wait_for(&listed);
    let listed = fs::read_to_string(listed).expect("listed");
    let processes: Vec<i32> = listed.lines().map(|line| line.parse().expect("a number")).collect();
    let supervisor = processes[0];
    match &*attack {
        "leave" => leave(),
        "groups" => make_groups(),
        "memory" => {
            let opened = fs::OpenOptions::new()
                .write(true)
                .open(format!("/proc/{supervisor}/mem"));
            assert!(opened.is_err(), "the supervisor's memory can be written");
        }
        "stop" => assert_ne!(kill(supervisor, libc::SIGSTOP), 0, "the supervisor can be stopped"),
        "kill" => {
            // The test has the number of the process that waits for it outside.
            let me = std::process::id().cast_signed();
            for &process in processes.iter().rev().filter(|&&process| process != me) {
                assert_ne!(kill(process, libc::SIGKILL), 0, "{process} can be killed");
            }
        }
        "limit" => {
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: the limit is live, and nothing is asked for.
            let limited =
                unsafe { libc::prlimit(supervisor, libc::RLIMIT_FSIZE, &raw const none, std::ptr::null_mut()) };
            assert_ne!(limited, 0, "the supervisor can be limited");
        }
        "settings" => change_settings(),
        "queues" => assert_eq!(queues(libc::IPC_CREAT | 0o600), [true; 3]),
        "trace" => {
            assert_eq!(
                std::os::unix::process::parent_id(),
                1,
                "the test's parent is the first process"
            );
            let none = std::ptr::null_mut::<libc::c_void>();
            // SAFETY: attaching reads and writes no memory.
            let traced = unsafe { libc::ptrace(libc::PTRACE_ATTACH, 1, none, none) };
            assert_ne!(traced, 0, "the first process can be traced");
            let opened = fs::OpenOptions::new().write(true).open("/proc/1/mem");
            assert!(opened.is_err(), "its memory can be written");
        }
        "join" => {
            // SAFETY: getpgid takes a number.
            let group = unsafe { libc::getpgid(supervisor) };
            // SAFETY: setpgid takes numbers only.
            let joined = unsafe { libc::setpgid(0, group) };
            assert_ne!(
                joined, 0,
                "it can go into the supervisor's group, where no signal for its own comes"
            );
        }
        other => panic!("no such attack: {other}"),
    }
}

/// Opens settings of the machine for writing. As root their modes allow it.
fn change_settings() {
    let places = [
        // The kernel runs the program that it names, outside of everything.
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/pid_max",
        "/proc/sys/vm/overcommit_memory",
        "/proc/sysrq-trigger",
        "/proc/irq/default_smp_affinity",
        "/sys/power/state",
        "/sys/class/net/lo/mtu",
        "/sys/kernel/mm/transparent_hugepage/enabled",
        "/sys/kernel/uevent_helper",
    ];
    for place in places.into_iter().filter(|place| Path::new(place).exists()) {
        let opened = fs::OpenOptions::new().write(true).open(place);
        assert!(opened.is_err(), "{place} can be written");
    }
    // Its own remain its own.
    fs::write("/proc/self/oom_score_adj", "500").expect("it is the test's");
}

/// Whether there is an object of System V's of each kind, which outlives the process that made it; with `IPC_CREAT` it is made.
#[allow(clippy::multiple_unsafe_ops_per_block)] // three calls of one kind
fn queues(flags: i32) -> [bool; 3] {
    // SAFETY: the calls take numbers only.
    let found = unsafe {
        [
            libc::shmget(KEY, 4096, flags),
            libc::semget(KEY, 1, flags),
            libc::msgget(KEY, flags),
        ]
    };
    found.map(|found| found >= 0)
}

fn kill(process: i32, signal: i32) -> i32 {
    // SAFETY: kill takes numbers only.
    unsafe { libc::kill(process, signal) }
}

/// Where control groups of version 2 are mounted.
fn mounts() -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("a list");
    let groups = mounts.lines().filter(|line| line.contains(" - cgroup2 "));
    groups
        .map(|line| line.split(' ').nth(4).expect("a place").into())
        .collect()
}

/// Writes itself into every group from which it might be reached no more.
fn leave() {
    for mount in mounts() {
        let beside = mount.join(format!("rocmforge-planted-{}", std::process::id()));
        assert!(fs::create_dir(&beside).is_err(), "a group can be made");
        for group in fs::read_dir(&mount)
            .expect("there")
            .flatten()
            .map(|entry| entry.path())
            .chain([mount])
        {
            let moved = fs::write(group.join("cgroup.procs"), "0");
            assert!(moved.is_err(), "it can enter {}", group.display());
        }
    }
}

/// Makes groups below those of tests.
fn make_groups() {
    for mount in mounts() {
        let runs = fs::read_dir(&mount).expect("there").flatten().map(|entry| entry.path());
        for run in runs.filter(|path| {
            path.file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("rocmforge-"))
        }) {
            let tests = fs::read_dir(run)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path());
            for test in tests.filter(|path| path.is_dir()) {
                let mut below = test;
                for _ in 0..25 {
                    below.push("below");
                    assert!(fs::create_dir(&below).is_err(), "{} can be made", below.display());
                }
            }
        }
    }
}

/// Starts a run, tells its test which processes there are, and waits for its end: its exit status and report, `None` where it does not
/// end.
fn attacked(run: &Run, kind: &str, attack: &str, user: Option<u32>) -> (Option<i32>, Value) {
    let mut command = run.supervisor(NAME, AMPLE);
    command.args(["--exact", "--containment", kind]).env(ATTACK, attack);
    if let Some(user) = user {
        chown(run.directory.path(), Some(user), Some(user)).unwrap();
        command.uid(user).gid(user);
    }
    let mut child = command.spawn().unwrap();
    // When the test runs, so that the guard and what stands for the test are there.
    let log = run.reports().join("logs/planted.contained.attacks.0.log");
    wait_for(&log);
    std::thread::sleep(std::time::Duration::from_millis(300));
    let processes = rocmforge_machine::process::processes();
    let children = processes
        .iter()
        .filter(|one| one.parent == child.id())
        .map(|one| one.id);
    let numbers: Vec<String> = std::iter::once(child.id())
        .chain(children)
        .map(|id| id.to_string())
        .collect();
    let listed = run.directory.path().join("processes");
    fs::write(listed.with_extension("new"), numbers.join("\n")).unwrap();
    fs::rename(listed.with_extension("new"), listed).unwrap();
    let start = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status.code(),
            None if start.elapsed() > PATIENCE => {
                child.kill().unwrap();
                child.wait().unwrap();
                return (None, Value::Null);
            }
            None => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
    };
    (status, run.report())
}

/// Carries out each attack against each way to contain it that holds against it. Those that cannot be had here.
fn hold(user: Option<u32>) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for (kind, name, attacks) in KINDS {
        for attack in attacks {
            let run = Run::new();
            let (status, report) = attacked(&run, kind, attack, user);
            if report["containment"].as_str().is_some_and(|found| found != name) {
                missing.push(kind);
                break;
            }
            assert_eq!(status, Some(0), "{kind}, {attack}: {report:#}");
            assert_eq!(
                report["results"][0]["outcome"], "passed",
                "{kind}, {attack}: {report:#}"
            );
            assert!(
                report["seconds"].as_f64().unwrap() < 8.0,
                "{kind}, {attack}: {report:#}"
            );
            run.assert_nothing_lives();
            assert_eq!(
                queues(0),
                [false; 3],
                "{kind}, {attack}: an object of System V's is left"
            );
        }
    }
    missing
}

#[test]
fn a_test_reaches_nothing_that_its_containment_keeps_from_it() {
    let missing = hold(None);
    assert!(missing.len() < KINDS.len() || !may_contain(), "none of {missing:?}");
    if !missing.is_empty() {
        rocmforge_testkit::skip!("not to be had here: {}", missing.join(", "));
    }
}

#[test]
fn an_attack_succeeds_where_nothing_holds_against_it() {
    if !rustix::process::geteuid().is_root() {
        rocmforge_testkit::skip!("what a user may do to its own processes is the kernel's setting");
    }
    let run = Run::new();
    let (status, report) = attacked(&run, "scans", "memory", None);
    assert_eq!(status, Some(1), "{report:#}");
    assert_eq!(report["results"][0]["outcome"], "failed", "{report:#}");
}

/// Whether this machine lets this user make namespaces.
fn may_contain() -> bool {
    let made = Command::new("unshare")
        .args(["--user", "--map-root-user", "--pid", "--fork", "true"])
        .status();
    made.is_ok_and(|status| status.success())
}

#[test]
fn a_test_of_nobody_reaches_nothing_either() {
    if !rustix::process::geteuid().is_root() {
        rocmforge_testkit::skip!("this is no root: the test before this one says the same of this user");
    }
    let runs = |path: &Path| {
        let status = Command::new(path)
            .arg("--help")
            .uid(NOBODY)
            .gid(NOBODY)
            .stdout(std::process::Stdio::null())
            .status();
        status.is_ok_and(|status| status.success())
    };
    let [supervisor, me] = [
        env!("CARGO_BIN_EXE_cargo-gpu-test").into(),
        std::env::current_exe().unwrap(),
    ];
    if !runs(&supervisor) || !runs(&me) {
        rocmforge_testkit::skip!("nobody may not read the folder of the binaries");
    }
    let missing = hold(Some(NOBODY));
    if !missing.is_empty() {
        rocmforge_testkit::skip!("not to be had for nobody here: {}", missing.join(", "));
    }
}

/// Lets `command` begin with a terminal of its own, which can be opened as `/dev/tty`. The terminal's other end.
fn with_terminal(command: &mut Command) -> OwnedFd {
    let (mut outer, mut inner) = (0, 0);
    let none = std::ptr::null_mut();
    // SAFETY: both numbers are live ints that the call writes, and the rest is null.
    let made = unsafe { libc::openpty(&raw mut outer, &raw mut inner, none, std::ptr::null(), std::ptr::null()) };
    assert_eq!(made, 0, "a terminal");
    // SAFETY: the call has just opened both.
    let [outer, inner] = [outer, inner].map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    let take = move || {
        // SAFETY: setsid takes nothing.
        let session = unsafe { libc::setsid() };
        // SAFETY: the terminal is open, and the argument is a number.
        let taken = unsafe { libc::ioctl(inner.as_raw_fd(), libc::TIOCSCTTY, 0) };
        match session < 0 || taken < 0 {
            true => Err(std::io::Error::last_os_error()),
            false => Ok(()),
        }
    };
    // SAFETY: the closure makes system calls only, each async-signal-safe.
    unsafe { command.pre_exec(take) };
    outer
}

/// A test that can open the terminal can press the user's keys there and take the foreground, and Ctrl-C comes to the supervisor no more.
#[test]
fn a_test_has_no_terminal() {
    let mut command = Command::new("sh");
    command.args(["-c", ": < /dev/tty"]);
    let _outer = with_terminal(&mut command);
    assert!(command.status().unwrap().success(), "a terminal can be opened at all");
    for kind in [
        "cgroup-pid-namespace",
        "cgroup-user-namespace",
        "pid-namespace",
        "cgroup",
        "scans",
    ] {
        let run = Run::new();
        let script = binary(&run, "gpu", "if (: < /dev/tty) 2>/dev/null; then exit 1; fi");
        let mut command = run.building();
        command.args(["--containment", kind, "--binary"]).arg(script);
        let _outer = with_terminal(&mut command);
        let output = command.output().unwrap();
        assert!(
            output.status.success(),
            "{kind}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert_eq!(run.results()[0]["outcome"], "passed", "{kind}");
    }
}

/// A script in the place of a test binary, with one test.
pub(crate) fn binary(run: &Run, name: &str, work: &str) -> PathBuf {
    let place = run.directory.path().join(name);
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    let listing = "*--list*--ignored*) exit;; *--list*) echo 'same: test'; exit;;";
    let word = "printf 'running 1 test\\ntest same ... ok\\n\\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured;\\n'";
    fs::write(
        &place,
        format!("#!/bin/sh\ncase \"$*\" in {listing} esac\n{work}\n{word}\n"),
    )
    .unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    place
}

#[test]
fn binaries_of_one_name_do_not_share_a_log() {
    let run = Run::new();
    let one = binary(&run, "a/gpu-1", "echo one; sleep 0.3");
    let two = binary(&run, "b/gpu-2", "sleep 0.3; echo two");
    for _ in 0..3 {
        let mut command = run.building();
        command.arg("--binary").arg(&one).arg("--binary").arg(&two);
        let output = command.args(["--jobs", "2"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let ids: Vec<Value> = run.results().into_iter().map(|result| result["id"].clone()).collect();
        assert_eq!(ids, ["gpu-1::same", "gpu-2::same"]);
        for (log, said) in [("gpu-1.same.0.log", "one\n"), ("gpu-2.same.0.log", "two\n")] {
            let log = fs::read_to_string(run.reports().join("logs").join(log)).unwrap();
            assert!(log.starts_with(said), "{log}");
        }
    }
    let mut command = run.building();
    command.arg("--binary").arg(&one).arg("--binary").arg(&one);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("two tests are called ") && said.contains("a/gpu-1"),
        "{said}"
    );
}
