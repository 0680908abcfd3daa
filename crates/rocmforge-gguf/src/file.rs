//! Opener of files that other people made: regular files only, and never a wait.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// Opens a regular file for reading. The length of the file, in bytes, comes with it.
///
/// A link is followed. A pipe without a writer would hold the caller for ever, and a device can have no end: both are refused, as a
/// directory is.
///
/// # Errors
/// What the system answers, or [`ErrorKind::InvalidInput`] if the path leads to something else than a regular file.
pub fn open_regular(path: &Path) -> Result<(File, u64)> {
    let regular = |metadata: &std::fs::Metadata| match metadata.is_file() {
        true => Ok(metadata.len()),
        false => Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    };
    // Asked before opening, because opening a device can have effects, and afterwards, because the path can lead elsewhere by then.
    regular(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = options.open(path)?;
    let len = regular(&file.metadata()?)?;
    Ok((file, len))
}
