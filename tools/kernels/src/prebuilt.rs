//! Files of `kernels/prebuilt`: a pack file for each family and target, `compiler.json`, and the table that embeds the packs.
//!
//! * `<target>/<family>.pack`: the family's code, with its [manifest](crate::manifest::Manifest). The format is in `rocmforge-code-object`, `pack`.
//! * `compiler.json`: compiler and flags, which all of them share.
//! * `packs.rs`: the table of the packs, which `rocmforge-kernels` includes.

use crate::compile::{self, sorted};
use crate::families::{Family, has_family, like_family};
use crate::manifest::Manifest;
use crate::targets::{TARGETS, fallback, near};
use crate::{KernelsError, at, read, workspace_root, write};
use rocmforge_code_object::{CodeObject, Needed, PackFile};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What all packs share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shared {
    /// First line of the compiler's `--version`.
    pub(crate) compiler: String,
    /// The compiler's arguments except for source, target, output and path map.
    flags: Vec<String>,
    /// The same for PTX.
    ptx_flags: Vec<String>,
}

impl Shared {
    /// As it is with this compiler and the flags of this tool.
    pub(crate) fn with(compiler: &str) -> Self {
        let texts = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect();
        Self {
            compiler: compiler.to_owned(),
            flags: texts(compile::FLAGS),
            ptx_flags: texts(compile::PTX_FLAGS),
        }
    }

    pub(crate) fn read() -> Result<Self, KernelsError> {
        read_json(&folder().join("compiler.json"))
    }

    pub(crate) fn write(&self) -> Result<(), KernelsError> {
        write_json(&folder().join("compiler.json"), self)
    }
}

/// A pack file and its manifest.
pub(crate) struct Pack {
    pub(crate) manifest: Manifest,
    pub(crate) file: PackFile,
    /// The near target and the like family that its file is stored against; neither if that is not written yet.
    against: [Option<String>; 2],
}

impl Pack {
    /// The pack of a family that was compiled.
    pub(crate) fn new(target: &str, family: &str, object: Vec<u8>, manifest: Manifest) -> Result<Self, KernelsError> {
        let text = serde_json::to_string(&manifest).map_err(|e| KernelsError::Manifest(e.to_string()))?;
        let objects = BTreeMap::from([(family.to_owned(), object)]);
        let file = PackFile::new(target, &text, &objects).map_err(of(path(target, family)))?;
        let against = [None, None];
        Ok(Self {
            manifest,
            file,
            against,
        })
    }

    /// The committed pack.
    pub(crate) fn load(target: &str, family: &str) -> Result<Self, KernelsError> {
        Self::load_from(&folder(), target, family)
    }

    /// The pack below such a folder.
    pub(crate) fn load_from(folder: &Path, target: &str, family: &str) -> Result<Self, KernelsError> {
        let path = path_in(folder, target, family);
        let file = PackFile::open(&path).map_err(of(&path))?;
        if file.target() != target || file.object(family).is_none() || file.objects().count() != 1 {
            let why = format!("{}: it is not for {family} of {target}", path.display());
            return Err(KernelsError::Manifest(why));
        }
        let manifest = serde_json::from_str(file.manifest());
        let manifest = manifest.map_err(|e| KernelsError::Manifest(format!("{}: {e}", path.display())))?;
        let bytes = read(&path)?;
        let needs = PackFile::needs(&bytes).map_err(of(&path))?;
        let against = needs.map(|needed| match needed? {
            Needed::Target(name) | Needed::Name(name) => Some(name.to_owned()),
        });
        Ok(Self {
            manifest,
            file,
            against,
        })
    }

    /// The family's code.
    pub(crate) fn object(&self, family: &str) -> &[u8] {
        self.file.object(family).unwrap_or_default()
    }

    /// Whether its file is stored against the near target and the like family that are stated today.
    pub(crate) fn is_stored_as_stated(&self, families: &[Family], family: &str) -> bool {
        let target = self.file.target();
        let near = near_of(families, target, family).map(str::to_owned);
        self.against == [near, like_of(families, target, family)]
    }

    /// The compiler that made it.
    pub(crate) fn compiler<'a>(&'a self, shared: &'a Shared) -> &'a str {
        self.manifest.compiler.as_deref().unwrap_or(&shared.compiler)
    }

    /// Whether its manifest says of the code what the code says of itself.
    pub(crate) fn is_described(&self, object: &CodeObject) -> bool {
        let manifest = &self.manifest;
        Manifest::of(manifest.inputs.clone(), manifest.compiler.clone(), object) == *manifest
    }
}

/// `kernels/prebuilt`.
pub(crate) fn folder() -> PathBuf {
    workspace_root().join("kernels/prebuilt")
}

pub(crate) fn path(target: &str, family: &str) -> PathBuf {
    path_in(&folder(), target, family)
}

/// Where a pack lies below such a folder.
pub(crate) fn path_in(folder: &Path, target: &str, family: &str) -> PathBuf {
    folder.join(target).join(format!("{family}.pack"))
}

/// The families that lie there, by target.
pub(crate) fn files() -> Result<BTreeMap<String, BTreeSet<String>>, KernelsError> {
    let mut found = BTreeMap::new();
    let folder = folder();
    for entry in std::fs::read_dir(&folder).map_err(at(&folder))? {
        let path = entry.map_err(at(&folder))?.path();
        if !path.is_dir() {
            continue;
        }
        let packs = sorted(&path, "pack")?;
        let families = packs.iter().map(|name| name.trim_end_matches(".pack").to_owned());
        if let (Some(target), true) = (path.file_name(), !packs.is_empty()) {
            found.insert(target.to_string_lossy().into_owned(), families.collect());
        }
    }
    Ok(found)
}

/// All targets: those that are committed, and those that lie there.
pub(crate) fn targets() -> Result<Vec<String>, KernelsError> {
    let mut all: BTreeSet<String> = files()?.into_keys().collect();
    all.extend(TARGETS.map(|target| target.arch.to_owned()));
    Ok(all.into_iter().collect())
}

/// The target against whose pack that of `target` is compressed: the near one, or the fallback, if it has the family.
pub(crate) fn near_of(families: &[Family], target: &str, family: &str) -> Option<&'static str> {
    let mut stated = near(target).into_iter().chain(fallback(target));
    stated.find(|stated| has_family(families, stated, family))
}

/// The family against whose pack for `target` that of `family` is compressed, if that target has it.
pub(crate) fn like_of(families: &[Family], target: &str, family: &str) -> Option<String> {
    like_family(family).filter(|like| has_family(families, target, like))
}

/// The Rust file that embeds the packs into `rocmforge-kernels`.
pub(crate) fn registry(files: &BTreeMap<String, BTreeSet<String>>) -> String {
    let mut text = "// Written by `cargo xtask kernels build`.\n\n\
        /// Every target, and the one that has the families which it lacks.\n\
        pub(crate) static TARGETS: &[(&str, Option<&str>)] = &[\n"
        .to_owned();
    for target in files.keys() {
        text += &format!("    ({target:?}, {:?}),\n", fallback(target));
    }
    text += "];\n\n/// Every family, with its file for each target.\n\
        pub(crate) static FILES: &[(&str, &[File])] = &[\n";
    let families: BTreeSet<&String> = files.values().flatten().collect();
    for family in families {
        let having = files.iter().filter(|(_, families)| families.contains(family));
        let targets: Vec<String> = having.map(|(target, _)| format!("{target:?}")).collect();
        text += &format!("    files!({family:?}: {}),\n", targets.join(" "));
    }
    text + "];\n"
}

/// Writes a file if its bytes are not there yet, in one step, so that an end half-way leaves no half file. Gives whether it was written.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<bool, KernelsError> {
    if std::fs::read(path).is_ok_and(|known| known == bytes) {
        return Ok(false);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(at(folder))?;
    }
    let temporary = path.with_extension(format!("{}.new", std::process::id()));
    write(&temporary, bytes)?;
    std::fs::rename(&temporary, path).map_err(at(path))?;
    Ok(true)
}

/// What a file of JSON holds.
pub(crate) fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, KernelsError> {
    serde_json::from_slice(&read(path)?).map_err(|e| KernelsError::Manifest(format!("{}: {e}", path.display())))
}

/// Writes a file of JSON.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), KernelsError> {
    let mut text = serde_json::to_string_pretty(value).map_err(|e| KernelsError::Manifest(e.to_string()))?;
    text.push('\n');
    replace(path, text.as_bytes()).map(drop)
}

/// The error of a pack file.
pub(crate) fn of(path: impl Into<PathBuf>) -> impl FnOnce(rocmforge_code_object::PackError) -> KernelsError {
    let path = path.into();
    |source| KernelsError::Pack { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::FAMILIES;

    #[test]
    fn a_pack_is_stored_against_the_near_target_or_the_fallback() {
        let near = |target, family| near_of(FAMILIES, target, family);
        assert_eq!(near("gfx1101", "packed16_q4_0"), Some("gfx1100"));
        assert_eq!(near("sm_90a", "sum_parts"), Some("sm_75"));
        assert_eq!(near("sm_90a", "packed16_q4_0"), Some("sm_80"), "sm_75 has none");
        assert_eq!(near("sm_90a", "paged16_hopper"), None);
    }

    #[test]
    fn the_table_names_every_file_once() {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let files = BTreeMap::from([
            ("sm_75".to_owned(), set(&["add"])),
            ("sm_80".to_owned(), set(&["add", "gemm"])),
        ]);
        let text = registry(&files);
        for line in [
            "    (\"sm_75\", None),",
            "    (\"sm_80\", Some(\"sm_75\")),",
            "    files!(\"add\": \"sm_75\" \"sm_80\"),",
            "    files!(\"gemm\": \"sm_80\"),",
        ] {
            assert_eq!(text.lines().filter(|l| *l == line).count(), 1, "{line}");
        }
    }

    #[test]
    fn a_pack_in_the_place_of_another_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = read(&path("gfx1100", "copy")).unwrap();
        for (target, family) in [("gfx1100", "copy"), ("gfx1100", "mask"), ("gfx1201", "copy")] {
            replace(&path_in(folder.path(), target, family), &bytes).unwrap();
            let loaded = Pack::load_from(folder.path(), target, family).map_err(|e| e.to_string());
            match (target, family) {
                ("gfx1100", "copy") => assert!(loaded.is_ok()),
                _ => assert!(loaded.err().unwrap().contains(&format!("not for {family} of {target}"))),
            }
        }
    }

    /// Each commit that changes a family adds as much to every clone.
    #[test]
    fn a_family_has_less_than_200_kilobytes_for_all_targets() {
        let mut sizes = BTreeMap::<String, u64>::new();
        for (target, families) in files().unwrap() {
            for family in families {
                let bytes = std::fs::metadata(path(&target, &family)).unwrap().len();
                *sizes.entry(family).or_default() += bytes;
            }
        }
        sizes.retain(|_, bytes| *bytes >= 200_000);
        assert!(
            sizes.is_empty(),
            "compile the sources of {sizes:?} by type or size: VARIED in families.rs"
        );
    }

    #[test]
    fn a_file_is_written_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/a.pack");
        assert!(replace(&path, b"one").unwrap());
        assert!(!replace(&path, b"one").unwrap());
        assert!(replace(&path, b"two").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path().join("new")).unwrap().count(), 1);
    }
}
