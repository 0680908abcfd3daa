//! Small files of settings: keys, certificates.

use std::io;
use std::path::Path;

/// The longest one.
const LONGEST: u64 = 1 << 20;

/// Reads a regular file of at most 1 MiB.
pub(crate) fn read_small(path: &Path) -> io::Result<Vec<u8>> {
    let meta = std::fs::metadata(path)?;
    if !meta.is_file() || meta.len() > LONGEST {
        let text = format!("it is no regular file of at most {LONGEST} bytes");
        return Err(io::Error::other(text));
    }
    std::fs::read(path)
}
