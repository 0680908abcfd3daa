//! Cache of compiled families, so that a build compiles only what has changed.
//!
//! `target/kernels/cache/<target>/<family>` holds the last object, after the hash of all that went into it: the compiler, its flags,
//! the source and every header it includes. Only `kernels build` uses it; `kernels check` compiles everything.

use crate::compile::{flags, scratch, sha256};
use crate::{KernelsError, at, read, workspace_root, write};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The cache, for one compiler.
pub(crate) struct Cache<'a> {
    compiler: &'a str,
}

impl<'a> Cache<'a> {
    pub(crate) fn new(compiler: &'a str) -> Self {
        Self { compiler }
    }

    /// The object of a family: the one of the last build if nothing has changed, else what `compile` gives.
    pub(crate) fn object(
        &self,
        target: &str,
        family: &str,
        compile: impl FnOnce() -> Result<Vec<u8>, KernelsError>,
    ) -> Result<Vec<u8>, KernelsError> {
        let key = self.key(target, family)?;
        let place = workspace_root().join("target/kernels/cache").join(target).join(family);
        if let Ok(known) = std::fs::read(&place)
            && let Some(object) = known.strip_prefix(key.as_bytes())
        {
            return Ok(object.to_vec());
        }
        let object = compile()?;
        store(&place, &[key.as_bytes(), &object].concat())?;
        Ok(object)
    }

    fn key(&self, target: &str, family: &str) -> Result<String, KernelsError> {
        let mut read_files = BTreeMap::new();
        includes(&workspace_root().join(format!("kernels/{family}.hip")), &mut read_files)?;
        let mut text = format!("{}\n{target}\n{}\n", self.compiler, flags(target).join(" "));
        for (path, hash) in read_files {
            text += &format!("{hash}  {}\n", path.display());
        }
        Ok(sha256(text.as_bytes()))
    }
}

/// Hashes of a source and of all that it includes. The kernels include no system header: the compiler has no path to any.
fn includes(path: &Path, found: &mut BTreeMap<PathBuf, String>) -> Result<(), KernelsError> {
    if found.contains_key(path) {
        return Ok(());
    }
    let bytes = read(path)?;
    found.insert(path.to_owned(), sha256(&bytes));
    let text = String::from_utf8_lossy(&bytes);
    let folder = path.parent().unwrap_or(Path::new("."));
    for line in text.lines() {
        let directive = line.trim_start().strip_prefix('#').map(str::trim_start);
        let name = directive
            .and_then(|directive| directive.strip_prefix("include"))
            .and_then(|rest| rest.split('"').nth(1));
        if let Some(name) = name {
            includes(&folder.join(name), found)?;
        }
    }
    Ok(())
}

/// Writes in one step, so that a build which is ended half-way leaves no half object.
fn store(place: &Path, bytes: &[u8]) -> Result<(), KernelsError> {
    if let Some(folder) = place.parent() {
        std::fs::create_dir_all(folder).map_err(at(place))?;
    }
    let temporary = scratch("object")?;
    write(&temporary, bytes)?;
    std::fs::rename(&temporary, place).map_err(at(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_a_header_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("include")).unwrap();
        file("a.hip", "// a\n#include \"include/b.h\"\n");
        file("include/b.h", "#pragma once\n# include \"c.h\"\n");
        file("include/c.h", "#include \"b.h\"\n");
        let hashes = || {
            let mut found = BTreeMap::new();
            includes(&folder.path().join("a.hip"), &mut found).unwrap();
            found
        };
        let before = hashes();
        assert_eq!(before.len(), 3);
        file("include/c.h", "#include \"b.h\"\n// changed\n");
        assert_ne!(hashes(), before);
        file("include/c.h", "#include \"missing.h\"\n");
        let mut found = BTreeMap::new();
        assert!(includes(&folder.path().join("a.hip"), &mut found).is_err());
    }

    #[test]
    fn a_known_object_is_not_compiled_again() {
        // A target that nobody compiles for: its folder is this test's alone.
        let target = format!("test-{}", std::process::id());
        let cache = Cache::new("clang of a test");
        let folder = workspace_root().join("target/kernels/cache").join(&target);
        let made = cache.object(&target, "add", || Ok(b"object".to_vec())).unwrap();
        let again = cache.object(&target, "add", || panic!("compiled again"));
        let other = Cache::new("another clang").object(&target, "add", || Ok(b"another".to_vec()));
        std::fs::remove_dir_all(folder).unwrap();
        assert_eq!((made, again.unwrap()), (b"object".to_vec(), b"object".to_vec()));
        assert_eq!(other.unwrap(), b"another");
    }
}
