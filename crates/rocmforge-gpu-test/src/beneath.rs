//! Files beneath a folder, reached without following a link: for paths that a file or a test names.

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, mkdirat, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// Whether a path stays below the folder that it is joined to.
pub(crate) fn inside(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some() && components.all(|part| matches!(part, Component::Normal(_)))
}

/// Opens a folder. `path` itself may go through links: the user named it.
pub(crate) fn open_root(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(openat(rustix::fs::CWD, path, flags, Mode::empty())?)
}

/// What lies at a path: `None` where there is nothing.
pub(crate) fn kind(root: BorrowedFd<'_>, path: &Path) -> io::Result<Option<FileType>> {
    let (folder, name) = match parent(root, path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a regular file for reading, without blocking. Anything else in its place is an error that says what it is.
pub(crate) fn open_file(root: BorrowedFd<'_>, path: &Path) -> io::Result<File> {
    let (folder, name) = parent(root, path)?;
    let found = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    regular(FileType::from_raw_mode(found.st_mode))?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(&folder, name, flags, Mode::empty())?;
    // It may have been replaced in between.
    regular(FileType::from_raw_mode(fstat(&file)?.st_mode))?;
    Ok(file.into())
}

/// Opens a folder in `root`, or below it.
pub(crate) fn open_folder(root: BorrowedFd<'_>, path: &Path) -> io::Result<OwnedFd> {
    let (folder, name) = parent(root, path)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&folder, name, flags, Mode::empty())?)
}

/// Makes a folder, unless there is one.
pub(crate) fn make_folder(root: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let (folder, name) = parent(root, path)?;
    match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
        Err(Errno::EXIST) => open_folder(root, path).map(drop),
        made => Ok(made?),
    }
}

/// Makes a new file for writing; what lies there already, and is no folder, is replaced.
pub(crate) fn make_file(root: BorrowedFd<'_>, path: &Path) -> io::Result<File> {
    let (folder, name) = parent(root, path)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(&folder, name, flags, Mode::from_raw_mode(0o644))?.into())
}

/// Puts a file with these bytes in its place in one step. What lies there, and is no folder, is replaced and not followed.
pub(crate) fn replace(root: BorrowedFd<'_>, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (folder, name) = parent(root, path)?;
    let beside = format!(".writing-{}", std::process::id());
    let written = make_file(folder.as_fd(), Path::new(&beside)).and_then(|mut file| file.write_all(bytes));
    let placed = written.and_then(|()| Ok(renameat(&folder, &*beside, &folder, name)?));
    placed.inspect_err(|_| {
        let _ = unlinkat(&folder, &*beside, AtFlags::empty());
    })
}

/// Removes a regular file. Whether there was one: anything else stays.
pub(crate) fn remove_file(root: BorrowedFd<'_>, path: &Path) -> io::Result<bool> {
    if !matches!(kind(root, path), Ok(Some(FileType::RegularFile))) {
        return Ok(false);
    }
    let (folder, name) = parent(root, path)?;
    match unlinkat(&folder, name, AtFlags::empty()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Removes a folder that is empty. Whether it is gone now: one that is not empty stays.
pub(crate) fn remove_empty_folder(root: BorrowedFd<'_>, path: &Path) -> bool {
    parent(root, path).is_ok_and(|(folder, name)| unlinkat(&folder, name, AtFlags::REMOVEDIR).is_ok())
}

/// What a kind of file is called.
pub(crate) fn called(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => "a link",
        FileType::Fifo => "a FIFO",
        FileType::Socket => "a socket",
        FileType::CharacterDevice | FileType::BlockDevice => "a device",
        FileType::Unknown => "no regular file",
    }
}

fn regular(kind: FileType) -> io::Result<()> {
    match kind {
        FileType::RegularFile => Ok(()),
        other => Err(io::Error::new(io::ErrorKind::InvalidInput, called(other))),
    }
}

/// The folder that a path lies in, and its last part.
fn parent<'a>(root: BorrowedFd<'_>, path: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
    let refused = || io::Error::new(io::ErrorKind::InvalidInput, "a path that leaves its folder");
    if !inside(path) {
        return Err(refused());
    }
    let mut folder = root.as_fd().try_clone_to_owned()?;
    for part in path.parent().into_iter().flat_map(Path::components) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        folder = openat(&folder, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok((folder, path.file_name().ok_or_else(refused)?))
}
