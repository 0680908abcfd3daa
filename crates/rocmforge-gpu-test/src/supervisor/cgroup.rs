//! Control groups (version 2) of a run: one for the run, in it one for each test.
//!
//! A process cannot leave its group by forking, by leaving its session or by clearing its environment, and `cgroup.kill` ends all
//! of a group in one step. A guard, a shell that waits for the end of a pipe, does the same if the supervisor itself is killed.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at a group that is being ended.
const POLL: Duration = Duration::from_millis(2);
/// Time for the guard to end once the run's group is gone.
const GUARD: Duration = Duration::from_secs(5);

/// What the guard does: `$0` is the run's group.
const SCRIPT: &str = r#"read -r _
[ -d "$0" ] || exit 0
echo 1 > "$0/cgroup.kill"
n=0
until find "$0" -depth -type d -exec rmdir {} + 2>/dev/null || [ ! -d "$0" ] || [ "$n" -ge 600 ]; do
    n=$((n + 1))
    sleep 0.1
done"#;

/// The group of a run. Dropping it ends everything in it.
pub(crate) struct RunCgroup {
    path: PathBuf,
    tests: AtomicU64,
    guard: Child,
    /// The guard waits for its end.
    alive: Option<PipeWriter>,
}

/// The group of a test. Dropping it ends everything in it.
pub(crate) struct TestCgroup {
    path: PathBuf,
    processes: File,
}

impl RunCgroup {
    /// Makes a group below this process's own, and puts a process into it to see that it works.
    pub(crate) fn make() -> io::Result<Self> {
        let own = own_group(
            &fs::read_to_string("/proc/self/mountinfo")?,
            &fs::read_to_string("/proc/self/cgroup")?,
        );
        let own = own.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))?;
        Self::make_in(&own)
    }

    fn make_in(own: &Path) -> io::Result<Self> {
        let path = own.join(format!("rocmforge-{}", std::process::id()));
        fs::create_dir(&path)?;
        let made = Self::try_in(&path).and_then(|()| guard(&path));
        let (guard, alive) = made.inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(Self {
            path,
            tests: AtomicU64::new(0),
            guard,
            alive: Some(alive),
        })
    }

    fn try_in(path: &Path) -> io::Result<()> {
        let probe = TestCgroup::make(path.join("probe"))?;
        let mut command = Command::new("/bin/sh");
        command.args(["-c", ":"]).stdin(Stdio::null());
        probe.admit(&mut command)?;
        let status = command.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("a process in a cgroup ended with {status}")));
        }
        probe.kill()
    }

    /// Makes the group of a further test.
    pub(crate) fn test(&self) -> io::Result<TestCgroup> {
        let number = self.tests.fetch_add(1, Ordering::Relaxed);
        TestCgroup::make(self.path.join(format!("test-{number}")))
    }

    /// The number of the guard's process.
    pub(crate) fn guard(&self) -> u32 {
        self.guard.id()
    }
}

impl Drop for RunCgroup {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("cgroup.kill"), "1");
        remove(&self.path, GUARD);
        drop(self.alive.take());
        let until = Instant::now() + GUARD;
        while matches!(self.guard.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                if let Ok(pid) = i32::try_from(self.guard.id())
                    && let Some(pid) = Pid::from_raw(pid)
                {
                    let _ = kill_process(pid, Signal::KILL);
                }
                let _ = self.guard.wait();
                return;
            }
            std::thread::sleep(POLL);
        }
    }
}

impl TestCgroup {
    fn make(path: PathBuf) -> io::Result<Self> {
        fs::create_dir(&path)?;
        let processes = OpenOptions::new().write(true).open(path.join("cgroup.procs"));
        let usable = processes.and_then(|processes| fs::metadata(path.join("cgroup.kill")).map(|_| processes));
        match usable {
            Ok(processes) => Ok(Self { path, processes }),
            Err(error) => {
                let _ = fs::remove_dir(&path);
                Err(error)
            }
        }
    }

    /// Lets `command`'s process begin in the group.
    pub(crate) fn admit(&self, command: &mut Command) -> io::Result<()> {
        let processes = self.processes.try_clone()?;
        let enter = move || {
            // "0" is the process that writes.
            // SAFETY: the buffer is a constant of one byte, and the descriptor is owned by the closure.
            match unsafe { libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) } {
                1 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        };
        // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(enter) };
        Ok(())
    }

    /// Numbers of the processes in the group and in groups that were made below it.
    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut found = Vec::new();
        collect(&self.path, &mut found, 0);
        found
    }

    /// Ends every process of the group and of groups below it.
    pub(crate) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Whether no process is left, a zombie aside.
    pub(crate) fn is_empty(&self) -> bool {
        let events = fs::read_to_string(self.path.join("cgroup.events")).unwrap_or_default();
        events.lines().any(|line| line == "populated 0")
    }
}

impl Drop for TestCgroup {
    fn drop(&mut self) {
        let _ = self.kill();
        remove(&self.path, GUARD);
    }
}

/// Most levels of groups that a test may have made and that are looked at.
const DEEPEST: usize = 16;

fn collect(path: &Path, found: &mut Vec<u32>, depth: usize) {
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    found.extend(processes.lines().filter_map(|line| line.parse::<u32>().ok()));
    if depth < DEEPEST {
        subgroups(path).for_each(|below| collect(&below, found, depth + 1));
    }
}

fn subgroups(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
}

/// Removes a group and those below it, as soon as their processes are gone.
fn remove(path: &Path, patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        remove_empty(path, 0);
        if !path.exists() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(POLL);
    }
}

fn remove_empty(path: &Path, depth: usize) {
    if depth < DEEPEST {
        subgroups(path).for_each(|below| remove_empty(&below, depth + 1));
    }
    let _ = fs::remove_dir(path);
}

/// Starts the guard of a run's group.
fn guard(path: &Path) -> io::Result<(Child, PipeWriter)> {
    let (from, to) = io::pipe()?;
    let child = Command::new("/bin/sh")
        .args(["-c", SCRIPT])
        .arg(path)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .stdin(from)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C is for the supervisor.
        .process_group(0)
        .spawn()?;
    let mut to = to;
    to.flush()?;
    Ok((child, to))
}

/// The directory of this process's own group in the hierarchy of version 2.
fn own_group(mounts: &str, groups: &str) -> Option<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let mount = mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let fields: Vec<&str> = before.split(' ').collect();
        after
            .starts_with("cgroup2 ")
            .then(|| (fields.get(3).copied(), fields.get(4).copied()))
    });
    let (root, at) = mount?;
    let below = own.strip_prefix(root?.trim_end_matches('/')).unwrap_or(own);
    Some(Path::new(&unescaped(at?)).join(below.trim_start_matches('/')))
}

/// A mount point as mountinfo writes it: blanks and backslashes are three octal digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..3).filter(|_| first == b'\\');
        let code = code.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_group_is_found_among_the_mounts() {
        let hybrid = "29 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      40 24 0:36 / /sys/fs/cgroup/uni\\040fied rw shared:9 - cgroup2 cgroup2 rw\n";
        let found = own_group(hybrid, "9:name=systemd:/\n0::/user.slice/app.scope\n");
        assert_eq!(
            found,
            Some(PathBuf::from("/sys/fs/cgroup/uni fied/user.slice/app.scope"))
        );
        let namespaced = "40 24 0:36 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let found = own_group(namespaced, "0::/docker/abc/x\n");
        assert_eq!(found, Some(PathBuf::from("/sys/fs/cgroup/x")));
        assert_eq!(own_group(namespaced, "1:cpu:/\n"), None);
        assert_eq!(own_group("", "0::/\n"), None);
        assert_eq!(unescaped("a\\04"), "a\\04");
    }
}
