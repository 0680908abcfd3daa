//! The processes of a run: which are tests that it started, and which are what a test left behind.
//!
//! A test's process group is ended with it. What left the group (`setsid`, a daemon's double fork) is known by a mark in its
//! environment, and what cleared that too is known by its parent: this process adopts the orphans among its descendants.

use super::child::Tamed;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, set_child_subreaper, waitid,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::fd::BorrowedFd;
use std::process::{Command, ExitStatus};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Marks the processes of a test, in their environment.
const MARK_VARIABLE: &str = "ROCMFORGE_TEST_MARK";
/// Time between two looks at processes that are being ended.
const POLL: Duration = Duration::from_millis(5);

/// The run's own children, and what it does with others.
#[derive(Default)]
pub(crate) struct Household {
    /// Tests that are running, or have ended and are not reaped.
    tests: Mutex<BTreeSet<u32>>,
    /// Whether orphans among our descendants become our children.
    adopts: bool,
}

/// What a test left behind.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Leftovers {
    /// Names of those that were ended, by number.
    pub(crate) ended: BTreeMap<u32, String>,
    /// Those that could not be ended.
    pub(crate) stuck: BTreeSet<u32>,
}

/// The mark of one test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark(String);

impl Mark {
    /// A mark for the run that `name` names. This process's number and the time make it one of its kind on this machine.
    pub(crate) fn new(name: &str) -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        Self(format!("{}.{}.{}.{name}", std::process::id(), now.tv_sec, now.tv_nsec))
    }
}

impl Household {
    /// A household that adopts: for a process whose only children are those that it starts through the household.
    pub(crate) fn adopting() -> io::Result<Self> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self {
            adopts: true,
            ..Self::default()
        })
    }

    fn tests(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.tests.lock().expect("nobody panics holding it")
    }

    /// Starts a test under `mark`.
    pub(crate) fn start(
        &self,
        command: &mut Command,
        mark: &Mark,
        passed: Option<BorrowedFd<'_>>,
    ) -> io::Result<Tamed> {
        command.env(MARK_VARIABLE, &mark.0);
        // Held meanwhile, so that nobody takes the new process for an orphan.
        let mut tests = self.tests();
        let process = Tamed::start(command, passed)?;
        tests.insert(process.id());
        Ok(process)
    }

    /// Takes the exit status of a test that has ended.
    pub(crate) fn reap(&self, process: &mut Tamed) -> io::Result<Option<ExitStatus>> {
        let mut tests = self.tests();
        let status = process.reap()?;
        if status.is_some() {
            tests.remove(&process.id());
        }
        Ok(status)
    }

    /// Ends what the test under `mark` left behind, its `leader` aside. If that test runs `alone`, every orphan is its own.
    pub(crate) fn end_leftovers(&self, mark: &Mark, leader: u32, alone: bool, patience: Duration) -> Leftovers {
        // Nothing that was there before the test is its own, and need not be looked at closely.
        let began = Process::read(leader).map_or(0, |leader| leader.started);
        self.end(patience, |processes| {
            let adopted = alone && self.adopts;
            // A copy: reading a large `/proc` under the lock would hold up every other test's start and end.
            let known = self.tests().clone();
            let ours = processes.iter().filter(|one| {
                one.started >= began
                    && !known.contains(&one.id)
                    && (one.is_marked(mark) || adopted && one.parent == std::process::id())
            });
            let mut found: BTreeSet<u32> = ours.map(|one| one.id).collect();
            add_descendants(processes, &mut found);
            found.remove(&leader);
            found
        })
    }

    /// Ends every process that this one has adopted: at the end of a run, when no test is running.
    pub(crate) fn end_adopted(&self, patience: Duration) -> Leftovers {
        if !self.adopts {
            return Leftovers::default();
        }
        self.end(patience, |processes| {
            let known = self.tests().clone();
            let ours = processes.iter();
            let ours = ours.filter(|one| one.parent == std::process::id() && !known.contains(&one.id));
            let mut found: BTreeSet<u32> = ours.map(|one| one.id).collect();
            add_descendants(processes, &mut found);
            found
        })
    }

    /// Kills what `find` finds, again and again until it finds nothing or `patience` is over: processes may start others
    /// while they are being ended.
    fn end(&self, patience: Duration, find: impl Fn(&[Process]) -> BTreeSet<u32>) -> Leftovers {
        let start = Instant::now();
        let mut leftovers = Leftovers::default();
        loop {
            let processes = processes();
            let found = find(&processes);
            let living: Vec<&Process> = processes.iter().filter(|one| found.contains(&one.id)).collect();
            for process in &living {
                if process.state != 'Z' {
                    leftovers.ended.insert(process.id, process.name.clone());
                    process.kill();
                }
                if process.parent == std::process::id() {
                    process.reap();
                }
            }
            let living: BTreeSet<u32> = living.iter().filter(|one| one.state != 'Z').map(|one| one.id).collect();
            if living.is_empty() {
                return leftovers;
            }
            if start.elapsed() >= patience {
                leftovers.ended.retain(|id, _| !living.contains(id));
                leftovers.stuck = living;
                return leftovers;
            }
            std::thread::sleep(POLL);
        }
    }
}

fn add_descendants(processes: &[Process], found: &mut BTreeSet<u32>) {
    loop {
        let before = found.len();
        let children = processes
            .iter()
            .filter(|one| found.contains(&one.parent))
            .map(|one| one.id);
        let children: Vec<u32> = children.collect();
        found.extend(children);
        if found.len() == before {
            return;
        }
    }
}

/// A process as `/proc` shows it.
#[derive(Debug, PartialEq, Eq)]
struct Process {
    id: u32,
    name: String,
    state: char,
    parent: u32,
    /// When it started, in clock ticks since boot: with the number, one of its kind.
    started: u64,
}

fn processes() -> Vec<Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

impl Process {
    fn read(id: u32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{id}/stat")).ok()?;
        Self::parse(&String::from_utf8_lossy(&stat))
    }

    /// `id (name) state parent ... started ...`; the name may hold anything, closing brackets too.
    fn parse(stat: &str) -> Option<Self> {
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        Some(Self {
            id: id.parse().ok()?,
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            started: fields.nth(17)?.parse().ok()?,
        })
    }

    fn is_marked(&self, mark: &Mark) -> bool {
        let wanted = format!("{MARK_VARIABLE}={}", mark.0);
        fs::read(format!("/proc/{}/environ", self.id))
            .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|one| one == wanted.as_bytes()))
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.id.cast_signed())
    }

    /// Kills this process, and not one that has got its number meanwhile.
    fn kill(&self) {
        let Some(handle) = self.pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return;
        };
        if Self::read(self.id).is_some_and(|now| now.started == self.started) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }

    /// Takes the exit status of a child of ours, if it has ended.
    fn reap(&self) {
        if let Some(pid) = self.pid() {
            let _ = waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
        }
    }
}

/// The state of a process: `R`unning, `S`leeping, `D` waiting in the kernel, s`T`opped, `Z`ombie. `None` if it has gone.
pub(crate) fn state_of(id: u32) -> Option<char> {
    Process::read(id).map(|process| process.state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        let expected = Process {
            id: 42,
            name: "a) b (c".to_owned(),
            state: 'S',
            parent: 7,
            started: 123_456,
        };
        assert_eq!(Process::parse(stat), Some(expected));
        assert_eq!(Process::parse("42 (cut"), None);
    }

    #[test]
    fn descendants_of_descendants_are_found() {
        let process = |id, parent| Process {
            id,
            name: String::new(),
            state: 'S',
            parent,
            started: 0,
        };
        // Listed so that one pass in order would miss some.
        let processes = [
            process(5, 4),
            process(4, 3),
            process(3, 2),
            process(9, 1),
            process(6, 3),
        ];
        let mut found = BTreeSet::from([3]);
        add_descendants(&processes, &mut found);
        assert_eq!(found, BTreeSet::from([3, 4, 5, 6]));
    }

    #[test]
    fn we_find_ourselves() {
        let me = Process::read(std::process::id()).unwrap();
        assert_eq!(
            Some(me.parent),
            rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get().cast_unsigned())
        );
        assert!(matches!(state_of(me.id), Some('R' | 'S')));
        assert_eq!(state_of(0x7fff_fff0), None);
        assert!(
            processes()
                .iter()
                .any(|one| one.id == me.id && one.started == me.started)
        );
    }

    /// Starts a shell that starts `script` and goes; returns when it has gone.
    fn orphan(household: &Household, mark: &Mark, script: &str) -> u32 {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::null());
        let mut process = household.start(&mut command, mark, None).unwrap();
        while household.reap(&mut process).unwrap().is_none() {
            std::thread::sleep(POLL);
        }
        process.id()
    }

    #[test]
    fn what_left_the_group_is_known_by_its_mark_and_strangers_are_spared() {
        let household = Household::default();
        let (mine, other) = (Mark::new("mine"), Mark::new("other"));
        let leader = orphan(
            &household,
            &mine,
            "setsid sleep 1000 & setsid sh -c 'sleep 1000; true' &",
        );
        let stranger = orphan(&household, &other, "setsid sleep 1000 &");
        let patience = Duration::from_secs(20);
        // setsid takes a moment to become sleep.
        let mut ended = BTreeMap::new();
        let start = Instant::now();
        while ended.len() < 3 && start.elapsed() < patience {
            let leftovers = household.end_leftovers(&mine, leader, false, patience);
            assert!(leftovers.stuck.is_empty());
            ended.extend(leftovers.ended);
        }
        assert!(
            ended.values().any(|name| name == "sleep" || name == "setsid"),
            "{ended:?}"
        );
        assert_eq!(
            household.end_leftovers(&mine, leader, false, patience),
            Leftovers::default()
        );
        let spared = household.end_leftovers(&other, stranger, false, patience);
        assert_eq!(spared.ended.len(), 1, "the stranger lived until now");
    }
}
