//! Narrowing of a build to the crates that a filter names.

use crate::cargo;
use crate::test_binary::Target;
use serde::Deserialize;
use std::path::Path;
use std::process::{Command, Stdio};

/// The part of `cargo metadata` that matters here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

/// The command that says which crates the workspace at `root` has. It builds nothing and uses no network.
pub(crate) fn metadata(root: &Path) -> Command {
    let mut command = cargo::command(root);
    command.args(["metadata", "--no-deps", "--offline", "--format-version", "1"]);
    command.stderr(Stdio::null());
    command
}

/// Names, for cargo's `-p`, of the crates with a test target `target` that `filter` can only mean: it begins with the crate's name and
/// `::`, or is a name or the beginning of names. Empty: it may mean any, or the answer cannot be read.
pub(crate) fn packages(metadata: &[u8], target: &str, filter: &str) -> Vec<String> {
    let Ok(Metadata { packages }) = serde_json::from_slice(metadata) else {
        return Vec::new();
    };
    let has_tests = |package: &&Package| package.targets.iter().any(|one| one.is("test", target));
    let is_meant = |package: &&Package| match filter.split_once("::") {
        Some((name, _)) => name == package.name,
        None => !filter.is_empty() && package.name.starts_with(filter),
    };
    let meant = packages.iter().filter(has_tests).filter(is_meant);
    meant.map(|package| package.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> String {
        let package = |name: &str, folder: &str, target: &str, kind: &str| {
            serde_json::json!({
                "name": name,
                "manifest_path": format!("/w/crates/{folder}/Cargo.toml"),
                "targets": [{ "name": name, "kind": ["lib"] }, { "name": target, "kind": [kind] }],
            })
        };
        let packages = [
            package("forge", "forge", "gpu", "test"),
            package("forge-kernels", "forge-kernels", "gpu", "test"),
            package("forge-memory", "forge-memory", "cpu", "test"),
            package("forge-bench", "forge-bench", "gpu", "bench"),
            package("models-of-forge", "models", "gpu", "test"),
        ];
        serde_json::json!({ "packages": packages }).to_string()
    }

    #[test]
    fn a_filter_that_names_crates_is_distinguished_from_one_that_may_mean_any() {
        let metadata = metadata();
        let of = |filter: &str| packages(metadata.as_bytes(), "gpu", filter).join(" ");
        for (filter, meant) in [
            ("forge::", "forge"),
            ("forge-kernels::softmax::row", "forge-kernels"),
            ("forge-kernels", "forge-kernels"),
            ("forge-ker", "forge-kernels"),
            // The name, and not the folder's.
            ("models-of-forge::layers", "models-of-forge"),
            ("models::layers", ""),
            ("forge", "forge forge-kernels"),
            // Without such a target, or of no crate: anything may match.
            ("forge-memory::", ""),
            ("forge-bench", ""),
            ("forge-ker::x", ""),
            ("softmax", ""),
            ("softmax::row", ""),
            ("kernels", ""),
            ("::", ""),
            ("", ""),
        ] {
            assert_eq!(of(filter), meant, "{filter}");
        }
        for noise in ["", "{", "[]", "{\"packages\":7}"] {
            assert!(packages(noise.as_bytes(), "gpu", "forge").is_empty(), "{noise}");
        }
    }
}
