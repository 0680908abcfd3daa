//! Test binaries: where cargo's messages say that they are, and why there are none.

use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// The most tests of a binary, and the most bytes of a test's name.
pub(crate) const MOST_TESTS: usize = 100_000;
pub(crate) const LONGEST_NAME: usize = 1024;

/// A built test binary.
#[derive(Clone, Debug)]
pub struct TestBinary {
    /// The crate's name.
    pub package: String,
    /// The binary.
    pub executable: PathBuf,
    /// The crate's folder: tests run there, as under `cargo test`.
    pub directory: PathBuf,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages are the documentation
pub enum DiscoverError {
    #[error("building the GPU tests failed ({0}); the compiler's messages are above")]
    Build(ExitStatus),
    #[error("no crate has a {0} target `{1}` (for tests: tests/{1}/main.rs)")]
    NoTargets(&'static str, String),
    #[error("{binary} cannot list its tests: {end}")]
    List { binary: String, end: String },
    #[error("{binary} writes too much where it should list its tests: more than {most} bytes")]
    Flood { binary: String, most: usize },
    #[error("{binary} lists more than {MOST_TESTS} tests, and these are the most: split it into several crates")]
    TooManyTests { binary: String },
    #[error(
        "{binary} lists a test whose name has {bytes} bytes, and {LONGEST_NAME} are the most: give it a shorter one"
    )]
    LongName { binary: String, bytes: usize },
    #[error("{binary} lists a test whose name cannot be printed: `{name}`")]
    Name { binary: String, name: String },
    #[error("{binary} lists no test: a GPU target without a test is a mistake; add one, or remove the target")]
    NoTests { binary: String },
    #[error("the bundle has no {0} target: make it again, from a workspace with tests/{0}/main.rs in a crate")]
    EmptyBundle(&'static str),
    #[error("interrupted")]
    Interrupted,
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

/// A target, as cargo describes it.
#[derive(Deserialize)]
pub(crate) struct Target {
    name: String,
    kind: Vec<String>,
}

impl Target {
    pub(crate) fn is(&self, kind: &str, name: &str) -> bool {
        self.name == name && self.kind.iter().any(|of| of == kind)
    }
}

/// A test binary that somebody built already.
///
/// # Errors
///
/// It is not there.
pub fn given(executable: &Path) -> io::Result<TestBinary> {
    let executable = executable.canonicalize()?;
    let stem = executable.file_stem().unwrap_or_default().to_string_lossy();
    // Cargo puts a hash behind the name.
    let package = stem.rsplit_once('-').map_or(stem.as_ref(), |(name, _)| name).to_owned();
    Ok(TestBinary {
        package,
        directory: executable.parent().unwrap_or(Path::new("/")).to_owned(),
        executable,
    })
}

/// The binaries of targets of this kind (`test`) and name that cargo's messages name.
///
/// # Errors
///
/// The messages cannot be read, or name none.
pub fn binaries(messages: &[u8], kind: &'static str, target: &str) -> Result<Vec<TestBinary>, DiscoverError> {
    let mut binaries = Vec::new();
    for line in messages
        .split(|&byte| byte == b'\n')
        .filter(|line| line.starts_with(b"{"))
    {
        let message: Message = serde_json::from_slice(line)?;
        binaries.extend(binary(message, kind, target));
    }
    binaries.sort_by(|a, b| a.package.cmp(&b.package));
    if binaries.is_empty() {
        Err(DiscoverError::NoTargets(kind, target.to_owned()))
    } else {
        Ok(binaries)
    }
}

fn binary(message: Message, kind: &str, name: &str) -> Option<TestBinary> {
    let target = message.target?;
    if message.reason != "compiler-artifact" || !target.is(kind, name) {
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
