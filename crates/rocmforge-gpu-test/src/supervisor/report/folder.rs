//! Folder of reports: a list in it says what a run wrote, and a new run deletes exactly that.
//!
//! The list may have been changed by anybody, so each of its paths is checked to stay in the folder, no link is followed, and
//! only regular files are deleted. What is not in the list stays, and is never overwritten. A run locks its folder while it
//! writes: runs on two cards at once need two folders.

use crate::beneath::{self, inside};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// The list's name in the folder.
pub(crate) const LIST: &str = ".rocmforge-reports.json";
/// The folder of a simulated card's lock: another run may hold it.
const LOCK: &str = "lock";
/// The version of the list's format.
const VERSION: u32 = 1;
/// The longest list, in bytes: that of some 300,000 test runs.
const LONGEST: u64 = 64 << 20;

/// Why a folder cannot take reports.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages are the documentation
pub enum FolderError {
    #[error("{path} is there and no run of this command wrote it: move it away, or name another folder with --reports")]
    NotOurs { path: PathBuf },
    #[error(
        "{path}, the list of what a run wrote here, cannot be used: {why}. Name another folder with --reports, or remove the list \
         and the reports that you do not need"
    )]
    List { path: PathBuf, why: String },
    #[error(
        "the list of the files that this run would write to {path} has {bytes} bytes, and {LONGEST} are the most: run fewer tests or \
         rounds at once"
    )]
    TooMany { path: PathBuf, bytes: u64 },
    #[error("another run is writing its reports to {path}: wait for its end, or name another folder with --reports")]
    InUse { path: PathBuf },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
}

/// What a run wrote, relative to the folder.
#[derive(Debug, Default, Serialize, Deserialize)]
struct List {
    version: u32,
    files: BTreeSet<String>,
    /// Folders that it made.
    #[serde(default)]
    folders: BTreeSet<String>,
}

/// A folder that this run may write its reports to.
#[derive(Debug)]
pub(crate) struct ReportFolder {
    path: PathBuf,
    root: OwnedFd,
    list: List,
}

impl ReportFolder {
    /// Deletes what the run before wrote to `path`, and prepares the folder for `files` in it and in `folders`, which are made.
    pub(crate) fn claim(
        path: &Path,
        folders: &[&str],
        files: impl IntoIterator<Item = String>,
    ) -> Result<Self, FolderError> {
        fs::create_dir_all(path).map_err(at(path))?;
        let root = beneath::open_root(path).map_err(at(path))?;
        match flock(&root, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(FolderError::InUse { path: path.to_owned() }),
            Err(error) => return Err(at(path)(error.into())),
        }
        let mut folder = Self {
            path: path.to_owned(),
            root,
            list: List::default(),
        };
        let kept = folder.delete_old()?;
        let files: BTreeSet<String> = files.into_iter().collect();
        for file in &files {
            if folder.exists(file)? {
                return Err(folder.not_ours(file));
            }
        }
        let mut ours = kept;
        for name in folders {
            match beneath::kind(folder.root.as_fd(), Path::new(name)) {
                Ok(None) => ours.insert((*name).to_owned()),
                Ok(Some(rustix::fs::FileType::Directory)) => false,
                _ => return Err(folder.not_ours(name)),
            };
        }
        folder.list = List {
            version: VERSION,
            files,
            folders: ours,
        };
        folder.write_list()?;
        for name in folders {
            beneath::make_folder(folder.root.as_fd(), Path::new(name)).map_err(at(&path.join(name)))?;
        }
        Ok(folder)
    }

    /// Opens a folder in it.
    pub(crate) fn open(&self, name: &str) -> Result<OwnedFd, FolderError> {
        beneath::open_folder(self.root.as_fd(), Path::new(name)).map_err(at(&self.path.join(name)))
    }

    /// Refuses a folder that [`claim`](Self::claim) would refuse for these files, and changes nothing.
    pub(crate) fn check(path: &Path, files: &[&str]) -> Result<(), FolderError> {
        let folder = Self::reopen(path)?;
        for file in files {
            if !folder.list.files.contains(*file) && folder.exists(file)? {
                return Err(folder.not_ours(file));
            }
        }
        Ok(())
    }

    /// The folder as a run left it, to add a report to.
    pub(crate) fn reopen(path: &Path) -> Result<Self, FolderError> {
        let mut folder = Self {
            path: path.to_owned(),
            root: beneath::open_root(path).map_err(at(path))?,
            list: List::default(),
        };
        folder.list = folder.read_list()?.unwrap_or_default();
        folder.list.version = VERSION;
        Ok(folder)
    }

    /// Refuses a folder with files that no run wrote: for one whose files are not known before they are written.
    pub(crate) fn require_empty(&self) -> Result<(), FolderError> {
        match self.found()?.first() {
            Some(other) => Err(self.not_ours(other)),
            None => Ok(()),
        }
    }

    /// Writes a report, in one step, and lists it.
    pub(crate) fn write(&mut self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        if !self.list.files.contains(name) {
            if self.exists(name)? {
                return Err(self.not_ours(name));
            }
            self.list.files.insert(name.to_owned());
            self.write_list()?;
        }
        self.replace(name, bytes)
    }

    /// Shortens the list to what is there.
    pub(crate) fn finish(mut self) -> Result<(), FolderError> {
        let root = self.root.as_fd();
        let is_file = |path: &String| {
            let kind = beneath::kind(root, Path::new(path));
            matches!(kind, Ok(Some(rustix::fs::FileType::RegularFile)))
        };
        self.list.files.retain(is_file);
        self.write_list()
    }

    /// Lists everything that is there: of a folder that was [empty](Self::require_empty).
    pub(crate) fn finish_with_all(mut self) -> Result<(), FolderError> {
        self.list.files.extend(self.found()?);
        self.write_list()
    }

    /// Files and links in the folder and below its own folders, except for the list.
    fn found(&self) -> Result<Vec<String>, FolderError> {
        let mut found = Vec::new();
        let mut open = vec![PathBuf::new()];
        while let Some(folder) = open.pop() {
            let place = self.path.join(&folder);
            for entry in fs::read_dir(&place).map_err(at(&place))? {
                let entry = entry.map_err(at(&place))?;
                let path = folder.join(entry.file_name());
                let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
                match path.to_str() {
                    _ if path == Path::new(LIST) || path == Path::new(LOCK) => {}
                    _ if is_folder => open.push(path),
                    Some(path) => found.push(path.to_owned()),
                    None => {
                        return Err(FolderError::NotOurs {
                            path: place.join(entry.file_name()),
                        });
                    }
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// Deletes what the list names. The folders of its own that are not empty after that.
    fn delete_old(&self) -> Result<BTreeSet<String>, FolderError> {
        let Some(old) = self.read_list()? else {
            return Ok(BTreeSet::new());
        };
        for file in &old.files {
            beneath::remove_file(self.root.as_fd(), Path::new(file)).map_err(at(&self.path.join(file)))?;
        }
        // Those within others first.
        let gone = |folder: &&String| !beneath::remove_empty_folder(self.root.as_fd(), Path::new(folder.as_str()));
        Ok(old.folders.iter().rev().filter(gone).cloned().collect())
    }

    fn read_list(&self) -> Result<Option<List>, FolderError> {
        let refused = |why: String| FolderError::List {
            path: self.path.join(LIST),
            why,
        };
        let file = match beneath::open_file(self.root.as_fd(), Path::new(LIST)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(format!("it is {error}"))),
        };
        let mut text = Vec::new();
        let read = file.take(LONGEST + 1).read_to_end(&mut text);
        read.map_err(at(&self.path.join(LIST)))?;
        if text.len() as u64 > LONGEST {
            return Err(refused(format!("it has more than {LONGEST} bytes")));
        }
        let list: List = serde_json::from_slice(&text).map_err(|error| refused(error.to_string()))?;
        if list.version != VERSION {
            return Err(refused(format!(
                "its version is {}, and {VERSION} is known",
                list.version
            )));
        }
        let mut all = list.files.iter().chain(&list.folders);
        match all.find(|path| !inside(Path::new(path.as_str()))) {
            Some(outside) => Err(refused(format!("{outside:?} in it does not lie in the folder"))),
            None => Ok(Some(list)),
        }
    }

    fn write_list(&self) -> Result<(), FolderError> {
        let text = serde_json::to_vec_pretty(&self.list).map_err(io::Error::other);
        let text = text.map_err(at(&self.path))?;
        if text.len() as u64 > LONGEST {
            return Err(FolderError::TooMany {
                path: self.path.clone(),
                bytes: text.len() as u64,
            });
        }
        self.replace(LIST, &text)
    }

    /// Writes a file in the folder that was opened, whatever its path leads to by now.
    fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), FolderError> {
        beneath::replace(self.root.as_fd(), Path::new(name), bytes).map_err(at(&self.path.join(name)))
    }

    fn exists(&self, name: &str) -> Result<bool, FolderError> {
        match beneath::kind(self.root.as_fd(), Path::new(name)) {
            Ok(kind) => Ok(kind.is_some()),
            // A folder on the way is none: nothing is written through it.
            Err(_) => Err(self.not_ours(Path::new(name).parent().and_then(Path::to_str).unwrap_or(name))),
        }
    }

    fn not_ours(&self, name: &str) -> FolderError {
        FolderError::NotOurs {
            path: self.path.join(name),
        }
    }
}

impl Drop for ReportFolder {
    fn drop(&mut self) {
        // Closing is not enough: a process that is being started has a copy of the descriptor until it runs its program.
        let _ = flock(&self.root, FlockOperation::Unlock);
    }
}

/// A folder of reports within another, made where it is not there. A link in its place is refused.
pub(crate) fn within(folder: &Path, name: &str) -> Result<PathBuf, FolderError> {
    let path = folder.join(name);
    let root = beneath::open_root(folder).map_err(at(folder))?;
    match beneath::kind(root.as_fd(), Path::new(name)).map_err(at(&path))? {
        None => fs::create_dir_all(&path).map_err(at(&path))?,
        Some(rustix::fs::FileType::Directory) => {}
        Some(_) => return Err(FolderError::NotOurs { path }),
    }
    Ok(path)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::File { path, source }
}

#[cfg(test)]
mod tests;
