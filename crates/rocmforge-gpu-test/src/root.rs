//! Root of the workspace, found when a program runs.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// The root of the workspace whose program runs: above the package that cargo names to what it runs (`CARGO_MANIFEST_DIR`), or above the current directory
/// where cargo started nothing. It is found at run time: where clones of a repository share a target folder, cargo may run the program that another clone
/// has built. The current directory, if it is in no workspace: what is looked for there is absent, and named.
#[must_use]
pub fn root_at_run_time() -> &'static Path {
    static ROOT: LazyLock<PathBuf> = LazyLock::new(|| {
        let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
        let current = || std::env::current_dir().ok();
        (package.as_deref().and_then(root_above))
            .or_else(|| root_above(&current()?))
            .unwrap_or_else(|| PathBuf::from("."))
    });
    &ROOT
}

/// The nearest folder from `folder` upwards whose `Cargo.toml` has a table `[workspace]`.
fn root_above(folder: &Path) -> Option<PathBuf> {
    let is_root = |folder: &&Path| {
        let manifest = std::fs::read_to_string(folder.join("Cargo.toml"));
        manifest.is_ok_and(|text| text.lines().any(|line| line.trim() == "[workspace]"))
    };
    folder.ancestors().find(is_root).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two clones: a program asks for the root of the package that it is run for, not of the one that it was built in.
    #[test]
    fn the_root_is_above_the_package_that_is_run() {
        let folder = tempfile::tempdir().unwrap();
        for clone in ["one", "two"] {
            let package = folder.path().join(clone).join("tools/kernels");
            std::fs::create_dir_all(&package).unwrap();
            std::fs::write(package.join("Cargo.toml"), "[package]\n[lints]\nworkspace = true\n").unwrap();
            std::fs::write(folder.path().join(clone).join("Cargo.toml"), "[workspace]\n").unwrap();
            assert_eq!(root_above(&package), Some(folder.path().join(clone)));
        }
        assert_eq!(root_above(folder.path()), None);
        assert!(root_at_run_time().join("crates/rocmforge-gpu-test").is_dir());
    }
}
