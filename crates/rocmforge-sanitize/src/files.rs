//! Files that a launch file names: opened beneath its folder only, read with a limit, written whole or not at all.
//!
//! A launch file may come from anybody, so that its paths are not to be followed out of its folder: not by `..`, not by an absolute
//! path, not through a symbolic link. The kernel sees to it (`openat2` with `RESOLVE_BENEATH`, Linux 5.6); where it cannot, each
//! component is opened by itself and no link is followed at all. Nothing here waits: pipes and devices are opened without
//! blocking and then refused.

use crate::error::Error;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory to start from, not to read.
const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A file to read; a pipe without a writer does not block.
const READ: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);
/// How often a resolution is repeated that somebody's renaming has disturbed.
const ATTEMPTS: u32 = 16;

/// The folder of a launch file, and whether its paths may lead out of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Folder<'a> {
    /// Empty: the current directory.
    pub(crate) path: &'a Path,
    pub(crate) allow_outside: bool,
}

impl Folder<'_> {
    /// Reads a file of at most `most` bytes that the launch file names. `path` has the folder in front already.
    pub(crate) fn read(self, path: &Path, most: u64) -> Result<Vec<u8>, Error> {
        if self.allow_outside {
            return read(path, most);
        }
        let relative = self.relative(path)?;
        let file =
            beneath(&self.open()?, relative, READ).map_err(|errno| self.refused(path, errno, Error::read(path)))?;
        contents(file, path, most)
    }

    /// Refuses an output that leads outside or to no file, before anything runs for it. What else stands in the way of writing, a
    /// missing folder for one, is reported when it is written: the findings are worth having without it.
    pub(crate) fn check_output(self, path: &Path) -> Result<(), Error> {
        match self.place(path) {
            Err(error @ (Error::Outside { .. } | Error::NotAFile { .. })) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Writes a file that the launch file names under another name and then gives it its own, so that nobody finds half of it.
    pub(crate) fn write(self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let (folder, name) = self.place(path)?;
        whole(&folder, &name, bytes).map_err(Error::write(path))
    }

    /// The directory and the name of an output.
    fn place(self, path: &Path) -> Result<(OwnedFd, OsString), Error> {
        if self.allow_outside {
            // Where a link leads is where the file goes, as with any other program.
            let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
            let Some(name) = path.file_name() else {
                return Err(not_a_file(&path, FileType::Directory));
            };
            let parent = or_here(path.parent().unwrap_or(Path::new("")));
            let folder = rustix::fs::open(parent, DIRECTORY, Mode::empty());
            let folder = folder.map_err(|errno| Error::write(&path)(errno.into()))?;
            check_output(&folder, name, &path)?;
            return Ok((folder, name.to_owned()));
        }
        let relative = self.relative(path)?;
        let Some(name) = relative.file_name() else {
            return Err(not_a_file(path, FileType::Directory));
        };
        let root = self.open()?;
        let parent = relative.parent().unwrap_or(Path::new(""));
        let folder =
            beneath(&root, parent, DIRECTORY).map_err(|errno| self.refused(path, errno, Error::write(path)))?;
        if let Err(error) = check_output(&folder, name, path) {
            // A link is refused in any case; one that leads out is reported as what it is.
            let outside = beneath(&root, relative, OFlags::PATH | OFlags::CLOEXEC).err() == Some(Errno::XDEV);
            return Err(if outside { self.outside(path) } else { error });
        }
        Ok((folder, name.to_owned()))
    }

    /// The path from the folder on, if it does not leave it by its own words.
    fn relative<'p>(&self, path: &'p Path) -> Result<&'p Path, Error> {
        let inside = |path: &&Path| {
            path.components()
                .all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
        };
        let relative = path.strip_prefix(self.path).ok().filter(inside);
        relative.ok_or_else(|| self.outside(path))
    }

    fn open(&self) -> Result<OwnedFd, Error> {
        rustix::fs::open(or_here(self.path), DIRECTORY, Mode::empty())
            .map_err(|errno| Error::read(or_here(self.path))(errno.into()))
    }

    fn outside(&self, path: &Path) -> Error {
        Error::Outside {
            path: path.to_owned(),
            folder: or_here(self.path).to_owned(),
        }
    }

    fn refused(&self, path: &Path, errno: Errno, error: impl FnOnce(io::Error) -> Error) -> Error {
        match errno {
            Errno::XDEV => self.outside(path),
            errno => error(errno.into()),
        }
    }
}

/// Reads a file of at most `most` bytes that the user has named. What is no regular file is refused: it may never end, or never begin.
pub(crate) fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let file = rustix::fs::open(path, READ, Mode::empty()).map_err(|errno| Error::read(path)(errno.into()))?;
    contents(file, path, most)
}

/// The same for a text.
pub(crate) fn text(path: &Path, most: u64) -> Result<String, Error> {
    text_of(path, read(path, most)?)
}

/// What a file holds, as a text.
pub(crate) fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String, Error> {
    String::from_utf8(bytes).map_err(|error| {
        let source = io::Error::new(io::ErrorKind::InvalidData, error.utf8_error());
        Error::read(path)(source)
    })
}

fn contents(file: OwnedFd, path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let found = rustix::fs::fstat(&file).map_err(|errno| Error::read(path)(errno.into()))?;
    let kind = FileType::from_raw_mode(found.st_mode);
    if kind != FileType::RegularFile {
        return Err(not_a_file(path, kind));
    }
    let bytes = || {
        let mut bytes = Vec::new();
        // It may grow while it is read.
        File::from(file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            let problem = format!("it has more than {most} B");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        Ok(bytes)
    };
    bytes().map_err(Error::read(path))
}

fn or_here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    }
}

fn not_a_file(path: &Path, kind: FileType) -> Error {
    Error::NotAFile {
        path: path.to_owned(),
        kind: match kind {
            FileType::Directory => "directory",
            FileType::Symlink => "symbolic link",
            FileType::Fifo => "pipe (FIFO)",
            FileType::Socket => "socket",
            FileType::CharacterDevice => "character device",
            FileType::BlockDevice => "block device",
            _ => "file of unknown kind",
        },
    }
}

/// Opens `relative` beneath `root`; `EXDEV` if it leads out.
fn beneath(root: &OwnedFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let how = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    for _ in 0..ATTEMPTS {
        match rustix::fs::openat2(root, or_here(relative), flags, Mode::empty(), how) {
            Err(Errno::AGAIN) => {}
            // The kernel has no such call, or a container forbids it as one that it does not know.
            Err(Errno::NOSYS | Errno::PERM) => return step_by_step(root, relative, flags),
            opened => return opened,
        }
    }
    step_by_step(root, relative, flags)
}

/// The same without the kernel's help: one component after the other, and every link counts as one that leads out.
fn step_by_step(root: &OwnedFd, relative: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let mut at = rustix::fs::openat(root, ".", DIRECTORY, Mode::empty())?;
    let names = relative.components().filter(|part| *part != Component::CurDir);
    let mut names = names.peekable();
    if names.peek().is_none() {
        return rustix::fs::openat(root, ".", flags, Mode::empty());
    }
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else {
            return Err(Errno::XDEV);
        };
        let found = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if FileType::from_raw_mode(found.st_mode) == FileType::Symlink {
            return Err(Errno::XDEV);
        }
        let flags = if names.peek().is_some() { DIRECTORY } else { flags };
        // One that has become a link since is not followed either.
        at = rustix::fs::openat(&at, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok(at)
}

/// Refuses an output whose name something else has than a regular file.
fn check_output(folder: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Error> {
    match rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(Error::write(path)(errno.into())),
        Ok(found) => match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(()),
            kind => Err(not_a_file(path, kind)),
        },
    }
}

fn whole(folder: &OwnedFd, name: &OsStr, bytes: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut part = name.to_owned();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    part.push(format!(".{}-{number}.part", std::process::id()));
    // New, so that nothing that somebody has put there is written to or through.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, &part, flags, Mode::from_raw_mode(0o666))?;
    let written = File::from(file).write_all(bytes);
    let written = written.and_then(|()| Ok(rustix::fs::renameat(folder, &part, folder, name)?));
    if written.is_err() {
        // Nobody else knows the name, and the error is reported.
        let _ = rustix::fs::unlinkat(folder, &part, AtFlags::empty());
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder(path: &Path) -> Folder<'_> {
        Folder {
            path,
            allow_outside: false,
        }
    }

    #[test]
    fn what_is_no_regular_file_or_too_long_is_refused() {
        for path in ["/dev/zero", "/dev/null"] {
            let error = read(Path::new(path), 4096).unwrap_err();
            assert!(
                matches!(&error, Error::NotAFile { kind: "character device", path: named } if named == Path::new(path)),
                "{error}"
            );
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, [0; 5]).unwrap();
        let error = read(&path, 4).unwrap_err().to_string();
        assert!(error.contains("more than 4 B"), "{error}");
        assert_eq!(read(&path, 5).unwrap(), [0; 5]);
    }

    #[test]
    fn a_file_is_written_whole_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("y");
        for allow_outside in [false, true] {
            let folder = Folder {
                path: directory.path(),
                allow_outside,
            };
            folder.write(&path, b"first").unwrap();
            folder.write(&path, b"then").unwrap();
            assert_eq!(folder.read(&path, 4).unwrap(), b"then");
            assert!(folder.write(&path.join("below"), b"nothing").is_err());
            assert!(matches!(
                folder.write(directory.path(), b"nothing"),
                Err(Error::NotAFile { kind: "directory", .. })
            ));
            let left: Vec<_> = directory.path().read_dir().unwrap().collect();
            assert_eq!(left.len(), 1, "{left:?}");
        }
    }

    /// Both ways must agree, except for a link that stays inside: only the kernel can follow it safely.
    #[test]
    fn a_kernel_without_openat2_is_no_way_out() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("inside");
        std::fs::create_dir_all(inside.join("deep")).unwrap();
        std::fs::write(directory.path().join("secret"), "secret").unwrap();
        std::fs::write(inside.join("deep/x"), "x").unwrap();
        symlink("../secret", inside.join("up")).unwrap();
        symlink("/etc", inside.join("etc")).unwrap();
        symlink("deep", inside.join("link")).unwrap();
        let root = folder(&inside).open().unwrap();
        for open in [beneath, step_by_step] {
            let text = |path: &str| {
                let mut text = String::new();
                File::from(open(&root, Path::new(path), READ)?)
                    .read_to_string(&mut text)
                    .unwrap();
                Ok::<_, Errno>(text)
            };
            assert_eq!(text("deep/x").as_deref(), Ok("x"));
            assert_eq!(text("./deep/./x").as_deref(), Ok("x"));
            for path in ["../secret", "deep/../../secret", "up", "etc/passwd", "/etc/passwd"] {
                assert_eq!(text(path), Err(Errno::XDEV), "{path}");
            }
            assert_eq!(text("deep/none"), Err(Errno::NOENT));
            assert!(open(&root, Path::new(""), DIRECTORY).is_ok());
        }
        assert!(step_by_step(&root, Path::new("link/x"), READ).is_err());
    }
}
