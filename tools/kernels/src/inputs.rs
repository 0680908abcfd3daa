//! Inputs of a compilation: the hash of all that a family's code depends on, so that only what has changed is compiled.
//!
//! It covers the source, every header that it includes, every file that it embeds, the compiler's flags and its pinned release. A pack file keeps the hash of its inputs.

use crate::compile::{PINNED, flags, sha256};
use crate::{KernelsError, families, read, workspace_root};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Hash of the inputs of a family for a target.
pub(crate) fn hash(target: &str, family: &str) -> Result<String, KernelsError> {
    let flags = [flags(target), families::defines(family)].concat();
    hash_of(workspace_root(), &families::source(family), &flags.join(" "))
}

/// The same for a source of the workspace and the flags that it is compiled with.
pub(crate) fn hash_of(root: &Path, source: &str, flags: &str) -> Result<String, KernelsError> {
    let mut files = BTreeMap::new();
    includes(&root.join(source), &mut files)?;
    let mut text = format!("clang {PINNED}\n{flags}\n");
    for (path, hash) in files {
        // Where the workspace lies makes no difference.
        let path = path.strip_prefix(root).unwrap_or(&path).to_owned();
        text += &format!("{hash}  {}\n", path.display());
    }
    Ok(sha256(text.as_bytes()))
}

/// Hashes of a source and of all that it includes or embeds. The kernels include no system header: the compiler has no path to any.
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
            .and_then(|directive| {
                ["include", "embed"]
                    .iter()
                    .find_map(|name| directive.strip_prefix(name))
            })
            .and_then(|rest| rest.split('"').nth(1));
        if let Some(name) = name {
            includes(&folder.join(name), found)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with a source, a header, and a header of that.
    fn sources() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("include")).unwrap();
        file("a.hip", "// a\n#include \"include/b.h\"\n");
        file("include/b.h", "#pragma once\n# include \"c.h\"\n");
        file("include/c.h", "#include \"b.h\"\n");
        file("include/other.h", "");
        folder
    }

    #[test]
    fn a_header_of_a_header_and_the_flags_count() {
        let folder = sources();
        let hash = |flags: &str| hash_of(folder.path(), "a.hip", flags).unwrap();
        let before = hash("-O3");
        assert_ne!(hash("-O2"), before);
        std::fs::write(folder.path().join("include/other.h"), "// nobody includes it\n").unwrap();
        assert_eq!(hash("-O3"), before);
        std::fs::write(folder.path().join("include/c.h"), "#include \"b.h\"\n// changed\n").unwrap();
        assert_ne!(hash("-O3"), before);
        std::fs::write(folder.path().join("include/c.h"), "#include \"missing.h\"\n").unwrap();
        assert!(hash_of(folder.path(), "a.hip", "-O3").is_err());
    }

    #[test]
    fn an_embedded_file_counts() {
        let folder = sources();
        let hash = || hash_of(folder.path(), "a.hip", "-O3");
        std::fs::write(folder.path().join("include/c.h"), "#embed \"d.bin\"\n").unwrap();
        assert!(hash().is_err(), "it is not there");
        let hashes = [0xFFu8, 0xFE].map(|byte| {
            std::fs::write(folder.path().join("include/d.bin"), [byte, 0x80]).unwrap();
            hash().unwrap()
        });
        assert_ne!(hashes[0], hashes[1]);
    }

    #[test]
    fn the_workspaces_place_does_not_count() {
        let (here, there) = (sources(), sources());
        let hash = |folder: &tempfile::TempDir| hash_of(folder.path(), "a.hip", "-O3").unwrap();
        assert_eq!(hash(&here), hash(&there));
    }
}
