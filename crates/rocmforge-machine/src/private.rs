//! Private files: files shared by the processes of one user only, such as card locks and ledgers.
//!
//! A directory under `/tmp` can be made by any user before us, and a symbolic link in it can point at anything. So owner,
//! kind and mode are checked at every opening, on the opened file itself, and what fails is refused, never repaired.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Why a shared file or its directory cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PrivateError {
    /// It is not what should be there: a symbolic link, say, or a directory in the place of a file.
    #[error("{} is no {expected}; remove it, or have its owner or root remove it", path.display())]
    Kind {
        /// What was looked at.
        path: PathBuf,
        /// What belongs there.
        expected: &'static str,
    },
    /// It belongs to another user.
    #[error(
        "{} belongs to user {owner}, not to us (user {us}): whoever made it could change what we rely on. Have its \
         owner or root remove it",
        path.display()
    )]
    Owner {
        /// What was looked at.
        path: PathBuf,
        /// Its owner.
        owner: u32,
        /// This user.
        us: u32,
    },
    /// Others may read or change it.
    #[error("{0} has mode {mode:o}, so other users can reach it; run `chmod go= {0}`", path.display())]
    Mode {
        /// What was looked at.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The system's own answer.
    #[error("{} cannot be used: {kind}; locks and ledgers need a place that this user can write", path.display())]
    Io {
        /// What was looked at.
        path: PathBuf,
        /// What went wrong.
        kind: ErrorKind,
    },
}

impl PrivateError {
    fn io(path: &Path, error: &io::Error) -> Self {
        Self::Io {
            path: path.to_owned(),
            kind: error.kind(),
        }
    }
}

/// Another place for locks and ledgers, for tests of what uses them: an absolute path. Two programs that do not agree on it do not
/// know of each other.
pub const DIRECTORY_VARIABLE: &str = "ROCMFORGE_LOCK_DIRECTORY";

/// Where this user's locks and ledgers lie: `/tmp/rocmforge-<uid>`, whatever the session, the home directory or `cron` say, so that
/// all programs of a user agree. [`DIRECTORY_VARIABLE`] names another place.
pub fn default_directory() -> PathBuf {
    directory_of(std::env::var_os(DIRECTORY_VARIABLE).map(PathBuf::from))
}

fn directory_of(given: Option<PathBuf>) -> PathBuf {
    match given {
        Some(given) if given.is_absolute() => given,
        _ => PathBuf::from(format!("/tmp/rocmforge-{}", us())),
    }
}

/// Makes `path` a directory that only this user can reach, or checks that it is one.
///
/// # Errors
///
/// [`PrivateError`] if it is a link or a file, belongs to another user, is open to others, or cannot be made.
pub fn directory(path: &Path) -> Result<(), PrivateError> {
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(path)
        && error.kind() != ErrorKind::AlreadyExists
    {
        return Err(PrivateError::io(path, &error));
    }
    let found = std::fs::symlink_metadata(path).map_err(|error| PrivateError::io(path, &error))?;
    check(path, &found, found.is_dir(), "directory")
}

/// Opens a file of such a directory to read and write it, making it empty if it is not there.
///
/// # Errors
///
/// [`PrivateError`] as for [`directory`], of the directory or of the file.
pub fn open(at: &Path, name: &str) -> Result<File, PrivateError> {
    directory(at)?;
    open_with(&at.join(name), OpenOptions::new().read(true).write(true).create(true))
}

/// Makes a file with `content` in a directory that was checked before, all of it or nothing; one that is there stays.
///
/// A process that dies on the way leaves at most a file of its own name behind, never half of what others read.
///
/// # Errors
///
/// [`PrivateError`] if it cannot be made.
pub fn create_whole(path: &Path, content: &[u8]) -> Result<(), PrivateError> {
    let failed = |error: io::Error| PrivateError::io(path, &error);
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(name);
    let mut file = open_with(&beside, OpenOptions::new().write(true).create(true).truncate(true))?;
    file.write_all(content).map_err(failed)?;
    let linked = std::fs::hard_link(&beside, path);
    std::fs::remove_file(&beside).map_err(failed)?;
    match linked {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(failed(error)),
        _ => Ok(()),
    }
}

/// Opens a file of a directory that was checked before.
///
/// # Errors
///
/// [`PrivateError`] as for [`open`]; [`ErrorKind::NotFound`] where there is no such file.
pub fn open_existing(path: &Path) -> Result<File, PrivateError> {
    open_with(path, OpenOptions::new().read(true).write(true))
}

fn open_with(path: &Path, options: &mut OpenOptions) -> Result<File, PrivateError> {
    // A link is refused rather than followed, and a pipe must not make us wait for its other end.
    let flags = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits();
    let flags = i32::try_from(flags).unwrap_or(0);
    let file = options
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => wrong_kind(path, "regular file"),
            _ if error.kind() == ErrorKind::IsADirectory => wrong_kind(path, "regular file"),
            _ => PrivateError::io(path, &error),
        })?;
    let found = file.metadata().map_err(|error| PrivateError::io(path, &error))?;
    check(path, &found, found.is_file(), "regular file")?;
    Ok(file)
}

fn wrong_kind(path: &Path, expected: &'static str) -> PrivateError {
    PrivateError::Kind {
        path: path.to_owned(),
        expected,
    }
}

fn check(path: &Path, found: &Metadata, right_kind: bool, expected: &'static str) -> Result<(), PrivateError> {
    if !right_kind {
        return Err(wrong_kind(path, expected));
    }
    let (owner, us) = (found.uid(), us());
    if owner != us {
        return Err(PrivateError::Owner {
            path: path.to_owned(),
            owner,
            us,
        });
    }
    let mode = found.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(PrivateError::Mode {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(())
}

fn us() -> u32 {
    rustix::process::geteuid().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn the_directory_depends_on_the_user_alone() {
        let fixed = PathBuf::from(format!("/tmp/rocmforge-{}", us()));
        assert_eq!(directory_of(None), fixed);
        for relative in ["", "run"] {
            assert_eq!(directory_of(Some(PathBuf::from(relative))), fixed);
        }
        let given = PathBuf::from("/somewhere/else");
        assert_eq!(directory_of(Some(given.clone())), given);
    }

    #[test]
    fn what_is_made_is_for_this_user_alone() {
        let root = tempfile::tempdir().unwrap();
        let at = root.path().join("a/b");
        let file = open(&at, "ledger").unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o777, 0o600);
        for made in [&at, &root.path().join("a")] {
            assert_eq!(fs::metadata(made).unwrap().mode() & 0o777, 0o700);
        }
        open(&at, "ledger").unwrap();
        open_existing(&at.join("ledger")).unwrap();
        assert_eq!(
            open_existing(&at.join("other")).unwrap_err(),
            PrivateError::Io {
                path: at.join("other"),
                kind: ErrorKind::NotFound
            }
        );
    }

    #[test]
    fn a_file_is_made_whole_and_the_first_one_stays() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("ledger");
        create_whole(&path, b"first").unwrap();
        create_whole(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(
            fs::read_dir(root.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
        assert!(matches!(
            create_whole(&root.path().join("none/ledger"), b""),
            Err(PrivateError::Io {
                kind: ErrorKind::NotFound,
                ..
            })
        ));
    }

    #[test]
    fn a_directory_that_others_can_reach_is_refused() {
        let root = tempfile::tempdir().unwrap();
        for mode in [0o701, 0o710, 0o770, 0o755] {
            fs::set_permissions(root.path(), Permissions::from_mode(mode)).unwrap();
            let refused = directory(root.path()).unwrap_err();
            assert_eq!(
                refused,
                PrivateError::Mode {
                    path: root.path().to_owned(),
                    mode
                }
            );
            assert!(refused.to_string().contains("chmod go= /"), "{refused}");
            assert_eq!(open(root.path(), "ledger").unwrap_err(), refused);
        }
        fs::set_permissions(root.path(), Permissions::from_mode(0o700)).unwrap();
        fs::write(root.path().join("ledger"), "").unwrap();
        fs::set_permissions(root.path().join("ledger"), Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(
            open(root.path(), "ledger"),
            Err(PrivateError::Mode { mode: 0o640, .. })
        ));
    }

    #[test]
    fn links_pipes_and_files_in_the_wrong_place_are_refused() {
        let root = tempfile::tempdir().unwrap();
        let (real, link) = (root.path().join("real"), root.path().join("link"));
        directory(&real).unwrap();
        symlink(&real, &link).unwrap();
        assert_eq!(directory(&link).unwrap_err(), wrong_kind(&link, "directory"));
        fs::write(real.join("file"), "somebody's").unwrap();
        symlink(real.join("file"), real.join("ledger")).unwrap();
        assert_eq!(
            open(&real, "ledger").unwrap_err(),
            wrong_kind(&real.join("ledger"), "regular file")
        );
        directory(&real.join("folder")).unwrap();
        assert_eq!(
            open(&real, "folder").unwrap_err(),
            wrong_kind(&real.join("folder"), "regular file")
        );
        fs::set_permissions(real.join("file"), Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(directory(&real.join("file")), Err(PrivateError::Kind { .. })));
        let made = std::process::Command::new("mkfifo")
            .args(["-m", "600"])
            .arg(real.join("pipe"))
            .status();
        assert!(made.unwrap().success());
        assert_eq!(
            open(&real, "pipe").unwrap_err(),
            wrong_kind(&real.join("pipe"), "regular file")
        );
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        // Every machine has a directory that is not ours, unless we are root; then there is nobody to be protected from.
        let (at, owner) = if us() == 0 {
            let root = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(root.path(), Some(65534), None).unwrap();
            (root.keep(), 65534)
        } else {
            (PathBuf::from("/proc/1"), 0)
        };
        let refused = directory(&at);
        if us() == 0 {
            fs::remove_dir(&at).unwrap();
        }
        assert_eq!(
            refused,
            Err(PrivateError::Owner {
                path: at,
                owner,
                us: us()
            })
        );
    }
}
