//! Files that a test made: read without following links, without blocking, regular files only, with a size limit.

use crate::beneath::{open_file, open_root};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

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
    use rustix::fs::Mode;
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
}
