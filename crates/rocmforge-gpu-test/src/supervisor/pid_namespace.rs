//! PID namespaces: the processes of a test die with the first process of their namespace, whatever they did to hide.
//!
//! Three processes stand for one test: the one that the supervisor started, which waits outside and ends as the test ended; the first
//! of the namespace, which reaps orphans and ends when the test has; and the test.

use std::ffi::c_int;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// The largest text of a map of ids: `0123456789 0123456789 1`.
const MAP: usize = 32;

/// How a namespace is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PidNamespace {
    /// Maps of user and group, where a user namespace is needed to make one of processes.
    maps: Option<[([u8; MAP], usize); 2]>,
}

impl PidNamespace {
    /// Finds out whether a namespace can be made here, by making one.
    pub(crate) fn probe() -> Option<Self> {
        // Without close_range (before Linux 5.9) the two other processes would hold the test's descriptors.
        // SAFETY: no descriptor has this number.
        if unsafe { libc::syscall(libc::SYS_close_range, c_int::MAX, c_int::MAX, 0) } != 0 {
            return None;
        }
        let uid = rustix::process::getuid().as_raw();
        let gid = rustix::process::getgid().as_raw();
        let plain = Self { maps: None };
        let with_user = Self {
            maps: Some([map(uid), map(gid)]),
        };
        [plain, with_user].into_iter().find(|way| way.works())
    }

    fn works(self) -> bool {
        let mut command = Command::new("/bin/sh");
        // The second process of its namespace.
        command.args(["-c", "[ $$ = 2 ] && exit 7"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.enter(&mut command);
        command.status().is_ok_and(|status| status.code() == Some(7))
    }

    /// Lets `command`'s process begin in a namespace of its own.
    pub(crate) fn enter(self, command: &mut Command) {
        // SAFETY: between fork and exec the closure makes system calls only, each async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(move || self.in_child()) };
    }

    /// Returns in the test; the two others never return.
    fn in_child(self) -> io::Result<()> {
        let flags = libc::CLONE_NEWPID | if self.maps.is_some() { libc::CLONE_NEWUSER } else { 0 };
        // SAFETY: unshare takes flags only.
        checked(unsafe { libc::unshare(flags) })?;
        if let Some([user, group]) = &self.maps {
            put(c"/proc/self/setgroups", b"deny")?;
            put(c"/proc/self/uid_map", &user.0[..user.1])?;
            put(c"/proc/self/gid_map", &group.0[..group.1])?;
        }
        // The outer process holds the writing end of `alive` as long as it lives; the first process writes how the test ended.
        let (alive, ended) = (pipe()?, pipe()?);
        // SAFETY: fork in a process with one thread, as every process between fork and exec has.
        match checked(unsafe { libc::fork() })? {
            0 => first_process(alive, ended),
            first => outer_process(first, alive, ended),
        }
    }
}

/// The first process of the namespace: starts the test, reaps orphans, and ends with the test.
fn first_process(alive: [c_int; 2], ended: [c_int; 2]) -> io::Result<()> {
    die_with_parent()?;
    close(alive[1], alive[1]);
    let mut poll = libc::pollfd {
        fd: alive[0],
        events: 0,
        revents: 0,
    };
    // SAFETY: `poll` is one live entry. The outer process may have died before the line above; no signal would come.
    if unsafe { libc::poll(&raw mut poll, 1, 0) } != 0 {
        return Err(io::ErrorKind::NotConnected.into());
    }
    // SAFETY: as in `in_child`.
    let test = checked(unsafe { libc::fork() })?;
    if test == 0 {
        return die_with_parent();
    }
    close(0, ended[1] - 1);
    close(ended[1] + 1, c_int::MAX);
    loop {
        let (one, status) = wait(-1);
        if one == test {
            let _ = write(ended[1], &status.to_ne_bytes());
            exit(0);
        }
    }
}

/// The process that the supervisor knows: it ends as the test ended.
fn outer_process(first: c_int, alive: [c_int; 2], ended: [c_int; 2]) -> ! {
    // Signals for its group are for the test; this process only waits.
    for signal in [libc::SIGQUIT, libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        handle(signal, libc::SIG_IGN);
    }
    close(ended[1], ended[1]);
    // Everything but the two that are still needed.
    let (low, high) = (alive[1].min(ended[0]), alive[1].max(ended[0]));
    close(0, low - 1);
    close(low + 1, high - 1);
    close(high + 1, c_int::MAX);
    while wait(first).0 < 0 && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {}
    let mut bytes = [0; 4];
    // SAFETY: the buffer is live and as long as the length passed to the call.
    let got = unsafe { libc::read(ended[0], bytes.as_mut_ptr().cast(), bytes.len()) };
    // The first process was killed before it could say more.
    let status = if got == 4 {
        c_int::from_ne_bytes(bytes)
    } else {
        libc::SIGKILL
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

fn die_with_parent() -> io::Result<()> {
    // SAFETY: prctl takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Closes the descriptors from `first` to `last`; what they stand for is not used again in this process.
fn close(first: c_int, last: c_int) {
    if first <= last {
        // SAFETY: close_range takes numbers only. This process is a copy with nothing that would use the descriptors again.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
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

fn put(path: &std::ffi::CStr, text: &[u8]) -> io::Result<()> {
    // SAFETY: the path is a C string.
    let file = checked(unsafe { libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) })?;
    let written = write(file, text);
    close(file, file);
    written
}

fn checked(answer: c_int) -> io::Result<c_int> {
    if answer < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(answer)
    }
}

/// `id id 1`: the same number inside and outside.
fn map(id: u32) -> ([u8; MAP], usize) {
    let text = format!("{id} {id} 1");
    let mut bytes = [0; MAP];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    (bytes, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn status(script: &str) -> Option<std::process::ExitStatus> {
        let Some(namespace) = PidNamespace::probe() else {
            tell!("SKIP no PID namespace can be made here");
            return None;
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]).stdin(Stdio::null());
        namespace.enter(&mut command);
        Some(command.status().expect("started"))
    }

    #[test]
    fn a_contained_process_ends_as_it_ended() {
        let Some(seven) = status("exit 7") else { return };
        assert_eq!(seven.code(), Some(7));
        assert_eq!(
            status("kill -SEGV $$").and_then(|status| status.signal()),
            Some(libc::SIGSEGV)
        );
        assert_eq!(
            status("kill -KILL $$").and_then(|status| status.signal()),
            Some(libc::SIGKILL)
        );
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
        if status(&script).is_none() {
            return;
        }
        let size = || std::fs::metadata(&beat).unwrap().len();
        let before = size();
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert_eq!(size(), before, "it beats no more");
    }
}
