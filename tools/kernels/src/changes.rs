//! Changes of committed files: which packs a check compiles again.

use crate::{KernelsError, at, workspace_root};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Files that have changed since a commit, or every file.
pub(crate) struct Changes {
    /// Relative to the workspace. `None`: every file.
    files: Option<BTreeSet<PathBuf>>,
    said: String,
}

impl Changes {
    pub(crate) fn everything() -> Self {
        Self {
            files: None,
            said: "all packs".to_owned(),
        }
    }

    /// The files that differ from a commit, those included that git does not know yet. Without a commit: from where this branch left `origin/HEAD`, or on that
    /// branch itself from the commit before. Gives the reason if there is no such commit.
    pub(crate) fn since(commit: Option<&str>) -> Result<Result<Self, String>, KernelsError> {
        Self::since_in(workspace_root(), commit)
    }

    fn since_in(root: &Path, commit: Option<&str>) -> Result<Result<Self, String>, KernelsError> {
        let verified = |name: &str| {
            git(
                root,
                &["rev-parse", "--verify", "--quiet", &format!("{name}^{{commit}}")],
            )
        };
        let base = match commit {
            Some(name) => match verified(name)? {
                Some(base) => base,
                None => return Err(KernelsError::NoCommit { name: name.to_owned() }),
            },
            None => {
                let Some(head) = verified("HEAD")? else {
                    return Ok(Err("there is no git history; --all compiles all packs".to_owned()));
                };
                let left = git(root, &["merge-base", "HEAD", "origin/HEAD"])?.filter(|left| *left != head);
                let Some(base) = left.map_or_else(|| verified("HEAD^"), |left| Ok(Some(left)))? else {
                    let why = "git does not have the commit before this one; --all compiles all packs";
                    return Ok(Err(why.to_owned()));
                };
                base
            }
        };
        let mut files = BTreeSet::new();
        for words in [
            &["diff", "--name-only", "--no-renames", "-z", &base][..],
            &["ls-files", "--others", "--exclude-standard", "-z"],
        ] {
            let listed = git(root, words)?.unwrap_or_default();
            files.extend(listed.split('\0').filter(|path| !path.is_empty()).map(PathBuf::from));
        }
        let short: String = base.chars().take(10).collect();
        Ok(Ok(Self {
            files: Some(files),
            said: format!("packs that have changed since commit {short}"),
        }))
    }

    /// Whether a file of the workspace has changed.
    pub(crate) fn has(&self, path: &Path) -> bool {
        let path = path.strip_prefix(workspace_root()).unwrap_or(path);
        self.files.as_ref().is_none_or(|files| files.contains(path))
    }

    /// Which files these are, in words.
    pub(crate) fn said(&self) -> &str {
        &self.said
    }
}

/// What git prints, unless it fails.
fn git(root: &Path, words: &[&str]) -> Result<Option<String>, KernelsError> {
    let output = match Command::new("git").args(words).current_dir(root).output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(at("git")(error)),
    };
    let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    Ok(output.status.success().then_some(printed))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(root: &Path, name: &str, text: &str) {
        std::fs::write(root.join(name), text).unwrap();
        for words in [
            &["add", "."][..],
            &[
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b.c",
                "commit",
                "--quiet",
                "--no-gpg-sign",
                "-m",
                name,
            ],
        ] {
            assert!(git(root, words).unwrap().is_some(), "{words:?}");
        }
    }

    #[test]
    fn what_a_commit_and_the_working_tree_change_counts() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let since = |commit| Changes::since_in(root, commit);
        assert!(since(None).unwrap().is_err(), "no repository");
        git(root, &["init", "--quiet"]).unwrap();
        commit(root, "a", "1");
        assert!(since(None).unwrap().is_err(), "no commit before");
        commit(root, "b", "1");
        commit(root, "c", "1");
        std::fs::write(root.join("d"), "new").unwrap();
        std::fs::write(root.join("a"), "2").unwrap();
        let names = |commit| {
            let changes = since(commit).unwrap().unwrap();
            ["a", "b", "c", "d"].map(|name| changes.has(Path::new(name)))
        };
        assert_eq!(names(None), [true, false, true, true]);
        assert_eq!(names(Some("HEAD")), [true, false, false, true]);
        assert_eq!(names(Some("HEAD~2")), [true, true, true, true]);
        assert!(matches!(since(Some("nowhere")), Err(KernelsError::NoCommit { .. })));
        assert!(Changes::everything().has(Path::new("b")));
    }
}
