//! The card lock between real processes. The children are this binary, started again with a role in the environment.

use rocmforge_testkit::data::rng;
use rocmforge_testkit::lock::{self, CardLock, LOCK_FD_VARIABLE, LockError};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const CARD: &str = "0000:03:00.0";
const ROLE: &str = "LOCK_TEST_ROLE";
const DIRECTORY: &str = "LOCK_TEST_DIRECTORY";
const PATIENCE: Duration = Duration::from_secs(60);

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
        "compete" => loop {
            let lock = CardLock::acquire(&directory, CARD, PATIENCE, |_| {}).unwrap();
            let me = std::process::id().to_string();
            let occupant = directory.join("occupant");
            std::fs::write(&occupant, &me).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            if std::fs::read_to_string(&occupant).unwrap() != me {
                std::fs::write(directory.join("overlap"), me).unwrap();
            }
            std::fs::write(directory.join(format!("turns.{}", std::process::id())), "").unwrap();
            drop(lock);
        },
        "inherit" => {
            let descriptor = std::env::var(LOCK_FD_VARIABLE).ok();
            lock::check_inherited(&directory, CARD, descriptor.as_deref()).unwrap();
        }
        role => panic!("unknown role {role}"),
    }
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
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
fn a_waiting_process_is_told_who_holds_the_card() {
    let directory = tempfile::tempdir().unwrap();
    let child = holding_child(directory.path());
    let pid = child.id();
    let mut told = None;
    let refused = CardLock::acquire(directory.path(), CARD, Duration::from_millis(200), |who| {
        told = who.cloned()
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
    assert!(waited >= Duration::from_millis(200));
    assert_eq!(told, Some(holder));
    assert!(still_held);
}

#[test]
fn a_killed_holder_leaves_the_card_free() {
    let directory = tempfile::tempdir().unwrap();
    kill(holding_child(directory.path()));
    assert!(!lock::is_held(directory.path(), CARD));
    CardLock::acquire(directory.path(), CARD, Duration::ZERO, |_| {}).unwrap();
}

#[test]
fn two_cards_do_not_wait_for_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let _one = CardLock::acquire(directory.path(), CARD, Duration::ZERO, |_| {}).unwrap();
    CardLock::acquire(directory.path(), "0000:04:00.0", Duration::ZERO, |_| {}).unwrap();
}

#[test]
fn competing_processes_that_are_killed_at_random_never_overlap() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = rng(0x10c);
    let mut children: Vec<Child> = (0..4)
        .map(|_| start("compete", directory.path()).spawn().unwrap())
        .collect();
    for _ in 0..40 {
        std::thread::sleep(Duration::from_millis(random.below(25) as u64));
        let victim = random.below(children.len());
        let fresh = start("compete", directory.path()).spawn().unwrap();
        kill(std::mem::replace(&mut children[victim], fresh));
    }
    let survivors: Vec<u32> = children.iter().map(Child::id).collect();
    wait_until("every survivor had a turn", || {
        survivors
            .iter()
            .all(|pid| directory.path().join(format!("turns.{pid}")).exists())
    });
    children.into_iter().for_each(kill);
    assert!(
        !directory.path().join("overlap").exists(),
        "two processes held the card at once"
    );
}

#[test]
fn a_child_of_the_supervisor_proves_the_lock_and_a_stranger_cannot() {
    let directory = tempfile::tempdir().unwrap();
    let lock = CardLock::acquire(directory.path(), CARD, Duration::ZERO, |_| {}).unwrap();
    let mut child = start("inherit", directory.path());
    lock.pass_to(&mut child).unwrap();
    assert!(child.status().unwrap().success(), "the child holds the inherited lock");

    let open_but_unlocked = std::fs::File::open(lock.path()).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&open_but_unlocked).to_string();
    for descriptor in [None, Some("x"), Some("99999"), Some("0"), Some(number.as_str())] {
        let refused = lock::check_inherited(directory.path(), CARD, descriptor);
        let Err(LockError::NotInherited { reason, .. }) = refused else {
            panic!("{descriptor:?} was believed")
        };
        assert!(!reason.is_empty());
    }
}
