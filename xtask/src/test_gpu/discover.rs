//! Which GPU tests there are: one target named `gpu` in each crate that has any.

use crate::workspace_root;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A built test binary.
#[derive(Clone, Debug)]
pub(crate) struct TestBinary {
    /// The crate's name.
    pub(crate) package: String,
    /// The binary.
    pub(crate) executable: PathBuf,
    /// The crate's folder: tests run there, as under `cargo test`.
    pub(crate) directory: PathBuf,
}

/// One test of a binary.
#[derive(Clone, Debug)]
pub(crate) struct Test {
    pub(crate) binary: TestBinary,
    /// libtest's name.
    pub(crate) name: String,
    /// Whether it is marked `#[ignore]`.
    pub(crate) ignored: bool,
}

impl Test {
    /// `crate::test`, unique in the workspace.
    pub(crate) fn id(&self) -> String {
        format!("{}::{}", self.binary.package, self.name)
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DiscoverError {
    #[error("building the GPU tests failed (status {0}); the compiler's messages are above")]
    Build(std::process::ExitStatus),
    #[error("no crate has a test target `gpu` (tests/gpu/main.rs)")]
    NoTargets,
    #[error("{binary} cannot list its tests (status {status})")]
    List {
        binary: String,
        status: std::process::ExitStatus,
    },
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error("cargo's build messages could not be read: {0}")]
    Json(#[from] serde_json::Error),
}

/// The part of `cargo --message-format=json` that matters here.
#[derive(Deserialize)]
struct Message {
    reason: String,
    target: Option<Target>,
    executable: Option<PathBuf>,
    manifest_path: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

/// Builds every crate's `gpu` test target.
pub(crate) fn build() -> Result<Vec<TestBinary>, DiscoverError> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["test", "--workspace", "--all-features", "--no-run", "--test", "gpu"]);
    command.args(["--message-format", "json-render-diagnostics"]);
    let output = command
        .current_dir(workspace_root())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(DiscoverError::Build(output.status));
    }
    let mut binaries = Vec::new();
    for line in output
        .stdout
        .split(|&byte| byte == b'\n')
        .filter(|line| line.starts_with(b"{"))
    {
        let message: Message = serde_json::from_slice(line)?;
        binaries.extend(gpu_binary(message));
    }
    binaries.sort_by(|a, b| a.package.cmp(&b.package));
    if binaries.is_empty() {
        Err(DiscoverError::NoTargets)
    } else {
        Ok(binaries)
    }
}

fn gpu_binary(message: Message) -> Option<TestBinary> {
    let target = message.target?;
    if message.reason != "compiler-artifact" || target.name != "gpu" || !target.kind.iter().any(|kind| kind == "test") {
        return None;
    }
    let directory = message.manifest_path?.parent()?.to_owned();
    let package = directory.file_name()?.to_str()?.to_owned();
    Some(TestBinary {
        package,
        executable: message.executable?,
        directory,
    })
}

/// Lists the tests of each binary, ignored ones marked.
pub(crate) fn list(binaries: &[TestBinary]) -> Result<Vec<Test>, DiscoverError> {
    let mut tests = Vec::new();
    for binary in binaries {
        let ignored = names(&binary.executable, &["--list", "--format", "terse", "--ignored"])?;
        for name in names(&binary.executable, &["--list", "--format", "terse"])? {
            tests.push(Test {
                binary: binary.clone(),
                ignored: ignored.contains(&name),
                name,
            });
        }
    }
    Ok(tests)
}

fn names(executable: &Path, arguments: &[&str]) -> Result<Vec<String>, DiscoverError> {
    let output = Command::new(executable).args(arguments).output()?;
    if !output.status.success() {
        return Err(DiscoverError::List {
            binary: executable.display().to_string(),
            status: output.status,
        });
    }
    Ok(parse_listing(&String::from_utf8_lossy(&output.stdout)))
}

fn parse_listing(listing: &str) -> Vec<String> {
    listing
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::parse_listing;

    #[test]
    fn a_listing_is_one_test_a_line_and_benches_are_not_tests() {
        let listing = "softmax::row_of_33: test\nrope::small: test\nspeed: benchmark\n\n2 tests, 1 benchmark\n";
        assert_eq!(parse_listing(listing), ["softmax::row_of_33", "rope::small"]);
    }
}
