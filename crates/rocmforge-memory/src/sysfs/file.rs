//! Reading small files that a driver, or anybody, may have filled with anything.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

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

/// The text of a file, without the white space around it.
pub(super) fn read(path: &Path) -> Result<String, ReadError> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::NotFound => ReadError::Missing(path.to_owned()),
        ErrorKind::PermissionDenied => ReadError::Denied(path.to_owned()),
        ErrorKind::InvalidData => ReadError::NotText(path.to_owned()),
        kind => ReadError::Io {
            path: path.to_owned(),
            kind,
        },
    };
    // A pipe in the place of a file would block for ever.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err(ReadError::NotText(path.to_owned()));
    }
    let mut text = String::new();
    let read = File::open(path)
        .map_err(failed)?
        .take(LIMIT + 1)
        .read_to_string(&mut text)
        .map_err(failed)?;
    if read as u64 > LIMIT {
        return Err(ReadError::NotText(path.to_owned()));
    }
    Ok(text.trim().to_owned())
}

/// The one number that a file holds.
pub(super) fn number<T: FromStr>(path: &Path) -> Result<T, ReadError> {
    let text = read(path)?;
    text.parse()
        .map_err(|_| malformed(path, &text, "a decimal number in range"))
}

/// The one hexadecimal number that a file holds, `0x1002` say.
pub(super) fn hex(path: &Path) -> Result<u32, ReadError> {
    let text = read(path)?;
    text.strip_prefix("0x")
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .ok_or_else(|| malformed(path, &text, "a hexadecimal number"))
}

pub(super) fn malformed(path: &Path, text: &str, expected: &'static str) -> ReadError {
    ReadError::Malformed {
        path: path.to_owned(),
        found: text.chars().take(40).collect(),
        expected,
    }
}

/// The value, with every error but "not there" noted: much of sysfs is there on some kernels only.
pub(super) fn optional<T>(value: Result<T, ReadError>, problems: &mut Vec<ReadError>) -> Option<T> {
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
pub(super) fn names(path: &Path, problems: &mut Vec<ReadError>) -> Vec<String> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) => {
            match error.kind() {
                ErrorKind::NotFound => {}
                ErrorKind::PermissionDenied => problems.push(ReadError::Denied(path.to_owned())),
                kind => problems.push(ReadError::Io {
                    path: path.to_owned(),
                    kind,
                }),
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
