//! The card lock between real processes. The children are this binary, started again with a role in the environment.

#![allow(clippy::print_stdout)] // the long run says what it has seen

use rocmforge_gpu_test::lock::{self, CardLock, LOCK_FD_VARIABLE, LockError};
use rocmforge_machine::process::state_of;
use rocmforge_machine::sysfs::Sysfs;
use rocmforge_test_support::shim;
use rocmforge_testkit::data::rng;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

const CARD: &str = "0000:03:00.0";
const ROLE: &str = "LOCK_TEST_ROLE";
const DIRECTORY: &str = "LOCK_TEST_DIRECTORY";
/// Longer than anything takes on a loaded machine. Also where the card is free: a child that another test is starting has a copy of every
/// descriptor until it becomes another program.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for this test alone.
fn scratch() -> TempDir {
    let only_us = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_us).tempdir().unwrap()
}

/// Starts this binary as a child that runs only [`child`].
fn start(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "child", "--test-threads=1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.env(ROLE, role).env(DIRECTORY, directory);
    command
}

/// The body of every child process; does nothing in the ordinary run.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    match role.as_str() {
        "hold" => {
            let _lock = CardLock::acquire(&directory, CARD, PATIENCE, |_| {}).unwrap();
            std::fs::write(directory.join("held"), "").unwrap();
            std::thread::sleep(Duration::from_secs(600));
        }
        // Has the card at once or fails.
        "try" => drop(CardLock::acquire(&directory, CARD, Duration::ZERO, |_| {}).unwrap()),
        "compete" => compete(&directory),
        "acquire" => drop(CardLock::acquire(&directory, CARD, PATIENCE, |_| {}).unwrap()),
        "inherit" => {
            let descriptor = std::env::var(LOCK_FD_VARIABLE).ok();
            lock::check_inherited(&directory, CARD, descriptor.as_deref()).unwrap();
        }
        role => panic!("unknown role {role}"),
    }
}

/// Takes the lock again and again. Writes each turn into a common file, which only the holder may touch.
fn compete(directory: &Path) {
    let me = std::process::id();
    let mut random = rng(u64::from(me)).quiet();
    let mut turns = OpenOptions::new()
        .append(true)
        .create(true)
        .open(directory.join("turns"))
        .unwrap();
    loop {
        let lock = CardLock::acquire(directory, CARD, PATIENCE, |_| {}).unwrap();
        let occupant = directory.join("occupant");
        std::fs::write(&occupant, me.to_string()).unwrap();
        writeln!(turns, "{me} {}", nanoseconds()).unwrap();
        if random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(500) as u64));
        }
        if std::fs::read_to_string(&occupant).unwrap() != me.to_string() {
            std::fs::write(directory.join("overlap"), me.to_string()).unwrap();
        }
        drop(lock);
        // Others look every 50 ms: without a pause one process would have all the turns.
        std::thread::sleep(Duration::from_millis(random.below(4) as u64));
    }
}

/// Time that all processes of the machine agree on.
fn nanoseconds() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[track_caller]
fn assert_becomes_free(directory: &Path, card: &str) {
    wait_until("the card is free", || !lock::is_held(directory, card));
}

fn holding_child(directory: &Path) -> Child {
    let child = start("hold", directory).spawn().unwrap();
    wait_until("the child holds the card", || directory.join("held").exists());
    child
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn fc38_a_second_terminal_sees_who_holds_the_card() {
    let directory = scratch();
    let child = holding_child(directory.path());
    let pid = child.id();
    let mut reported = None;
    let refused = CardLock::acquire(directory.path(), CARD, Duration::from_millis(200), |who| {
        reported = who.cloned()
    });
    let still_held = lock::is_held(directory.path(), CARD);
    kill(child);
    let Err(LockError::Held {
        card,
        holder: Some(holder),
        waited,
    }) = refused
    else {
        panic!("{refused:?}")
    };
    assert_eq!((card.as_str(), holder.pid), (CARD, pid));
    let age = nanoseconds() / 1_000_000_000 - u128::from(holder.since);
    assert!(age < 1000, "{age} s");
    assert!(waited >= Duration::from_millis(200));
    assert_eq!(reported, Some(holder));
    assert!(still_held);
}

#[test]
fn fc39_a_killed_holder_leaves_the_card_free() {
    let directory = scratch();
    kill(holding_child(directory.path()));
    assert_becomes_free(directory.path(), CARD);
    CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
}

/// In processes of their own: the environment belongs to the whole process.
#[test]
fn locks_lie_in_one_place_whatever_the_session_says() {
    const ASKED: &str = "ROCMFORGE_TEST_ASKED";
    let fixed = format!("/tmp/rocmforge-{}", rustix::process::geteuid().as_raw());
    if std::env::var_os(ASKED).is_some() {
        assert_eq!(lock::default_directory(), PathBuf::from(fixed));
        return;
    }
    for (name, value) in [
        ("XDG_RUNTIME_DIR", "/run/user/7"),
        ("HOME", "/nowhere"),
        ("SUDO_UID", "7"),
        ("TMPDIR", "/x"),
    ] {
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "locks_lie_in_one_place_whatever_the_session_says"]);
        let output = again
            .env(ASKED, "1")
            .env(name, value)
            .env_remove("ROCMFORGE_LOCK_DIRECTORY")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    }
}

#[test]
fn two_cards_do_not_wait_for_each_other() {
    let directory = scratch();
    let _one = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
    CardLock::acquire(directory.path(), "0000:04:00.0", PATIENCE, |_| {}).unwrap();
}

/// The turns written so far, as (process, time).
fn turns(directory: &Path) -> Vec<(u32, u128)> {
    let text = std::fs::read_to_string(directory.join("turns")).unwrap_or_default();
    // The last line may be on its way.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| {
            let (pid, time) = line.split_once(' ').unwrap();
            (pid.parse().unwrap(), time.parse().unwrap())
        })
        .collect()
}

/// Eight processes take the lock, and whichever is killed is replaced, until there were `LOCK_ACQUISITIONS` turns (8,000 in
/// the long run). Prints how long the card took to get from a killed holder to the next one.
#[test]
fn fc38_eight_processes_killed_at_random_never_overlap_and_none_is_stuck() {
    const PROCESSES: usize = 8;
    let wanted: usize = std::env::var("LOCK_ACQUISITIONS").map_or(300, |wanted| wanted.parse().unwrap());
    let directory = scratch();
    let mut random = rng(0x10c);
    let compete = || start("compete", directory.path()).spawn().unwrap();
    let mut children: Vec<Child> = (0..PROCESSES).map(|_| compete()).collect();
    let mut killed: Vec<(u32, u128)> = Vec::new();
    let begin = Instant::now();
    let mut done = 0;
    while done < wanted {
        std::thread::sleep(Duration::from_millis(random.below(100) as u64));
        // The holder of this moment, as often as not.
        let occupant = std::fs::read_to_string(directory.path().join("occupant")).unwrap_or_default();
        let holder = children.iter().position(|child| child.id().to_string() == occupant);
        let victim = holder
            .filter(|_| random.below(2) == 0)
            .unwrap_or(random.below(PROCESSES));
        killed.push((children[victim].id(), nanoseconds()));
        kill(std::mem::replace(&mut children[victim], compete()));
        // Somebody's turn between two kills, or on a slow machine all would be killed before their first.
        wait_until("somebody gets the lock after a kill", || {
            turns(directory.path()).len() > done
        });
        done = turns(directory.path()).len();
    }
    // Nobody is stuck: everybody alive gets a turn.
    let since = nanoseconds();
    wait_until("everybody had a turn", || {
        let turns = turns(directory.path());
        let after = |child: &Child| turns.iter().any(|&(pid, at)| pid == child.id() && at > since);
        children.iter().all(after)
    });
    children.into_iter().for_each(kill);
    assert!(
        !directory.path().join("overlap").exists(),
        "two processes held the card at once"
    );
    let turns = turns(directory.path());
    let mut handovers: Vec<u128> = killed.iter().filter_map(|&victim| handover(&turns, victim)).collect();
    handovers.sort_unstable();
    println!(
        "{} turns and {} kills in {:.1?}; {} kills hit the holder, hand-over after at most {:.1} ms (median {:.1} ms)",
        turns.len(),
        killed.len(),
        begin.elapsed(),
        handovers.len(),
        handovers.last().map_or(0.0, |&ns| ns as f64 / 1e6),
        handovers.get(handovers.len() / 2).map_or(0.0, |&ns| ns as f64 / 1e6),
    );
}

/// Nanoseconds from the death of a process to the next turn, if the last turn before it was the process's own.
fn handover(turns: &[(u32, u128)], (victim, at): (u32, u128)) -> Option<u128> {
    let next = turns.partition_point(|&(_, time)| time <= at);
    let last = turns[..next].last()?;
    (last.0 == victim).then(|| Some(turns.get(next)?.1 - at))?
}

#[test]
fn fc39_a_holder_killed_before_any_step_leaves_the_card_free() {
    let tools = scratch();
    let shim = shim::build(tools.path());
    let mut step = 1;
    loop {
        let directory = scratch();
        let status = start("acquire", directory.path())
            .env("LD_PRELOAD", &shim)
            .env("SHIM_FILE", ".lock")
            .env("SHIM_STEP", step.to_string())
            .env("SHIM_SIGNAL", "9")
            .status()
            .unwrap();
        assert_becomes_free(directory.path(), CARD);
        drop(CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap());
        assert_eq!(lock::holder(directory.path(), CARD).unwrap().pid, std::process::id());
        if status.success() {
            break;
        }
        assert_eq!(status.signal(), Some(9), "step {step}: {status}");
        step += 1;
    }
    // Opening, locking, signing in two calls, closing: fewer would mean that the shim saw none.
    assert!(step > 5, "{step} steps");
}

#[test]
fn fc39_a_hung_holder_is_named_with_its_command_and_since_when() {
    let directory = scratch();
    let child = holding_child(directory.path());
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    let refused = CardLock::acquire(directory.path(), CARD, Duration::from_millis(100), |_| {}).unwrap_err();
    let text = refused.to_string();
    let pid = child.id();
    kill(child);
    assert!(text.contains(&format!("{CARD} is in use by pid {pid} (")), "{text}");
    assert!(text.contains("--exact child") && text.contains("), for "), "{text}");
    assert!(text.contains("Wait for it to end, or stop it"), "{text}");
}

#[test]
fn a_lock_on_a_file_that_was_removed_meanwhile_is_no_lock() {
    let (directory, tools) = (scratch(), scratch());
    // It has opened the file and not locked it yet.
    let mut child = start("try", directory.path())
        .env("LD_PRELOAD", shim::build(tools.path()))
        .env("SHIM_FILE", ".lock")
        .env("SHIM_CALL", "flock")
        .env("SHIM_STEP", "1")
        .env("SHIM_SIGNAL", "19")
        .spawn()
        .unwrap();
    wait_until("the child is stopped", || state_of(child.id()) == Some('T'));
    std::fs::remove_file(directory.path().join(format!("gpu-{CARD}.lock"))).unwrap();
    let lock = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
    kill_process(Pid::from_child(&child), Signal::CONT).unwrap();
    assert!(!child.wait().unwrap().success(), "two processes hold the card");
    drop(lock);
}

#[test]
fn a_directory_or_file_that_others_can_reach_is_refused() {
    let directory = scratch();
    let lock = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
    let file = lock.path().to_owned();
    drop(lock);
    for (path, mode) in [(file.as_path(), 0o622), (directory.path(), 0o755)] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let refused = CardLock::acquire(directory.path(), CARD, Duration::ZERO, |_| {}).unwrap_err();
        assert!(matches!(refused, LockError::Private(_)), "{refused}");
        assert!(refused.to_string().contains(&format!("mode {mode:o}")), "{refused}");
        std::fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
}

/// A machine whose KFD knows these processes, as (number, line of `/proc/<pid>/stat`, bytes on the card).
fn kfd(processes: &[(u32, Option<&str>, u64)]) -> TempDir {
    let root = scratch();
    let file = |path: String, content: &str| {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    };
    std::fs::create_dir_all(root.path().join("proc/self/ns")).unwrap();
    std::os::unix::fs::symlink("pid:[4026531836]", root.path().join("proc/self/ns/pid")).unwrap();
    file("sys/class/kfd/kfd/topology/nodes/1/gpu_id".to_owned(), "4242\n");
    file(
        "sys/class/kfd/kfd/topology/nodes/1/properties".to_owned(),
        "location_id 768\ndomain 0\ngfx_target_version 110000\n",
    );
    for (pid, stat, bytes) in processes {
        file(format!("sys/class/kfd/kfd/proc/{pid}/vram_4242"), &bytes.to_string());
        if let Some(stat) = stat {
            file(format!("proc/{pid}/stat"), stat);
        }
    }
    root
}

#[test]
fn a_process_that_the_driver_does_not_let_go_is_named() {
    let root = kfd(&[(31, None, 4096), (7, None, 1), (8, None, 0)]);
    let patience = Duration::from_millis(20);
    let lingering = lock::wait_for_teardown(&Sysfs::at(root.path()), CARD, patience).unwrap_err();
    let LockError::Lingering { processes, waited, .. } = &lingering else {
        panic!("{lingering}")
    };
    assert_eq!(*processes, [7, 31]);
    assert!(*waited >= patience);
    let text = lingering.to_string();
    assert!(
        text.contains(&format!("card {CARD}")) && text.contains("[7, 31]") && text.contains("dmesg"),
        "{text}"
    );
}

#[test]
fn the_card_is_taken_only_when_the_driver_is_rid_of_the_dead() {
    let directory = scratch();
    let fields = "1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 987654";
    let alive = format!("11 (a) Z) S {fields}");
    let zombie = format!("12 (b) Z {fields}");
    // A living process and a dead one that has nothing on this card are nobody's business.
    let quiet = kfd(&[(11, Some(alive.as_str()), 4096), (13, None, 0)]);
    let take = |root: &TempDir| {
        let sysfs = Sysfs::at(root.path());
        CardLock::acquire_on(&sysfs, directory.path(), CARD, PATIENCE, |_| {})
    };
    drop(take(&quiet).unwrap());
    // The dead go after a while.
    for dead in [(12, Some(zombie.as_str()), 4096), (14, None, 1)] {
        let busy = kfd(&[(11, Some(alive.as_str()), 4096), dead]);
        let entry = busy.path().join(format!("sys/class/kfd/kfd/proc/{}", dead.0));
        let gone = std::thread::spawn({
            let entry = entry.clone();
            move || {
                std::thread::sleep(Duration::from_millis(150));
                std::fs::remove_dir_all(entry).unwrap();
            }
        });
        let lock = take(&busy).unwrap();
        assert!(!entry.join("vram_4242").exists(), "process {} is not gone", dead.0);
        gone.join().unwrap();
        drop(lock);
    }
}

#[test]
fn fc40_a_child_of_the_supervisor_proves_the_lock_and_a_stranger_cannot() {
    let directory = scratch();
    let lock = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
    let mut child = start("inherit", directory.path());
    lock.pass_to(&mut child).unwrap();
    assert!(child.status().unwrap().success(), "the child holds the inherited lock");

    let open_but_unlocked = std::fs::File::open(lock.path()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open_but_unlocked).to_string();
    let refusal = |card: &str, file: &std::fs::File| {
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(file).to_string();
        let refused = lock::check_inherited(directory.path(), card, Some(&descriptor));
        refused.expect_err("a stranger").to_string()
    };
    // A lock of one's own making proves nothing where nobody supervises.
    let other = "0000:05:00.0";
    drop(CardLock::acquire(directory.path(), other, PATIENCE, |_| {}).unwrap());
    let users = std::fs::File::open(directory.path().join(format!("gpu-{other}.users"))).unwrap();
    assert!(refusal(other, &users).contains("holds no lock"));
    users.lock_shared().unwrap();
    assert!(refusal(other, &users).contains("no supervisor holds the card"));
    for descriptor in [None, Some("x"), Some("99999"), Some("0"), Some(number.as_str())] {
        let refused = lock::check_inherited(directory.path(), CARD, descriptor);
        let Err(LockError::NotInherited { reason, .. }) = refused else {
            panic!("{descriptor:?} was believed")
        };
        assert!(!reason.is_empty());
    }
}

#[test]
fn a_test_that_outlives_its_supervisor_keeps_the_card_and_gives_up_no_lock_but_its_own() {
    let directory = scratch();
    let lock = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();
    let mut command = Command::new("sleep");
    lock.pass_to(command.arg("1000")).unwrap();
    let mut test = command.spawn().unwrap();
    drop((lock, command));
    assert!(lock::is_held(directory.path(), CARD));
    let refused = CardLock::acquire(directory.path(), CARD, Duration::ZERO, |_| {});
    assert!(matches!(refused, Err(LockError::Held { .. })), "{refused:?}");
    test.kill().unwrap();
    test.wait().unwrap();
    let lock = CardLock::acquire(directory.path(), CARD, PATIENCE, |_| {}).unwrap();

    // flock of util-linux, on the inherited descriptor.
    let mut test = Command::new("sh");
    test.args(["-c", &format!("flock -u ${LOCK_FD_VARIABLE}")]);
    lock.pass_to(&mut test).unwrap();
    let unlocked = test.status().unwrap().success();
    drop(test);
    assert!(unlocked, "util-linux is needed");
    assert!(lock::is_held(directory.path(), CARD));
    drop(lock);
    assert_becomes_free(directory.path(), CARD);
}
