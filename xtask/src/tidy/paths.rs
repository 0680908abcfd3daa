//! Paths in documents: each path of this repository that a document names, and each file that it links to, exists.

use std::path::{Component, Path, PathBuf};

/// Folders of the repository: a path in back quotes that starts with one of them is a path of ours.
const FOLDERS: &[&str] = &["crates/", "docs/", "kernels/", "tools/", "xtask/", "checks/", "fuzz/"];

/// The paths that a line of the document `path` names and that do not exist under `root`.
pub(super) fn missing(root: &Path, path: &Path, line: &str) -> Vec<String> {
    if path.extension().is_none_or(|extension| extension != "md") {
        return Vec::new();
    }
    let mut missing = Vec::new();
    for quoted in line.split('`').skip(1).step_by(2) {
        // A pattern, a placeholder or a command stands for several files or for none.
        let literal = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let ours = FOLDERS.iter().any(|folder| quoted.starts_with(folder));
        if ours && quoted.chars().all(literal) && !quoted.contains("NAME") && !root.join(quoted).exists() {
            missing.push(quoted.to_owned());
        }
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    for link in line.split("](").skip(1) {
        let target = link.split([')', '#', ' ']).next().unwrap_or_default();
        if !target.is_empty() && !target.contains("://") && !root.join(normal(&folder.join(target))).exists() {
            missing.push(target.to_owned());
        }
    }
    missing
}

/// A path without `..`, which a file system would look up in the folder that a link leads to.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                parts.pop();
            }
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace_root;

    #[test]
    fn a_path_that_is_not_there_is_named() {
        let page = Path::new("docs/page.md");
        let line =
            "see `crates/rocmforge/src/lib.rs`, `kernels/*.hip` and [memory](memory.md#budget), [out](https://x.y/z)";
        assert_eq!(missing(workspace_root(), page, line), Vec::<String>::new());
        let line = "see `crates/rocmforge/src/none.rs` and [none](none.md)";
        assert_eq!(
            missing(workspace_root(), page, line),
            ["crates/rocmforge/src/none.rs", "none.md"]
        );
        assert_eq!(
            missing(workspace_root(), page, "`crates/none` [up](../README.md)"),
            ["crates/none"]
        );
        assert!(missing(workspace_root(), Path::new("a.rs"), "`crates/none`").is_empty());
    }
}
