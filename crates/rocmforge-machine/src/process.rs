//! Processes: state, parent and identity as `/proc` shows them, and signals that reach no successor.
//!
//! A number alone does not name a process: it is given again when its process is gone. Number and start time do, within
//! one boot and one pair of name spaces ([`Sysfs::boot_id`], [`Sysfs::name_spaces`]).

use crate::file::{self, ReadError};
use crate::sysfs::Sysfs;
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};
use std::collections::BTreeSet;
use std::path::Path;

/// More than the arguments and the environment of a process can have: the kernel allows 6 MiB together.
const ENVIRONMENT: u64 = 8 << 20;

/// A process as `/proc/<number>/stat` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its name, which the process can change to anything of 15 bytes.
    pub name: String,
    /// `R`unning, `S`leeping, `D` waiting in the kernel, s`T`opped, `Z`ombie, `X` dead. It is the main thread's.
    pub state: char,
    /// The number of its parent.
    pub parent: u32,
    /// How many threads it has; a zombie counts as one.
    pub threads: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// Identity of a process on this machine until the next boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProcessId {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since boot.
    pub started: u64,
}

/// All processes that this machine's `/proc` shows now.
pub fn processes() -> Vec<Process> {
    Sysfs::host().processes()
}

/// The state of a process of this machine, as in [`Process::state`]. `None` if it has gone.
pub fn state_of(id: u32) -> Option<char> {
    Process::read(id).map(|process| process.state)
}

/// Adds to `found` the children of its processes, and theirs.
pub fn add_descendants(processes: &[Process], found: &mut BTreeSet<u32>) {
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

impl Process {
    /// A process of this machine, `None` if it has gone or cannot be read.
    pub fn read(id: u32) -> Option<Self> {
        Sysfs::host().process(id).ok()
    }

    /// The content of a `stat` file: `id (name) state parent ... threads ... started ...`.
    ///
    /// ```
    /// use rocmforge_machine::process::Process;
    /// let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
    /// let process = Process::parse(stat).unwrap();
    /// assert_eq!((process.name.as_str(), process.state, process.parent), ("a) b (c", 'S', 7));
    /// ```
    pub fn parse(stat: &str) -> Option<Self> {
        // The name may hold anything, brackets and line breaks too; no field after it has a bracket.
        let (id, rest) = stat.split_once(" (")?;
        let (name, rest) = rest.rsplit_once(')')?;
        // Fields 3, 4, 20 and 22, counted from 1.
        let mut fields = rest.split_ascii_whitespace();
        Some(Self {
            id: id.parse().ok()?,
            name: name.to_owned(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            threads: fields.nth(15)?.parse().ok()?,
            started: fields.nth(1)?.parse().ok()?,
        })
    }

    /// Its identity.
    pub fn identity(&self) -> ProcessId {
        ProcessId {
            pid: self.id,
            started: self.started,
        }
    }

    /// Whether all its threads have ended: it holds no memory, only its parent has not asked for its status.
    pub fn has_ended(&self) -> bool {
        // A main thread that has ended is a zombie while others run on.
        matches!(self.state, 'Z' | 'X' | 'x') && self.threads <= 1
    }

    /// Whether this process of this machine was started with `variable` in its environment, of this value.
    pub fn has(&self, variable: &str, value: &str) -> bool {
        let wanted = format!("{variable}={value}");
        file::bytes(Path::new(&format!("/proc/{}/environ", self.id)), ENVIRONMENT)
            .is_ok_and(|environment| environment.split(|&byte| byte == 0).any(|one| one == wanted.as_bytes()))
    }

    fn pid(&self) -> Option<Pid> {
        Pid::from_raw(self.id.cast_signed())
    }

    /// Kills this process of this machine, and not one that has got its number meanwhile.
    pub fn kill(&self) {
        let Some(handle) = self.pid().and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
            return;
        };
        // The handle stays with whoever had the number when it was opened: looked at after that.
        if Self::read(self.id).is_some_and(|now| now.started == self.started) {
            let _ = pidfd_send_signal(&handle, Signal::KILL);
        }
    }

    /// Takes the exit status of a child of this process, if it has ended.
    pub fn reap(&self) {
        if let Some(pid) = self.pid() {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

impl ProcessId {
    /// This process.
    ///
    /// # Errors
    ///
    /// [`ReadError`] where there is no `/proc`, or none that makes sense.
    pub fn current() -> Result<Self, ReadError> {
        Ok(Sysfs::host().process(std::process::id())?.identity())
    }

    /// Whether the process has ended, as far as is known: a file that cannot be read or parsed does not prove that it has.
    pub fn has_ended(self) -> bool {
        match Sysfs::host().process(self.pid) {
            Ok(process) => process.started != self.started || process.has_ended(),
            Err(error) => matches!(error, ReadError::Missing(_)),
        }
    }
}

impl Sysfs {
    /// The process of this number.
    ///
    /// # Errors
    ///
    /// [`ReadError::Missing`] if there is none, and what else may be wrong with its file.
    pub fn process(&self, id: u32) -> Result<Process, ReadError> {
        let path = self.path(&format!("proc/{id}/stat"));
        let stat = file::read_lossy(&path)?;
        Process::parse(&stat).ok_or_else(|| file::malformed(&path, &stat, "the line of a process"))
    }

    /// All processes that can be read.
    pub fn processes(&self) -> Vec<Process> {
        let numbers = self.process_numbers().into_iter();
        numbers.filter_map(|id| self.process(id).ok()).collect()
    }

    /// The kernel's name of this boot: another one each time the machine starts.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if the kernel does not say.
    pub fn boot_id(&self) -> Result<String, ReadError> {
        let path = self.path("proc/sys/kernel/random/boot_id");
        let id = file::read(&path)?;
        if id.is_empty() {
            return Err(file::malformed(&path, &id, "the name of a boot"));
        }
        Ok(id)
    }

    /// What numbers and start times of processes are relative to: the names of this process's process and time name spaces.
    ///
    /// # Errors
    ///
    /// [`ReadError`] if one of them cannot be read. A kernel without time name spaces has one time only.
    pub fn name_spaces(&self) -> Result<String, ReadError> {
        let space = |name: &str| file::link(&self.path("proc/self/ns").join(name));
        let mut names = space("pid")?.into_os_string();
        match space("time") {
            Ok(time) => names.push(time),
            Err(ReadError::Missing(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(names.to_string_lossy().into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    fn line(name: &str, state: &str, threads: u32) -> String {
        format!(
            "7 ({name}) {state} 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 987654 1000 20 18446744073709551615\n"
        )
    }

    #[test]
    fn a_name_may_hold_brackets_and_spaces() {
        let stat = "42 (a) b (c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 0 0";
        let expected = Process {
            id: 42,
            name: "a) b (c".to_owned(),
            state: 'S',
            parent: 7,
            threads: 1,
            started: 123_456,
        };
        assert_eq!(Process::parse(stat), Some(expected));
        assert_eq!(Process::parse("42 (cut"), None);
    }

    #[test]
    fn stat_is_read_past_any_name() {
        for name in ["sh", "a b", "x) Z 1 2", ") (", "", "line\nbreak"] {
            let process = Process::parse(&line(name, "S", 4)).unwrap();
            assert_eq!((process.name.as_str(), process.started), (name, 987_654));
            assert_eq!((process.state, process.parent, process.threads), ('S', 1, 4));
            assert!(!process.has_ended());
        }
        // The main thread is gone, the others run on.
        assert!(!Process::parse(&line("sh", "Z", 2)).unwrap().has_ended());
        for state in ["Z", "X", "x"] {
            assert!(Process::parse(&line("sh", state, 1)).unwrap().has_ended());
        }
        for cut in [
            "",
            "7",
            "7 (sh",
            "7 (sh)",
            "7 (sh) S 1 2",
            "7 (sh) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 soon",
            "-7 (sh) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 1",
        ] {
            assert_eq!(Process::parse(cut), None, "{cut:?}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_a_process_or_none(stat in ".{0,40}|[0-9]{1,20} \\(.{0,20}\\)( [A-Z0-9-]{1,20}){0,30}") {
            let _ = Process::parse(&stat);
        }
    }

    #[test]
    fn descendants_of_descendants_are_found() {
        let process = |id, parent| Process {
            id,
            name: String::new(),
            state: 'S',
            parent,
            threads: 1,
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
        assert!(matches!(state_of(me.id), Some('R' | 'S' | 'D')));
        assert_eq!(state_of(0x7fff_fff0), None);
        let mut all = processes().into_iter();
        assert!(all.any(|one| one.identity() == me.identity()));
        assert_eq!(ProcessId::current(), Ok(me.identity()));
        assert!(!me.identity().has_ended());
    }

    #[test]
    fn a_process_is_found_by_its_environment_however_long() {
        let mut command = Command::new("sleep");
        command.arg("1000").stdin(Stdio::null()).env_clear();
        for number in 0..8 {
            command.env(format!("A{number}"), "x".repeat(100_000));
        }
        let mut child = command.env("Z", "mark").spawn().unwrap();
        let sleeper = Process::read(child.id()).unwrap();
        // A process has no environment for a moment while it becomes another program.
        let start = Instant::now();
        while !sleeper.has("Z", "mark") && start.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        let (found, other) = (sleeper.has("Z", "mark"), sleeper.has("Z", "mar"));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found && !other);
        assert!(!sleeper.has("Z", "mark"), "it is gone");
    }

    #[test]
    fn an_ended_process_is_distinguished_from_one_that_got_its_number() {
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let process = Process::read(child.id()).unwrap();
        let sleeper = process.identity();
        assert!(!sleeper.has_ended());
        // The same number, started at another time: whoever is meant has ended, and is not killed in another's place.
        let earlier = Process {
            started: process.started - 1,
            ..process.clone()
        };
        assert!(earlier.identity().has_ended());
        earlier.kill();
        assert_eq!(child.try_wait().unwrap(), None);
        process.kill();
        // Not asked for its status yet: a zombie, which holds no memory.
        while !sleeper.has_ended() {
            std::thread::yield_now();
        }
        assert_eq!(state_of(child.id()), Some('Z'));
        process.reap();
        assert_eq!(state_of(child.id()), None);
        assert!(sleeper.has_ended());
        process.kill();
    }

    #[test]
    fn a_process_that_ends_while_it_is_looked_at_is_gone_and_one_that_is_hidden_is_not() {
        let failed = |errno: rustix::io::Errno| ReadError::of(Path::new("stat"), &errno.into()).kind();
        assert_eq!(failed(rustix::io::Errno::SRCH), ErrorKind::NotFound);
        assert_eq!(failed(rustix::io::Errno::NOENT), ErrorKind::NotFound);
        assert_eq!(failed(rustix::io::Errno::ACCESS), ErrorKind::PermissionDenied);
    }

    #[test]
    fn processes_of_another_tree_may_be_anything() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        assert_eq!(sysfs.processes(), []);
        let stat = |id: u32, content: &[u8]| {
            let folder = root.path().join(format!("proc/{id}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("stat"), content).unwrap();
        };
        stat(7, line("sh", "S", 1).as_bytes());
        stat(8, b"8 (\xff\xfe) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 5");
        stat(9, b"");
        stat(10, &vec![b'('; 2 << 20]);
        fs::create_dir_all(root.path().join("proc/11/stat")).unwrap();
        let mut found: Vec<u32> = sysfs.processes().into_iter().map(|process| process.id).collect();
        found.sort_unstable();
        assert_eq!(found, [7, 8]);
        assert!(matches!(sysfs.process(9), Err(ReadError::Malformed { .. })));
        assert!(matches!(sysfs.process(10), Err(ReadError::NotText(_))));
        assert!(matches!(sysfs.process(11), Err(ReadError::NotText(_))));
        assert!(matches!(sysfs.process(12), Err(ReadError::Missing(_))));
    }

    #[test]
    fn a_boot_has_a_name() {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
        assert_eq!(Sysfs::host().boot_id().as_deref(), Ok(id.trim()));
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        assert!(matches!(sysfs.boot_id(), Err(ReadError::Missing(_))));
        let folder = root.path().join("proc/sys/kernel/random");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("boot_id"), " \n").unwrap();
        assert!(matches!(sysfs.boot_id(), Err(ReadError::Malformed { .. })));
    }

    #[test]
    fn a_kernel_may_have_one_time_only() {
        let root = tempfile::tempdir().unwrap();
        let sysfs = Sysfs::at(root.path());
        let spaces = root.path().join("proc/self/ns");
        fs::create_dir_all(&spaces).unwrap();
        let kind = || sysfs.name_spaces().map_err(|error| error.kind());
        assert_eq!(kind(), Err(ErrorKind::NotFound), "but has processes");
        symlink("pid:[1]", spaces.join("pid")).unwrap();
        assert_eq!(kind().as_deref(), Ok("pid:[1]"));
        fs::write(spaces.join("time"), "no link").unwrap();
        assert_eq!(kind(), Err(ErrorKind::InvalidInput));
        fs::remove_file(spaces.join("time")).unwrap();
        symlink("time:[2]", spaces.join("time")).unwrap();
        assert_eq!(kind().as_deref(), Ok("pid:[1]time:[2]"));
    }
}
