//! Process tree of a run: which processes are tests that it started, and which are what a test left behind.
//!
//! A test's process group is ended with it, then what [contains](super::containment) the test. Beside that, processes are found in
//! `/proc`: what left the group (`setsid`, a daemon's double fork) by a mark in its environment, and what cleared that too by its
//! parent, because this process adopts the orphans among its descendants.

use super::cgroup::TestCgroup;
use super::containment::{Contained, Containment, Kind};
use super::descriptors;
use rocmforge_machine::process::{Process, add_descendants, processes};
use rustix::process::set_child_subreaper;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Marks the processes of a test, in their environment.
const MARK_VARIABLE: &str = "ROCMFORGE_TEST_MARK";
/// Time between two looks at processes that are being ended.
const POLL: Duration = Duration::from_millis(5);

/// The run's own children, and what it does with others.
#[derive(Default)]
pub(crate) struct ProcessTree {
    /// Tests that are running, or have ended and are not reaped.
    tests: Mutex<BTreeSet<u32>>,
    /// Whether orphans among our descendants become our children.
    adopts: bool,
    containment: Containment,
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

impl ProcessTree {
    /// A tree that adopts orphans and contains tests as well as the machine allows: for a process whose only children are those that
    /// it starts through the tree.
    pub(crate) fn adopting(most: Kind) -> io::Result<Self> {
        set_child_subreaper(Some(rustix::process::getpid()))?;
        Ok(Self::with(Containment::best(most)))
    }

    fn with(containment: Containment) -> Self {
        Self {
            tests: Mutex::new(containment.helper().into_iter().collect()),
            adopts: true,
            containment,
        }
    }

    /// How tests are contained.
    pub(crate) fn containment(&self) -> &Containment {
        &self.containment
    }

    fn tests(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.tests.lock().expect("nobody panics holding it")
    }

    /// Starts a test's process under `mark`, contained.
    pub(crate) fn spawn(&self, command: &mut Command, mark: &Mark) -> io::Result<(Child, Contained)> {
        command.env(MARK_VARIABLE, &mark.0);
        // Held meanwhile, so that the new process is not taken for an orphan.
        let mut tests = self.tests();
        let (contained, ends) = self.containment.contain(command)?;
        descriptors::limit(command);
        let child = command.spawn()?;
        drop(ends);
        tests.insert(child.id());
        Ok((child, contained))
    }

    /// Takes the exit status of the test `id` by `wait`, and forgets the test if it has ended.
    pub(crate) fn reap_one(
        &self,
        id: u32,
        wait: impl FnOnce() -> io::Result<Option<ExitStatus>>,
    ) -> io::Result<Option<ExitStatus>> {
        let mut tests = self.tests();
        let status = wait()?;
        if status.is_some() {
            tests.remove(&id);
        }
        Ok(status)
    }

    /// Ends what the test under `mark` left behind, its own process `leader` aside. If that test runs `alone`, every orphan is its own.
    /// What is in a namespace of processes is named only: it ends with its first process.
    pub(crate) fn end_leftovers(
        &self,
        mark: &Mark,
        leader: u32,
        contained: &Contained,
        alone: bool,
        patience: Duration,
    ) -> Leftovers {
        if contained.keeper.is_some() {
            return left_in_namespace(leader);
        }
        let group = contained.group.as_ref();
        let mut leftovers = group.map_or_else(Leftovers::default, |group| end_group(group, leader, patience));
        let found = self.end_found(mark, leader, alone, patience);
        leftovers.ended.extend(found.ended);
        leftovers.stuck.extend(found.stuck);
        leftovers
    }

    fn end_found(&self, mark: &Mark, leader: u32, alone: bool, patience: Duration) -> Leftovers {
        // Nothing that was there before the test is its own, and need not be looked at closely.
        let began = Process::read(leader).map_or(0, |leader| leader.started);
        self.end(patience, |processes| {
            let adopted = alone && self.adopts;
            // A copy: reading a large `/proc` under the lock would hold up every other test's start and end.
            let known = self.tests().clone();
            let ours = processes.iter().filter(|one| {
                one.started >= began
                    && !known.contains(&one.id)
                    && (one.has(MARK_VARIABLE, &mark.0) || adopted && one.parent == std::process::id())
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
        // A process that forks while `/proc` is read may be missed by one scan, not by a second one after it.
        let mut empty = 0;
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
                empty += 1;
                if empty == 2 {
                    return leftovers;
                }
                continue;
            }
            empty = 0;
            if start.elapsed() >= patience {
                leftovers.ended.retain(|id, _| !living.contains(id));
                leftovers.stuck = living;
                return leftovers;
            }
            std::thread::sleep(POLL);
        }
    }
}

/// What is left in a test's namespace of processes, which `leader` waits for. It ends with the first process there.
fn left_in_namespace(leader: u32) -> Leftovers {
    let processes = processes();
    let mut members = BTreeSet::from([leader]);
    add_descendants(&processes, &mut members);
    // The leader's only child is the first process.
    let is_left = |one: &&Process| ![one.id, one.parent].contains(&leader) && one.state != 'Z';
    let left = processes.iter().filter(|one| members.contains(&one.id)).filter(is_left);
    Leftovers {
        ended: left.map(|one| (one.id, one.name.clone())).collect(),
        stuck: BTreeSet::new(),
    }
}

/// Ends everything in a test's control group but its `leader`, which is killed and not reaped.
fn end_group(group: &TestCgroup, leader: u32, patience: Duration) -> Leftovers {
    let mut leftovers = Leftovers::default();
    let start = Instant::now();
    loop {
        // Looked at before they are killed: afterwards they have no name.
        let living = group.processes().into_iter().filter(|&id| id != leader);
        let living = living.filter_map(Process::read);
        let living: Vec<Process> = living.filter(|one| one.state != 'Z').collect();
        for process in &living {
            leftovers.ended.insert(process.id, process.name.clone());
        }
        let killed = group.kill();
        if living.is_empty() && (group.is_empty() || killed.is_err()) {
            return leftovers;
        }
        if start.elapsed() >= patience {
            let stuck: BTreeSet<u32> = living.iter().map(|one| one.id).collect();
            leftovers.ended.retain(|id, _| !stuck.contains(id));
            leftovers.stuck = stuck;
            return leftovers;
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::contain::test_process::TestProcess;
    use rocmforge_machine::process::state_of;
    use std::path::Path;
    use std::process::Stdio;
    use std::sync::Arc;

    /// Starts a shell under `mark` that runs `script` and goes; returns when it has gone.
    fn orphans(process_tree: &Arc<ProcessTree>, mark: &Mark, folder: &Path, script: &str) -> TestProcess {
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(folder);
        quiet(&mut command);
        let mut process = TestProcess::start(process_tree, &mut command, mark, &[]).unwrap();
        while process.reap().unwrap().is_none() {
            std::thread::sleep(POLL);
        }
        process
    }

    /// Nobody must wait for the end of what it might say.
    fn quiet(command: &mut Command) -> &mut Command {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
    }

    /// A shell in a session of its own that has started a `sleep`, and says so in a file before its starter goes.
    const FAMILY: &str =
        "setsid sh -c 'sleep 1000 & echo > NAME.up; wait' & while ! [ -e NAME.up ]; do sleep 0.01; done;";

    #[test]
    fn processes_that_left_the_group_are_found_by_their_mark_and_no_others_are_ended() {
        let folder = tempfile::tempdir().unwrap();
        let process_tree = Arc::new(ProcessTree::default());
        let (mine, other) = (Mark::new("mine"), Mark::new("other"));
        let [a, b, c] = ["a", "b", "c"].map(|name| FAMILY.replace("NAME", name));
        let leader = orphans(&process_tree, &mine, folder.path(), &format!("{a}{b}"));
        let stranger = orphans(&process_tree, &other, folder.path(), &c);
        let patience = Duration::from_secs(60);
        let ended = |leftovers: Leftovers| {
            assert_eq!(leftovers.stuck, BTreeSet::new());
            leftovers.ended.len()
        };
        let mine_ended = ended(leader.end_leftovers(false, patience));
        assert_eq!(mine_ended, 4, "two shells and their children");
        let again = leader.end_leftovers(false, patience);
        assert_eq!(again, Leftovers::default());
        let spared = ended(stranger.end_leftovers(false, patience));
        assert_eq!(spared, 2, "the strangers lived until now");
    }

    #[test]
    fn a_process_tree_that_does_not_adopt_spares_children_that_are_no_tests() {
        let folder = tempfile::tempdir().unwrap();
        let (process_tree, mine) = (Arc::new(ProcessTree::default()), Mark::new("mine"));
        let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
        let leader = orphans(&process_tree, &mine, folder.path(), "true");
        let patience = Duration::from_secs(60);
        let nothing = Leftovers::default();
        assert_eq!(leader.end_leftovers(true, patience), nothing);
        assert_eq!(process_tree.end_adopted(patience), nothing);
        assert!(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn what_has_not_ended_in_time_is_stuck() {
        let folder = tempfile::tempdir().unwrap();
        let (process_tree, mine) = (Arc::new(ProcessTree::default()), Mark::new("mine"));
        let leader = orphans(&process_tree, &mine, folder.path(), &FAMILY.replace("NAME", "a"));
        // Killed, and looked at in the same moment.
        let leftovers = leader.end_leftovers(false, Duration::ZERO);
        assert_eq!((leftovers.ended.len(), leftovers.stuck.len()), (0, 2));
    }

    /// Set for a process of its own, which may adopt whatever loses its parent.
    const ADOPTS: &str = "ROCMFORGE_PROCESS_TREE_ADOPTS";

    #[test]
    fn orphans_without_a_trace_are_adopted_and_ended_and_running_tests_are_spared() {
        // Without the crate's name.
        let (_, module) = module_path!().split_once("::").unwrap();
        let name = format!("{module}::orphans_without_a_trace_are_adopted_and_ended_and_running_tests_are_spared");
        if std::env::var_os(ADOPTS).is_some() {
            adopt();
            return;
        }
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", &name]).env(ADOPTS, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
    }

    fn adopt() {
        let folder = tempfile::tempdir().unwrap();
        set_child_subreaper(Some(rustix::process::getpid())).unwrap();
        let process_tree = Arc::new(ProcessTree::with(Containment::default()));
        let patience = Duration::from_secs(60);
        let (mine, other) = (Mark::new("mine"), Mark::new("other"));
        let mut sleep = Command::new("sleep");
        let running = TestProcess::start(&process_tree, quiet(sleep.arg("1000")), &other, &[]).unwrap();
        let without_a_trace = |name: &str| FAMILY.replace("NAME", name).replace("setsid", "setsid env -i");
        let leader = orphans(&process_tree, &mine, folder.path(), &without_a_trace("a"));
        // Beside another test it may be that one's.
        let nothing = Leftovers::default();
        assert_eq!(leader.end_leftovers(false, patience), nothing);
        let leftovers = leader.end_leftovers(true, patience);
        assert_eq!((leftovers.ended.len(), leftovers.stuck.len()), (2, 0), "{leftovers:?}");

        orphans(&process_tree, &mine, folder.path(), &without_a_trace("b"));
        let leftovers = process_tree.end_adopted(patience);
        assert_eq!((leftovers.ended.len(), leftovers.stuck.len()), (2, 0), "{leftovers:?}");
        let children = processes().into_iter().filter(|one| one.parent == std::process::id());
        let children: Vec<u32> = children.map(|one| one.id).collect();
        assert_eq!(children, [running.id()], "nobody else, not even a zombie");
        assert_ne!(state_of(running.id()), Some('Z'));
        running.signal(rustix::process::Signal::KILL);
    }
}
