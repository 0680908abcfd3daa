//! One process tree per card: an advisory file lock keyed by PCI address.
//!
//! The kernel drops a `flock` when the last descriptor of it closes, so a holder that is killed leaves nothing to clean
//! up. The supervisor passes its descriptor on to each test process: if the supervisor dies, the card stays locked as long
//! as the process that can touch it lives.

use rustix::fs::{FlockOperation, flock};
use rustix::io::{FdFlags, fcntl_setfd};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Names the descriptor of the supervisor's lock in a test process.
pub const LOCK_FD_VARIABLE: &str = "ROCMFORGE_GPU_LOCK_FD";
/// Time between two attempts to take a lock that somebody holds.
const POLL: Duration = Duration::from_millis(50);

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
    /// A test process was told to use a real card without the supervisor's lock.
    #[error(
        "a real card ({card}) may be used only under the supervisor: run `cargo xtask test-gpu --device {card}` ({reason})"
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
    file: File,
    path: PathBuf,
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
        mut waiting: impl FnMut(Option<&Holder>),
    ) -> Result<Self, LockError> {
        let path = lock_path(directory, card);
        let io_error = |source| LockError::Io {
            path: path.clone(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(io_error)?;
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(io_error)?;
        let start = Instant::now();
        let mut announced = false;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(errno) => return Err(io_error(errno.into())),
            }
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
            std::thread::sleep(POLL.min(patience - waited));
        }
        let me = Holder {
            pid: std::process::id(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
            since: unix_seconds(),
        };
        let body = serde_json::to_vec(&me).expect("a holder is plain data");
        file.set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(&body))
            .map_err(io_error)?;
        Ok(Self { file, path })
    }

    /// Lets `command`'s process inherit the lock.
    ///
    /// # Errors
    ///
    /// [`LockError::Io`] if the descriptor cannot be made inheritable.
    pub fn pass_to(&self, command: &mut Command) -> Result<(), LockError> {
        fcntl_setfd(&self.file, FdFlags::empty()).map_err(|errno| LockError::Io {
            path: self.path.clone(),
            source: errno.into(),
        })?;
        command.env(LOCK_FD_VARIABLE, self.file.as_raw_fd().to_string());
        Ok(())
    }

    /// The lock file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Checks that this process inherited the lock of `card` from a supervisor: the descriptor named in the environment is
/// open, is the card's lock file, and holds the lock.
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
    let expected = lock_path(directory, card);
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
        .any(|line| line.starts_with("lock:") && line.contains("FLOCK") && line.contains("WRITE"));
    if locked {
        Ok(())
    } else {
        Err(refuse(format!("descriptor {number} holds no lock")))
    }
}

/// Who holds `card`, or who held it last: the lock file's body. `None` if nobody ever did or the body cannot be read.
pub fn holder(directory: &Path, card: &str) -> Option<Holder> {
    let mut body = String::new();
    File::open(lock_path(directory, card))
        .ok()?
        .take(64 * 1024)
        .read_to_string(&mut body)
        .ok()?;
    serde_json::from_str(&body).ok()
}

/// Whether somebody holds `card` now.
pub fn is_held(directory: &Path, card: &str) -> bool {
    File::open(lock_path(directory, card))
        .is_ok_and(|file| flock(&file, FlockOperation::NonBlockingLockShared) == Err(rustix::io::Errno::WOULDBLOCK))
}

/// Where the locks of this user's cards lie: `$XDG_RUNTIME_DIR/rocmforge`, else `/tmp/rocmforge-<uid>`.
pub fn default_directory() -> PathBuf {
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(runtime) if !runtime.is_empty() => PathBuf::from(runtime).join("rocmforge"),
        _ => PathBuf::from(format!("/tmp/rocmforge-{}", rustix::process::getuid().as_raw())),
    }
}

fn lock_path(directory: &Path, card: &str) -> PathBuf {
    directory.join(format!("gpu-{card}.lock"))
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}
