//! Card lock: one process tree per card, by advisory file locks keyed by PCI address.
//!
//! Two files a card. The supervisor holds `gpu-<card>.lock` alone; each test process inherits a lock of its own, a shared one, on
//! `gpu-<card>.users`. The kernel drops a `flock` when the last descriptor of it closes, so a holder that is killed leaves nothing
//! to clean up. A test can give up no lock but its own, and if the supervisor dies, the card stays locked as long as a process
//! lives that can touch it: who takes the card also waits until it has no users.
//!
//! The kernel driver takes a process apart after it has ended: a card whose last holder was killed may be busy for a
//! while yet. So taking the lock includes waiting until KFD lists no ended process any more.

use rocmforge_machine::Bytes;
pub use rocmforge_machine::private::default_directory;
use rocmforge_machine::private::{self, PrivateError};
use rocmforge_machine::sysfs::{ReadError, Sysfs};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Names the descriptor of a test process's own lock on the card.
pub const LOCK_FD_VARIABLE: &str = "ROCMFORGE_GPU_LOCK_FD";
/// Time between two attempts to take a lock that another process holds. A wait may be this much longer than its limit.
const POLL: Duration = Duration::from_millis(50);
/// Longer than a process takes to ask whether a card is held.
const ASKED: Duration = Duration::from_secs(1);
/// Longest time that the kernel driver may take to release a process that has ended: it waits 9 s for a queue to be preempted.
const TEARDOWN: Duration = Duration::from_secs(15);

/// Bytes of a lock file's body that are read: a process number, a time, and a long command.
const LONGEST_BODY: u64 = 65_536;

/// Who holds a card, as the lock file's body says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process id of the holder.
    pub pid: u32,
    /// Its command line.
    pub command: String,
    /// When it took the lock, in seconds since the Unix epoch.
    pub since: u64,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = unix_seconds().saturating_sub(self.since);
        write!(f, "pid {} ({}), for {held} s", self.pid, self.command)
    }
}

/// Why a card could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// The lock file or its directory is not this user's alone.
    #[error(transparent)]
    Private(#[from] PrivateError),
    /// The kernel driver still has processes that have ended: what they ran may still be on the card.
    #[error(
        "card {card} is not given back: {waited} s after they ended, the kernel driver still has the processes {processes:?}. \
         Their queues hang; see `dmesg`, and restart the machine if they do not go", waited = .waited.as_secs()
    )]
    Lingering {
        /// The card's key.
        card: String,
        /// The dead processes.
        processes: Vec<u32>,
        /// How long was waited for them.
        waited: Duration,
    },
    /// The lock file cannot be made, opened or locked.
    #[error("cannot use the lock file {path}: {source}")]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Somebody held the card for as long as the caller was willing to wait.
    #[error("card {card} is in use by {}; waited {} s. Wait for it to end, or stop it", holder_text(.holder), .waited.as_secs())]
    Held {
        /// The card's key.
        card: String,
        /// Who holds it, if the lock file's body could be read.
        holder: Option<Holder>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// A test process was to use a real card without the supervisor's lock.
    #[error(
        "a real card ({card}) may be used only under the supervisor: run `cargo gpu-test --device {card}`, in ROCmForge's own workspace `cargo xtask test-gpu` ({reason})"
    )]
    NotInherited {
        /// The card's key.
        card: String,
        /// Which check failed.
        reason: String,
    },
}

fn holder_text(holder: &Option<Holder>) -> String {
    holder
        .as_ref()
        .map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// The lock of one card. Dropping it, or dying, gives the card up.
#[derive(Debug)]
pub struct CardLock {
    file: LockedFile,
    path: PathBuf,
    /// Where it lies, and the file that tests lock.
    directory: PathBuf,
    /// The directory, open: a test may put another in its place.
    opened: OwnedFd,
    users: String,
}

impl CardLock {
    /// Takes the lock of `card` (a PCI address) in `directory`, waiting up to `patience`. `waiting` is called with the
    /// holder once, when the first attempt finds the card taken.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] after `patience`; [`LockError::Io`] if the file cannot be used.
    pub fn acquire(
        directory: &Path,
        card: &str,
        patience: Duration,
        waiting: impl FnMut(Option<&Holder>),
    ) -> Result<Self, LockError> {
        Self::acquire_on(&Sysfs::host(), directory, card, patience, waiting)
    }

    /// [`acquire`](Self::acquire), with KFD's list of processes under another root.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire).
    pub fn acquire_on(
        sysfs: &Sysfs,
        directory: &Path,
        card: &str,
        patience: Duration,
        waiting: impl FnMut(Option<&Holder>),
    ) -> Result<Self, LockError> {
        let mut lock = Self::take(directory, card, patience, waiting)?;
        lock.sign().map_err(|source| LockError::Io {
            path: lock.path.clone(),
            source,
        })?;
        wait_for_teardown(sysfs, card, TEARDOWN)?;
        Ok(lock)
    }

    /// Waits for the lock itself, then for the tests of a supervisor that died.
    fn take(
        directory: &Path,
        card: &str,
        patience: Duration,
        mut waiting: impl FnMut(Option<&Holder>),
    ) -> Result<Self, LockError> {
        let start = Instant::now();
        let mut announced = false;
        let mut wait = || -> Result<(), LockError> {
            let waited = start.elapsed();
            if waited >= patience {
                return Err(LockError::Held {
                    card: card.to_owned(),
                    holder: holder(directory, card),
                    waited,
                });
            }
            if !announced {
                waiting(holder(directory, card).as_ref());
                announced = true;
            }
            std::thread::sleep(POLL);
            Ok(())
        };
        let file = loop {
            match try_alone(directory, &lock_name(card))? {
                Some(file) => break file,
                None => wait()?,
            }
        };
        while try_alone(directory, &users_name(card))?.is_none() {
            wait()?;
        }
        Ok(Self {
            file,
            path: lock_path(directory, card),
            directory: directory.to_owned(),
            opened: fs::File::open(directory)
                .map_err(|source| LockError::Io {
                    path: directory.to_owned(),
                    source,
                })?
                .into(),
            users: users_name(card),
        })
    }

    /// Writes who holds the card.
    fn sign(&mut self) -> io::Result<()> {
        let command = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let me = Holder {
            pid: std::process::id(),
            command: command.collect::<Vec<_>>().join(" "),
            since: unix_seconds(),
        };
        let body = serde_json::to_vec(&me).expect("a holder is plain data");
        let file = &mut self.file.0;
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&body)
    }

    /// Gives `command`'s process a lock of its own on the card, which it holds beside this one.
    ///
    /// # Errors
    ///
    /// [`LockError::Io`] if the file cannot be opened or locked: a test may have locked it for itself alone.
    pub fn pass_to(&self, command: &mut Command) -> Result<(), LockError> {
        let path = self.directory.join(&self.users);
        let io_error = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        let opened = format!("/proc/self/fd/{}/.", self.opened.as_raw_fd());
        let file = private::open(Path::new(&opened), &self.users)?;
        let start = Instant::now();
        loop {
            match file.try_lock_shared() {
                Ok(()) => break,
                // Somebody who asks whether the card is held has it for a moment.
                Err(TryLockError::WouldBlock) if start.elapsed() < ASKED => std::thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => {
                    let why = "a process that was started for a test holds it alone";
                    return Err(io_error(io::Error::other(why)));
                }
                Err(TryLockError::Error(error)) => return Err(io_error(error)),
            }
        }
        command.env(LOCK_FD_VARIABLE, file.as_raw_fd().to_string());
        // The descriptor stays open, and the lock held, as long as the command is there to be started.
        let keep_open = move || Ok(fcntl_setfd(&file, FdFlags::empty())?);
        // SAFETY: the closure makes one system call, which is async-signal-safe, and allocates nothing.
        unsafe { command.pre_exec(keep_open) };
        Ok(())
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Waits up to `patience` until KFD has no process on the card any more that has ended.
///
/// # Errors
///
/// [`LockError::Lingering`] with the processes that it still has.
pub fn wait_for_teardown(sysfs: &Sysfs, card: &str, patience: Duration) -> Result<(), LockError> {
    let start = Instant::now();
    loop {
        let processes = dead_on(sysfs, card);
        let waited = start.elapsed();
        if processes.is_empty() {
            return Ok(());
        }
        if waited >= patience {
            return Err(LockError::Lingering {
                card: card.to_owned(),
                processes,
                waited,
            });
        }
        std::thread::sleep(POLL);
    }
}

/// The processes that KFD still has though they have ended; those of other cards left out, where the card is known.
fn dead_on(sysfs: &Sysfs, card: &str) -> Vec<u32> {
    let mut dead = sysfs.kfd_processes().unwrap_or_default();
    dead.retain(|&process| has_ended(sysfs, process));
    if dead.is_empty() {
        return dead;
    }
    let nodes = sysfs.kfd_nodes(&mut Vec::new());
    let Some(node) = nodes.iter().find(|node| node.pci == card) else {
        return dead;
    };
    let holds = |process: &u32| sysfs.process_vram(*process, node.gpu_id) != Some(Bytes::ZERO);
    dead.into_iter().filter(holds).collect()
}

/// Whether a process is gone, or a zombie. A file that cannot be parsed does not prove it.
fn has_ended(sysfs: &Sysfs, process: u32) -> bool {
    match sysfs.process(process) {
        Ok(process) => process.has_ended(),
        Err(error) => matches!(error, ReadError::Missing(_)),
    }
}

/// Whether `path` still names `file`.
fn leads_to(path: &Path, file: &File) -> bool {
    let number = |found: io::Result<fs::Metadata>| found.ok().map(|found| (found.dev(), found.ino()));
    let named = number(fs::symlink_metadata(path));
    named.is_some() && named == number(file.metadata())
}

/// Checks that this process inherited a lock of `card` from a supervisor: the descriptor named in the environment is
/// open, is the card's file of users, and holds a lock; and a supervisor holds the card.
///
/// # Errors
///
/// [`LockError::NotInherited`] with the check that failed.
pub fn check_inherited(directory: &Path, card: &str, descriptor: Option<&str>) -> Result<(), LockError> {
    let refuse = |reason: String| LockError::NotInherited {
        card: card.to_owned(),
        reason,
    };
    let descriptor = descriptor.ok_or_else(|| refuse(format!("{LOCK_FD_VARIABLE} is not set")))?;
    let number: u32 = descriptor
        .parse()
        .map_err(|_| refuse(format!("{LOCK_FD_VARIABLE} is {descriptor:?}, not a number")))?;
    let target = fs::read_link(format!("/proc/self/fd/{number}"))
        .map_err(|error| refuse(format!("descriptor {number} is not open: {error}")))?;
    let expected = directory.join(users_name(card));
    if fs::canonicalize(&expected).ok().as_deref() != Some(target.as_path()) {
        return Err(refuse(format!(
            "descriptor {number} is {}, not {}",
            target.display(),
            expected.display()
        )));
    }
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}"))
        .map_err(|error| refuse(format!("descriptor {number} cannot be examined: {error}")))?;
    let locked = info
        .lines()
        .any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("READ"));
    if !locked {
        return Err(refuse(format!("descriptor {number} holds no lock")));
    }
    // The other lock is a supervisor's; without one nothing would end this process if it hung.
    if !is_held_alone(&lock_path(directory, card)) {
        return Err(refuse("no supervisor holds the card".to_owned()));
    }
    Ok(())
}

/// Holder of `card`, or its last holder: the lock file's body. `None` if there was none or the body cannot be read.
pub fn holder(directory: &Path, card: &str) -> Option<Holder> {
    let mut body = String::new();
    let file = File::open(lock_path(directory, card)).ok()?;
    file.take(LONGEST_BODY).read_to_string(&mut body).ok()?;
    serde_json::from_str(&body).ok()
}

/// Whether `card` is held now: a supervisor, or a test of one that died.
pub fn is_held(directory: &Path, card: &str) -> bool {
    is_held_alone(&lock_path(directory, card)) || is_refused(&directory.join(users_name(card)), File::try_lock)
}

fn is_held_alone(path: &Path) -> bool {
    is_refused(path, File::try_lock_shared)
}

/// Whether the locks of others forbid this one. It is given up at once if they do not.
fn is_refused(path: &Path, lock: impl FnOnce(&File) -> Result<(), TryLockError>) -> bool {
    let Ok(file) = File::open(path).map(LockedFile) else {
        return false;
    };
    matches!(lock(&file.0), Err(TryLockError::WouldBlock))
}

/// A file whose lock is this value's, and is given up with it.
///
/// Closing the file alone does not do that at once: a child that another thread is starting has a copy of the descriptor from
/// its fork to its exec, and the lock would last as long as the copy.
#[derive(Debug)]
struct LockedFile(File);

impl Drop for LockedFile {
    fn drop(&mut self) {
        // What cannot be unlocked is unlocked by the closing.
        let _ = self.0.unlock();
    }
}

/// Locks a file of `directory` for this process alone; `None` if another process has a lock on it.
fn try_alone(directory: &Path, name: &str) -> Result<Option<LockedFile>, LockError> {
    let path = directory.join(name);
    loop {
        let file = LockedFile(private::open(directory, name)?);
        match file.0.try_lock() {
            // A lock on a file that was removed meanwhile excludes no other process.
            Ok(()) if !leads_to(&path, &file.0) => {}
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(LockError::Io { path, source }),
        }
    }
}

fn lock_path(directory: &Path, card: &str) -> PathBuf {
    directory.join(lock_name(card))
}

fn lock_name(card: &str) -> String {
    format!("gpu-{card}.lock")
}

fn users_name(card: &str) -> String {
    format!("gpu-{card}.users")
}

/// Seconds since the Unix epoch.
pub(crate) fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
