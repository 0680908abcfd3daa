//! Reading files of unknown length, and writing files whole or not at all.

use crate::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file of at most `most` bytes; a device that never ends is refused like a file that is too long.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let bytes = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let problem = format!("it has more than {most} B");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        Ok(bytes)
    };
    bytes().map_err(Error::read(path))
}

/// Writes a file under another name and then gives it its own, so that nobody finds half of it.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    whole(path, bytes).map_err(Error::write(path))
}

fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    // A device or a pipe has no half, and must stay what it is.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return std::fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, &path));
    if written.is_err() {
        // It may never have been there.
        let _ = std::fs::remove_file(&part);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_never_ends_is_refused() {
        let error = read(Path::new("/dev/zero"), 4096).unwrap_err().to_string();
        assert!(error.contains("more than 4096 B"), "{error}");
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("y");
        write(&path, b"first").unwrap();
        write(&path, b"then").unwrap();
        assert_eq!(read(&path, 4).unwrap(), b"then");
        assert!(write(&path.join("below"), b"nothing").is_err());
        assert!(write(directory.path(), b"nothing").is_err());
        let left: Vec<_> = directory.path().read_dir().unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        write(Path::new("/dev/null"), b"anything").unwrap();
        assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    }
}
