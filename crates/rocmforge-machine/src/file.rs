//! Reader of small files: bounded, with a typed error for any content.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Larger than any file of sysfs, which are a page at most, and than `/etc/group` of a large site.
const LIMIT: u64 = 1 << 20;
/// More entries than any directory of interest has.
const ENTRIES: usize = 4096;

/// Why a figure could not be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// There is no such file.
    #[error("{} is not there", .0.display())]
    Missing(PathBuf),
    /// The file may not be read.
    #[error("{} may not be read by this user", .0.display())]
    Denied(PathBuf),
    /// The file is no text, or too long.
    #[error("{} is not a text of at most {LIMIT} bytes", .0.display())]
    NotText(PathBuf),
    /// The file does not hold what it should.
    #[error("{} holds {found:?}, not {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Its first characters.
        found: String,
        /// What belongs there.
        expected: &'static str,
    },
    /// The system's own answer.
    #[error("{} cannot be read: {kind}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        kind: ErrorKind,
    },
}

impl ReadError {
    /// The kind of the system's error that says the same.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing(_) => ErrorKind::NotFound,
            Self::Denied(_) => ErrorKind::PermissionDenied,
            Self::NotText(_) | Self::Malformed { .. } => ErrorKind::InvalidData,
            Self::Io { kind, .. } => *kind,
        }
    }

    /// The system's error about a path.
    pub(crate) fn of(path: &Path, error: &std::io::Error) -> Self {
        // What belongs to a process goes with it, also between the opening of a file and its reading.
        if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) {
            return Self::Missing(path.to_owned());
        }
        match error.kind() {
            ErrorKind::NotFound => Self::Missing(path.to_owned()),
            ErrorKind::PermissionDenied => Self::Denied(path.to_owned()),
            ErrorKind::InvalidData => Self::NotText(path.to_owned()),
            kind => Self::Io {
                path: path.to_owned(),
                kind,
            },
        }
    }
}

/// The bytes of a file of at most `limit` bytes.
pub(crate) fn bytes(path: &Path, limit: u64) -> Result<Vec<u8>, ReadError> {
    let failed = |error: std::io::Error| ReadError::of(path, &error);
    // Looked at before it is opened: to open a device may set something off.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotText(path.to_owned()));
    }
    // And again afterwards: a pipe put in its place meanwhile must not make us wait for its other end.
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = File::options()
        .read(true)
        .custom_flags(flags)
        .open(path)
        .map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(ReadError::NotText(path.to_owned()));
    }
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes).map_err(failed)?;
    if read as u64 > limit {
        return Err(ReadError::NotText(path.to_owned()));
    }
    Ok(bytes)
}

/// The text of a file, without the white space around it.
pub(crate) fn read(path: &Path) -> Result<String, ReadError> {
    let text = String::from_utf8(bytes(path, LIMIT)?).map_err(|_| ReadError::NotText(path.to_owned()))?;
    Ok(text.trim().to_owned())
}

/// The text of a file, with a mark in the place of what is no text: names of processes may be any bytes.
pub(crate) fn read_lossy(path: &Path) -> Result<String, ReadError> {
    Ok(String::from_utf8_lossy(&bytes(path, LIMIT)?).into_owned())
}

/// Where a link leads, which need not be there.
pub(crate) fn link(path: &Path) -> Result<PathBuf, ReadError> {
    std::fs::read_link(path).map_err(|error| ReadError::of(path, &error))
}

/// The one number that a file holds.
pub(crate) fn number<T: FromStr>(path: &Path) -> Result<T, ReadError> {
    let text = read(path)?;
    text.parse()
        .map_err(|_| malformed(path, &text, "a decimal number in range"))
}

/// The one hexadecimal number that a file holds, `0x1002` say.
pub(crate) fn hex(path: &Path) -> Result<u32, ReadError> {
    let text = read(path)?;
    text.strip_prefix("0x")
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| malformed(path, &text, "a hexadecimal number"))
}

pub(crate) fn malformed(path: &Path, text: &str, expected: &'static str) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        found: text.chars().take(40).collect(),
        expected,
    }
}

/// The value, with every error but "not there" noted: much of sysfs is there on some kernels only.
pub(crate) fn optional<T>(value: Result<T, ReadError>, problems: &mut Vec<ReadError>) -> Option<T> {
    match value {
        Ok(value) => Some(value),
        Err(ReadError::Missing(_)) => None,
        Err(error) => {
            problems.push(error);
            None
        }
    }
}

/// The names in a directory, sorted; none where it is not there.
pub(crate) fn names(path: &Path, problems: &mut Vec<ReadError>) -> Vec<String> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            match ReadError::of(path, &error) {
                ReadError::Missing(_) => {}
                error => problems.push(error),
            }
            return Vec::new();
        }
    };
    let mut names: Vec<String> = entries
        .flatten()
        .take(ENTRIES)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
