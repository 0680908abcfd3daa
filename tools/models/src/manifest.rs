//! Manifest of a folder of models that were made on this machine: what made them, and each file with its size and SHA-256.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// The manifest's file.
pub const MANIFEST: &str = "manifest.json";

/// The largest manifest that is read: one of 128 models has 110 kB.
const LARGEST: u64 = 16 << 20;

/// What was made, and how.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the way in which the files are made.
    pub recipe: u32,
    /// The SHA-256 of the sources that were compiled.
    pub sources: String,
    /// The models, by name.
    pub models: Vec<Made>,
}

/// A model.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// Its name.
    pub name: String,
    /// Its number of tokens.
    pub vocabulary: u64,
    /// Its files.
    pub files: Vec<MadeFile>,
}

/// A file of a model.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MadeFile {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl Manifest {
    /// Whether a folder has what this recipe makes of these sources: the manifest is written last, and each file has the size that it names.
    #[must_use]
    pub fn holds(folder: &Path, recipe: u32, sources: &str) -> bool {
        let Some(manifest) = Self::read(folder) else {
            return false;
        };
        let mut files = manifest.models.iter().flat_map(|model| &model.files);
        let same = manifest.recipe == recipe && manifest.sources == sources && !manifest.models.is_empty();
        same && files.all(|file| {
            let found = folder.join(&file.name).metadata();
            found.is_ok_and(|found| found.is_file() && found.len() == file.bytes)
        })
    }

    /// The manifest of a folder, if it has a whole one.
    fn read(folder: &Path) -> Option<Self> {
        let path = folder.join(MANIFEST);
        let size = path.metadata().ok()?.len();
        let text = (size <= LARGEST).then(|| std::fs::read(path))?.ok()?;
        serde_json::from_slice(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn manifest() -> Manifest {
        let file = |name: &str, bytes| MadeFile {
            name: name.to_owned(),
            bytes,
            sha256: "0".repeat(64),
        };
        Manifest {
            recipe: 3,
            sources: "s".to_owned(),
            models: vec![Made {
                name: "m".to_owned(),
                vocabulary: 128,
                files: vec![file("m.gguf", 3), file("m.logits", 2)],
            }],
        }
    }

    /// A folder with the manifest's files.
    fn folder(manifest: &Manifest) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("m.gguf"), "abc").expect("written");
        fs::write(folder.path().join("m.logits"), "ab").expect("written");
        let text = serde_json::to_vec(manifest).expect("JSON");
        fs::write(folder.path().join(MANIFEST), text).expect("written");
        folder
    }

    #[test]
    fn a_folder_counts_only_whole_and_of_the_same_recipe_and_sources() {
        let folder = folder(&manifest());
        let folder = folder.path();
        let holds = || Manifest::holds(folder, 3, "s");
        assert!(holds());
        assert!(!Manifest::holds(folder, 4, "s"), "another recipe");
        assert!(!Manifest::holds(folder, 3, "t"), "other sources");

        fs::write(folder.join("m.logits"), "a").expect("written");
        assert!(!holds(), "a file that was cut off");
        fs::write(folder.join("m.logits"), "ab").expect("written");
        assert!(holds());
        fs::remove_file(folder.join("m.gguf")).expect("removed");
        assert!(!holds(), "a file is missing");
        fs::write(folder.join("m.gguf"), "abc").expect("written");

        fs::write(folder.join(MANIFEST), "{\"recipe\": 3").expect("written");
        assert!(!holds(), "half a manifest");
        let empty = Manifest {
            models: Vec::new(),
            ..manifest()
        };
        fs::write(folder.join(MANIFEST), serde_json::to_vec(&empty).expect("JSON")).expect("written");
        assert!(!holds(), "no model");
        fs::remove_file(folder.join(MANIFEST)).expect("removed");
        assert!(!holds(), "no manifest");
    }
}
