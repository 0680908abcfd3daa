//! Test process: started so that it, and all that it starts, can be ended for certain.

use super::containment::Contained;
use super::process_tree::{Leftovers, Mark, ProcessTree};
use crate::supervisor::poll::poll;
use rocmforge_machine::process::{add_descendants, processes, state_of};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, getppid, kill_process_group, pidfd_open, set_parent_process_death_signal, setsid,
};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time for a killed process to be reaped when a test is given up.
const REAP: Duration = Duration::from_secs(10);

/// A test's process, in a session and a group of its own and [contained](super::containment); it dies with the thread that started it. Dropping it
/// ends everything that the test started. It is reaped only by [`TestProcess::reap`] and by the drop: until then its number, and its
/// group's, cannot go to a stranger.
pub(crate) struct TestProcess {
    child: Child,
    /// Readable once the process has ended.
    ended: OwnedFd,
    group: Pid,
    contained: Contained,
    mark: Mark,
    tree: Arc<ProcessTree>,
    reaped: bool,
}

impl TestProcess {
    /// Starts `command` as a test of `tree` under `mark`, contained, and lets its process inherit `passed`.
    ///
    /// The process answers every signal in the default way, whatever this process ignores: a shell starts
    /// background jobs with SIGINT and SIGQUIT ignored, and children inherit that.
    pub(crate) fn start(
        tree: &Arc<ProcessTree>,
        command: &mut Command,
        mark: &Mark,
        passed: &[BorrowedFd<'_>],
    ) -> io::Result<Self> {
        let parent = rustix::process::getpid();
        let passed: Vec<RawFd> = passed.iter().map(std::os::fd::AsRawFd::as_raw_fd).collect();
        // SAFETY: between fork and exec the closure makes system calls only, each async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(move || in_child(parent, &passed)) };
        let (mut child, contained) = tree.spawn(command, mark)?;
        let group = Pid::from_child(&child);
        match pidfd_open(group, PidfdFlags::empty()) {
            Ok(ended) => Ok(Self {
                child,
                ended,
                group,
                contained,
                mark: mark.clone(),
                tree: tree.clone(),
                reaped: false,
            }),
            Err(error) => {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = tree.reap_one(child.id(), || child.wait().map(Some));
                Err(error.into())
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Becomes readable when the test has ended.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        match &self.contained.keeper {
            Some(keeper) => keeper.ended(),
            None => self.ended.as_fd(),
        }
    }

    /// The process itself and those that stand for it, when it has been started; in a namespace, the test is among these.
    pub(crate) fn members(&self) -> BTreeSet<u32> {
        let mut members = BTreeSet::from([self.id()]);
        if self.contained.keeper.is_some() {
            add_descendants(&processes(), &mut members);
        }
        members
    }

    /// The state of the test's process. In a namespace that is the oldest child of the first process there.
    pub(crate) fn state(&self) -> Option<char> {
        if self.contained.keeper.is_none() {
            return state_of(self.id());
        }
        let processes = processes();
        let first = processes.iter().find(|one| one.parent == self.id())?;
        let children = processes.iter().filter(|one| one.parent == first.id);
        children.min_by_key(|one| one.started).map(|test| test.state)
    }

    /// Signals the process and everything in its group.
    pub(crate) fn signal(&self, signal: Signal) {
        if !self.reaped {
            // It may have ended just now, and its group with it.
            let _ = kill_process_group(self.group, signal);
        }
    }

    /// Ends what the test left behind, its own process aside. If the test runs `alone`, every orphan is its own.
    pub(crate) fn end_leftovers(&self, alone: bool, patience: Duration) -> Leftovers {
        self.tree
            .end_leftovers(&self.mark, self.id(), &self.contained, alone, patience)
    }

    /// Ends what is in its group, where no namespace ends it.
    pub(crate) fn end_group(&self) {
        if self.contained.keeper.is_none() {
            self.signal(Signal::KILL);
        }
    }

    /// Takes the exit status of a process that has ended; `None` where it has not. A namespace ends before.
    pub(crate) fn reap(&mut self) -> io::Result<Option<ExitStatus>> {
        if let Some(keeper) = &mut self.contained.keeper {
            keeper.release();
            poll([Some(self.ended.as_fd())], REAP)?;
        }
        let status = self.tree.clone().reap_one(self.id(), || self.child.try_wait())?;
        self.reaped |= status.is_some();
        Ok(status)
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(group) = &self.contained.group {
            let _ = group.kill();
        }
        let until = Instant::now() + REAP;
        while !self.reaped && Instant::now() < until {
            if !matches!(self.reap(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// The highest number of the classic signals; real-time signals are not ignored by any program here.
const LAST_SIGNAL: libc::c_int = 31;

/// What the new process does before it becomes the test. In a session of its own it has no terminal, whose keys it could press and whose
/// foreground it could take, and cannot go into another process's group.
fn in_child(parent: Pid, passed: &[RawFd]) -> io::Result<()> {
    setsid()?;
    for number in (1..=LAST_SIGNAL).filter(|number| ![libc::SIGKILL, libc::SIGSTOP].contains(number)) {
        // SAFETY: the default action runs no code of ours.
        if unsafe { libc::signal(number, libc::SIG_DFL) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
    }
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The parent may have died before the line above, and then no signal would come.
    if getppid() != Some(parent) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    for &number in passed {
        // SAFETY: the descriptor was open in the parent when it forked, and this process has its own copy of it.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        fcntl_setfd(descriptor, FdFlags::empty())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Stdio;

    fn ignored_signals(status: &str) -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
        u64::from_str_radix(line.trim(), 16).unwrap()
    }

    #[test]
    fn a_child_heeds_the_signals_that_its_parent_ignores() {
        // SIGUSR2 stands for all: nothing else in this process uses it.
        // SAFETY: ignoring a signal runs no code of ours.
        let before = unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert_ne!(before, libc::SIG_ERR);
        let output = tempfile::tempfile().unwrap();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdin(Stdio::null());
        command.stdout(output.try_clone().unwrap());
        let mut child = TestProcess::start(&Arc::default(), &mut command, &Mark::new("cat"), &[]).unwrap();
        while child.reap().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mine = ignored_signals(&std::fs::read_to_string("/proc/self/status").unwrap());
        assert_ne!(mine & 1 << (libc::SIGUSR2 - 1), 0, "the test is set up");
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&output));
        assert_eq!(
            ignored_signals(&std::fs::read_to_string(path).unwrap()) & 0x7fff_ffff,
            0
        );
    }
}
