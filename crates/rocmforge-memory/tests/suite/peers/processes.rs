//! Real processes: this binary, started again with a role in its environment.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rocmforge_machine::process::state_of;
use rocmforge_memory::{Bytes, Class, Limit, PeerFigures, PeersError};

use super::{CARD, apart, assert_fits, join, open, scratch};
use crate::common::{Driver, GIB, MIB, World};
use rocmforge_test_support::shim;

const ROLE: &str = "PEERS_TEST_ROLE";
const DIRECTORY: &str = "PEERS_TEST_DIRECTORY";
const SEED: &str = "PEERS_TEST_SEED";
/// What a process may hold of its 20 GiB.
const BUDGET: u64 = 20 * GIB - 256 * MIB;
const PATIENCE: Duration = Duration::from_secs(120);

/// A child that does not outlive its test.
struct Kept(Child);

impl Kept {
    fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn command(role: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "peers::processes::child", "--test-threads=1", "--nocapture"])
        .env(ROLE, role)
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "still waiting until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The body of every child; does nothing in the ordinary run.
#[test]
fn child() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let directory = PathBuf::from(std::env::var_os(DIRECTORY).unwrap());
    match role.as_str() {
        // Holds 12 GiB until it is ended.
        "hold" => {
            let card = apart(&directory, 20);
            let _held = card.try_reserve(Bytes::gib(12), Class::Required, "weights").unwrap();
            fs::write(directory.join("held"), "").unwrap();
            std::thread::sleep(Duration::from_secs(600));
        }
        // Asks once for more than a half.
        "ask" => {
            let card = apart(&directory, 20);
            let mut gate = File::open(directory.join("gate")).unwrap();
            // Everybody stands at the gate until the parent has filled it.
            while gate.read(&mut [0]).unwrap() == 0 {
                std::thread::yield_now();
            }
            let granted = card.try_reserve(Bytes::gib(11), Class::Required, "half and more");
            let me = std::process::id();
            fs::write(directory.join(format!("asked.{me}.{}", granted.is_ok())), "").unwrap();
            std::thread::sleep(Duration::from_secs(600));
        }
        // Every step of the protocol once: joins, claims, commits, gives back, leaves.
        "steps" => {
            let card = apart(&directory, 20);
            let held = card.try_reserve(Bytes::gib(4), Class::Required, "weights").unwrap();
            let held = held.commit();
            drop(held);
            drop(card);
        }
        "hammer" => hammer(&directory, std::env::var(SEED).unwrap().parse().unwrap()),
        role => panic!("unknown role {role}"),
    }
}

#[test]
fn a_second_process_sees_the_first_ones_reservation_until_it_dies() {
    let root = scratch();
    let child = Kept(command("hold", root.path()).spawn().unwrap());
    wait_until("the child holds its memory", || root.path().join("held").exists());
    let card = apart(root.path(), 20);
    assert!(card.budget().peers >= Bytes::gib(12));
    let refusal = card
        .try_reserve(Bytes::gib(12), Class::Required, "too much")
        .unwrap_err();
    assert_eq!(refusal.limit, Limit::Peers);
    let [peer] = join(root.path(), PeerFigures::Missing).unwrap().peers().unwrap()[..] else {
        panic!("one process")
    };
    assert_eq!((peer.pid, peer.local), (child.0.id(), true));
    let some = card
        .try_reserve(Bytes::gib(7), Class::Required, "fits beside it")
        .unwrap();
    child.kill();
    let more = card.try_reserve(Bytes::gib(12), Class::Required, "fits now").unwrap();
    assert_eq!(
        join(root.path(), PeerFigures::Missing).unwrap().peers().unwrap().len(),
        1,
        "ours"
    );
    drop((some, more));
}

#[test]
fn a_dead_process_is_found_out_when_figures_are_old_too() {
    let root = scratch();
    let child = Kept(command("hold", root.path()).spawn().unwrap());
    wait_until("the child holds its memory", || root.path().join("held").exists());
    let driver = Driver::new(World::new(20 * GIB, 0));
    let card = open(root.path(), &driver, PeerFigures::Missing);
    child.kill();
    driver.with(|world| world.now += Duration::from_secs(1));
    assert_fits(&card, Bytes(BUDGET));
}

#[test]
fn of_processes_that_ask_for_more_than_a_half_at_once_one_is_granted() {
    for _ in 0..5 {
        let root = scratch();
        let directory = root.path();
        let mut gate = File::create(directory.join("gate")).unwrap();
        let children: Vec<Kept> = (0..6)
            .map(|_| Kept(command("ask", directory).spawn().unwrap()))
            .collect();
        gate.write_all(b"go").unwrap();
        let asked = |granted: bool| {
            let end = format!(".{granted}");
            let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
            names
                .filter(|name| {
                    let name = name.to_string_lossy();
                    name.starts_with("asked.") && name.ends_with(&end)
                })
                .count()
        };
        wait_until("all have asked", || asked(true) + asked(false) == children.len());
        assert_eq!(asked(true), 1);
    }
}

/// The truth about who holds what: one file a process, all under one lock.
struct Truth<'a> {
    directory: &'a Path,
    lock: File,
}

impl<'a> Truth<'a> {
    fn new(directory: &'a Path) -> Self {
        let lock = File::create(directory.join("truth")).unwrap();
        Self { directory, lock }
    }

    /// Changes what thread `name` of this process holds, and checks that all who live hold no more than there is.
    fn set(&self, name: &str, bytes: u64) {
        // A lock of the test's own, in a file description of its own for each thread.
        self.lock.lock().unwrap();
        let file = format!("holds.{}.{name}", std::process::id());
        fs::write(self.directory.join(file), bytes.to_string()).unwrap();
        let mut all = 0;
        for entry in fs::read_dir(self.directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let Some((pid, _)) = name.strip_prefix("holds.").and_then(|rest| rest.split_once('.')) else {
                continue;
            };
            if lives(pid) {
                // A process may have been killed on its way from opening its file to writing it.
                all += fs::read_to_string(entry.path()).unwrap().parse().unwrap_or(0);
            }
        }
        if all > BUDGET {
            fs::write(self.directory.join("over"), format!("{all} of {BUDGET}")).unwrap();
        }
        self.lock.unlock().unwrap();
    }
}

fn lives(pid: &str) -> bool {
    pid.parse()
        .is_ok_and(|pid| state_of(pid).is_some_and(|state| state != 'Z'))
}

/// Two threads take and give back until they have done their rounds.
fn hammer(directory: &Path, seed: u64) {
    let card = apart(directory, 20);
    std::thread::scope(|scope| {
        for thread in 0..2u64 {
            let card = &card;
            scope.spawn(move || {
                let truth = Truth::new(directory);
                let name = thread.to_string();
                let mut random = seed * 2 + thread;
                for round in 0..60 {
                    random = random
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1_442_695_040_888_963_407);
                    let bytes = if round % 3 == 0 {
                        random % (8 * MIB)
                    } else {
                        (random >> 20) % (6 * GIB)
                    };
                    let reservation = match card.try_reserve(Bytes(bytes), Class::Growth, "hammer") {
                        Ok(reservation) => reservation,
                        Err(refusal) => {
                            assert_eq!(refusal.peers_error, None);
                            continue;
                        }
                    };
                    truth.set(&name, bytes);
                    let held = reservation.commit();
                    std::thread::yield_now();
                    truth.set(&name, 0);
                    drop(held);
                }
            });
        }
    });
    let _ = fs::write(directory.join(format!("done.{}", std::process::id())), "");
}

/// Starts a child that takes and gives back at random.
fn start_hammer(seed: u64, directory: &Path) -> Kept {
    let mut command = command("hammer", directory);
    Kept(command.env(SEED, seed.to_string()).spawn().unwrap())
}

/// Waits for the children: they held no more than the budget at any time, and nothing now.
#[track_caller]
fn assert_kept_within(children: &mut [Kept], directory: &Path) {
    for child in children {
        let status = child.0.wait().unwrap();
        assert!(status.success(), "{status}");
    }
    assert_nothing_over(directory);
    let card = apart(directory, 20);
    assert_fits(&card, Bytes(BUDGET));
}

#[test]
fn eight_processes_of_two_threads_never_hold_more_than_the_budget() {
    let root = scratch();
    let mut children: Vec<Kept> = (0..8).map(|seed| start_hammer(seed, root.path())).collect();
    assert_kept_within(&mut children, root.path());
}

#[test]
fn processes_killed_at_random_leave_nothing_and_never_hold_more_than_the_budget() {
    let root = scratch();
    let mut children: Vec<Kept> = (0..4).map(|seed| start_hammer(seed, root.path())).collect();
    let mut random = 0x9e37_79b9u64;
    for seed in 4..24u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(seed);
        std::thread::sleep(Duration::from_micros(random >> 49));
        let victim = (random >> 33) as usize % children.len();
        std::mem::replace(&mut children[victim], start_hammer(seed, root.path())).kill();
    }
    assert_kept_within(&mut children, root.path());
}

#[track_caller]
fn assert_nothing_over(directory: &Path) {
    if let Ok(over) = fs::read_to_string(directory.join("over")) {
        panic!("the processes held {over}");
    }
}

/// Runs the child that goes through every step, ended before step `step`. Whether it came so far.
fn ended_before(step: u32, shim: &Path, directory: &Path) -> bool {
    let status = command("steps", directory)
        .env("LD_PRELOAD", shim)
        .env("SHIM_FILE", ".ledger")
        .env("SHIM_STEP", step.to_string())
        .env("SHIM_SIGNAL", "9")
        .status()
        .unwrap();
    assert!(status.success() || status.signal() == Some(9), "step {step}: {status}");
    !status.success()
}

#[test]
fn a_process_killed_before_any_step_of_the_protocol_takes_nothing_with_it() {
    let tools = scratch();
    let shim = shim::build(tools.path());
    // In an empty directory, where the file is made too; and beside a process that holds something.
    for beside in [false, true] {
        let mut step = 1;
        loop {
            let root = scratch();
            let other = apart(root.path(), 20);
            let held = beside.then(|| other.try_reserve(Bytes::gib(6), Class::Required, "held").unwrap());
            let came_so_far = ended_before(step, &shim, root.path());
            let held = held.map_or(0, |held| {
                let bytes = held.bytes().0;
                std::mem::forget(held);
                bytes
            });
            let card = apart(root.path(), 20);
            assert!(
                card.budget().peers >= Bytes(held),
                "step {step}: what lives is still counted"
            );
            let rest = BUDGET - held - if beside { 64 * MIB } else { 0 };
            assert_fits(&card, Bytes(rest));
            assert!(
                card.try_reserve(Bytes(BUDGET - held + 1), Class::Required, "more")
                    .is_err()
            );
            if !came_so_far {
                break;
            }
            step += 1;
        }
        // Joining, claiming, committing, giving back and leaving are many calls; fewer would mean that the shim saw none.
        assert!(step > 20, "{step} steps");
    }
}

#[test]
fn a_process_stopped_with_the_file_locked_is_named_and_waited_for_no_longer_than_it_must() {
    let root = scratch();
    let tools = scratch();
    // The first record that is written is written under the lock.
    let child = Kept(
        command("steps", root.path())
            .env("LD_PRELOAD", shim::build(tools.path()))
            .env("SHIM_FILE", ".ledger")
            .env("SHIM_CALL", "pwrite")
            .env("SHIM_STEP", "1")
            .env("SHIM_SIGNAL", "19")
            .spawn()
            .unwrap(),
    );
    wait_until("the child is stopped", || state_of(child.0.id()) == Some('T'));
    let card = apart(root.path(), 20);
    let refusal = card.try_reserve(Bytes::gib(1), Class::Required, "waits").unwrap_err();
    let Some(PeersError::Busy { holder, waited, path }) = refusal.peers_error.clone() else {
        panic!("{refusal}")
    };
    assert_eq!(
        (holder, path),
        (Some(child.0.id()), root.path().join(format!("{CARD}.ledger")))
    );
    assert!(waited >= Duration::from_secs(2));
    child.kill();
    assert_fits(&card, Bytes(BUDGET));
}

#[test]
fn a_process_of_another_container_is_counted_though_it_cannot_be_looked_up() {
    let root = scratch();
    let mut inside = Command::new("unshare");
    inside.args([
        "--user",
        "--map-current-user",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
    ]);
    if !inside.arg("true").status().is_ok_and(|status| status.success()) {
        #[allow(clippy::print_stderr)] // a skip must be visible
        {
            eprintln!("SKIP process name spaces may not be made here");
        }
        return;
    }
    let plain = command("hold", root.path());
    let mut inside = Command::new("unshare");
    inside
        .args([
            "--user",
            "--map-current-user",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
        ])
        .arg(plain.get_program())
        .args(plain.get_args())
        .envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .stdout(Stdio::null());
    let child = Kept(inside.spawn().unwrap());
    wait_until("the child holds its memory", || root.path().join("held").exists());
    let [peer] = join(root.path(), PeerFigures::Missing).unwrap().peers().unwrap()[..] else {
        panic!("one process")
    };
    assert!(!peer.local);
    let card = apart(root.path(), 20);
    assert!(card.try_reserve(Bytes::gib(12), Class::Required, "too much").is_err());
    // Nobody here can tell that it has ended: it counts until the file goes.
    child.kill();
    let refusal = card
        .try_reserve(Bytes::gib(12), Class::Required, "still too much")
        .unwrap_err();
    assert_eq!(refusal.limit, Limit::Peers);
}
