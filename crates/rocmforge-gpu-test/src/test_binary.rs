//! Test binaries: where cargo's messages say that they are, and why there are none.

use serde::Deserialize;
use std::collections::BTreeSet;
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
    #[error(
        "two tests are called {id}, of {first} and of {second}: they would share a log and a result. Rename one, or run the binaries one \
         at a time"
    )]
    SameName { id: String, first: String, second: String },
    #[error("{path}: {source}")]
    Binary { path: String, source: std::io::Error },
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
    package_id: Option<String>,
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

/// Test binaries that somebody built already. Each is called after its file without cargo's hash; where two would be called the same,
/// all are called after their files, and where that is not enough after their paths.
///
/// # Errors
///
/// [`DiscoverError::Binary`] with the first that is not there.
pub fn given(executables: &[PathBuf]) -> Result<Vec<TestBinary>, DiscoverError> {
    let found = executables.iter().map(|path| {
        path.canonicalize().map_err(|source| DiscoverError::Binary {
            path: path.display().to_string(),
            source,
        })
    });
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    let [.., by_path] = NAMES;
    let differ = |name: &fn(&Path) -> String| {
        let names: BTreeSet<String> = found.iter().map(|path| name(path)).collect();
        names.len() == found.len()
    };
    let name = NAMES.into_iter().find(differ).unwrap_or(by_path);
    let binaries = found.into_iter().map(|executable| TestBinary {
        package: name(&executable),
        directory: executable.parent().unwrap_or(Path::new("/")).to_owned(),
        executable,
    });
    Ok(binaries.collect())
}

/// What a binary may be called after, the shortest first.
const NAMES: [fn(&Path) -> String; 3] = [
    // Cargo puts a hash behind the name.
    |path| {
        let stem = text(path.file_stem());
        stem.rsplit_once('-').map_or(stem.clone(), |(name, _)| name.to_owned())
    },
    |path| text(path.file_name()),
    |path| path.display().to_string(),
];

fn text(name: Option<&std::ffi::OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
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
    // A package and its folder may have different names, and two folders may have the same name.
    let package = match message.package_id.as_deref().and_then(package_name) {
        Some(name) => name.to_owned(),
        None => directory.file_name()?.to_str()?.to_owned(),
    };
    Some(TestBinary {
        package,
        executable: message.executable?,
        directory,
    })
}

/// The name in one of cargo's package ids: `path+file:///w/core#core-x@0.1.0`, `path+file:///w/core-x#0.1.0`, or, before Rust 1.77,
/// `core-x 0.1.0 (path+file:///w/core)`.
fn package_name(id: &str) -> Option<&str> {
    let name = match (id.split_once(' '), id.split_once('#')) {
        (Some((name, _)), _) => name,
        (None, Some((_, named))) if named.contains('@') => named.split('@').next()?,
        (None, Some((url, _))) => url.split('?').next()?.rsplit('/').next()?,
        (None, None) => return None,
    };
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    (!name.is_empty() && name.chars().all(is_part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_called_as_its_manifest_says_whatever_its_folder_is_called() {
        for (id, name) in [
            ("path+file:///w/x/core#core-x@0.1.0", Some("core-x")),
            ("path+file:///w/core-x#0.1.0", Some("core-x")),
            ("core-x 0.1.0 (path+file:///w/x/core)", Some("core-x")),
            (
                "git+https://example.org/a/core_x.git?branch=b#core_x@1.0.0",
                Some("core_x"),
            ),
            ("registry+https://example.org/index#core@1.0.0+meta", Some("core")),
            ("nothing", None),
            ("path+file:///w/#0.1.0", None),
            ("path+file:///w/x#../../etc@0.1.0", None),
        ] {
            assert_eq!(package_name(id), name, "{id}");
        }
    }

    #[test]
    fn two_packages_in_folders_of_one_name_are_two() {
        let message = |folder: &str| {
            serde_json::json!({
                "reason": "compiler-artifact",
                "package_id": format!("path+file:///w/{folder}/core#core-{folder}@0.1.0"),
                "target": { "name": "gpu", "kind": ["test"] },
                "manifest_path": format!("/w/{folder}/core/Cargo.toml"),
                "executable": format!("/w/target/debug/deps/gpu-{folder}"),
            })
            .to_string()
        };
        let messages = [message("y"), message("x")].join("\n");
        let found = binaries(messages.as_bytes(), "test", "gpu").unwrap();
        let packages: Vec<&str> = found.iter().map(|binary| binary.package.as_str()).collect();
        assert_eq!(packages, ["core-x", "core-y"]);
    }

    #[test]
    fn given_binaries_are_called_after_their_files_as_far_as_that_tells_them_apart() {
        let folder = tempfile::tempdir().unwrap();
        let named = |files: &[&str]| {
            let paths = files.iter().map(|file| {
                let path = folder.path().join(file);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(&path, "").unwrap();
                path
            });
            let found = given(&paths.collect::<Vec<_>>()).unwrap();
            found.into_iter().map(|binary| binary.package).collect::<Vec<_>>()
        };
        assert_eq!(named(&["gpu-0123456789abcdef"]), ["gpu"]);
        assert_eq!(named(&["a/gpu-1", "b/other-2"]), ["gpu", "other"]);
        assert_eq!(named(&["a/gpu-1", "b/gpu-2", "other-3"]), ["gpu-1", "gpu-2", "other-3"]);
        let place = folder.path().canonicalize().unwrap();
        let paths = ["a/gpu-1", "b/gpu-1"].map(|file| place.join(file).display().to_string());
        assert_eq!(named(&["a/gpu-1", "b/gpu-1"]), paths);
        let missing = given(&[folder.path().join("none")]).unwrap_err().to_string();
        assert!(missing.contains("none: No such file"), "{missing}");
    }
}
