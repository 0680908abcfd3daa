//! Namespaces of a test: of users and mounts, and of processes unless the driver of a card must know the test by its number.
//!
//! * of users: the test's root is no root of the machine, so the memory of processes outside stays closed to it;
//! * of mounts: `/sys` with its control groups and what `/proc` has of the machine are read-only there: root may write to many of these files
//!   whatever his capabilities are, and the kernel runs the program that `core_pattern` names outside of every namespace. `/proc` shows the
//!   test's processes;
//! * of System V's shared memory, semaphores and queues: they end with the test's processes;
//! * of processes: processes outside have no number there, so nothing can stop, kill or limit them; and the kernel ends all that is left
//!   with the first process.
//!
//! With a namespace of processes three processes stand for one test: the one that the supervisor started, which waits outside and ends as
//! the test ended; the first of the namespace, which reaps orphans and, when the test has ended, lets the supervisor look at what is
//! left before it ends; and the test.

use super::cgroup;
use rustix::process::{getegid, geteuid};
use std::ffi::{CString, c_int, c_long};
use std::fs;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// What the root of a test's namespace may not do: to change its mounts, by which it would see what is hidden.
const CAP_SYS_ADMIN: c_int = 21;

/// Milliseconds that a namespace stays whose test may not have been run at all.
const NOT_RUN: c_int = 1000;

/// How namespaces are entered.
#[derive(Debug)]
pub(crate) struct Namespaces {
    /// That of users, one for the run.
    user: OwnedFd,
    /// What a test may not write to.
    machine: Machine,
    /// Whether each test has one of processes.
    processes: bool,
}

/// Paths of the machine's settings.
#[derive(Clone, Debug)]
struct Machine {
    /// `/sys`, and where control groups are mounted.
    mounts: Vec<CString>,
    /// What is in `/proc` and is no process.
    proc: Vec<CString>,
}

impl Machine {
    fn read() -> io::Result<Self> {
        let groups = cgroup::mounts(&fs::read_to_string("/proc/self/mountinfo")?);
        let mounts = ["/sys".to_owned()].into_iter().chain(groups).map(CString::new);
        let entries = fs::read_dir("/proc")?.flatten().filter(|entry| {
            let is_process = entry.file_name().as_bytes().iter().all(u8::is_ascii_digit);
            !is_process && entry.file_type().is_ok_and(|kind| !kind.is_symlink())
        });
        // Of the files those that root may write to.
        let writable = entries.filter(|entry| {
            entry
                .metadata()
                .is_ok_and(|entry| entry.is_dir() || entry.mode() & 0o222 != 0)
        });
        Ok(Self {
            mounts: mounts.collect::<Result<_, _>>()?,
            proc: writable
                .map(|entry| CString::new(entry.path().into_os_string().into_vec()))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// The supervisor's ends of two pipes to the first process of a namespace.
#[derive(Debug)]
pub(crate) struct Keeper {
    ended: PipeReader,
    go: Option<PipeWriter>,
}

/// The other ends. To be dropped when the test's process has been started.
pub(crate) struct ChildEnds {
    ended: PipeWriter,
    go: PipeReader,
}

impl Keeper {
    fn make() -> io::Result<(Self, ChildEnds)> {
        let ((ended, says), (waits, go)) = (io::pipe()?, io::pipe()?);
        let keeper = Self { ended, go: Some(go) };
        Ok((keeper, ChildEnds { ended: says, go: waits }))
    }

    /// Becomes readable when the test has ended.
    pub(crate) fn ended(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }

    /// Lets the namespace end, with all that is left in it.
    pub(crate) fn release(&mut self) {
        self.go = None;
    }
}

impl Namespaces {
    /// Makes a namespace of users for a run, and tries whether a test can begin in it. `None` where that is not allowed.
    pub(crate) fn make(processes: bool) -> Option<Self> {
        // Without close_range (before Linux 5.9) the two other processes would hold the test's descriptors.
        // SAFETY: no descriptor has this number.
        if unsafe { libc::syscall(libc::SYS_close_range, c_int::MAX, c_int::MAX, 0) } != 0 {
            return None;
        }
        let made = Self {
            user: user_namespace().ok()?,
            machine: Machine::read().ok()?,
            processes,
        };
        made.works().unwrap_or(false).then_some(made)
    }

    fn works(&self) -> io::Result<bool> {
        let mut command = Command::new("/bin/sh");
        // Where processes have numbers of their own, ours is nobody's.
        let script = match self.processes {
            true => format!("kill -0 {} 2>/dev/null || exit 7", std::process::id()),
            false => "exit 7".to_owned(),
        };
        command.args(["-c", &script]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let entered = self.enter(&mut command)?;
        let mut child = command.spawn()?;
        drop(entered);
        Ok(child.wait()?.code() == Some(7))
    }

    /// Lets `command`'s process begin in the namespaces. What watches the namespace of processes, where there is one.
    pub(crate) fn enter(&self, command: &mut Command) -> io::Result<Option<(Keeper, ChildEnds)>> {
        let keeper = self.processes.then(Keeper::make).transpose()?;
        let ends = keeper
            .as_ref()
            .map(|(_, ends)| (ends.ended.as_raw_fd(), ends.go.as_raw_fd()));
        let (user, machine) = (self.user.try_clone()?, self.machine.clone());
        let parent = std::process::id();
        let enter = move || {
            in_child(&user, &machine, ends)?;
            match ends {
                // Entering a namespace of users may take the signal back.
                None => die_with_parent(parent),
                Some(_) => Ok(()),
            }
        };
        // SAFETY: between fork and exec the closure makes system calls only, each async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(enter) };
        Ok(keeper)
    }
}

/// Makes a namespace of users in which everybody has the number that he has here: all of them where this process may say so, else this
/// user and his group.
fn user_namespace() -> io::Result<OwnedFd> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "read -r _"]).env_clear();
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: unshare takes flags only.
    let enter = || checked(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop);
    // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(enter) };
    let mut child = command.spawn()?;
    let folder = format!("/proc/{}", child.id());
    let put = |file: &str, text: &str| fs::write(format!("{folder}/{file}"), text);
    let all = |file: &str| put(file, &same_numbers(&fs::read_to_string(format!("/proc/self/{file}"))?));
    let made = (all("gid_map").and_then(|()| all("uid_map")))
        .or_else(|_| {
            put("setgroups", "deny")?;
            put("gid_map", &format!("{0} {0} 1", getegid().as_raw()))?;
            put("uid_map", &format!("{0} {0} 1", geteuid().as_raw()))
        })
        .and_then(|()| fs::File::open(format!("{folder}/ns/user")));
    drop(child.stdin.take());
    child.wait()?;
    Ok(made?.into())
}

/// A map of ids that gives each number of the map `ours` to itself.
fn same_numbers(ours: &str) -> String {
    let extents = ours.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (first, count) = (fields.next()?, fields.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    });
    extents.collect()
}

/// Enters the namespaces and returns in the test. `ends` are the descriptors of [`ChildEnds`], where processes get a namespace.
fn in_child(user: &OwnedFd, machine: &Machine, ends: Option<(c_int, c_int)>) -> io::Result<()> {
    // No test may trace this process, or one that it forks, which could still change mounts. A program that is run can be traced again.
    // SAFETY: prctl takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) })?;
    // SAFETY: the descriptor is open, and this process has one thread.
    checked(unsafe { libc::setns(user.as_raw_fd(), libc::CLONE_NEWUSER) })?;
    let processes = if ends.is_some() { libc::CLONE_NEWPID } else { 0 };
    // SAFETY: unshare takes flags only.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWCGROUP | libc::CLONE_NEWIPC | processes) })?;
    machine.mounts.iter().try_for_each(make_read_only)?;
    match ends {
        Some((ended, go)) => {
            // The outer process holds the writing end of `alive` as long as it lives; the first process writes how the test ended.
            let (alive, status) = (pipe()?, pipe()?);
            // SAFETY: getpid takes nothing.
            let number = unsafe { libc::getpid() };
            // SAFETY: fork in a process with one thread, as every process between fork and exec has.
            match checked(unsafe { libc::fork() })? {
                0 => first_process(number, machine, alive, [ended, status[1], go])?,
                first => outer_process(first, alive, status),
            }
        }
        None => machine.proc.iter().try_for_each(bind_read_only)?,
    }
    // SAFETY: prctl takes numbers only. Without it in the bounding set no program that is run has the capability.
    checked(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, CAP_SYS_ADMIN) }).map(drop)
}

/// Mounts what is at a path onto itself, read-only.
fn bind_read_only(path: &CString) -> io::Result<()> {
    let (flags, none) = (libc::MS_BIND | libc::MS_REC, std::ptr::null());
    // SAFETY: the paths are C strings, and the rest is numbers or null.
    let bound = unsafe { libc::mount(path.as_ptr(), path.as_ptr(), none, flags, none.cast()) };
    match checked(bound) {
        // What has gone meanwhile.
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        Err(error) => Err(error),
        Ok(_) => make_read_only(path),
    }
}

/// Makes a mount of this process's namespace read-only, with those below it. No path leads to a mount that another one covers.
fn make_read_only(path: &CString) -> io::Result<()> {
    let change = libc::mount_attr {
        attr_set: libc::MOUNT_ATTR_RDONLY,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    // SAFETY: path and attributes are live, and the length is that of the attributes.
    let changed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const change,
            size_of::<libc::mount_attr>(),
        )
    };
    match checked_long(changed) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOENT)) => Ok(()),
        other => other.map(drop),
    }
}

/// The first process of a namespace: starts the test, as the process `number` if it can, reaps orphans, and when the test has ended says
/// so, waits until it may go, and ends. `[ended, status, go]` are its descriptors.
fn first_process(number: c_int, machine: &Machine, alive: [c_int; 2], ends: [c_int; 3]) -> io::Result<()> {
    die_with_any_parent()?;
    close(alive[1], alive[1]);
    // The outer process may have died before the line above; no signal would come.
    if is_readable(alive[0], 0) {
        return Err(io::ErrorKind::NotConnected.into());
    }
    // A container may not allow it. Then the test sees processes in `/proc` that it cannot name to the kernel.
    // SAFETY: the arguments are C strings, numbers, or null.
    unsafe {
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        libc::mount(
            c"proc".as_ptr(),
            c"/proc".as_ptr(),
            c"proc".as_ptr(),
            flags,
            std::ptr::null(),
        );
    }
    machine.proc.iter().try_for_each(bind_read_only)?;
    let test = fork_as(number)?;
    if test == 0 {
        return die_with_any_parent();
    }
    handle(libc::SIGPIPE, libc::SIG_IGN);
    close_all_but(ends);
    let [ended, says, go] = ends;
    loop {
        let (one, status) = wait(-1);
        if one == test {
            let _ = write(ended, b"!");
            // Until the other end is closed, or the supervisor is gone. A process whose program cannot be run ends with 1, and then the
            // supervisor waits for this one.
            let not_run = libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 1;
            is_readable(go, if not_run { NOT_RUN } else { -1 });
            let _ = write(says, &status.to_ne_bytes());
            exit(0);
        }
    }
}

/// Forks. The child gets the number `number`, which no other test has at this time, unless that is taken: programs call files after it.
fn fork_as(number: c_int) -> io::Result<c_int> {
    let numbers = [number];
    // SAFETY: all zeros are arguments that ask for nothing.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.exit_signal = libc::SIGCHLD as u64;
    arguments.set_tid = numbers.as_ptr() as u64;
    arguments.set_tid_size = 1;
    // SAFETY: the arguments are live, with their length. Without a stack of its own the child goes on as after fork, in a process with
    // one thread.
    let child = unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) };
    match checked_long(child) {
        // SAFETY: as above.
        Err(_) => checked(unsafe { libc::fork() }),
        Ok(child) => Ok(child as c_int),
    }
}

/// The process that the supervisor knows: it ends as the test ended.
fn outer_process(first: c_int, alive: [c_int; 2], status: [c_int; 2]) -> ! {
    // Signals for its group are for the test; this process only waits.
    for signal in [libc::SIGQUIT, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        handle(signal, libc::SIG_IGN);
    }
    close_all_but([alive[1], status[0], status[0]]);
    while wait(first).0 < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
    let mut bytes = [0; 4];
    // The first process may have been killed before it could say more.
    let status = match read(status[0], &mut bytes) {
        4 => c_int::from_ne_bytes(bytes),
        _ => libc::SIGKILL,
    };
    if libc::WIFSIGNALED(status) {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: `none` is a live limit that the call reads. One core file, the test's own, is enough.
        unsafe { libc::setrlimit(libc::RLIMIT_CORE, &raw const none) };
        handle(libc::WTERMSIG(status), libc::SIG_DFL);
        // SAFETY: raise takes a number only.
        unsafe { libc::raise(libc::WTERMSIG(status)) };
        exit(1);
    }
    exit(libc::WEXITSTATUS(status))
}

fn die_with_any_parent() -> io::Result<()> {
    // SAFETY: prctl takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

fn die_with_parent(parent: u32) -> io::Result<()> {
    die_with_any_parent()?;
    // It may have died before the line above, and then no signal would come.
    // SAFETY: getppid takes nothing.
    match unsafe { libc::getppid() }.cast_unsigned() == parent {
        true => Ok(()),
        false => Err(io::ErrorKind::NotConnected.into()),
    }
}

/// Closes the descriptors from `first` to `last`; what they stand for is not used again in this process.
fn close(first: c_int, last: c_int) {
    if first <= last {
        // SAFETY: close_range takes numbers only. This process is a copy with nothing that would use the descriptors again.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

/// Closes every descriptor but three.
fn close_all_but(mut kept: [c_int; 3]) {
    kept.sort_unstable();
    let mut from = 0;
    for one in kept {
        close(from, one - 1);
        from = one + 1;
    }
    close(from, c_int::MAX);
}

/// Whether a descriptor is readable, or closed at its other end, within some milliseconds, or ever for -1.
fn is_readable(file: c_int, milliseconds: c_int) -> bool {
    let mut poll = libc::pollfd {
        fd: file,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: `poll` is one live entry.
    unsafe { libc::poll(&raw mut poll, 1, milliseconds) > 0 }
}

fn read(file: c_int, bytes: &mut [u8]) -> isize {
    // SAFETY: the buffer is live and as long as the length passed to the call.
    unsafe { libc::read(file, bytes.as_mut_ptr().cast(), bytes.len()) }
}

fn handle(signal: c_int, action: libc::sighandler_t) {
    // SAFETY: both actions that are used here, to ignore and the default, run no code of ours.
    unsafe { libc::signal(signal, action) };
}

/// Waits for a child: `which`, or any for -1. Its number, or what waitpid says instead, and its status.
fn wait(which: c_int) -> (c_int, c_int) {
    let mut status = 0;
    // SAFETY: `status` is a live int that the call writes.
    let one = unsafe { libc::waitpid(which, &raw mut status, 0) };
    (one, status)
}

fn write(file: c_int, text: &[u8]) -> io::Result<()> {
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let written = unsafe { libc::write(file, text.as_ptr().cast(), text.len()) };
    match usize::try_from(written) == Ok(text.len()) {
        true => Ok(()),
        false => Err(io::Error::last_os_error()),
    }
}

fn exit(code: c_int) -> ! {
    // SAFETY: _exit runs no code of ours.
    unsafe { libc::_exit(code) }
}

fn pipe() -> io::Result<[c_int; 2]> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is an array of two that the call writes.
    checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok(ends)
}

fn checked(answer: c_int) -> io::Result<c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

fn checked_long(answer: c_long) -> io::Result<c_long> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// How a shell script ends in namespaces.
    fn status(processes: bool, script: &str) -> Option<std::process::ExitStatus> {
        let Some(namespaces) = Namespaces::make(processes) else {
            tell!("SKIP no namespaces can be made here");
            return None;
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        let entered = namespaces.enter(&mut command).unwrap();
        let mut child = command.spawn().expect("started");
        drop(entered);
        Some(child.wait().unwrap())
    }

    #[test]
    fn a_contained_process_ends_as_it_ended() {
        for processes in [true, false] {
            let Some(seven) = status(processes, "exit 7") else {
                return;
            };
            assert_eq!(seven.code(), Some(7));
            for (name, number) in [("SEGV", libc::SIGSEGV), ("KILL", libc::SIGKILL)] {
                let ended = status(processes, &format!("kill -{name} $$")).unwrap();
                assert_eq!(ended.signal(), Some(number), "{processes}");
            }
        }
    }

    #[test]
    fn a_program_that_cannot_be_run_is_an_error() {
        let Some(namespaces) = Namespaces::make(true) else {
            return;
        };
        let mut command = Command::new("/no/such/file");
        let _entered = namespaces.enter(&mut command).unwrap();
        assert_eq!(command.spawn().unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn what_it_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let beat = folder.path().join("beat");
        // Beats in a session of its own, without its environment.
        let script = format!(
            "setsid env -i sh -c 'while :; do echo >> {0}; sleep 0.01; done' & while ! [ -s {0} ]; do sleep 0.01; done",
            beat.display()
        );
        if status(true, &script).is_none() {
            return;
        }
        let size = || fs::metadata(&beat).unwrap().len();
        let before = size();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(size(), before, "it beats no more");
    }

    #[test]
    fn nothing_outside_can_be_named_or_changed() {
        let me = std::process::id();
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        for (processes, script) in [
            (true, format!("kill -STOP {me}")),
            (true, format!("prlimit --pid {me} --fsize=0")),
            (true, format!("true > /proc/{me}/mem")),
            (false, format!("true > /proc/{me}/mem")),
            (false, format!("true > /proc/{}/mem", sleep.id())),
            (true, "umount /proc".to_owned()),
            (false, "mount -o remount,rw /sys/fs/cgroup".to_owned()),
        ] {
            let Some(ended) = status(processes, &format!("{script} 2>/dev/null && exit 0; exit 7")) else {
                break;
            };
            assert_eq!(ended.code(), Some(7), "{script}");
        }
        sleep.kill().unwrap();
        sleep.wait().unwrap();
    }

    #[test]
    fn control_groups_are_read_only_and_files_are_not() {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let folder = tempfile::tempdir().unwrap();
        for processes in [true, false] {
            for group in cgroup::mounts(&mounts) {
                let script = format!("mkdir {group}/rocmforge-x 2>/dev/null && exit 0; exit 7");
                let Some(ended) = status(processes, &script) else {
                    return;
                };
                assert_eq!(ended.code(), Some(7), "{group}");
            }
            let script = format!("echo > {}/file-{processes}", folder.path().display());
            let Some(ended) = status(processes, &script) else {
                return;
            };
            assert!(ended.success());
        }
    }

    #[test]
    fn each_process_has_the_number_that_it_has_outside() {
        // The outer process writes nothing; its number is the one that the supervisor knows.
        let Some(namespaces) = Namespaces::make(true) else {
            return;
        };
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "echo $$ > number"]).current_dir(folder.path());
        let entered = namespaces.enter(&mut command).unwrap();
        let mut child = command.spawn().unwrap();
        drop(entered);
        assert!(child.wait().unwrap().success());
        let number = fs::read_to_string(folder.path().join("number")).unwrap();
        let number: u32 = number.trim().parse().unwrap();
        // 2 where the kernel does not let one choose.
        assert!(number == child.id() || number == 2, "{number}");
    }

    #[test]
    fn a_map_gives_each_number_to_itself() {
        assert_eq!(same_numbers("         0          0 4294967295\n"), "0 0 4294967295\n");
        assert_eq!(same_numbers("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
        assert_eq!(same_numbers("nonsense"), "");
    }
}
