//! Paths in documents: each path of this repository that a document names, and each file that it links to, exists. A path that begins
//! with `src/` or `tests/` is one of the crate whose page it is, or of the only crate that the line names.

use std::path::{Component, Path, PathBuf};

/// Folders of the repository: a path in back quotes that starts with one of them is a path of ours.
const FOLDERS: &[&str] = &[
    "crates/",
    "docs/",
    "kernels/",
    "packaging/",
    "tools/",
    "xtask/",
    "checks/",
    "fuzz/",
];

/// Folders of a crate.
const IN_CRATE: &[&str] = &["src/", "tests/"];

/// The paths that a line of the document `path` names and that do not exist under `root`.
pub(super) fn missing(root: &Path, path: &Path, line: &str) -> Vec<String> {
    if path.extension().is_none_or(|extension| extension != "md") {
        return Vec::new();
    }
    let mut missing = Vec::new();
    let owner = owner(path, line).map(|owner| root.join(owner));
    for quoted in line.split('`').skip(1).step_by(2) {
        // A pattern, a placeholder or a command stands for several files or for none.
        let literal = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
        let ours = FOLDERS.iter().any(|folder| quoted.starts_with(folder));
        if !quoted.chars().all(literal) || quoted.contains("NAME") {
            continue;
        }
        let own = IN_CRATE.iter().any(|folder| quoted.starts_with(folder));
        let full = if ours {
            Some(root.into())
        } else {
            owner.clone().filter(|_| own)
        };
        if full.is_some_and(|base: PathBuf| !base.join(quoted).exists()) {
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

/// The crate that a path without one belongs to: that of the page, else the only one that the line names. `None` if it is not clear.
fn owner(page: &Path, line: &str) -> Option<PathBuf> {
    let folder = page
        .parent()
        .filter(|folder| folder.parent() == Some(Path::new("crates")));
    if folder.is_some() {
        return folder.map(Path::to_owned);
    }
    let named = line.split("crates/").skip(1).map(|rest| {
        let end = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
        &rest[..end.unwrap_or(rest.len())]
    });
    let mut named: Vec<&str> = named.collect();
    named.sort_unstable();
    named.dedup();
    match named[..] {
        [one] => Some(Path::new("crates").join(one)),
        _ => None,
    }
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

    #[test]
    fn a_path_without_a_crate_is_looked_for_in_the_one_that_is_meant() {
        let in_page = |page: &str, line: &str| missing(workspace_root(), Path::new(page), line);
        assert_eq!(
            in_page("crates/rocmforge-isa/README.md", "`src/op.rs`, `src/none.rs`"),
            ["src/none.rs"]
        );
        let line = "`crates/rocmforge-isa/src/lib.rs`, `src/op.rs`, `tests/none.rs`";
        assert_eq!(in_page("docs/abi.md", line), ["tests/none.rs"]);
        assert!(in_page("docs/abi.md", "`tests/none.rs`").is_empty());
        assert!(
            in_page(
                "docs/abi.md",
                "`crates/rocmforge`, `crates/rocmforge-isa`, `tests/none.rs`"
            )
            .is_empty()
        );
    }
}
