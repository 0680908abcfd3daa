//! Store: the folder with the models that were pulled.
//!
//! It is `$ROCMFORGE_STORE`, else `rocmforge/models` in `$XDG_DATA_HOME`, else in `~/.local/share`. Each model has a folder of its own, whose name
//! is that of the model in a form that every file system takes, and in it a file [`MANIFEST`]: what is in the folder, and where it came from.
//!
//! A model is pulled into a folder beside its own, `.NAME.part`, by the one process that holds the lock `.NAME.lock`. When it is whole, the folder gets
//! the model's name ([`Locked`]). What an interrupted pull leaves is in `.NAME.part`, and the next one goes on with it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::failure::Failure;
use crate::folders;
use crate::pull::{self, hex};

/// The file of a model's folder that says what is in it.
const MANIFEST: &str = "rocmforge.json";

/// The longest name of a model's folder. File systems take 255 bytes, and `.NAME.part` is longer.
const LONGEST_FOLDER: usize = 200;

/// What a model's folder has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// What it was pulled by, and what `--model` takes.
    pub(crate) name: String,
    /// Where it came from: URLs, or a path.
    pub(crate) source: String,
    /// The file or the folder to open, as a path in the model's folder.
    pub(crate) open: String,
    /// All files.
    pub(crate) files: Vec<Pulled>,
}

/// A file that was pulled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Pulled {
    /// Its path in the model's folder.
    pub(crate) path: String,
    /// Its size.
    pub(crate) bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub(crate) sha256: String,
}

/// A model of the store.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What is in it.
    pub(crate) manifest: Manifest,
}

impl Entry {
    /// What to open.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join(&self.manifest.open)
    }

    /// Bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        let sizes = self.manifest.files.iter().map(|file| file.bytes);
        sizes.fold(0, u64::saturating_add)
    }
}

/// The folder of models.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    root: PathBuf,
}

impl Store {
    /// The user's.
    ///
    /// # Errors
    /// No variable of the environment says where the user's files lie.
    pub(crate) fn of_user() -> Result<Self, Failure> {
        if let Some(root) = std::env::var_os("ROCMFORGE_STORE").filter(|root| !root.is_empty()) {
            return Ok(Self { root: root.into() });
        }
        let data = folders::data();
        let data = data.ok_or("neither ROCMFORGE_STORE nor XDG_DATA_HOME nor HOME says where models should lie")?;
        Ok(Self {
            root: data.join("models"),
        })
    }

    /// The model of this name, if it is there.
    ///
    /// # Errors
    /// The name is empty, or the manifest cannot be read.
    pub(crate) fn find(&self, name: &str) -> Result<Option<Entry>, Failure> {
        Ok(read(&self.root.join(folder_name(name)?))?)
    }

    /// All models whose manifest can be read, by their names.
    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
        Ok(self.list_all()?.into_iter().flatten().collect())
    }

    /// All models, by their names. One whose manifest cannot be read is its folder's name and the error.
    pub(crate) fn list_all(&self) -> io::Result<Vec<Result<Entry, (String, io::Error)>>> {
        let folders = match std::fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            let folder = folder?;
            let name = folder.file_name().to_string_lossy().into_owned();
            // Locks, and models that are being pulled.
            if name.starts_with('.') {
                continue;
            }
            entries.extend(read(&folder.path()).map_err(|error| (name, error)).transpose());
        }
        entries.sort_by(|a, b| {
            let name = |entry: &Result<Entry, (String, io::Error)>| match entry {
                Ok(entry) => entry.manifest.name.clone(),
                Err((name, _)) => name.clone(),
            };
            name(a).cmp(&name(b))
        });
        Ok(entries)
    }

    /// The folder that `rm NAME` means: that of the model, or the one that [`Store::list_all`] shows for a manifest that cannot be read. There is a model
    /// in it, or the rest of an interrupted pull.
    ///
    /// # Errors
    /// There is neither.
    pub(crate) fn removable(&self, name: &str) -> Result<String, Failure> {
        let is_there = |folder: &String| {
            has_manifest(&self.root.join(folder)) || self.root.join(format!(".{folder}.part")).is_dir()
        };
        let mut folders = vec![folder_name(name)?];
        let is_folder = name.bytes().all(|byte| byte != b'/') && !name.starts_with('.');
        folders.extend(is_folder.then(|| name.to_owned()));
        let found = folders.into_iter().find(is_there);
        found.ok_or_else(|| format!("there is no model {name}: `rocmforge list` shows those that are here").into())
    }

    /// Locks a model's name for this process.
    ///
    /// # Errors
    /// The name is empty, another process has it locked, or the store cannot be written.
    pub(crate) fn lock(&self, name: &str) -> Result<Locked, Failure> {
        self.lock_folder(&folder_name(name)?)
    }

    /// Locks a folder, by a name that [`Store::removable`] gave.
    ///
    /// # Errors
    /// As [`Store::lock`].
    pub(crate) fn lock_folder(&self, folder: &str) -> Result<Locked, Failure> {
        let path = self.root.join(format!(".{folder}.lock"));
        let failed = |error: io::Error| format!("{} cannot be written: {error}", path.display());
        std::fs::create_dir_all(&self.root).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        let file = loop {
            let file = options.open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let folder = self.root.join(folder);
                    return Err(format!(
                        "another process is fetching or removing {}; wait for it",
                        folder.display()
                    )
                    .into());
                }
                Err(TryLockError::Error(error)) => return Err(failed(error).into()),
            }
            // The process that held the lock before removes its file: what was opened may be a file that no other process sees.
            let ours = file.metadata().map_err(failed)?;
            match path.metadata() {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => break file,
                _ => {}
            }
        };
        let locked = Locked {
            model: self.root.join(folder),
            part: self.root.join(format!(".{folder}.part")),
            old: self.root.join(format!(".{folder}.old")),
            path,
            _file: file,
        };
        locked.recover()?;
        Ok(locked)
    }

    /// Where the model lies that a user calls `name`: a path, a model of the store, or one that [`pull`] knows, which is fetched.
    ///
    /// # Errors
    /// No model has this name, or the model cannot be fetched.
    pub(crate) fn path_of(&self, name: &str) -> Result<PathBuf, Failure> {
        if pull::is_known(name) && !Path::new(name).exists() && self.find(name)?.is_none() {
            return Ok(pull::pull(self, name)?.path());
        }
        self.path_here(name)
    }

    /// The same, and nothing is fetched.
    ///
    /// # Errors
    /// No model here has this name.
    pub(crate) fn path_here(&self, name: &str) -> Result<PathBuf, Failure> {
        if Path::new(name).exists() {
            return Ok(name.into());
        }
        if let Some(entry) = self.find(name)? {
            return Ok(entry.path());
        }
        let known = pull::known_names().collect::<Vec<_>>().join(", ");
        Err(format!(
            "there is no file, folder or model {name}: `rocmforge list` shows the models here, `rocmforge pull` fetches others ({known}, \
             hf:OWNER/REPO:QUANT, a URL or a path)"
        )
        .into())
    }
}

/// A model's name that is locked for this process, until it is dropped.
#[derive(Debug)]
pub(crate) struct Locked {
    /// The model's folder, there or not.
    model: PathBuf,
    /// The folder that the model is pulled into.
    part: PathBuf,
    /// Where the model lies for the moment in which another takes its place.
    old: PathBuf,
    path: PathBuf,
    _file: File,
}

impl Locked {
    /// Puts back, or removes, what a process left that was ended while it replaced the model.
    fn recover(&self) -> io::Result<()> {
        match (self.old.exists(), self.model.exists()) {
            (false, _) => Ok(()),
            (true, false) => std::fs::rename(&self.old, &self.model),
            (true, true) => std::fs::remove_dir_all(&self.old),
        }
    }

    /// The model, if it is there.
    pub(crate) fn entry(&self) -> io::Result<Option<Entry>> {
        read(&self.model)
    }

    /// The folder to pull the model into, with what an interrupted pull left in it.
    ///
    /// # Errors
    /// It cannot be made, or in the model's place lies a folder that is no model.
    pub(crate) fn part(&self) -> Result<&Path, Failure> {
        if self.model.symlink_metadata().is_ok() && !has_manifest(&self.model) {
            return Err(format!(
                "{} is in the way: without a file {MANIFEST} it is no model of the store. Move it to another place",
                self.model.display()
            )
            .into());
        }
        let made = std::fs::create_dir_all(&self.part);
        made.map_err(|error| format!("{} cannot be made: {error}", self.part.display()))?;
        Ok(&self.part)
    }

    /// Puts the model that was pulled in its place. A model that is there already is removed, when the new one has its name.
    pub(crate) fn finish(&self, manifest: Manifest) -> Result<Entry, Failure> {
        self.remove_others(&manifest)?;
        let file = new_file(&self.part)?;
        serde_json::to_writer_pretty(&file, &manifest)?;
        file.as_file().sync_all()?;
        file.persist(self.part.join(MANIFEST))?;
        if self.model.exists() {
            std::fs::rename(&self.model, &self.old)?;
        }
        let placed = std::fs::rename(&self.part, &self.model);
        // Puts the old one back if that failed.
        self.recover()?;
        placed?;
        Ok(Entry {
            folder: self.model.clone(),
            manifest,
        })
    }

    /// Removes what interrupted pulls of other files left.
    fn remove_others(&self, manifest: &Manifest) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.part)? {
            let path = entry?.path();
            let begins = |file: &Pulled| self.part.join(&file.path).starts_with(&path);
            if !manifest.files.iter().any(begins) {
                remove(&path)?;
            }
        }
        Ok(())
    }

    /// Removes what was pulled so far.
    pub(crate) fn remove_part(&self) -> io::Result<()> {
        remove(&self.part)
    }

    /// Removes the model, and what an interrupted pull left. A model that is partly removed is not listed.
    pub(crate) fn remove(&self) -> io::Result<()> {
        self.remove_part()?;
        if has_manifest(&self.model) {
            std::fs::rename(&self.model, &self.part)?;
        }
        self.remove_part()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // While the lock is held: whoever opened the file before finds that it has no name any more.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Whether a folder is a model of the store, readable or not. Other folders are the user's.
fn has_manifest(folder: &Path) -> bool {
    folder.join(MANIFEST).symlink_metadata().is_ok()
}

/// Removes a file or a folder; nothing there is no error.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match path.symlink_metadata() {
        Ok(metadata) if metadata.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}

/// A file without a name of its own yet, which other users may read as the umask says.
pub(crate) fn new_file(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let permissions = std::fs::Permissions::from_mode(0o666);
    tempfile::Builder::new().permissions(permissions).tempfile_in(folder)
}

/// A model's folder, if it has a manifest.
fn read(folder: &Path) -> io::Result<Option<Entry>> {
    let text = match std::fs::read(folder.join(MANIFEST)) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        other => other?,
    };
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| {
        let path = folder.join(MANIFEST);
        io::Error::other(format!("{} cannot be read: {error}", path.display()))
    })?;
    let is_inside = is_inside(&manifest.open) && manifest.files.iter().all(|file| is_inside(&file.path));
    if !is_inside {
        let path = folder.join(MANIFEST);
        return Err(io::Error::other(format!(
            "{} names a file of another folder",
            path.display()
        )));
    }
    Ok(Some(Entry {
        folder: folder.to_owned(),
        manifest,
    }))
}

/// Whether a path stays in the folder that it is joined to.
fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Whether a model's folder may have a file of this path: it stays in the folder, and is not the store's own.
pub(crate) fn is_allowed(path: &str) -> bool {
    is_inside(path) && Path::new(path).components().all(|part| part.as_os_str() != MANIFEST)
}

/// A name as the name of a folder: letters, digits, `.`, `-` and `_` as they are, others as `%` and two hexadecimal digits. So is a dot at the start.
/// A long name is its start, `~` and a hash.
///
/// # Errors
/// The name is empty: the folder would be the store.
fn folder_name(name: &str) -> Result<String, Failure> {
    if name.is_empty() {
        return Err("the name of a model is empty".into());
    }
    let mut folder = String::new();
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if index > 0 => folder.push('.'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => folder.push(byte as char),
            _ => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    if folder.len() > LONGEST_FOLDER {
        let hash = hex(&Sha256::digest(name)[..16]);
        folder.truncate(LONGEST_FOLDER - hash.len() - 1);
        folder = format!("{folder}~{hash}");
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest(name: &str) -> Manifest {
        Manifest {
            name: name.to_owned(),
            source: "a test".to_owned(),
            open: "a.gguf".to_owned(),
            files: vec![Pulled {
                path: "a.gguf".to_owned(),
                bytes: 5,
                sha256: "0".repeat(64),
            }],
        }
    }

    /// Puts a model with this manifest into the store.
    fn put(store: &Store, manifest: Manifest) -> Entry {
        let locked = store.lock(&manifest.name).expect("free");
        std::fs::write(locked.part().expect("made").join("a.gguf"), b"model").expect("written");
        locked.finish(manifest).expect("placed")
    }

    fn names(store: &Store) -> Vec<String> {
        let entries = store.list_all().expect("readable").into_iter();
        let name = |entry: Result<Entry, (String, io::Error)>| {
            entry.map_or_else(|(name, _)| format!("bad {name}"), |entry| entry.manifest.name)
        };
        entries.map(name).collect()
    }

    #[test]
    fn models_are_found_by_their_names_and_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let store = Store {
            root: root.path().join("models"),
        };
        assert!(names(&store).is_empty(), "no folder is no model");
        let long = "x/".repeat(300);
        for name in ["smollm2", "hf:owner/repo:Q4_K_M", "../../etc", ".", "a b", &long] {
            assert!(store.find(name).expect("nothing").is_none());
            put(&store, manifest(name));
            let entry = store.find(name).expect("readable").expect("there");
            assert_eq!((entry.manifest.name.as_str(), entry.bytes()), (name, 5));
            assert_eq!(entry.folder.parent(), Some(store.root.as_path()), "{name}");
        }
        assert_eq!(
            names(&store),
            [".", "../../etc", "a b", "hf:owner/repo:Q4_K_M", "smollm2", &long]
        );
        let folder = store.removable("smollm2").expect("there");
        store.lock_folder(&folder).expect("free").remove().expect("removed");
        assert!(store.find("smollm2").expect("readable").is_none());
        assert!(store.removable("smollm2").is_err());
        assert_eq!(std::fs::read_dir(&store.root).expect("there").count(), 5);
    }

    /// Names that differ have folders that differ, and none is empty, hidden or longer than a file system takes.
    #[test]
    fn folders_of_models_have_names_that_file_systems_take() {
        let long = "é".repeat(500);
        let longer = format!("{long}x");
        let names = [
            ".",
            "..",
            "a",
            "%2E",
            "/",
            "\0",
            &"a".repeat(200),
            &"a".repeat(201),
            &long,
            &longer,
        ];
        let folders: Vec<String> = names.iter().map(|name| folder_name(name).expect("a name")).collect();
        for (index, folder) in folders.iter().enumerate() {
            assert!(!folders[..index].contains(folder), "{folder}");
            assert!(
                (1..=LONGEST_FOLDER).contains(&folder.len()) && !folder.starts_with('.'),
                "{folder}"
            );
        }
        assert!(folder_name("").is_err());
    }

    #[test]
    fn what_an_ended_process_left_is_put_right() {
        let root = tempfile::tempdir().expect("a folder");
        let store = Store {
            root: root.path().to_owned(),
        };
        put(&store, manifest("m"));
        // Ended between the two renames, then after them.
        std::fs::rename(root.path().join("m"), root.path().join(".m.old")).expect("renamed");
        assert!(store.find("m").expect("readable").is_none());
        let locked = store.lock("m").expect("free");
        assert!(locked.entry().expect("readable").is_some());
        assert!(store.lock("m").is_err(), "one at a time");
        std::fs::create_dir(root.path().join(".m.old")).expect("made");
        drop(locked);
        // Files of other pulls do not come into the model.
        let locked = store.lock("m").expect("free");
        std::fs::create_dir_all(locked.part().expect("made").join("x/y")).expect("made");
        std::fs::write(locked.part().expect("made").join("b.part"), b"").expect("written");
        drop(locked);
        let entry = put(&store, manifest("m"));
        let mut files: Vec<_> = (std::fs::read_dir(entry.folder).expect("there"))
            .map(|file| file.expect("read").file_name())
            .collect();
        files.sort();
        assert_eq!(files, ["a.gguf", MANIFEST]);
        assert_eq!(std::fs::read_dir(root.path()).expect("there").count(), 1);
    }

    #[test]
    fn a_manifest_that_names_files_of_other_folders_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let store = Store {
            root: root.path().to_owned(),
        };
        for open in ["../x", "/etc/passwd", "a/../../x"] {
            let mut manifest = manifest("m");
            manifest.open = open.to_owned();
            put(&store, manifest);
            let error = store.find("m").expect_err("outside").to_string();
            assert!(error.contains("another folder"), "{error}");
            assert_eq!(names(&store), ["bad m"]);
        }
        for path in ["rocmforge.json", "./rocmforge.json", "rocmforge.json/x", "../x"] {
            assert!(!is_allowed(path), "{path}");
        }
        assert!(is_allowed("BF16/a.gguf"));
    }
}
