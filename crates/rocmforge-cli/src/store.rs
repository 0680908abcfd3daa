//! Store: the folder with the models that were pulled.
//!
//! It is `$ROCMFORGE_STORE`, else `rocmforge/models` in `$XDG_DATA_HOME`, else in `~/.local/share`. Each model has a folder of its own, whose name
//! is that of the model in a form that every file system takes, and in it a file [`MANIFEST`]: what is in the folder, and where it came from. The
//! manifest is written last, so a model with one is whole.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::pull;

/// The file of a model's folder that says what is in it.
const MANIFEST: &str = "rocmforge.json";

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
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        if let Some(root) = std::env::var_os("ROCMFORGE_STORE").filter(|root| !root.is_empty()) {
            return Ok(Self { root: root.into() });
        }
        let data = absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")));
        let data = data.ok_or("neither ROCMFORGE_STORE nor XDG_DATA_HOME nor HOME says where models should lie")?;
        Ok(Self {
            root: data.join("rocmforge/models"),
        })
    }

    /// The folder of a model, there or not.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.root.join(folder_name(name))
    }

    /// The model of this name, if it is there.
    pub(crate) fn find(&self, name: &str) -> io::Result<Option<Entry>> {
        read(&self.folder(name))
    }

    /// All models, by their names.
    pub(crate) fn list(&self) -> io::Result<Vec<Entry>> {
        let folders = match std::fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut entries = Vec::new();
        for folder in folders {
            entries.extend(read(&folder?.path())?);
        }
        entries.sort_by(|a: &Entry, b| a.manifest.name.cmp(&b.manifest.name));
        Ok(entries)
    }

    /// Writes a model's manifest, after all of its files.
    pub(crate) fn finish(&self, manifest: &Manifest) -> Result<(), Failure> {
        let folder = self.folder(&manifest.name);
        let file = new_file(&folder)?;
        serde_json::to_writer_pretty(&file, manifest)?;
        file.as_file().sync_all()?;
        file.persist(folder.join(MANIFEST))?;
        Ok(())
    }

    /// A store beside this one's models, for what is to replace one of them.
    pub(crate) fn beside(&self) -> Self {
        Self {
            root: self.root.join(".new"),
        }
    }

    /// Puts a model of [`Self::beside`] in the place of one that is there.
    pub(crate) fn replace(&self, old: &Entry, new: &Entry) -> Result<Entry, Failure> {
        let mut gone = new.folder.clone().into_os_string();
        gone.push(".old");
        // What an ended process has left.
        let _ = std::fs::remove_dir_all(&gone);
        std::fs::rename(&old.folder, &gone)?;
        if let Err(error) = std::fs::rename(&new.folder, &old.folder) {
            std::fs::rename(&gone, &old.folder)?;
            return Err(error.into());
        }
        std::fs::remove_dir_all(&gone)?;
        // Parts of other models may be there.
        let _ = std::fs::remove_dir(self.beside().root);
        let entry = self.find(&new.manifest.name)?;
        entry.ok_or_else(|| format!("{} was removed while it was pulled", new.manifest.name).into())
    }

    /// Removes a model, its manifest first: what is left of it is no model.
    pub(crate) fn remove(&self, entry: &Entry) -> io::Result<()> {
        std::fs::remove_file(entry.folder.join(MANIFEST))?;
        std::fs::remove_dir_all(&entry.folder)
    }

    /// Where the model lies that a user calls `name`: a path, a model of the store, or one that [`pull`] knows, which is fetched.
    ///
    /// # Errors
    /// No model has this name, or the model cannot be fetched.
    pub(crate) fn path_of(&self, name: &str) -> Result<PathBuf, Failure> {
        if Path::new(name).exists() {
            return Ok(name.into());
        }
        if let Some(entry) = self.find(name)? {
            return Ok(entry.path());
        }
        if pull::is_known(name) {
            return Ok(pull::pull(self, name, None)?.path());
        }
        let known = pull::known_names().collect::<Vec<_>>().join(", ");
        Err(format!(
            "there is no file, folder or model {name}: `rocmforge list` shows the models here, `rocmforge pull` fetches others ({known}, \
             hf:OWNER/REPO:QUANT, a URL or a path)"
        )
        .into())
    }
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
pub(crate) fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    parts.all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir))
}

/// A name as the name of a folder: letters, digits, `.`, `-` and `_` as they are, others as `%` and two hexadecimal digits. A dot at the begin too.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'.' if index > 0 => folder.push('.'),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => folder.push(byte as char),
            _ => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    folder
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

    #[test]
    fn models_are_found_by_their_names_and_removed() {
        let root = tempfile::tempdir().expect("a folder");
        let store = Store {
            root: root.path().join("models"),
        };
        assert!(store.list().expect("no folder is no model").is_empty());
        for name in ["smollm2", "hf:owner/repo:Q4_K_M", "../../etc", ".", "a b"] {
            assert!(store.find(name).expect("nothing").is_none());
            std::fs::create_dir_all(store.folder(name)).expect("a folder");
            assert!(store.find(name).expect("no manifest").is_none());
            store.finish(&manifest(name)).expect("written");
            let entry = store.find(name).expect("readable").expect("there");
            assert_eq!((entry.manifest.name.as_str(), entry.bytes()), (name, 5));
            assert_eq!(entry.folder.parent(), Some(store.root.as_path()), "{name}");
        }
        let names: Vec<String> = (store.list().expect("readable").into_iter())
            .map(|entry| entry.manifest.name)
            .collect();
        assert_eq!(names, [".", "../../etc", "a b", "hf:owner/repo:Q4_K_M", "smollm2"]);
        let entry = store.find("smollm2").expect("readable").expect("there");
        store.remove(&entry).expect("removed");
        assert!(store.find("smollm2").expect("readable").is_none());
        assert!(!entry.folder.exists());
    }

    #[test]
    fn a_manifest_that_names_files_of_other_folders_is_refused() {
        let root = tempfile::tempdir().expect("a folder");
        let store = Store {
            root: root.path().to_owned(),
        };
        for open in ["../x", "/etc/passwd", "a/../../x"] {
            std::fs::create_dir_all(store.folder("m")).expect("a folder");
            let manifest = Manifest {
                open: open.to_owned(),
                ..manifest("m")
            };
            store.finish(&manifest).expect("written");
            let error = store.find("m").expect_err("outside").to_string();
            assert!(error.contains("another folder"), "{error}");
        }
    }
}
