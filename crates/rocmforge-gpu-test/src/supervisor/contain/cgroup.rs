//! Control groups (version 2) of a run: one for the run, in it one for each test.
//!
//! A process cannot leave its group by forking, by leaving its session or by clearing its environment, and `cgroup.kill` ends all
//! of a group in one step. A guard, a shell that waits for the end of a pipe, does the same if the supervisor itself is killed. What a
//! run leaves whose guard was killed too is removed by the next run: each holds a lock on its group's folder. A process that may write
//! to the files of another group can leave its own; [namespaces](super::namespaces) keep it from that.

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, flock, openat, unlinkat};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::{CStr, CString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, PipeWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The first part of the name of a run's group.
const NAME: &str = "rocmforge-";
/// Levels of groups below a run's: the tests', and none that tests make.
const LEVELS: &str = "1";
/// Time between two looks at a group that is being ended.
const POLL: Duration = Duration::from_millis(2);
/// Time for the guard to end once the run's group is gone.
const GUARD: Duration = Duration::from_secs(5);
/// Time for the group of a run that has ended.
const LEFT: Duration = Duration::from_secs(2);

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
    /// The group's folder, locked as long as this run lives.
    _folder: OwnedFd,
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
        remove_left(own);
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let path = own.join(format!("{NAME}{}-{}-{}", std::process::id(), now.tv_sec, now.tv_nsec));
        fs::create_dir(&path)?;
        let made = lock(&path).and_then(|folder| {
            // Another run may have taken it for one that was left.
            fs::write(path.join("cgroup.max.depth"), LEVELS)?;
            Self::try_in(&path)?;
            Ok((folder, guard(&path)?))
        });
        let (folder, (guard, alive)) = made.inspect_err(|_| {
            let _ = fs::remove_dir(&path);
        })?;
        Ok(Self {
            path,
            _folder: folder,
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

/// Most levels of groups below a test's in which processes are looked for. A test that writes to the limit of the run's group can make
/// more; what is in them is ended, and not named.
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

/// Takes the lock on a group's folder, which is given up with the descriptor.
fn lock(path: &Path) -> io::Result<OwnedFd> {
    let folder = fs::File::open(path)?;
    flock(&folder, FlockOperation::NonBlockingLockExclusive)?;
    Ok(folder.into())
}

/// Ends and removes the groups of runs that have ended.
fn remove_left(own: &Path) {
    let is_run = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(NAME))
    };
    for path in subgroups(own).filter(is_run) {
        if let Ok(_locked) = lock(&path) {
            let _ = fs::write(path.join("cgroup.kill"), "1");
            remove(&path, LEFT);
        }
    }
}

/// Removes a group and those below it, as soon as their processes are gone.
fn remove(path: &Path, patience: Duration) {
    let until = Instant::now() + patience;
    loop {
        let _ = remove_below(path, until);
        let _ = fs::remove_dir(path);
        if !path.exists() || Instant::now() >= until {
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Removes the empty groups below one, however deep they are: always the first without groups of its own, by way of one descriptor.
fn remove_below(path: &Path, until: Instant) -> io::Result<()> {
    let open = |at: &OwnedFd, name: &CStr| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(at, name, flags, Mode::empty())
    };
    let mut folder: OwnedFd = fs::File::open(path)?.into();
    let mut way: Vec<CString> = Vec::new();
    while Instant::now() < until {
        let mut entries = Dir::read_from(&folder)?;
        let below = entries.find_map(|entry| {
            let entry = entry.ok()?;
            let is_group = entry.file_type() == FileType::Directory && !entry.file_name().to_bytes().starts_with(b".");
            is_group.then(|| entry.file_name().to_owned())
        });
        match (below, way.pop()) {
            (Some(below), name) => {
                folder = open(&folder, &below)?;
                way.extend(name);
                way.push(below);
            }
            (None, Some(name)) => {
                folder = open(&folder, c"..")?;
                unlinkat(&folder, &name, AtFlags::REMOVEDIR)?;
            }
            (None, None) => break,
        }
    }
    Ok(())
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

/// Where control groups of either version are mounted.
pub(crate) fn mounts(mounts: &str) -> Vec<String> {
    let found = mounts.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let is_group = ["cgroup ", "cgroup2 "].iter().any(|kind| after.starts_with(kind));
        let at = before.split(' ').nth(4)?;
        is_group.then(|| unescaped(at))
    });
    found.collect()
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
        assert_eq!(mounts(hybrid), ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/uni fied"]);
    }

    /// This process's own group, where it may make groups below it.
    fn usable() -> Option<PathBuf> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let own = own_group(&mounts, &fs::read_to_string("/proc/self/cgroup").unwrap());
        let made = own.filter(|own| RunCgroup::make_in(own).is_ok());
        if made.is_none() {
            tell!("SKIP no control group can be made here");
        }
        made
    }

    #[test]
    fn groups_of_a_run_that_was_killed_are_removed_by_the_next_and_those_of_a_run_that_lives_are_not() {
        let Some(own) = usable() else { return };
        let left = own.join("rocmforge-0-left");
        let mut deepest = left.clone();
        // Deeper than any path may be long.
        let mut folder: OwnedFd = fs::File::open(&own).unwrap().into();
        for level in 0..60 {
            let name = if level == 0 {
                "rocmforge-0-left".to_owned()
            } else {
                "x".repeat(200)
            };
            deepest.push(&name);
            rustix::fs::mkdirat(&folder, &name, Mode::RWXU).unwrap();
            folder = openat(&folder, &name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
        let mut sleep = Command::new("sleep").arg("1000").spawn().unwrap();
        let procs = openat(&folder, "cgroup.procs", OFlags::WRONLY, Mode::empty()).unwrap();
        rustix::io::write(&procs, sleep.id().to_string().as_bytes()).unwrap();
        drop((procs, folder));
        let first = RunCgroup::make_in(&own).unwrap();
        assert!(!left.exists(), "the one that was left is gone");
        assert!(!sleep.wait().unwrap().success(), "and ended");
        let second = RunCgroup::make_in(&own).unwrap();
        assert!(first.path.exists() && second.path.exists());
        // A test can make no group below its own.
        let test = first.test().unwrap();
        assert!(fs::create_dir(test.path.join("below")).is_err());
        drop(test);
        let path = first.path.clone();
        drop(first);
        assert!(!path.exists());
    }
}
