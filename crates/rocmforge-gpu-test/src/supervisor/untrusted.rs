//! Files that a test can touch: made and read without following links, without blocking, regular files only, with a size limit.

use crate::beneath::{open_file, open_root};
use rustix::fs::{Mode, OFlags, open};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file made for a test, held open: what the test puts in its place is not read.
pub(super) struct OwnFile {
    file: File,
    path: PathBuf,
}

impl OwnFile {
    /// Makes a new file; what is at `path` already, and is no folder, is replaced.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(path, error)),
            _ => {}
        }
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = open(path, flags, Mode::from_raw_mode(0o644)).map_err(|error| named(path, error.into()))?;
        Ok(Self {
            file: file.into(),
            path: path.to_owned(),
        })
    }

    pub(super) fn file(&mut self) -> &mut File {
        &mut self.file
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All of it, from the beginning. An error if it is longer than `most`, or if its path leads elsewhere by now.
    pub(super) fn read_all(&mut self, most: u64) -> io::Result<Vec<u8>> {
        let here = self.file.metadata()?;
        let there = std::fs::symlink_metadata(&self.path).map_err(|error| named(&self.path, error))?;
        if (here.dev(), here.ino()) != (there.dev(), there.ino()) {
            return Err(named(
                &self.path,
                io::Error::other("something else was put in its place"),
            ));
        }
        self.file.seek(SeekFrom::Start(0))?;
        read_limited(&mut self.file, &self.path, most)
    }
}

/// All of a regular file that a test may have made; `None` if there is none.
pub(super) fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = Path::new(path.file_name().unwrap_or_default());
    let mut file = match open_root(folder).and_then(|folder| open_file(folder.as_fd(), name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(named(path, error)),
    };
    read_limited(&mut file, path, most).map(Some)
}

fn read_limited(file: &mut File, path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| named(path, error))?;
    if bytes.len() as u64 > most {
        return Err(named(path, io::Error::other(format!("it has more than {most} bytes"))));
    }
    Ok(bytes)
}

/// An error with the path that it is about.
pub(super) fn named(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_a_short_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("short"), "1234").unwrap();
        assert_eq!(read(&path("short"), 4).unwrap().as_deref(), Some(&b"1234"[..]));
        assert_eq!(read(&path("none"), 4).unwrap(), None);
        assert!(
            read(&path("short"), 3)
                .unwrap_err()
                .to_string()
                .contains("more than 3 bytes")
        );
        fs::create_dir(path("folder")).unwrap();
        symlink("/dev/zero", path("zeros")).unwrap();
        symlink("short", path("link")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, path("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        for name in ["folder", "zeros", "link", "fifo"] {
            let error = read(&path(name), 4).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn a_file_of_ours_is_known_by_itself_and_not_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("own");
        symlink("/dev/zero", &path).unwrap();
        let mut own = OwnFile::make(&path).unwrap();
        fs::write(&path, "said").unwrap();
        assert_eq!(own.read_all(4).unwrap(), b"said");
        assert!(own.read_all(3).is_err());
        fs::remove_file(&path).unwrap();
        assert!(own.read_all(4).is_err(), "it is gone");
        fs::write(&path, "said").unwrap();
        let error = own.read_all(4).unwrap_err().to_string();
        assert!(error.contains("put in its place"), "{error}");
    }
}
